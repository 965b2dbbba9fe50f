"""The worker snapshot, version 1: what a worker's metrics hook writes about itself once a second.

Only the shape and the meaning of one document; where the files lie is `snapshot_folder`'s business. The
contract is docs/reference/interfaces.md, "Worker snapshot". A count that the worker could not read is null there
and None here: unknown, never zero.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

from storm_operator.agent.snapshot_fields import (
    LAST_TASK,
    MOST_COUNTED,
    Fields,
    SnapshotError,
    checked_number,
    is_label,
    number,
    number_or_none,
    port,
    process_id,
    rows,
    task,
    text,
)
from storm_operator.core.short_repr import short_repr

VERSION = 1
MOST_VALUES = 1_000_000
"""Numbers, texts, lists and objects in one document; each takes some 60 bytes of the agent's memory while it is read. A
worker of a thousand executors that sends to 5,000 pairs writes 80,000."""


@dataclass(frozen=True, slots=True)
class ExecutorReading:
    """One executor's counts since its worker started. `tid` is None until its thread has been seen."""

    task_start: int
    task_end: int
    component: str
    tid: int | None
    executed: float | None
    emitted: float | None
    acked: float | None
    failed: float | None
    queue_length: float | None
    arrival_per_second: float | None

    @property
    def label(self) -> str:
        return f"{self.task_start}-{self.task_end}"


@dataclass(frozen=True, slots=True)
class ExecutedFrom:
    """Tuples that `task` executed from one stream of one component."""

    task: int
    source_component: str
    stream: str
    tuples: float


@dataclass(frozen=True, slots=True)
class Transferred:
    """Tuples that `task` sent on `stream`, over all receivers."""

    task: int
    stream: str
    tuples: float


class TrafficReading(NamedTuple):
    """Tuples that went from one task to another. A plain tuple: there are thousands in each snapshot."""

    source_task: int
    stream: str
    target_task: int
    tuples: float


@dataclass(frozen=True, slots=True)
class LatencyReading:
    """Complete latency at one spout task; `buckets` are (upper bound in ms, cumulative count), the last infinite."""

    task: int
    sum_ms: float
    count: float
    buckets: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class WorkerSnapshot:
    """Everything that one worker process says about itself. Counts are since `started_at_ms`."""

    topology_id: str
    port: int
    pid: int
    started_at_ms: float
    written_at_ms: float
    executors: tuple[ExecutorReading, ...]
    executed_from: tuple[ExecutedFrom, ...]
    transferred: tuple[Transferred, ...]
    traffic: tuple[TrafficReading, ...]
    complete_latency: tuple[LatencyReading, ...]

    @property
    def incarnation(self) -> tuple[int, float]:
        """Tells this process from an earlier or later one at the same port."""
        return (self.pid, self.started_at_ms)


def parse_worker_snapshot(document: bytes) -> WorkerSnapshot:
    """The snapshot in `document` (UTF-8 JSON); SnapshotError when it is malformed or of an unknown version."""
    values = sum(document.count(mark) for mark in (b",", b"[", b"{"))
    if values > MOST_VALUES:
        raise SnapshotError(f"has some {values} values, at most {MOST_VALUES} are read")
    try:
        fields = json.loads(document)
    except (ValueError, RecursionError) as error:
        raise SnapshotError(f"not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise SnapshotError(f"must be a JSON object, not {type(fields).__name__}")
    if fields.get("version") != VERSION:
        raise SnapshotError(f"version is {short_repr(fields.get('version'))}, only {VERSION} is known here")
    try:
        return _snapshot(fields)
    except SnapshotError as error:
        raise SnapshotError(str(error).removeprefix(".")) from None


def _snapshot(fields: Fields) -> WorkerSnapshot:
    return WorkerSnapshot(
        topology_id=text(fields, "topology_id"),
        port=port(fields, "port"),
        pid=process_id(fields, "pid"),
        started_at_ms=number(fields, "started_at_ms"),
        written_at_ms=number(fields, "written_at_ms"),
        executors=rows(fields, "executors", _executor),
        executed_from=rows(fields, "executed_from", _executed_from),
        transferred=rows(fields, "transferred", _transferred),
        traffic=_traffic_rows(fields),
        complete_latency=rows(fields, "complete_latency", _latency),
    )


def _executor(row: Fields) -> ExecutorReading:
    reading = ExecutorReading(
        task_start=task(row, "task_start"),
        task_end=task(row, "task_end"),
        component=text(row, "component"),
        tid=None if row.get("tid") is None else process_id(row, "tid"),
        executed=number_or_none(row, "executed"),
        emitted=number_or_none(row, "emitted"),
        acked=number_or_none(row, "acked"),
        failed=number_or_none(row, "failed"),
        queue_length=number_or_none(row, "queue_length"),
        arrival_per_second=number_or_none(row, "arrival_per_second"),
    )
    if reading.task_end < reading.task_start:
        raise SnapshotError(f".task_end is {reading.task_end}, before task_start {reading.task_start}")
    return reading


def _executed_from(row: Fields) -> ExecutedFrom:
    return ExecutedFrom(task(row, "task"), text(row, "source_component"), text(row, "stream"), number(row, "tuples"))


def _transferred(row: Fields) -> Transferred:
    return Transferred(task(row, "task"), text(row, "stream"), number(row, "tuples"))


def _traffic(row: Fields) -> TrafficReading:
    return TrafficReading(
        task(row, "source_task"), text(row, "stream"), task(row, "target_task"), number(row, "tuples")
    )


_FIELDS_OF_TRAFFIC = itemgetter(*TrafficReading._fields)


def _traffic_rows(fields: Fields) -> tuple[TrafficReading, ...]:
    """As `rows`, but all rows at once, of which there are thousands; where any is odd, one by one to name it."""
    try:
        readings = [TrafficReading(*_FIELDS_OF_TRAFFIC(row)) for row in fields["traffic"]]
        sources, streams, targets, tuples = zip(*readings, strict=True)
        tasks = (*sources, *targets)
        is_usual = (
            {*map(type, tasks)} == {int}
            and min(tasks) >= 0
            and max(tasks) <= LAST_TASK
            and {*map(type, streams)} == {str}
            and all(map(is_label, set(streams)))
            and {*map(type, tuples)} <= {int, float}
            and min(tuples) >= 0
            and max(tuples) <= MOST_COUNTED
            and not math.isnan(sum(tuples))  # which min and max may pass by
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        is_usual = False
    return tuple(readings) if is_usual else rows(fields, "traffic", _traffic)


def _latency(row: Fields) -> LatencyReading:
    buckets = row.get("buckets")
    if not isinstance(buckets, list) or not buckets:
        raise SnapshotError(f".buckets must be a list of [upper bound, count], not {short_repr(buckets)}")
    parsed = tuple(_bucket(bucket) for bucket in buckets)
    bounds = [bound for bound, _ in parsed]
    counts = [count for _, count in parsed]
    if bounds != sorted(set(bounds)) or bounds[-1] != math.inf:
        raise SnapshotError(".buckets must have rising upper bounds, the last one null (infinity)")
    if counts != sorted(counts):
        raise SnapshotError(".buckets must be cumulative: a count falls")
    return LatencyReading(task(row, "task"), number(row, "sum_ms"), number(row, "count"), parsed)


def _bucket(bucket: Any) -> tuple[float, float]:
    if not isinstance(bucket, list) or len(bucket) != 2:
        raise SnapshotError(f".buckets must be a list of [upper bound, count], not {short_repr(bucket)}")
    bound, count = bucket
    return (math.inf if bound is None else checked_number(bound, "buckets"), checked_number(count, "buckets"))
