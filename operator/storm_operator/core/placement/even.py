"""Storm's own placement (EvenScheduler, which DefaultScheduler uses): the baseline.

Free slots are taken in turn from each supervisor, the one with most free slots first, and a topology's executors are
dealt out in turn over as many slots as it asked workers for. Neither traffic nor CPU counts.

Movable topologies are placed as after a `storm rebalance`, which hides their old assignment from the scheduler: anew,
one after the other by id. (Between rebalances Storm leaves complete topologies alone; the answer here is the same
every time, and workers that are there already keep their ports, so nothing moves either.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, zip_longest

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Executor, Infeasible, Supervisor, WorkerSlot
from storm_operator.core.placement.slots import in_slots_of_before
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot


def place_even(snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings) -> Assignment | Infeasible:
    """Every movable topology over `num_workers` slots, round robin; demand plays no part."""
    slot_of = {e: slot for e, slot in snapshot.assignment.slot_of.items() if e.topology_id not in settings.movable}
    for topology in sorted(snapshot.topologies, key=lambda topology: topology.id):
        if topology.id not in settings.movable:
            continue
        slots = interleaved_free_slots(snapshot.supervisors, slot_of.values())
        if not slots and topology.executors:
            return Infeasible(f"topology {topology.name} needs at least one free slot and there is none")
        slot_of.update(deal_out(topology.executors, slots[: max(1, topology.num_workers)]))
    return in_slots_of_before(snapshot, Assignment(slot_of), settings.movable)


def interleaved_free_slots(supervisors: Sequence[Supervisor], occupied: Iterable[WorkerSlot]) -> tuple[WorkerSlot, ...]:
    """Free slots in Storm's order: first of each supervisor, then second of each, ...; ports ascending.

    Supervisors with more free slots come first, those with as many by id (`EvenScheduler.sortSlots`).
    """
    taken = frozenset(occupied)
    free = [sorted(set(s.slots) - taken) for s in sorted(supervisors, key=lambda s: s.id)]
    free.sort(key=len, reverse=True)
    return tuple(slot for slot in chain.from_iterable(zip_longest(*free)) if slot is not None)


def deal_out(executors: Iterable[Executor], slots: Sequence[WorkerSlot]) -> Mapping[Executor, WorkerSlot]:
    """Executors by first task, in turn over `slots`."""
    ordered = sorted(executors, key=lambda executor: executor.task_start)
    return {executor: slots[at % len(slots)] for at, executor in enumerate(ordered)}
