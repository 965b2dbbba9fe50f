"""The documents of docs/reference/interfaces.md (plan, CPU limits, ...) as values, to bytes and back.

Readers are strict: a wrong document raises MalformedDocument with field, value and what would be right.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from storm_operator.adapters.errors import MalformedDocument
from storm_operator.adapters.json_fields import decode_object, take, wrong
from storm_operator.core.cpu_quantity import MOST_MILLICORES
from storm_operator.core.decision import Plan
from storm_operator.core.model import Executor, read_only

VERSION = 1
OUTCOMES = ("applied", "partial", "rejected")
HIGHEST_PORT = 65535

TaskRange = tuple[int, int]


@dataclass(frozen=True, slots=True, order=True)
class PlannedWorker:
    """One worker of a plan: its slot and the task ranges of its executors."""

    supervisor_id: str
    host: str
    port: int
    executors: tuple[TaskRange, ...]


@dataclass(frozen=True, slots=True)
class PlanDocument:
    """Where one topology's executors shall live."""

    plan_id: str
    topology_id: str
    workers: tuple[PlannedWorker, ...]


@dataclass(frozen=True, slots=True, order=True)
class Unplaced:
    """An executor that could not be placed as planned, and why."""

    executor: TaskRange
    reason: str


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """What became of a plan; `plan_id` is None for a plan too malformed to have one."""

    plan_id: str | None
    topology_id: str
    outcome: str
    message: str
    placed: int
    unplaced: tuple[Unplaced, ...]
    at_ms: int


@dataclass(frozen=True, slots=True)
class CpuLimits:
    """Millicores that each executor of a topology may use. `plan_id` is empty when no plan brought them."""

    topology_id: str
    plan_id: str
    millicores: Mapping[Executor, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "millicores", read_only(self.millicores))


def plan_document(topology_id: str, plan: Plan, host_of: Mapping[str, str]) -> PlanDocument:
    """The part of `plan.target` that concerns `topology_id`; `host_of` gives hosts by supervisor id."""
    workers = plan.target.restricted_to((topology_id,)).workers()
    return PlanDocument(
        plan.id,
        topology_id,
        tuple(
            PlannedWorker(
                slot.supervisor_id,
                host_of[slot.supervisor_id],
                slot.port,
                tuple((executor.task_start, executor.task_end) for executor in executors),
            )
            for slot, executors in workers.items()
        ),
    )


def encode_plan(plan: PlanDocument) -> bytes:
    return _encode(
        {
            "version": VERSION,
            "plan_id": plan.plan_id,
            "topology_id": plan.topology_id,
            "workers": [
                {
                    "supervisor_id": worker.supervisor_id,
                    "host": worker.host,
                    "port": worker.port,
                    "executors": [list(tasks) for tasks in worker.executors],
                }
                for worker in plan.workers
            ],
        }
    )


def decode_plan(content: bytes) -> PlanDocument:
    document = _decode("plan", content)
    workers = []
    for at, worker in enumerate(take(document, "plan", "workers", list)):
        where = f"plan: workers[{at}]"
        port = take(worker, where, "port", int)
        if not 0 < port <= HIGHEST_PORT:
            raise wrong(f"{where}.port", port, f"1 to {HIGHEST_PORT}")
        ranges = take(worker, where, "executors", list)
        workers.append(
            PlannedWorker(
                take(worker, where, "supervisor_id", str),
                take(worker, where, "host", str),
                port,
                tuple(_task_range(f"{where}.executors[{n}]", value) for n, value in enumerate(ranges)),
            )
        )
    _refuse_duplicates("plan: executors", [tasks for worker in workers for tasks in worker.executors])
    return PlanDocument(
        take(document, "plan", "plan_id", str), take(document, "plan", "topology_id", str), tuple(workers)
    )


def encode_acknowledgement(ack: Acknowledgement) -> bytes:
    return _encode(
        {
            "version": VERSION,
            "plan_id": ack.plan_id,
            "topology_id": ack.topology_id,
            "outcome": ack.outcome,
            "message": ack.message,
            "placed": ack.placed,
            "unplaced": [{"executor": list(each.executor), "reason": each.reason} for each in ack.unplaced],
            "at_ms": ack.at_ms,
        }
    )


def decode_acknowledgement(content: bytes) -> Acknowledgement:
    name = "acknowledgement"
    document = _decode(name, content)
    outcome = take(document, name, "outcome", str)
    if outcome not in OUTCOMES:
        raise wrong(f"{name}: outcome", outcome, f"one of {', '.join(OUTCOMES)}")
    unplaced = []
    for at, entry in enumerate(take(document, name, "unplaced", list)):
        where = f"{name}: unplaced[{at}]"
        tasks = _task_range(f"{where}.executor", take(entry, where, "executor", list))
        unplaced.append(Unplaced(tasks, take(entry, where, "reason", str)))
    plan_id = None if document.get("plan_id", "") is None else take(document, name, "plan_id", str)
    return Acknowledgement(
        plan_id,
        take(document, name, "topology_id", str),
        outcome,
        take(document, name, "message", str),
        take(document, name, "placed", int),
        tuple(unplaced),
        take(document, name, "at_ms", int),
    )


def encode_cpu_limits(limits: CpuLimits) -> bytes:
    return _encode(
        {
            "version": VERSION,
            "topology_id": limits.topology_id,
            "plan_id": limits.plan_id,
            "limits": [
                {"task_start": executor.task_start, "task_end": executor.task_end, "millicores": millicores}
                for executor, millicores in sorted(limits.millicores.items())
            ],
        }
    )


def decode_cpu_limits(content: bytes) -> CpuLimits:
    """The executors' `component` is empty: the document does not carry it, and it takes no part in identity."""
    name = "CPU limits"
    document = _decode(name, content)
    topology_id = take(document, name, "topology_id", str)
    rows: list[tuple[Executor, float]] = []
    for at, entry in enumerate(take(document, name, "limits", list)):
        where = f"{name}: limits[{at}]"
        tasks = [take(entry, where, "task_start", int), take(entry, where, "task_end", int)]
        start, end = _task_range(where, tasks)
        millicores = take(entry, where, "millicores", (int, float))
        if not 0 < millicores <= MOST_MILLICORES:
            raise wrong(f"{where}.millicores", millicores, f"a number above 0 and at most {MOST_MILLICORES:.0f}")
        rows.append((Executor(topology_id, start, end, ""), float(millicores)))
    _refuse_duplicates(f"{name}: limits", [(executor.task_start, executor.task_end) for executor, _ in rows])
    return CpuLimits(topology_id, take(document, name, "plan_id", str), dict(rows))


def encode_suspended(topologies: Mapping[str, str]) -> bytes:
    """`topologies` are ids by name."""
    return _encode({"version": VERSION, "topologies": dict(topologies)})


def decode_suspended(content: bytes) -> Mapping[str, str]:
    name = "suspended"
    topologies = take(_decode(name, content), name, "topologies", dict)
    return {each: take(topologies, f"{name}: topologies", each, str) for each in topologies}


def _encode(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode("utf-8")


def _decode(name: str, content: bytes) -> dict[str, Any]:
    document = decode_object(name, content)
    version = document.get("version")
    if isinstance(version, bool) or version != VERSION:
        raise wrong(f"{name}: version", version, f"{VERSION}, the only one known here")
    return document


def _task_range(where: str, value: Any) -> TaskRange:
    right = isinstance(value, list) and len(value) == 2 and all(type(task) is int for task in value)
    if not right or not 1 <= value[0] <= value[1]:
        raise wrong(where, value, "[task_start, task_end] with 1 <= task_start <= task_end")
    return value[0], value[1]


def _refuse_duplicates(where: str, ranges: list[TaskRange]) -> None:
    seen: set[TaskRange] = set()
    for tasks in ranges:
        if tasks in seen:
            raise MalformedDocument(f"{where}: {list(tasks)} appears twice; each executor may appear once")
        seen.add(tasks)
