"""Executors one at a time: a place for those who have none, and moves of single executors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from storm_operator.core.model import Assignment, Executor, Infeasible, WorkerSlot
from storm_operator.core.placement.even import deal_out, interleaved_free_slots
from storm_operator.core.placement.inventory import existing_slots, movable_topologies, slots_missing
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot


def with_homes(snapshot: ClusterSnapshot, settings: PlacementSettings) -> Assignment | Infeasible:
    """The assignment in force, with movable executors that are in no existing slot dealt out as Storm does.

    They go in turn over what is left of their topology's workers and as many free slots as are missing to the number
    that it asked for. Unlike with Storm no topology takes the last slot of another that has none, and where too few are
    free, workers that a topology has on one supervisor become one. Everyone else stays.
    """
    existing = existing_slots(snapshot)
    slot_of = {
        e: slot
        for e, slot in snapshot.assignment.slot_of.items()
        if e.topology_id not in settings.movable or slot in existing
    }
    topologies = [topology for topology in movable_topologies(snapshot, settings) if topology.executors]
    unhoused = sum(slot_of.keys().isdisjoint(topology.executors) for topology in topologies)
    free = interleaved_free_slots(snapshot.supervisors, slot_of.values())
    for missing in range(unhoused - len(free), 0, -1):
        if not _join_two_workers(slot_of, settings.movable):
            return slots_missing(missing)
    for topology in topologies:
        homeless = [executor for executor in topology.executors if executor not in slot_of]
        if not homeless:
            continue
        left = sorted({slot_of[executor] for executor in topology.executors if executor in slot_of})
        if not left:
            unhoused -= 1
        free = interleaved_free_slots(snapshot.supervisors, slot_of.values())
        wanted = max(0, max(1, topology.num_workers) - len(left))
        slots = [*left, *free[: min(wanted, max(0, len(free) - unhoused))]]
        slot_of.update(deal_out(homeless, slots))
    return Assignment(slot_of)


def _join_two_workers(slot_of: dict[Executor, WorkerSlot], topology_ids: Collection[str]) -> bool:
    """The smallest worker moves in with the next one of its topology on its supervisor; False where none has one."""
    sizes = Counter((e.topology_id, slot) for e, slot in slot_of.items() if e.topology_id in topology_ids)
    beside: dict[tuple[str, str], list[tuple[int, WorkerSlot]]] = {}
    for (topology_id, slot), size in sizes.items():
        beside.setdefault((topology_id, slot.supervisor_id), []).append((size, slot))
    pairs = [sorted(workers)[:2] for workers in beside.values() if len(workers) > 1]
    if not pairs:
        return False
    (_, given_up), (_, kept) = min(pairs)
    slot_of.update({executor: kept for executor, slot in slot_of.items() if slot == given_up})
    return True


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
