"""How much faster than real time a large cluster is simulated on one core; the last line is JSON.

Fifty topologies of 200 executors in ten components on 1,000 supervisors: 10,000 executors and about 180,000 pairs.
Counted is everything that a control loop would see: the engine, and a snapshot after every control period.
"""

from __future__ import annotations

import json
import os
import resource
import time

import typer

from storm_operator.core.model import ComponentKind
from storm_operator.core.snapshot import LoadPeriod
from storm_operator.simulated_loop import even_start
from storm_operator.simulator.engine import Engine
from storm_operator.simulator.load import Noisy, Sine
from storm_operator.simulator.measure import Meter
from storm_operator.simulator.model import (
    ClusterModel,
    Grouping,
    SimulatedComponent,
    SimulatedEdge,
    SimulatedSupervisor,
    SimulatedTopology,
)

COMPONENTS = 10
EXECUTORS_PER_TOPOLOGY = 200


def large_model(executors: int, supervisors: int) -> ClusterModel:
    """Chains of ten components with side branches; every tenth executor is a spout's."""
    machines = tuple(
        SimulatedSupervisor(f"s{n:05}", f"host-{n:05}", (6700, 6701, 6702, 6703), 4000.0) for n in range(supervisors)
    )
    count = max(1, executors // EXECUTORS_PER_TOPOLOGY)
    workers = max(1, 2 * supervisors // count)
    return ClusterModel(machines, tuple(_topology(number, workers) for number in range(count)))


def _topology(number: int, workers: int) -> SimulatedTopology:
    each = (EXECUTORS_PER_TOPOLOGY - 10) // COMPONENTS
    names = [f"c{at}" for at in range(COMPONENTS)]
    load = Noisy(Sine(1000.0, 3000.0, 600.0), 0.1, seed=number)
    components = [SimulatedComponent(names[0], ComponentKind.SPOUT, each, load=load)]
    components += [
        SimulatedComponent(name, ComponentKind.BOLT, each, cpu_ms_per_tuple=1.0, stateful=at % 2 == 0)
        for at, name in enumerate(names[1:], start=1)
    ]
    edges = []
    for at in range(1, COMPONENTS):
        grouping = Grouping.FIELDS if at % 2 == 0 else Grouping.SHUFFLE
        parent = names[max(0, at - 2)] if at % 5 == 0 else names[at - 1]
        edges.append(SimulatedEdge(parent, names[at], grouping))
    return SimulatedTopology(
        f"topology-{number:03}-1", f"topology-{number:03}", tuple(components), tuple(edges), ackers=10,
        num_workers=workers, load_aware=False,
    )  # fmt: skip


def main(executors: int = 10_000, supervisors: int = 1_000, simulated_seconds: float = 300.0) -> None:
    """Simulate `simulated_seconds` with a snapshot every ten."""
    started = time.process_time()
    model = large_model(executors, supervisors)
    engine = Engine(model, even_start(model))
    meter = Meter(engine)
    built = time.process_time()
    in_snapshots, pairs = 0.0, 0
    history: tuple[LoadPeriod, ...] = ()
    at = 0.0
    while at < simulated_seconds:
        at += 10.0
        engine.advance_to(at)
        before = time.process_time()
        snapshot = meter.read(history)
        history = snapshot.history
        in_snapshots += time.process_time() - before
        pairs = len(snapshot.traffic.flows()[0])
    seconds = time.process_time() - built
    result = {
        "executors": engine.wiring.size,
        "supervisors": supervisors,
        "pairs": pairs,
        "build_seconds": round(built - started, 2),
        "simulated_seconds": at,
        "cpu_seconds": round(seconds, 2),
        "snapshot_cpu_seconds": round(in_snapshots, 2),
        "times_real_time": round(at / seconds, 1),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "threads": os.environ.get("OMP_NUM_THREADS", "default"),
    }
    print(f"{result['executors']} executors, {pairs} pairs: {result['times_real_time']} times real time")
    print(json.dumps(result))


if __name__ == "__main__":
    typer.run(main)
