"""How long tuple trees are under way between executors, under an assignment.

The network path of a topology is the longest path through its component graph, every edge weighing half a round trip,
averaged over the tuples that flow between its executors. A cycle counts as one place: how often a tuple goes round is
not known. Arrays over the components of all topologies at once.

Where acks are measured, the path is the network's part of what Storm calls complete latency and our hook counts.
Storm's acker takes the time from the first message that it sees about a tuple tree, mostly the spout's own, to the last
one (Storm 2.8, Acker and AckObject); the spout passes that figure on as it is (SpoutExecutor.tupleActionFn), to its
hooks too. So the way of the last ack to the acker counts, the way of the spout's message to the acker is taken off, and
the way of the acker's answer to the spout is no part of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from storm_operator.core.arrays import NOWHERE, Floats, Ints
from storm_operator.core.model import ACKER_COMPONENT, ComponentKind, Topology
from storm_operator.core.placed_traffic import PlacedTraffic
from storm_operator.core.traffic import TrafficMatrix

NEVER = -np.inf
"""When a tuple arrives at a component that no tuple reaches."""


@dataclass(frozen=True, slots=True)
class NumberedComponents:
    """The components of some topologies, numbered, with their positions in the traffic matrix."""

    topologies: tuple[Topology, ...]
    names: tuple[tuple[str, str], ...]
    """Topology id and component, by number."""
    topology_of: Ints
    """Position in `topologies`, by number."""
    of_row: Ints
    """The component of each executor of the traffic matrix; `NOWHERE` for those that run in no topology."""

    def spouts(self) -> list[Ints]:
        """The first spout of each topology that has one, then the second of each that has two, and so on."""
        number = {name: at for at, name in enumerate(self.names)}
        rounds: list[list[int]] = []
        for topology in self.topologies:
            spouts = [component.name for component in topology.components if component.kind is ComponentKind.SPOUT]
            for turn, spout in enumerate(spouts):
                if turn == len(rounds):
                    rounds.append([])
                rounds[turn].append(number[topology.id, spout])
        return [np.array(turn, dtype=np.int64) for turn in rounds]


@dataclass(frozen=True, slots=True)
class EdgeDelays:
    """Pairs of components that exchange tuples: their numbers, and half the mean round trip of those tuples."""

    sources: Ints
    targets: Ints
    delay_ms: Floats


def number_components(traffic: TrafficMatrix, topologies: Sequence[Topology]) -> NumberedComponents:
    """The components of `topologies`, which have different ids."""
    names = tuple((topology.id, component.name) for topology in topologies for component in topology.components)
    number = {name: at for at, name in enumerate(names)}
    running = {
        executor: number.get((topology.id, executor.component), NOWHERE)
        for topology in topologies
        for executor in topology.executors
    }
    of_row = [running.get(executor, NOWHERE) for executor in traffic.executors]
    sizes = [len(topology.components) for topology in topologies]
    return NumberedComponents(
        tuple(topologies), names, np.repeat(np.arange(len(topologies)), sizes), np.array(of_row, dtype=np.int64)
    )


def network_paths_ms(
    components: NumberedComponents, traffic: PlacedTraffic, between_workers_ms: float
) -> Mapping[str, float]:
    """By topology id, the network's part of the complete latency of the slowest tuple trees."""
    edges = edge_delays(components, traffic, between_workers_ms)
    paths = np.zeros(len(components.topologies))
    is_acker = np.array([name == ACKER_COMPONENT for _, name in components.names], dtype=np.bool_)
    between = ~is_acker[edges.sources] & ~is_acker[edges.targets]
    tuples = EdgeDelays(edges.sources[between], edges.targets[between], edges.delay_ms[between])
    to_acker_ms = np.full(len(components.names), np.nan)
    acks = is_acker[edges.targets]
    to_acker_ms[edges.sources[acks]] = edges.delay_ms[acks]
    place_of = _cycles_as_one(tuples, len(components.names))
    for spouts in components.spouts():
        arrival_ms = _arrivals_ms(tuples, place_of, spouts)
        np.maximum(paths, _complete_ms(components, arrival_ms, to_acker_ms, spouts), out=paths)
    return {topology.id: path for topology, path in zip(components.topologies, paths.tolist(), strict=True)}


def edge_delays(components: NumberedComponents, traffic: PlacedTraffic, between_workers_ms: float) -> EdgeDelays:
    """Of each pair of components of one topology that exchange any tuples between executors that are placed."""
    sources, targets = components.of_row[traffic.sources], components.of_row[traffic.targets]
    own = (sources != NOWHERE) & (targets != NOWHERE)
    own &= components.topology_of[sources] == components.topology_of[targets]
    count = len(components.names)
    edges, edge_of = np.unique(sources[own] * count + targets[own], return_inverse=True)
    tuples = traffic.per_second[own]
    sums = np.bincount(edge_of, weights=tuples, minlength=len(edges))
    round_trips = np.bincount(
        edge_of, weights=tuples * traffic.between_ms(between_workers_ms)[own], minlength=len(edges)
    )
    return EdgeDelays(edges // count, edges % count, round_trips / sums / 2.0)


def _cycles_as_one(edges: EdgeDelays, count: int) -> Ints:
    """The place of each component; those of a cycle share one."""
    graph = sparse.csr_array((np.ones(len(edges.sources)), (edges.sources, edges.targets)), shape=(count, count))
    _, place_of = sparse.csgraph.connected_components(graph, directed=True, connection="strong")
    return np.asarray(place_of, dtype=np.int64)


def _arrivals_ms(edges: EdgeDelays, place_of: Ints, spouts: Ints) -> Floats:
    """How long after a spout emitted the slowest tuple of the tree reaches each component; `NEVER` where none does."""
    onward = place_of[edges.sources] != place_of[edges.targets]
    sources, targets = place_of[edges.sources[onward]], place_of[edges.targets[onward]]
    arrival = np.full(len(place_of), NEVER)
    arrival[place_of[spouts]] = 0.0
    while True:  # as often as the longest path has edges: what is left has no cycles
        later = arrival.copy()
        np.maximum.at(later, targets, arrival[sources] + edges.delay_ms[onward])
        if np.array_equal(later, arrival):
            return arrival[place_of]
        arrival = later


def _complete_ms(components: NumberedComponents, arrival_ms: Floats, to_acker_ms: Floats, spouts: Ints) -> Floats:
    """By topology, from the first message at the acker to the last; where nobody acks, to the last arrival."""
    complete = np.zeros(len(components.topologies))
    np.maximum.at(complete, components.topology_of, arrival_ms)
    has_acks = np.zeros(len(complete), dtype=np.bool_)
    acking = ~np.isnan(to_acker_ms)
    has_acks[components.topology_of[acking]] = True
    last = np.zeros(len(complete))
    np.maximum.at(last, components.topology_of[acking], arrival_ms[acking] + to_acker_ms[acking])
    first = np.zeros(len(complete))
    first[components.topology_of[spouts]] = np.nan_to_num(to_acker_ms[spouts])
    return np.where(has_acks, np.maximum(last - first, 0.0), complete)
