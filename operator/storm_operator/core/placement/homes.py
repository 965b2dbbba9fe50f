"""Executors one at a time: a place for those who have none, and moves of single executors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from storm_operator.core.model import Assignment, Executor, Infeasible, WorkerSlot
from storm_operator.core.placement.even import deal_out, interleaved_free_slots
from storm_operator.core.placement.inventory import existing_slots, movable_topologies
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot


def with_homes(snapshot: ClusterSnapshot, settings: PlacementSettings) -> Assignment | Infeasible:
    """The assignment in force, with movable executors that are in no existing slot dealt out as Storm does.

    They go in turn over what is left of their topology's workers and as many free slots as are missing to the number
    that it asked for. Everyone else stays.
    """
    existing = existing_slots(snapshot)
    slot_of = {
        e: slot
        for e, slot in snapshot.assignment.slot_of.items()
        if e.topology_id not in settings.movable or slot in existing
    }
    for topology in movable_topologies(snapshot, settings):
        homeless = [executor for executor in topology.executors if executor not in slot_of]
        if not homeless:
            continue
        left = sorted({slot_of[executor] for executor in topology.executors if executor in slot_of})
        missing = max(0, max(1, topology.num_workers) - len(left))
        slots = [*left, *interleaved_free_slots(snapshot.supervisors, slot_of.values())[:missing]]
        if not slots:
            return Infeasible(f"topology {topology.name} needs at least one free slot and there is none")
        slot_of.update(deal_out(homeless, slots))
    return Assignment(slot_of)


class Homes:
    """Mutable: who lives where, for policies that move one executor after the other."""

    def __init__(self, snapshot: ClusterSnapshot, assignment: Assignment) -> None:
        self._ports = {machine.id: sorted(machine.slots) for machine in snapshot.supervisors}
        self._slot_of = dict(assignment.slot_of)
        self._members: dict[WorkerSlot, set[Executor]] = {}
        for executor, slot in assignment.slot_of.items():
            self._members.setdefault(slot, set()).add(executor)

    @property
    def slot_of(self) -> Mapping[Executor, WorkerSlot]:
        return self._slot_of

    def slot_on(self, supervisor_id: str, topology_id: str) -> WorkerSlot | None:
        """Where an executor of the topology would live there: its worker of lowest port, else the lowest free slot."""
        slots = self._ports[supervisor_id]
        own = (slot for slot in slots if self._tenant(slot) == topology_id)
        free = (slot for slot in slots if self._tenant(slot) is None)
        return next(own, None) or next(free, None)

    def hosts(self, supervisor_ids: Iterable[str], topology_id: str) -> list[bool]:
        """Whether each supervisor has a slot for an executor of the topology."""
        return [self.slot_on(supervisor_id, topology_id) is not None for supervisor_id in supervisor_ids]

    def move(self, executor: Executor, supervisor_id: str) -> None:
        """Move to a supervisor that has a slot for it; ValueError where there is none."""
        target = self.slot_on(supervisor_id, executor.topology_id)
        if target is None:
            raise ValueError(f"{supervisor_id} has no slot for executor {executor.label} of {executor.topology_id}")
        self._members[self._slot_of[executor]].discard(executor)
        self._members.setdefault(target, set()).add(executor)
        self._slot_of[executor] = target

    def assignment(self) -> Assignment:
        return Assignment(self._slot_of)

    def _tenant(self, slot: WorkerSlot) -> str | None:
        """The topology whose worker is there."""
        return next((executor.topology_id for executor in self._members.get(slot, ())), None)
