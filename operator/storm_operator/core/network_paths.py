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
    pairs = slice(*np.searchsorted(placed.sources, (begin, end)))
    if not delays_ms[pairs].any():
        return 0.0
    number = {component.name: at for at, component in enumerate(topology.components)}
    running = frozenset(topology.executors)
    runs = [number[e.component] if e in running else NOWHERE for e in traffic.executors[begin:end]]
    place_of, component_of = _places(np.array(runs, dtype=np.int64), placed.slots[begin:end])
    sources, targets = place_of[placed.sources[pairs] - begin], place_of[placed.targets[pairs] - begin]
    known = (sources != NOWHERE) & (targets != NOWHERE)
    if not known.any():
        return 0.0
    edges = _edges(
        component_of, sources[known], targets[known], placed.per_second[pairs][known], delays_ms[pairs][known]
    )
    acker = number.get(ACKER_COMPONENT, NOWHERE)
    spouts = [at for at, component in enumerate(topology.components) if component.kind is ComponentKind.SPOUT]
    from_others = {edge: hops for edge, hops in edges.items() if edge[0] != acker}
    return slowest_trees_ms(len(component_of), from_others, spouts, acker)


def _places(component_of_row: Ints, slot_of_row: Ints) -> tuple[Ints, Ints]:
    """The place of each executor, a component's in a worker: delays go by workers, and who shares one sends alike.

    And the component of each place; these are sorted by it.
    """
    in_trees = (component_of_row != NOWHERE) & (slot_of_row != NOWHERE)
    slots = int(slot_of_row.max(initial=0)) + 1
    places, place_of_those = np.unique((component_of_row * slots + slot_of_row)[in_trees], return_inverse=True)
    place_of = np.full(len(component_of_row), NOWHERE, dtype=np.int64)
    place_of[in_trees] = place_of_those
    return place_of, places // slots


def _edges(component_of: Ints, sources: Ints, targets: Ints, per_second: Floats, delays_ms: Floats) -> Edges:
    """The hops between each two components that exchange tuples, from pairs of executors, of which there are some, by
    their places."""
    places, components = len(component_of), int(component_of.max(initial=0)) + 1
    pairs, firsts, pair_of = np.unique(sources * places + targets, return_index=True, return_inverse=True)
    sources, targets = pairs // places, pairs % places
    per_second = np.bincount(pair_of, weights=per_second, minlength=len(pairs)).astype(np.float64)
    delays_ms = delays_ms[firsts]
    edge_of = component_of[sources] * components + component_of[targets]
    order = np.argsort(edge_of, kind="stable")
    edge_of, sources, targets = edge_of[order], sources[order], targets[order]
    per_second, delays_ms = per_second[order], delays_ms[order]
    begins = np.flatnonzero(np.diff(edge_of * places + sources, prepend=NOWHERE))
    sent = np.add.reduceat(per_second, begins)
    shares = per_second / np.repeat(sent, np.diff(begins, append=len(pairs)))
    edges, firsts = np.unique(edge_of, return_index=True)
    found = {}
    for edge, first, last in zip(edges.tolist(), firsts.tolist(), [*firsts[1:].tolist(), len(pairs)], strict=True):
        own = slice(first, last)
        of_sources = slice(*np.searchsorted(begins, (first, last)))
        found[divmod(edge, components)] = Hops(
            sources=sources[begins[of_sources]],
            sent=sent[of_sources],
            begins=begins[of_sources] - first,
            targets=targets[own],
            per_second=per_second[own],
            shares=shares[own],
            delays_ms=delays_ms[own],
        )
    return found
