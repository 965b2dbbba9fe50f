"""Random topologies, placements, moves and faults: whatever happens, tuples, trees and CPU are accounted for."""

from __future__ import annotations

import numpy as np
import pytest

from simulator_scene import machines
from storm_operator.core.distances import Distances
from storm_operator.core.model import Assignment, ComponentKind, WorkerSlot
from storm_operator.simulator.engine import Engine
from storm_operator.simulator.load import Constant, Noisy
from storm_operator.simulator.measure import Meter
from storm_operator.simulator.model import (
    AvailabilityDrops,
    ClusterModel,
    Costs,
    Grouping,
    SimulatedComponent,
    SimulatedEdge,
    SimulatedTopology,
    SupervisorDies,
    SupervisorSlows,
)

SUPERVISORS = 4
NO_IDLING = Costs(idle_executor_millicores=0.0)


def random_topology(random: np.random.Generator, number: int) -> SimulatedTopology:
    load = Noisy(Constant(float(random.uniform(20.0, 400.0))), 0.2, seed=number)
    count = int(random.integers(2, 6))
    components = [SimulatedComponent("c0", ComponentKind.SPOUT, int(random.integers(1, 3)), load=load)]
    edges = []
    for at in range(1, count):
        cpu_ms = float(random.uniform(0.05, 3.0))
        components.append(
            SimulatedComponent(f"c{at}", ComponentKind.BOLT, int(random.integers(1, 4)), cpu_ms_per_tuple=cpu_ms)
        )
        for parent in random.choice(at, size=int(random.integers(1, min(at, 2) + 1)), replace=False):
            grouping = list(Grouping)[int(random.integers(len(Grouping)))]
            edges.append(SimulatedEdge(f"c{parent}", f"c{at}", grouping, float(random.uniform(0.2, 2.5))))
    if random.random() < 0.3:
        edges.append(SimulatedEdge(f"c{count - 1}", f"c{count - 1}", tuples_per_tuple=0.3))
    return SimulatedTopology(
        f"t{number}-{number}",
        f"t{number}",
        tuple(components),
        tuple(edges),
        ackers=int(random.integers(1, 3)),
        max_spout_pending=None if random.random() < 0.5 else int(random.integers(5, 200)),
        message_timeout_seconds=float(random.uniform(2.0, 10.0)),
        replays_failed=bool(random.random() < 0.5),
        source_keeps_backlog=bool(random.random() < 0.5),
    )


def random_assignment(random: np.random.Generator, model: ClusterModel) -> Assignment:
    slots = {}
    for number, topology in enumerate(model.topologies):
        own = [WorkerSlot(f"s{n}", 6700 + number) for n in range(1, SUPERVISORS + 1)]
        for executor in topology.as_topology().executors:
            slots[executor] = own[int(random.integers(len(own)))]
    return Assignment(slots)


@pytest.mark.parametrize("seed", range(16))
def test_everything_is_accounted_for(seed: int) -> None:
    random = np.random.default_rng(seed)
    faults = (
        SupervisorDies("s1", 20.0, 35.0 if seed % 2 else None),
        SupervisorSlows("s2", 10.0, 0.4, 30.0),
        AvailabilityDrops("s3", 15.0, 0.8),
    )
    topologies = tuple(random_topology(random, number) for number in range(3))
    model = ClusterModel(machines(SUPERVISORS), topologies, Distances({}, default_ms=2.0), NO_IDLING, faults=faults)
    running = Engine(model, random_assignment(random, model), seed=seed, step_seconds=1.0)
    meter = Meter(running)
    for at in range(10, 70, 10):
        running.advance_to(float(at))
        snapshot = meter.read()
        for supervisor, used in snapshot.supervisor_cpu_millicores.items():
            capacity = 1000.0 if supervisor != "s2" or not 10 < at <= 30 else 400.0
            assert used <= 1.1 * capacity, (supervisor, at)
        assert all(rate >= 0.0 for _, _, rate in snapshot.traffic.pairs())
        check(running)
        if at == 40:
            running.place(random_assignment(random, model))
    assert running.totals.acked.sum() > 0.0


def check(running: Engine) -> None:
    totals, bolts = running.totals, ~running.wiring.is_spout
    accounted = (totals.executed + totals.lost + running.queue)[bolts]
    assert accounted == pytest.approx(totals.arrived[bolts], rel=1e-6, abs=1e-3)
    pending = running.trees.pending.count(len(running.topologies))
    assert totals.acked + totals.failed + totals.forgotten + pending == pytest.approx(
        totals.emitted, rel=1e-6, abs=1e-3
    )
    kept = np.zeros(len(running.topologies))
    np.add.at(kept, running.wiring.topology_of, running.sources.backlog + running.sources.replays)
    offered = totals.offered + totals.replayed
    assert totals.emitted + totals.unsent + kept == pytest.approx(offered, rel=1e-6, abs=1e-3)
    assert (running.queue >= 0.0).all()
