"""How long tuple trees are under way between executors, under an assignment.

The network path of a topology is the mean, over the tuple trees of its slowest spout, of what the network adds until
the last tuple has arrived (`tuple_trees`), where each hop takes half a round trip.

Where acks are measured, the path is the network's part of what Storm calls complete latency and our hook counts.
Storm's acker takes the time from the first message that it sees about a tuple tree, mostly the spout's own, to the last
one (Storm 2.8, Acker and AckObject); the spout passes that figure on as it is (SpoutExecutor.tupleActionFn), to its
hooks too. So the way of the last ack to the acker counts, the way of the spout's message to the acker is taken off, and
the way of the acker's answer to the spout is no part of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from storm_operator.core.arrays import NOWHERE, Floats, Ints
from storm_operator.core.model import ACKER_COMPONENT, ComponentKind, Topology
from storm_operator.core.placed_traffic import PlacedTraffic
from storm_operator.core.traffic import TrafficMatrix
from storm_operator.core.tuple_trees import Edges, Hops, slowest_trees_ms


def network_paths_ms(
    topologies: Sequence[Topology], traffic: TrafficMatrix, placed: PlacedTraffic, between_workers_ms: float
) -> Mapping[str, float]:
    """By topology id, the network's part of the complete latency of the slowest spout's tuple trees.

    `placed` is of executors as `traffic` numbers them; those that have no place take no part.
    """
    delays_ms = placed.between_ms(between_workers_ms) / 2.0
    return {topology.id: _path_ms(topology, traffic, placed, delays_ms) for topology in topologies}


def _path_ms(topology: Topology, traffic: TrafficMatrix, placed: PlacedTraffic, delays_ms: Floats) -> float:
    begin, end = traffic.rows_within(topology.id)
    number = {component.name: at for at, component in enumerate(topology.components)}
    running = frozenset(topology.executors)
    rows = traffic.executors[begin:end]
    component_of = np.array([number[e.component] if e in running else NOWHERE for e in rows], dtype=np.int64)
    own = slice(*np.searchsorted(placed.sources, (begin, end)))
    sources, targets = placed.sources[own] - begin, placed.targets[own] - begin
    edges = _edges(component_of, sources, targets, placed.per_second[own], delays_ms[own])
    acker = number.get(ACKER_COMPONENT, NOWHERE)
    spouts = [at for at, component in enumerate(topology.components) if component.kind is ComponentKind.SPOUT]
    from_others = {edge: hops for edge, hops in edges.items() if edge[0] != acker}
    return slowest_trees_ms(len(component_of), from_others, spouts, acker)


def _edges(component_of: Ints, sources: Ints, targets: Ints, per_second: Floats, delays_ms: Floats) -> Edges:
    """The hops between each two components that exchange tuples. Pairs come sorted by their sources."""
    components = int(component_of.max(initial=0)) + 1
    known = np.flatnonzero((component_of[sources] != NOWHERE) & (component_of[targets] != NOWHERE))
    edge_of = (component_of[sources] * components + component_of[targets])[known]
    order = np.argsort(edge_of, kind="stable")
    edges, first_pairs = np.unique(edge_of[order], return_index=True)
    found = {}
    for edge, pairs in zip(
        edges.tolist(), np.split(known[order], first_pairs[1:]), strict=False
    ):  # no edge, one part without pairs
        begins = np.flatnonzero(np.diff(sources[pairs], prepend=NOWHERE))
        sent = np.add.reduceat(per_second[pairs], begins)
        found[divmod(edge, components)] = Hops(
            sources=sources[pairs][begins],
            sent=sent,
            begins=begins,
            targets=targets[pairs],
            shares=per_second[pairs] / np.repeat(sent, np.diff(begins, append=len(pairs))),
            delays_ms=delays_ms[pairs],
        )
    return found
