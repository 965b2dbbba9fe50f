"""From a worker's snapshot to counters and gauges. Pure: one snapshot in, readings out.

Names and labels are those of `metric_contract`. What the worker does not know has no reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from storm_operator.agent.worker_snapshot import ExecutorReading, LatencyReading, WorkerSnapshot


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
    for executor in worker.executors:
        rows = [row for row in worker.complete_latency if executor.task_start <= row.task <= executor.task_end]
        if not rows:
            continue
        yield LatencyHistogram(
            labels=(worker.topology_id, executor.component, executor.label),
            sum_seconds=sum(row.sum_ms for row in rows) / 1000.0,
            buckets=tuple((bound / 1000.0, count) for bound, count in _summed_buckets(rows)),
        )


def _summed_buckets(rows: Sequence[LatencyReading]) -> Iterable[tuple[float, float]]:
    """A task whose buckets lack a bound counts there what it had at its next lower one."""
    if len(rows) == 1:
        return rows[0].buckets
    bounds = sorted({bound for row in rows for bound, _ in row.buckets})
    return [(bound, sum(_count_up_to(row.buckets, bound) for row in rows)) for bound in bounds]


def _count_up_to(buckets: tuple[tuple[float, float], ...], bound: float) -> float:
    return max((count for upper, count in buckets if upper <= bound), default=0.0)
