"""The traffic of a snapshot as the map draws it: sums by level, and the heaviest flows. Pure, arrays throughout."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from storm_operator.console.views import FlowView, SupervisorFlowView, TrafficView
from storm_operator.core.arrays import NOWHERE, Floats, Ints
from storm_operator.core.model import Assignment, Executor
from storm_operator.core.snapshot import ClusterSnapshot

MOST_EXECUTOR_FLOWS = 2000
MOST_WORKER_FLOWS = 2000
"""More lines than that cannot be told apart on any screen; the sums by level still count them all."""

NO_TRAFFIC = TrafficView(None, None, None, (), (), (), 0, 0)


def traffic_view(
    snapshot: ClusterSnapshot,
    executors: Sequence[Executor],
    worker_of: Sequence[int | None],
    supervisor_of: list[int],
    is_known: bool,
) -> TrafficView:
    """`worker_of` is each executor's worker by position, `supervisor_of` each worker's supervisor, likewise.

    `is_known` tells whether there are sums.
    """
    row = {executor: at for at, executor in enumerate(executors)}
    number = np.array([row.get(executor, NOWHERE) for executor in snapshot.traffic.executors], dtype=np.int64)
    worker = np.array([NOWHERE if at is None else at for at in worker_of] or [NOWHERE], dtype=np.int64)
    supervisor = np.array([*supervisor_of, NOWHERE], dtype=np.int64)  # the last is where NOWHERE points
    rows, columns, rates = snapshot.traffic.flows()
    sources, targets = number[rows], number[columns]
    shown = (sources != NOWHERE) & (targets != NOWHERE)
    sources, targets, rates = sources[shown], targets[shown], rates[shown]
    a, b = worker[sources], worker[targets]
    placed = (a != NOWHERE) & (b != NOWHERE)
    here, there = supervisor[a], supervisor[b]
    executor_flows, left_out = _heaviest(sources, targets, rates, MOST_EXECUTOR_FLOWS)
    between_workers = placed & (a != b)
    worker_flows, workers_left_out = _heaviest(
        *_summed(a[between_workers], b[between_workers], rates[between_workers], len(worker_of) + 1), MOST_WORKER_FLOWS
    )
    crossing = placed & (here != there)
    return TrafficView(
        in_worker_tuples_per_second=float(rates[placed & (a == b)].sum()) if is_known else None,
        between_workers_tuples_per_second=float(rates[between_workers & ~crossing].sum()) if is_known else None,
        between_supervisors_tuples_per_second=float(rates[crossing].sum()) if is_known else None,
        executor_flows=executor_flows,
        worker_flows=worker_flows,
        supervisor_flows=_supervisor_flows(snapshot, here[crossing], there[crossing], rates[crossing]),
        left_out_executor_flows=left_out,
        left_out_worker_flows=workers_left_out,
    )


def topology_rates(
    snapshot: ClusterSnapshot, assignment: Assignment, unknown: Collection[str]
) -> Mapping[str, tuple[float, float]]:
    """For each topology: tuples per second between its executors, and how many of them leave their supervisor.

    Those whose traffic is `unknown` (ids) are left out.
    """
    totals: dict[str, tuple[float, float]] = {}
    for topology in snapshot.topologies:
        if topology.id not in unknown:
            own = snapshot.traffic.within(topology.id)
            totals[topology.id] = own.total(), own.inter_supervisor(assignment)
    return totals


def _supervisor_flows(
    snapshot: ClusterSnapshot, here: Ints, there: Ints, rates: Floats
) -> tuple[SupervisorFlowView, ...]:
    ids, distances = [supervisor.id for supervisor in snapshot.supervisors], snapshot.distances
    incomplete = snapshot.incomplete_places()
    sources, targets, sums = _summed(here, there, rates, len(ids) + 1)
    return tuple(
        SupervisorFlowView(
            source,
            target,
            None if any(ids[source] in places and ids[target] in places for places in incomplete) else rate,
            None if distances.are_assumed else distances.between_supervisors(ids[source], ids[target]),
        )
        for source, target, rate in zip(sources.tolist(), targets.tolist(), sums.tolist(), strict=True)
    )


def _summed(sources: Ints, targets: Ints, rates: Floats, size: int) -> tuple[Ints, Ints, Floats]:
    """Each ordered pair once, in order, with its sum."""
    keys, inverse = np.unique(sources * size + targets, return_inverse=True)
    sums: Floats = np.bincount(inverse, weights=rates, minlength=len(keys)).astype(np.float64)
    return keys // size, keys % size, sums


def _heaviest(sources: Ints, targets: Ints, rates: Floats, most: int) -> tuple[tuple[FlowView, ...], int]:
    """Heaviest first (equal ones by position), and how many are left out."""
    order = np.lexsort((targets, sources, -rates))[:most]
    flows = zip(sources[order].tolist(), targets[order].tolist(), rates[order].tolist(), strict=True)
    return tuple(FlowView(source, target, rate) for source, target, rate in flows), max(0, len(rates) - most)
