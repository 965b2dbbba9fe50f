"""Small simulated clusters for tests: a spout and a bolt whose costs are known exactly."""

from __future__ import annotations

from dataclasses import replace

import pytest

from storm_operator.core.distances import Distances
from storm_operator.core.model import Assignment, ComponentKind, Executor, WorkerSlot
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.simulator.engine import Engine
from storm_operator.simulator.load import Constant, LoadShape
from storm_operator.simulator.measure import Meter
from storm_operator.simulator.model import (
    ClusterModel,
    Costs,
    SimulatedComponent,
    SimulatedEdge,
    SimulatedSupervisor,
    SimulatedTopology,
)

FREE = Costs(*([0.0] * len(Costs.__slots__)))
"""Storm itself costs nothing: what is measured is what the test asks for."""


def machines(count: int, capacity: float = 1000.0, **more: float) -> tuple[SimulatedSupervisor, ...]:
    return tuple(
        SimulatedSupervisor(f"s{n}", f"h{n}", (6700, 6701, 6702, 6703), capacity, **more) for n in range(1, count + 1)
    )


def spout_and_bolts(
    load: LoadShape | float, *cpu_ms: float, topology_id: str = "t-1", deviation: float = 0.0, **settings: object
) -> SimulatedTopology:
    """A spout that costs nothing and bolts `b1`, `b2`, ... that all get each of its tuples."""
    shape = Constant(float(load)) if isinstance(load, int | float) else load
    bolts = [
        SimulatedComponent(f"b{n}", ComponentKind.BOLT, 1, cpu_ms_per_tuple=cost, cpu_deviation=deviation)
        for n, cost in enumerate(cpu_ms, start=1)
    ]
    return SimulatedTopology(
        topology_id,
        topology_id,
        (SimulatedComponent("spout", ComponentKind.SPOUT, 1, load=shape), *bolts),
        tuple(SimulatedEdge("spout", bolt.name) for bolt in bolts),
        **settings,  # type: ignore[arg-type]
    )


def cluster(*topologies: SimulatedTopology, supervisors: int = 1, costs: Costs = FREE, **model: object) -> ClusterModel:
    given = ClusterModel(machines(supervisors), topologies, Distances({}, 0.0, 4.0), costs)
    return replace(given, **model)  # type: ignore[arg-type]


def all_on(model: ClusterModel, slot: WorkerSlot = WorkerSlot("s1", 6700)) -> Assignment:  # noqa: B008
    return Assignment({e: slot for topology in model.topologies for e in topology.as_topology().executors})


def engine(model: ClusterModel, assignment: Assignment | None = None, **more: float) -> Engine:
    return Engine(model, assignment or all_on(model), **more)  # type: ignore[arg-type]


def played(model: ClusterModel, seconds: float, warm_up: float = 0.0, **more: float) -> tuple[Engine, ClusterSnapshot]:
    """Everything in one worker; the snapshot is of what followed the warm-up."""
    running = Engine(model, all_on(model), **more)  # type: ignore[arg-type]
    running.advance_to(warm_up)
    meter = Meter(running)
    running.advance_to(warm_up + seconds)
    return running, meter.read()


def executor(model: ClusterModel, component: str, topology: int = 0) -> Executor:
    return model.topologies[topology].as_topology().executors_of(component)[0]


def check_conservation(running: Engine) -> None:
    """Every tuple is executed, waits or is lost; every tree is acked, failed, forgotten or pending."""
    totals, bolts = running.totals, ~running.wiring.is_spout
    gone = totals.executed + totals.lost + running.queue
    assert gone[bolts] == pytest.approx(totals.arrived[bolts], rel=1e-9, abs=1e-6)
    pending = running.trees.pending.count(len(running.topologies))
    assert totals.acked + totals.failed + totals.forgotten + pending == pytest.approx(
        totals.emitted, rel=1e-9, abs=1e-6
    )
