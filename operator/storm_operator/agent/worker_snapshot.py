"""The worker snapshot, version 1: what a worker's metrics hook writes about itself once a second.

Only the shape and the meaning of one document; where the files lie is `snapshot_folder`'s business. The
contract is docs/reference/interfaces.md, "Worker snapshot". A count that the worker could not read is null there
and None here: unknown, never zero.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

VERSION = 1

T = TypeVar("T")


class SnapshotError(ValueError):
    """A document that is not a worker snapshot of a version known here; the message names the field."""


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
    try:
        fields = json.loads(document)
    except ValueError as error:
        raise SnapshotError(f"not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise SnapshotError(f"must be a JSON object, not {type(fields).__name__}")
    if fields.get("version") != VERSION:
        raise SnapshotError(f"version is {fields.get('version')!r}, only {VERSION} is known here")
    try:
        return _snapshot(fields)
    except SnapshotError as error:
        raise SnapshotError(str(error).removeprefix(".")) from None


def _snapshot(fields: dict[str, Any]) -> WorkerSnapshot:
    return WorkerSnapshot(
        topology_id=_text(fields, "topology_id"),
        port=_whole(fields, "port"),
        pid=_whole(fields, "pid"),
        started_at_ms=_number(fields, "started_at_ms"),
        written_at_ms=_number(fields, "written_at_ms"),
        executors=_rows(fields, "executors", _executor),
        executed_from=_rows(fields, "executed_from", _executed_from),
        transferred=_rows(fields, "transferred", _transferred),
        traffic=_traffic_rows(fields),
        complete_latency=_rows(fields, "complete_latency", _latency),
    )


def _executor(row: dict[str, Any]) -> ExecutorReading:
    reading = ExecutorReading(
        task_start=_whole(row, "task_start"),
        task_end=_whole(row, "task_end"),
        component=_text(row, "component"),
        tid=None if row.get("tid") is None else _whole(row, "tid"),
        executed=_number_or_none(row, "executed"),
        emitted=_number_or_none(row, "emitted"),
        acked=_number_or_none(row, "acked"),
        failed=_number_or_none(row, "failed"),
        queue_length=_number_or_none(row, "queue_length"),
        arrival_per_second=_number_or_none(row, "arrival_per_second"),
    )
    if reading.task_end < reading.task_start:
        raise SnapshotError(f".task_end is {reading.task_end}, before task_start {reading.task_start}")
    return reading


def _executed_from(row: dict[str, Any]) -> ExecutedFrom:
    return ExecutedFrom(
        _whole(row, "task"), _text(row, "source_component"), _text(row, "stream"), _number(row, "tuples")
    )


def _transferred(row: dict[str, Any]) -> Transferred:
    return Transferred(_whole(row, "task"), _text(row, "stream"), _number(row, "tuples"))


def _traffic(row: dict[str, Any]) -> TrafficReading:
    return TrafficReading(
        _whole(row, "source_task"), _text(row, "stream"), _whole(row, "target_task"), _number(row, "tuples")
    )


_FIELDS_OF_TRAFFIC = itemgetter(*TrafficReading._fields)


def _traffic_rows(fields: dict[str, Any]) -> tuple[TrafficReading, ...]:
    """As `_rows`, but all rows at once, of which there are thousands; where any is odd, one by one to name it."""
    try:
        rows = [TrafficReading(*_FIELDS_OF_TRAFFIC(row)) for row in fields["traffic"]]
        sources, streams, targets, tuples = zip(*rows, strict=True)
        is_usual = (
            {*map(type, sources), *map(type, targets)} == {int}
            and {*map(type, streams)} == {str}
            and all(streams)
            and {*map(type, tuples)} <= {int, float}
            and min(tuples) >= 0.0
            and sum(tuples) < math.inf
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        is_usual = False
    return tuple(rows) if is_usual else _rows(fields, "traffic", _traffic)


def _latency(row: dict[str, Any]) -> LatencyReading:
    buckets = row.get("buckets")
    if not isinstance(buckets, list) or not buckets:
        raise SnapshotError(f".buckets must be a list of [upper bound, count], not {buckets!r}")
    parsed = tuple(_bucket(bucket) for bucket in buckets)
    bounds = [bound for bound, _ in parsed]
    counts = [count for _, count in parsed]
    if bounds != sorted(set(bounds)) or bounds[-1] != math.inf:
        raise SnapshotError(".buckets must have rising upper bounds, the last one null (infinity)")
    if counts != sorted(counts):
        raise SnapshotError(".buckets must be cumulative: a count falls")
    return LatencyReading(_whole(row, "task"), _number(row, "sum_ms"), _number(row, "count"), parsed)


def _bucket(bucket: Any) -> tuple[float, float]:
    if not isinstance(bucket, list) or len(bucket) != 2:
        raise SnapshotError(f".buckets must be a list of [upper bound, count], not {bucket!r}")
    bound, count = bucket
    return (math.inf if bound is None else _checked_number(bound, "buckets"), _checked_number(count, "buckets"))


def _rows(fields: dict[str, Any], name: str, parse_row: Callable[[dict[str, Any]], T]) -> tuple[T, ...]:
    rows = fields.get(name)
    if not isinstance(rows, list):
        raise SnapshotError(f"{name} must be a list, not {rows!r}")
    parsed = []
    for index, row in enumerate(rows):
        if not isinstance(row, dict):
            raise SnapshotError(f"{name}[{index}] must be an object, not {row!r}")
        try:
            parsed.append(parse_row(row))
        except SnapshotError as error:
            raise SnapshotError(f"{name}[{index}]{error}") from None
    return tuple(parsed)


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise SnapshotError(f".{name} must be a non-empty string, not {value!r}")
    return value


def _whole(fields: dict[str, Any], name: str) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise SnapshotError(f".{name} must be a whole number, not {value!r}")
    return value


def _number(fields: dict[str, Any], name: str) -> float:
    return _checked_number(fields.get(name), name)


def _number_or_none(fields: dict[str, Any], name: str) -> float | None:
    value = fields.get(name)
    return None if value is None else _checked_number(value, name)


def _checked_number(value: Any, name: str) -> float:
    # json accepts NaN and Infinity, which no counter can be.
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value) or value < 0:
        raise SnapshotError(f".{name} must be a number of at least 0, not {value!r}")
    return float(value)
