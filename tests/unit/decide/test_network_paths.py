"""Network paths, all topologies at once, against their plain definition on random clusters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from builders import graph_topology, snapshot, supervisors
from storm_operator.core.distances import Distances
from storm_operator.core.model import (
    ACKER_COMPONENT,
    Assignment,
    Component,
    ComponentKind,
    Edge,
    Executor,
    Topology,
    WorkerSlot,
)
from storm_operator.core.network_paths import edge_delays, network_paths_ms, number_components
from storm_operator.core.placed_traffic import place_traffic
from storm_operator.core.snapshot import ClusterSnapshot

SEEDS = range(8)
EDGES = (("s", "a"), ("t", "a"), ("a", "b"), ("t", "b"), ("b", "c"))


@pytest.mark.parametrize("seed", SEEDS)
def test_edge_delays_are_the_mean_over_the_tuples_between_two_components(seed: int) -> None:
    picture, then = random_cluster(np.random.default_rng(seed))
    components = number_components(picture.traffic, picture.topologies)
    traffic = place_traffic(picture.traffic, picture.distances, then)
    found = edge_delays(components, traffic, picture.distances.between_workers_ms)
    by_name = {
        (components.names[source], components.names[target]): delay
        for source, target, delay in zip(found.sources, found.targets, found.delay_ms, strict=True)
    }
    expected = {
        ((topology.id, source), (topology.id, target)): delay
        for topology in picture.topologies
        for (source, target), delay in plain_edge_delays(picture, topology, then).items()
    }
    assert by_name == pytest.approx(expected)
    assert expected


@pytest.mark.parametrize("seed", SEEDS)
def test_traffic_under_an_assignment_is_that_of_its_pairs(seed: int) -> None:
    picture, then = random_cluster(np.random.default_rng(seed))
    traffic = place_traffic(picture.traffic, picture.distances, then)
    slot_of = then.slot_of
    pairs = [(slot_of[a], slot_of[b], rate) for a, b, rate in picture.traffic.pairs() if a in slot_of and b in slot_of]
    other = replace(picture.distances, loopback_ms=0.5)
    assert traffic.network_usage(other.between_workers_ms) == pytest.approx(
        sum(rate * other.between(a, b) for a, b, rate in pairs)
    )
    assert traffic.inter_worker() == pytest.approx(picture.traffic.inter_worker(then))
    assert traffic.inter_supervisor() == pytest.approx(picture.traffic.inter_supervisor(then))


@pytest.mark.parametrize("with_acks", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_paths_are_the_longest_way_of_any_spouts_trees(seed: int, with_acks: bool) -> None:
    picture, then = random_cluster(np.random.default_rng(seed))
    if not with_acks:
        then = Assignment({e: slot for e, slot in then.slot_of.items() if e.component != ACKER_COMPONENT})
    traffic = place_traffic(picture.traffic, picture.distances, then)
    components = number_components(picture.traffic, picture.topologies)
    paths = network_paths_ms(components, traffic, picture.distances.between_workers_ms)
    expected = {
        topology.id: max(plain_path_ms(spout, plain_edge_delays(picture, topology, then)) for spout in ("s", "t"))
        for topology in picture.topologies
    }
    assert paths == pytest.approx(expected)
    assert max(expected.values()) > 0.0


def plain_path_ms(spout: str, delays: dict[tuple[str, str], float]) -> float:
    """From the spout's message at the acker to the last ack there; without acks to the last arrival anywhere."""
    has_acks = any(target == ACKER_COMPONENT for _, target in delays)

    def last_from(component: str, at_ms: float) -> float:
        ack_ms = delays.get((component, ACKER_COMPONENT), -np.inf) if has_acks else 0.0
        onward = [
            last_from(target, at_ms + delay)
            for (source, target), delay in delays.items()
            if source == component and target != ACKER_COMPONENT
        ]
        return max(at_ms + ack_ms, *onward, -np.inf)

    return max(0.0, last_from(spout, 0.0) - delays.get((spout, ACKER_COMPONENT), 0.0))


def plain_edge_delays(
    picture: ClusterSnapshot, topology: Topology, assignment: Assignment
) -> dict[tuple[str, str], float]:
    tuples: dict[tuple[str, str], float] = {}
    delay: dict[tuple[str, str], float] = {}
    slot_of = {e: slot for e, slot in assignment.slot_of.items() if e in topology.executors}
    for a, b, rate in picture.traffic.pairs():
        if a in slot_of and b in slot_of:
            edge = (a.component, b.component)
            tuples[edge] = tuples.get(edge, 0.0) + rate
            delay[edge] = delay.get(edge, 0.0) + rate * picture.distances.between(slot_of[a], slot_of[b]) / 2.0
    return {edge: delay[edge] / tuples[edge] for edge in tuples}


def random_cluster(rng: np.random.Generator) -> tuple[ClusterSnapshot, Assignment]:
    """Two acked topologies with two spouts each; some distances unmeasured, one executor without a place."""
    machines = supervisors(4)
    ids = [machine.id for machine in machines]
    distances = Distances({(a, b): rng.uniform(1.0, 9.0) for a in ids for b in ids if a < b}, 0.2, 5.0)
    topologies = [random_topology(name, rng) for name in ("one", "two")]
    executors = [executor for topology in topologies for executor in topology.executors]
    rates = {
        (a, b): rng.uniform(1.0, 50.0)
        for topology in topologies
        for a in topology.executors
        for b in topology.executors
        if exchange(a, b) and rng.random() < 0.8
    }
    rates[executors[0], Executor("two", 99, 99, "gone")] = 7.0
    slots = [WorkerSlot(name, port) for name in ids for port in (6700, 6701)]
    then = Assignment({executor: slots[rng.integers(len(slots))] for executor in executors[1:]})
    return replace(snapshot(topologies, machines, then.slot_of, rates=rates), distances=distances), then


def random_topology(name: str, rng: np.random.Generator) -> Topology:
    sizes = {component: int(rng.integers(1, 4)) for component in ("s", "t", "a", "b", "c")}
    plain = graph_topology(name, sizes, [Edge(source, "default", target, "shuffle") for source, target in EDGES])
    acker = Executor(name, 50, 50, ACKER_COMPONENT)
    components = (*plain.components, Component(ACKER_COMPONENT, ComponentKind.ACKER, 1))
    return replace(plain, components=components, executors=(*plain.executors, acker))


def exchange(a: Executor, b: Executor) -> bool:
    if a.component == ACKER_COMPONENT:
        return b.component in {"s", "t"}
    return b.component == ACKER_COMPONENT or (a.component, b.component) in EDGES
