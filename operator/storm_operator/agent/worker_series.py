"""From a worker's snapshot to counters and gauges. Pure: one snapshot in, readings out.

Names and labels are those of `metric_contract`. What the worker does not know has no reading.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from operator import attrgetter
from typing import NamedTuple

from storm_operator.agent.worker_snapshot import ExecutorReading, LatencyReading, WorkerSnapshot

SERIES_OF_EXECUTOR = 9
SERIES_BESIDE_BUCKETS = 2
BYTES_BESIDE_LABELS = 150
"""Of one series: its name, the names of its labels, its supervisor, its numbers."""


class Reading(NamedTuple):
    """One value of one series; `labels` are in the order of the family's label names, without the supervisor."""

    metric: str
    labels: tuple[str, ...]
    value: float


class LatencyHistogram(NamedTuple):
    """Complete latency of one spout executor; `buckets` are (upper bound in seconds, cumulative count)."""

    labels: tuple[str, str, str]
    sum_seconds: float
    buckets: tuple[tuple[float, float], ...]


def executor_labels(worker: WorkerSnapshot, executor: ExecutorReading) -> tuple[str, ...]:
    return (worker.topology_id, executor.component, executor.label, str(worker.port))


def counter_readings(worker: WorkerSnapshot) -> Iterator[Reading]:
    """All that only rises while the worker lives, but for the traffic between pairs of tasks."""
    topology_id = worker.topology_id
    for executor in worker.executors:
        labels = executor_labels(worker, executor)
        for what, value in (
            ("executed", executor.executed),
            ("emitted", executor.emitted),
            ("acked", executor.acked),
            ("failed", executor.failed),
        ):
            if value is not None:
                yield Reading(f"storm_executor_{what}_tuples_total", labels, value)
    for row in worker.executed_from:
        labels = (topology_id, str(row.task), row.source_component, row.stream)
        yield Reading("storm_task_executed_tuples_total", labels, row.tuples)
    for sent in worker.transferred:
        yield Reading("storm_task_transferred_tuples_total", (topology_id, str(sent.task), sent.stream), sent.tuples)


def gauge_readings(worker: WorkerSnapshot) -> Iterator[Reading]:
    """What is true of this very moment."""
    yield Reading("storm_worker_info", (worker.topology_id, str(worker.port), str(worker.pid)), 1.0)
    for executor in worker.executors:
        labels = executor_labels(worker, executor)
        if executor.queue_length is not None:
            yield Reading("storm_executor_queue_length", labels, executor.queue_length)
        if executor.arrival_per_second is not None:
            yield Reading("storm_executor_arrival_tuples_per_second", labels, executor.arrival_per_second)


def latency_histograms(worker: WorkerSnapshot) -> Iterator[LatencyHistogram]:
    """One histogram per executor that has latencies, summed over its tasks."""
    for executor, rows in _latencies_by_executor(worker):
        yield LatencyHistogram(
            labels=(worker.topology_id, executor.component, executor.label),
            sum_seconds=sum(row.sum_ms for row in rows) / 1000.0,
            buckets=tuple((bound / 1000.0, count) for bound, count in _summed_buckets(rows)),
        )


def _latencies_by_executor(worker: WorkerSnapshot) -> Iterator[tuple[ExecutorReading, list[LatencyReading]]]:
    """Of those that have any."""
    task_of = attrgetter("task")
    by_task = sorted(worker.complete_latency, key=task_of)
    for executor in worker.executors:
        first = bisect_left(by_task, executor.task_start, key=task_of)
        rows = by_task[first : bisect_right(by_task, executor.task_end, lo=first, key=task_of)]
        if rows:
            yield executor, rows


def _summed_buckets(rows: Sequence[LatencyReading]) -> Iterable[tuple[float, float]]:
    """A task whose buckets lack a bound counts there what it had at its next lower one."""
    if len(rows) == 1:
        return rows[0].buckets
    within: dict[float, float] = {}
    for row in rows:
        below = 0.0
        for bound, count in row.buckets:
            within[bound] = within.get(bound, 0.0) + count - below
            below = count
    bounds = sorted(within)
    return zip(bounds, accumulate(within[bound] for bound in bounds), strict=True)


def page_bytes(worker: WorkerSnapshot) -> int:
    """About how much of the page the worker's series take, but for those of pairs of tasks, which are bounded."""
    of_series = BYTES_BESIDE_LABELS + _bytes(worker.topology_id)
    return (
        sum(SERIES_OF_EXECUTOR * (of_series + _bytes(executor.component)) for executor in worker.executors)
        + sum(of_series + _bytes(row.source_component) + _bytes(row.stream) for row in worker.executed_from)
        + sum(of_series + _bytes(row.stream) for row in worker.transferred)
        + sum(
            (len({bound for row in rows for bound, _ in row.buckets}) + SERIES_BESIDE_BUCKETS)
            * (of_series + _bytes(executor.component))
            for executor, rows in _latencies_by_executor(worker)
        )
    )


def _bytes(label: str) -> int:
    return len(label.encode())
