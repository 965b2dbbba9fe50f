"""The vocabulary: Storm's own words as frozen values.

Everything here is immutable, compares by value and sorts by its identifiers, so that the same input always
gives the same plan. Units live in names (`_millicores`, `_per_second`, `_seconds`, `_ms`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter
from types import MappingProxyType
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

ACKER_COMPONENT = "__acker"

STORMS_OWN = 1.0
"""Tuples: where a topology batches, a flush tuple comes to each executor every millisecond, so that one with little to
do often has it in its queue."""

HARDLY_WAITING = 10.0
"""Tuples: a few of Storm's own (flushes, ticks) wait for a thread that sleeps until it looks again. Whether it has come
up at all is told by more."""


def waiting_work(queue_length: float) -> float:
    """Of the tuples in a queue, those that are work to do: a single one counts as Storm's own."""
    return 0.0 if queue_length <= STORMS_OWN else queue_length


def read_only(items: Mapping[K, V]) -> Mapping[K, V]:
    """A read-only copy of `items`."""
    return MappingProxyType(_copy_of(items))


def _copy_of(items: Mapping[K, V]) -> dict[K, V]:
    # A read-only mapping's own copy does not hash its keys again, dict() does.
    return items.copy() if isinstance(items, MappingProxyType) else dict(items)


@dataclass(frozen=True, slots=True, order=True)
class Executor:
    """One thread of a worker: the tasks `task_start..task_end` (inclusive) of one component.

    `component` is carried for convenience and takes no part in identity: a topology's task ids are unique.
    """

    topology_id: str
    task_start: int
    task_end: int
    component: str = field(compare=False)

    @property
    def tasks(self) -> range:
        return range(self.task_start, self.task_end + 1)

    @property
    def label(self) -> str:
        """How metrics and reports write it, e.g. `3-4`."""
        return f"{self.task_start}-{self.task_end}"

    @property
    def name(self) -> str:
        """How messages name it within its topology, e.g. `split[3-4]`."""
        return f"{self.component}[{self.label}]"


def name_of_topology(topology_id: str) -> str:
    """The name in an id of Storm's: name-number-seconds."""
    parts = topology_id.rsplit("-", 2)
    return parts[0] if _is_storms(parts) else topology_id


def submitted_at_seconds(topology_id: str) -> float | None:
    """The time in an id of Storm's, by Nimbus' clock; None where there is none."""
    parts = topology_id.rsplit("-", 2)
    return float(parts[2]) if _is_storms(parts) else None


def _is_storms(parts: Sequence[str]) -> bool:
    return len(parts) == 3 and parts[1].isdecimal() and parts[2].isdecimal()


def in_order(executors: Iterable[Executor]) -> list[Executor]:
    """Sorted; many of them faster than by comparing two at a time."""
    return sorted(executors, key=attrgetter("topology_id", "task_start", "task_end"))


@dataclass(frozen=True, slots=True, order=True)
class WorkerSlot:
    """A place for one worker process: a port of a supervisor."""

    supervisor_id: str
    port: int


def slots_in_order(slots: Iterable[WorkerSlot]) -> list[WorkerSlot]:
    """Sorted; many of them faster than by comparing two at a time."""
    return sorted(slots, key=attrgetter("supervisor_id", "port"))


@dataclass(frozen=True, slots=True, order=True)
class Supervisor:
    """A machine that runs workers.

    `cpu_capacity_millicores` is what its workers may use together; None when nobody has measured it.
    `availability` is the fraction of recent time in which it answered, 0..1. `memory_mb` is the memory that it
    declares for its workers (`supervisor.memory.capacity.mb`); None when it declares none.
    """

    id: str
    host: str
    ports: tuple[int, ...]
    cpu_capacity_millicores: float | None = None
    availability: float = 1.0
    memory_mb: float | None = None

    @property
    def slots(self) -> tuple[WorkerSlot, ...]:
        return tuple(WorkerSlot(self.id, port) for port in self.ports)


class ComponentKind(StrEnum):
    SPOUT = "spout"
    BOLT = "bolt"
    ACKER = "acker"


@dataclass(frozen=True, slots=True, order=True)
class Component:
    """A spout, a bolt, or Storm's own acker. `tasks` is fixed at submission.

    `declared_memory_mb` and `declared_cpu_millicores` are what the submitter says that each of its executors needs;
    None where the submitter says nothing.
    """

    name: str
    kind: ComponentKind
    tasks: int
    stateful: bool = False
    declared_memory_mb: float | None = None
    declared_cpu_millicores: float | None = None


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """`target` subscribes to `stream` of `source` with `grouping` (Storm's name: shuffle, fields, all, ...)."""

    source: str
    stream: str
    target: str
    grouping: str


@dataclass(frozen=True, slots=True)
class Topology:
    """A running topology: its components, who subscribes to whom, and its executors (sorted).

    `num_workers` is what its submitter asked for (`topology.workers`); Storm's own scheduler and Aniello's go by it.
    """

    id: str
    name: str
    components: tuple[Component, ...]
    edges: tuple[Edge, ...]
    executors: tuple[Executor, ...]
    num_workers: int = 1

    def component(self, name: str) -> Component:
        """The component called `name`; KeyError when the topology has none."""
        for component in self.components:
            if component.name == name:
                return component
        raise KeyError(f"topology {self.name} has no component {name!r}")

    def executors_of(self, component: str) -> tuple[Executor, ...]:
        return tuple(executor for executor in self.executors if executor.component == component)

    def parents_of(self, component: str) -> tuple[str, ...]:
        """Names of the components whose streams `component` subscribes to, sorted."""
        return tuple(sorted({edge.source for edge in self.edges if edge.target == component}))

    def is_stateful(self, executor: Executor) -> bool:
        return self.component(executor.component).stateful


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which slot each executor lives in. Executors that Storm has not placed are simply absent."""

    slot_of: Mapping[Executor, WorkerSlot]
    _workers: Mapping[WorkerSlot, tuple[Executor, ...]] | None = field(
        default=None, init=False, repr=False, compare=False
    )
    """What `workers` answered before: it is asked again and again, and nothing here changes."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "slot_of", read_only(self.slot_of))

    def workers(self) -> Mapping[WorkerSlot, tuple[Executor, ...]]:
        """The executors in each used slot, both sorted."""
        if self._workers is None:
            object.__setattr__(self, "_workers", MappingProxyType(self._grouped()))
        assert self._workers is not None
        return self._workers

    def _grouped(self) -> dict[WorkerSlot, tuple[Executor, ...]]:
        grouped: dict[WorkerSlot, list[Executor]] = {}
        for executor in in_order(self.slot_of):
            grouped.setdefault(self.slot_of[executor], []).append(executor)
        return {slot: tuple(grouped[slot]) for slot in slots_in_order(grouped)}

    def residents(self) -> Mapping[str, tuple[Executor, ...]]:
        """The executors on each used supervisor, sorted, by its id."""
        grouped: dict[str, list[Executor]] = {}
        for executor in in_order(self.slot_of):
            grouped.setdefault(self.slot_of[executor].supervisor_id, []).append(executor)
        return {supervisor_id: tuple(executors) for supervisor_id, executors in grouped.items()}

    def used_supervisors(self) -> tuple[str, ...]:
        return tuple(sorted({slot.supervisor_id for slot in self.slot_of.values()}))

    def with_moves(self, moves: Mapping[Executor, WorkerSlot]) -> Assignment:
        slot_of = _copy_of(self.slot_of)
        slot_of.update(_copy_of(moves))
        return Assignment(slot_of)

    def restricted_to(self, topology_ids: Iterable[str]) -> Assignment:
        wanted = frozenset(topology_ids)
        return Assignment({e: s for e, s in self.slot_of.items() if e.topology_id in wanted})


@dataclass(frozen=True, slots=True)
class ExecutorLoad:
    """What one executor did in the last period. None means that nobody knows, never zero.

    `throttled_fraction` is the share of the period for which its CPU limit kept it waiting; None also where nobody
    holds it to one.
    """

    cpu_millicores: float | None = None
    executed_per_second: float | None = None
    emitted_per_second: float | None = None
    arrived_per_second: float | None = None
    queue_length: float | None = None
    queue_growth_per_second: float | None = None
    throttled_fraction: float | None = None

    @property
    def waiting_tuples(self) -> float | None:
        """Those in its queue that wait to be worked off."""
        return None if self.queue_length is None else waiting_work(self.queue_length)

    @property
    def never_busy(self) -> bool:
        """Whether nobody knows its thread yet since no tuple has come: it is there, and what it does is nothing.

        One for which tuples wait has not come up, and what it will do nobody knows.
        """
        does_nothing = self.cpu_millicores is None and self.executed_per_second == self.emitted_per_second == 0.0
        return does_nothing and self.queue_length is not None and self.queue_length <= HARDLY_WAITING


@dataclass(frozen=True, slots=True)
class Infeasible:
    """No placement keeps the rules; `reason` says which rule and by how much."""

    reason: str
