"""Network paths against tuple trees that are walked one by one, on random clusters."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import dataclass, replace

import numpy as np
import pytest

from builders import graph_topology, network_path_ms, snapshot, supervisors
from storm_operator.core.arrays import Floats, Ints
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
from storm_operator.core.network_paths import network_paths_ms
from storm_operator.core.placed_traffic import place_traffic
from storm_operator.core.snapshot import ClusterSnapshot

SEEDS = range(8)
TREES = 4_000
ROOTS = {"s": 10.0, "t": 20.0}
"""Trees per second that each executor of a spout begins."""
FAN_OUT = {"s": {"a": 1.0}, "t": {"a": 2.0, "b": 1.0}, "a": {"b": 4.0}, "b": {"c": 0.5}}
"""Tuples to each component for each that one of a component takes in."""


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


@pytest.mark.parametrize("seed", SEEDS)
def test_paths_are_the_mean_over_tuple_trees_that_are_walked(seed: int) -> None:
    """Each tree that is walked has one acker for all its tuples, of which the paths know nothing."""
    rng = np.random.default_rng(seed)
    picture, then = random_cluster(rng)
    traffic = place_traffic(picture.traffic, picture.distances, then)
    paths = network_paths_ms(picture.topologies, picture.traffic, traffic, picture.distances.between_workers_ms)
    for topology in picture.topologies:
        walker = Walker.of(picture, topology, then, rng)
        walked_ms = max(walker.mean_ms(spout) for spout in ROOTS)
        assert paths[topology.id] == pytest.approx(walked_ms, rel=0.12)
        assert walked_ms > 0.0


def test_a_tree_is_complete_with_the_last_of_its_tuples() -> None:
    """Of each tuple's ten children one half is far away: hardly a tree has none of these."""
    plain = graph_topology("t", {"s": 1, "a": 2}, [Edge("s", "default", "a", "shuffle")])
    (spout,), (near, far) = plain.executors_of("s"), plain.executors_of("a")
    slots = {spout: WorkerSlot("s1", 6700), near: WorkerSlot("s1", 6700), far: WorkerSlot("s2", 6700)}
    acker = Executor("t", 9, 9, ACKER_COMPONENT)
    acked = with_acker(plain, acker)
    rates = {(spout, near): 50.0, (spout, far): 50.0, (spout, acker): 10.0, (near, acker): 50.0, (far, acker): 50.0}
    picture = snapshot([acked], supervisors(2), {**slots, acker: WorkerSlot("s1", 6700)}, rates=rates)
    round_trip_ms = picture.distances.between(slots[spout], slots[far])
    assert network_path_ms(picture, acked, picture.assignment) == pytest.approx(round_trip_ms * (1.0 - 0.5**10))


def test_a_pair_far_away_that_hardly_any_tuple_takes_leaves_the_others_as_near_as_they_are() -> None:
    plain = graph_topology("t", {"s": 1, "a": 2}, [Edge("s", "default", "a", "shuffle")])
    (spout,), (near, far) = plain.executors_of("s"), plain.executors_of("a")
    here = {spout: WorkerSlot("s1", 6700), near: WorkerSlot("s2", 6700), far: WorkerSlot("s3", 6700)}
    rates = {(spout, near): 200.0, (spout, far): 1e-9}
    far_away = Distances({("s1", "s2"): 0.4, ("s1", "s3"): 100.0, ("s2", "s3"): 100.0}, 0.2, 5.0)
    picture = replace(snapshot([plain], supervisors(3), here, rates=rates), distances=far_away)
    near_ms = far_away.between(here[spout], here[near]) / 2.0
    assert network_path_ms(picture, plain, picture.assignment) == pytest.approx(near_ms, rel=0.01)


def test_a_spout_whose_trees_nobody_tracks_has_no_latency() -> None:
    plain = graph_topology(
        "t", {"s": 1, "u": 1, "a": 1}, [Edge(spout, "default", "a", "shuffle") for spout in ("s", "u")]
    )
    (tracked,), (untracked,), (bolt,) = (plain.executors_of(name) for name in ("s", "u", "a"))
    acker = Executor("t", 9, 9, ACKER_COMPONENT)
    acked = with_acker(plain, acker)
    here = {e: WorkerSlot("s1", 6700) for e in (tracked, bolt, acker)} | {untracked: WorkerSlot("s2", 6700)}
    rates = {(tracked, bolt): 10.0, (untracked, bolt): 10.0, (tracked, acker): 10.0, (bolt, acker): 10.0}
    assert network_path_ms(snapshot([acked], supervisors(2), here, rates=rates), acked, Assignment(here)) == 0.0


def test_many_pairs_do_not_take_much_memory() -> None:
    many = graph_topology("t", {"s": 300, "a": 300}, [Edge("s", "default", "a", "fields")])
    machines = supervisors(300, slots=2)
    slots = [WorkerSlot(machine.id, port) for machine in machines for port in machine.ports]
    here = dict(zip(many.executors, slots, strict=True))
    rates = {(a, b): 1.0 for a in many.executors_of("s") for b in many.executors_of("a")}
    picture = snapshot([many], machines, here, rates=rates)
    tracemalloc.start()
    try:
        network_path_ms(picture, many, picture.assignment)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 60e6


def test_what_nobody_acks_is_not_waited_for() -> None:
    plain = graph_topology(
        "t", {"s": 1, "a": 1, "log": 1}, [Edge("s", "d", "a", "shuffle"), Edge("a", "d", "log", "all")]
    )
    (spout,), (bolt,), (log,) = (plain.executors_of(name) for name in ("s", "a", "log"))
    acker = Executor("t", 9, 9, ACKER_COMPONENT)
    acked = with_acker(plain, acker)
    here = {executor: WorkerSlot("s1", 6700) for executor in (spout, bolt, acker)} | {log: WorkerSlot("s2", 6700)}
    rates = {(spout, bolt): 10.0, (bolt, log): 10.0, (spout, acker): 10.0, (bolt, acker): 10.0}
    assert network_path_ms(snapshot([acked], supervisors(2), here, rates=rates), acked, Assignment(here)) == 0.0


@dataclass(frozen=True)
class Walker:
    """Draws tuple trees of a topology and walks them, tuple by tuple, each tree with one acker.

    Executors are positions in the topology's; `delay_ms` and `sent` are by source and target.
    """

    topology: Topology
    delay_ms: Floats
    sent: Floats
    rng: np.random.Generator

    @classmethod
    def of(cls, picture: ClusterSnapshot, topology: Topology, then: Assignment, rng: np.random.Generator) -> Walker:
        slots = [then.slot_of[executor] for executor in topology.executors]
        delay_ms = np.array([[picture.distances.between(a, b) / 2.0 for b in slots] for a in slots])
        return cls(topology, delay_ms, picture.traffic.block(topology.executors, topology.executors), rng)

    def mean_ms(self, spout: str) -> float:
        """The mean over trees of one spout of the time from its message at the acker to the last one."""
        begin, acker = (self.rng.choice(self.rows(component), TREES) for component in (spout, ACKER_COMPONENT))
        first_ms = self.delay_ms[begin, acker]
        last_ms = np.maximum(self.last_ms(spout, begin, acker, np.zeros(TREES)), first_ms)
        return float(np.mean(last_ms - first_ms))

    def last_ms(self, component: str, at: Ints, acker: Ints, arrived_ms: Floats) -> Floats:
        """The last message to the acker about a tuple that came to each of `at`, or about what comes of it."""
        last_ms = arrived_ms if component in ROOTS else arrived_ms + self.delay_ms[at, acker]
        for onward, fan_out in FAN_OUT.get(component, {}).items():
            receivers = self.rows(onward)
            shares = self.sent[np.ix_(at, receivers)].cumsum(axis=1)
            for _ in range(math.ceil(fan_out)):
                drawn = self.rng.random(len(at)) * shares[:, -1]
                to = receivers[(drawn[:, np.newaxis] > shares).sum(axis=1)]
                sent = self.rng.random(len(at)) < fan_out
                later_ms = self.last_ms(onward, to, acker, arrived_ms + self.delay_ms[at, to])
                last_ms = np.where(sent, np.maximum(last_ms, later_ms), last_ms)
        return last_ms

    def rows(self, component: str) -> Ints:
        return np.flatnonzero([executor.component == component for executor in self.topology.executors])


def random_cluster(rng: np.random.Generator) -> tuple[ClusterSnapshot, Assignment]:
    """Two acked topologies with two spouts each; some distances unmeasured, one executor without a place."""
    machines = supervisors(4)
    ids = [machine.id for machine in machines]
    distances = Distances({(a, b): rng.uniform(1.0, 9.0) for a in ids for b in ids if a < b}, 0.2, 5.0)
    topologies = [random_topology(name, rng) for name in ("one", "two")]
    executors = [executor for topology in topologies for executor in topology.executors]
    rates = {pair: rate for topology in topologies for pair, rate in random_rates(topology, rng).items()}
    gone = Executor("two", 99, 99, "gone")
    rates[executors[0], gone] = 7.0
    slots = [WorkerSlot(name, port) for name in ids for port in (6700, 6701)]
    then = Assignment({executor: slots[rng.integers(len(slots))] for executor in executors})
    return replace(snapshot(topologies, machines, then.slot_of, rates=rates), distances=distances), then


def random_topology(name: str, rng: np.random.Generator) -> Topology:
    sizes = {component: int(rng.integers(1, 4)) for component in ("s", "t", "a", "b", "c")}
    edges = [Edge(source, "default", target, "shuffle") for source, onward in FAN_OUT.items() for target in onward]
    return with_acker(
        graph_topology(name, sizes, edges),
        Executor(name, 50, 50, ACKER_COMPONENT),
        Executor(name, 51, 51, ACKER_COMPONENT),
    )


def with_acker(plain: Topology, *ackers: Executor) -> Topology:
    components = (*plain.components, Component(ACKER_COMPONENT, ComponentKind.ACKER, len(ackers)))
    return replace(plain, components=components, executors=(*plain.executors, *ackers))


def random_rates(topology: Topology, rng: np.random.Generator) -> dict[tuple[Executor, Executor], float]:
    """Each executor sends what `FAN_OUT` says for each tuple that it takes in, unevenly dealt out."""
    rates: dict[tuple[Executor, Executor], float] = {}
    taken_in = {e: ROOTS[spout] for spout in ROOTS for e in topology.executors_of(spout)}
    for source, onward in {**FAN_OUT, "c": {}}.items():
        for executor in topology.executors_of(source):
            took = taken_in[executor]
            for target, fan_out in [*onward.items(), (ACKER_COMPONENT, 1.0)]:
                receivers = topology.executors_of(target)
                shares = rng.dirichlet(np.full(len(receivers), 1.0)) if target != ACKER_COMPONENT else [0.5, 0.5]
                for receiver, share in zip(receivers, shares, strict=True):
                    rates[executor, receiver] = took * fan_out * share
                    taken_in[receiver] = taken_in.get(receiver, 0.0) + took * fan_out * share
    return rates
