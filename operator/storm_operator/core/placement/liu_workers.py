"""The workers of a cluster while Liu's algorithms rearrange them: at most two for a topology on a supervisor."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Executor, Topology, WorkerSlot
from storm_operator.core.placement.inventory import movable_topologies
from storm_operator.core.placement.objective import usable_millicores
from storm_operator.core.settings import PlacementSettings, Separation
from storm_operator.core.snapshot import ClusterSnapshot

ROUNDING_NOISE = 1e-6

LEAST_NEED_MILLICORES = 1.0
"""What an executor without a demand counts, so that a place is looked for."""


class Kind(StrEnum):
    """Which executors a worker holds. With separation off, `STATELESS` holds all."""

    STATELESS = "stateless"
    STATEFUL = "stateful"


@dataclass(frozen=True, slots=True, order=True)
class Worker:
    """The worker of one kind that a topology has, or could have, on a supervisor (the paper's n.sl and n.sf)."""

    topology_id: str
    supervisor_id: str
    kind: Kind


class Workers:
    """Who lives in which worker: a mutable picture, private to one placement.

    A worker that was opened keeps its slot until `close_empty`, so that executors that are taken out and put back
    find their process again.
    """

    def __init__(self, snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings) -> None:
        self._demand = demand.millicores
        self._capacity = usable_millicores(snapshot, settings)
        self._largest = max(self._capacity.values(), default=float("inf"))
        self._separate = settings.scheduling.separation is not Separation.NEVER
        self._stateful = {e for t in snapshot.topologies for e in t.executors if self._separate and t.is_stateful(e)}
        self._fixed = {
            e: slot for e, slot in snapshot.assignment.slot_of.items() if e.topology_id not in settings.movable
        }
        self._load = dict.fromkeys(self._capacity, 0.0)
        self._members: dict[Worker, frozenset[Executor]] = {}
        self._slot_of: dict[Worker, WorkerSlot] = {}
        self._free = {s.id: set(s.slots) - set(snapshot.assignment.slot_of.values()) for s in snapshot.supervisors}
        for executor, slot in self._fixed.items():
            if slot.supervisor_id in self._load:
                self._load[slot.supervisor_id] += self.need(executor)
        self.homeless: dict[str, frozenset[Executor]] = {}
        ports = {slot for s in snapshot.supervisors for slot in s.slots}
        for topology in movable_topologies(snapshot, settings):
            self._adopt(topology, snapshot.assignment, ports)

    def copy(self) -> Workers:
        """An independent picture, to try something on."""
        twin = object.__new__(Workers)
        twin.__dict__.update(self.__dict__)
        twin._load = dict(self._load)
        twin._members = dict(self._members)
        twin._slot_of = dict(self._slot_of)
        twin._free = {supervisor_id: set(slots) for supervisor_id, slots in self._free.items()}
        twin.homeless = dict(self.homeless)
        return twin

    @property
    def supervisors(self) -> tuple[str, ...]:
        return tuple(sorted(self._capacity))

    def need(self, executor: Executor) -> float:
        """Its demand, but no more than the largest supervisor has: more than all of one cannot be given."""
        return min(self._demand.get(executor, LEAST_NEED_MILLICORES), self._largest)

    def kind_of(self, executor: Executor) -> Kind:
        return Kind.STATEFUL if executor in self._stateful else Kind.STATELESS

    def remaining(self, supervisor_id: str) -> float:
        """The paper's n.remainingRes: usable capacity less the demand of everything that lives there."""
        return self._capacity[supervisor_id] - self._load[supervisor_id]

    def load(self, supervisor_id: str) -> float:
        return self._load[supervisor_id]

    def fits(self, millicores: float, supervisor_id: str) -> bool:
        return millicores <= self.remaining(supervisor_id) + ROUNDING_NOISE

    def demand_of(self, worker: Worker) -> float:
        """The paper's D(w)."""
        return sum(self.need(executor) for executor in self._members.get(worker, ()))

    def is_open(self, worker: Worker) -> bool:
        return worker in self._slot_of

    def can_open(self, worker: Worker) -> bool:
        return self.is_open(worker) or bool(self._free[worker.supervisor_id])

    def used_by(self, topology_id: str) -> tuple[str, ...]:
        """Supervisors where the topology has executors, by id."""
        return tuple(
            sorted({w.supervisor_id for w, who in self._members.items() if who and w.topology_id == topology_id})
        )

    def in_use(self) -> tuple[str, ...]:
        """Supervisors where anything lives, by id."""
        used = {worker.supervisor_id for worker, who in self._members.items() if who}
        return tuple(sorted(used | self.with_fixed()))

    def with_fixed(self) -> frozenset[str]:
        """Supervisors that hold executors which may not move."""
        return frozenset(slot.supervisor_id for slot in self._fixed.values()) & self._capacity.keys()

    def workers_on(self, supervisor_id: str, topology_id: str | None = None) -> tuple[Worker, ...]:
        """Workers with executors there (of one topology, or of all), sorted."""
        return tuple(
            sorted(
                worker
                for worker, who in self._members.items()
                if who and worker.supervisor_id == supervisor_id and topology_id in (None, worker.topology_id)
            )
        )

    def open(self, worker: Worker) -> None:
        """Give `worker` a slot: the lowest free port. ValueError when there is none (ask `can_open` first)."""
        if not self.is_open(worker):
            slot = min(self._free[worker.supervisor_id])
            self._free[worker.supervisor_id].remove(slot)
            self._slot_of[worker] = slot

    def take_out(self, worker: Worker) -> frozenset[Executor]:
        """Release the executors of `worker` and their CPU; its slot stays reserved."""
        self._load[worker.supervisor_id] -= self.demand_of(worker)
        return self._members.pop(worker, frozenset())

    def put(self, executors: Iterable[Executor], worker: Worker) -> None:
        """Let `executors` live in `worker`, which is opened if need be."""
        self.open(worker)
        arrived = frozenset(executors)
        self._members[worker] = self._members.get(worker, frozenset()) | arrived
        self._load[worker.supervisor_id] += sum(self.need(executor) for executor in arrived)

    def close_empty(self) -> None:
        """Give the slots of workers without executors back."""
        for worker in [worker for worker in self._slot_of if not self._members.get(worker)]:
            self._free[worker.supervisor_id].add(self._slot_of.pop(worker))

    def assignment(self) -> Assignment:
        slot_of = dict(self._fixed)
        for worker, executors in self._members.items():
            slot_of.update(dict.fromkeys(executors, self._slot_of[worker]))
        return Assignment(slot_of)

    def _adopt(self, topology: Topology, current: Assignment, ports: set[WorkerSlot]) -> None:
        """Take a topology over as it is, brought to two workers a supervisor; others than those become homeless."""
        placed = {e: current.slot_of[e] for e in topology.executors if current.slot_of.get(e) in ports}
        homeless = set(topology.executors) - set(placed)
        for supervisor_id in sorted({slot.supervisor_id for slot in placed.values()}):
            here = {e: slot for e, slot in placed.items() if slot.supervisor_id == supervisor_id}
            homeless |= self._split_by_kind(topology.id, supervisor_id, here)
        self.homeless[topology.id] = frozenset(homeless)

    def _split_by_kind(
        self, topology_id: str, supervisor_id: str, here: Mapping[Executor, WorkerSlot]
    ) -> set[Executor]:
        """One worker of each kind on the supervisor, in the slots that hold most of that kind; who has none is left."""
        choice = _slots_to_keep(here, self.kind_of)
        self._free[supervisor_id] |= set(here.values()) - set(choice.values())
        left: set[Executor] = set()
        for kind in sorted({self.kind_of(e) for e in here}, key=lambda kind: kind not in choice):
            members = {e for e in here if self.kind_of(e) is kind}
            worker = Worker(topology_id, supervisor_id, kind)
            if kind in choice:
                self._slot_of[worker] = choice[kind]
            if self.can_open(worker):
                self.put(members, worker)
            else:
                left |= members
        return left


def _slots_to_keep(here: Mapping[Executor, WorkerSlot], kind_of: Callable[[Executor], Kind]) -> dict[Kind, WorkerSlot]:
    """Which used slot becomes the worker of which kind, so that most executors stay in their process."""
    present = [kind for kind in Kind if any(kind_of(e) is kind for e in here)]
    used = sorted(set(here.values()))
    if len(used) >= len(present):
        options = [dict(zip(present, pick, strict=True)) for pick in itertools.permutations(used, len(present))]
    else:
        options = [{kind: used[0]} for kind in present]
    return max(options, key=lambda option: sum(option.get(kind_of(e)) == slot for e, slot in here.items()))
