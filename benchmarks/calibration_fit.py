"""Storm's own costs from measured cases: CPU by regression over executors, delays by least squares on latency."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from calibration_cases import FIRST_PORT, MACHINE_MILLICORES, MACHINES, WORKLOADS, ExecutorFigures, Measured
from scipy.optimize import least_squares, nnls

from storm_operator.core.arrays import Floats
from storm_operator.core.distances import Distances
from storm_operator.core.model import Assignment, Executor, WorkerSlot
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.simulator.arrays import times
from storm_operator.simulator.engine import Engine
from storm_operator.simulator.measure import Meter
from storm_operator.simulator.model import ClusterModel, Costs, SimulatedSupervisor
from storm_operator.simulator.routing import route

TOPOLOGY_ID = "measured-1"
WARM_UP_SECONDS = 10.0
COUNTED_SECONDS = 20.0
PHYSICAL_CORES = 2.0
LEAST_MILLICORES = 10.0
AT_QUOTA = 0.95
NOTHING = Costs(*([0.0] * len(Costs.__slots__)))


def model_of(case: Measured, costs: Costs) -> ClusterModel:
    """The simulated twin of the cluster that `case` was measured on."""
    workload = next(workload for workload in WORKLOADS if workload.name == case.workload)
    ports = tuple(range(FIRST_PORT, FIRST_PORT + 4))
    machines = tuple(
        SimulatedSupervisor(machine_id(n), machine_id(n), ports, MACHINE_MILLICORES, cores=PHYSICAL_CORES)
        for n in range(MACHINES)
    )
    distances = Distances({}, default_ms=case.round_trip_ms)
    return ClusterModel(machines, (workload.simulated(TOPOLOGY_ID, case.load),), distances, costs)


def machine_id(number: int) -> str:
    return f"machine-{number + 1}"


def assignment_of(case: Measured) -> Assignment:
    """Where the executors were; their tasks are numbered alike, real and simulated."""
    return Assignment(
        {
            Executor(TOPOLOGY_ID, *e.tasks, e.component): WorkerSlot(machine_id(e.machine), FIRST_PORT + e.port)
            for e in case.executors
        }
    )


def simulate_case(case: Measured, costs: Costs, drawn_trees: int = 64) -> ClusterSnapshot:
    engine = Engine(model_of(case, costs), assignment_of(case), seed=1, drawn_trees=drawn_trees)
    engine.advance_to(WARM_UP_SECONDS)
    meter = Meter(engine)
    engine.advance_to(WARM_UP_SECONDS + COUNTED_SECONDS)
    return meter.read()


def fit(cases: Sequence[Measured]) -> Costs:
    """Costs that explain `cases` best: CPU first, then, with it, the delays."""
    costs = fit_network_cpu(cases, fit_executor_cpu(cases))
    return fit_delays(
        [case for case in cases if case.load == "low"], replace(costs, spout_poll_ms=Costs().spout_poll_ms)
    )


def fit_executor_cpu(cases: Sequence[Measured]) -> Costs:
    """CPU of a thread = idling + tuples * (the topology's own + execute + emits * emit + sent out * serialise)."""
    terms_of = [executor_terms(case) for case in cases]
    idle, execute, acker, emit, serialise = best_factors(
        [(figures, terms[:, 0], terms[:, 1:]) for figures, terms in terms_of]
    )
    return replace(
        NOTHING,
        idle_executor_millicores=idle,
        execute_cpu_ms=execute,
        acker_cpu_ms=acker,
        emit_cpu_ms=emit,
        serialise_cpu_ms=serialise,
    )


def executor_terms(case: Measured) -> tuple[Floats, Floats]:
    """Millicores of each executor, and per executor: declared CPU, idle share, executed, acked, emits, sent."""
    engine = Engine(model_of(case, NOTHING), assignment_of(case))
    wiring = engine.wiring
    at_row = {engine.row_of[executor]: figure for executor, figure in _figures(case)}
    measured = np.array([at_row[row].cpu_millicores for row in range(wiring.size)])
    executed = np.array([at_row[row].executed_per_second for row in range(wiring.size)])

    def per_tuple(name: str) -> Floats:
        unit = replace(NOTHING, **{name: 1.0})
        share = np.zeros(wiring.size)
        return route(wiring, assignment_of(case), engine.where, unit, share).cpu_ms - wiring.cpu_ms

    columns = [
        executed * wiring.cpu_ms,
        np.clip(1.0 - measured / 1000.0, 0.0, 1.0) * polling_share(case, engine),
        executed * per_tuple("execute_cpu_ms"),
        executed * per_tuple("acker_cpu_ms"),
        executed * per_tuple("emit_cpu_ms"),
        executed * per_tuple("serialise_cpu_ms"),
    ]
    return measured, np.stack(columns, axis=1)


def polling_share(case: Measured, engine: Engine) -> Floats:
    """How much of their time idle threads look at their queues: less on machines that are at their quota."""
    full = np.array(case.machine_millicores) > AT_QUOTA * MACHINE_MILLICORES
    share = np.where(full, MACHINE_MILLICORES / (1000.0 * PHYSICAL_CORES), 1.0)
    return np.asarray(share[engine.routing.supervisor_of], dtype=np.float64)


def fit_network_cpu(cases: Sequence[Measured], costs: Costs) -> Costs:
    """What a machine uses beyond its executors: its daemons, idle workers, and network threads by tuples."""
    daemons, worker, connected, transfer, collect = best_factors(
        [(figures, np.zeros(MACHINES), terms) for figures, terms in map(machine_terms, cases)]
    )
    return replace(
        costs,
        idle_supervisor_millicores=daemons,
        idle_worker_millicores=worker,
        connected_worker_millicores=connected,
        transfer_cpu_ms=transfer,
        worker_cpu_share=collect,
    )


def machine_terms(case: Measured) -> tuple[Floats, Floats]:
    """Each machine's millicores beyond its executors; and 1, workers, those connected, transfers, executors' CPU."""
    engine = Engine(model_of(case, NOTHING), assignment_of(case))
    unit = replace(NOTHING, transfer_cpu_ms=1.0)
    routing = route(engine.wiring, assignment_of(case), engine.where, unit, np.zeros(engine.wiring.size))
    executed = np.zeros(engine.wiring.size)
    for executor, figure in _figures(case):
        executed[engine.row_of[executor]] = figure.executed_per_second
    own = np.zeros(MACHINES)
    workers: list[set[int]] = [set() for _ in range(MACHINES)]
    for figure in case.executors:
        own[figure.machine] += figure.cpu_millicores
        workers[figure.machine].add(figure.port)
    counted = np.array([float(len(ports)) for ports in workers])
    columns = [
        np.ones(MACHINES),
        counted,
        counted * (counted.sum() > 1.0),
        times(routing.network_cpu_ms, executed),
        own,
    ]
    return np.array(case.machine_millicores) - own, np.stack(columns, axis=1)


def best_factors(cases: Iterable[tuple[Floats, Floats, Floats]]) -> list[float]:
    """For (figures, what is known of them, terms) the factors, never negative, with which terms explain the rest best.

    Errors count relative to the figures (millicores).
    """
    rows, values = [], []
    for figures, known, terms in cases:
        weight = 1.0 / np.maximum(figures, LEAST_MILLICORES)
        rows.append(terms * weight[:, None])
        values.append((figures - known) * weight)
    found, _ = nnls(np.concatenate(rows), np.concatenate(values))
    return [float(value) for value in found]


DELAYS = ("poll_ms", "between_workers_ms", "between_supervisors_ms")


def fit_delays(cases: Sequence[Measured], costs: Costs) -> Costs:
    """Delays that make simulated median latencies those measured, in the logarithm.

    How long a spout takes to look at an ack is no part of Storm's complete latency and stays as it is.
    """
    goal = np.log([case.latency_p50_ms for case in cases])

    def wrong(values: Floats) -> Floats:
        tried = replace(costs, **dict(zip(DELAYS, (float(v) for v in values), strict=True)))
        latencies = []
        for case in cases:
            latency = simulate_case(case, tried).rates[TOPOLOGY_ID].latency
            assert latency is not None
            latencies.append(latency.p50_ms)
        return np.asarray(np.log(latencies) - goal, dtype=np.float64)

    start = np.array([0.3, 0.5, 0.5])
    found = least_squares(wrong, start, bounds=(0.0, 5.0), diff_step=[0.1], max_nfev=12)
    return replace(costs, **dict(zip(DELAYS, (float(v) for v in found.x), strict=True)))


def _figures(case: Measured) -> Iterator[tuple[Executor, ExecutorFigures]]:
    for figure in case.executors:
        yield Executor(TOPOLOGY_ID, *figure.tasks, figure.component), figure
