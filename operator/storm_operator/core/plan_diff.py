"""What going from one assignment to another means for executors and for worker processes."""

from __future__ import annotations

from dataclasses import dataclass

from storm_operator.core.decision import Move
from storm_operator.core.model import Assignment, Executor, WorkerSlot, in_order, slots_in_order


@dataclass(frozen=True, slots=True)
class PlanDiff:
    """Moves, and what becomes of the worker processes; all sorted.

    Storm restarts a worker when its set of executors changes: `restarted_workers` are the slots, used before or
    after, for which it does; `kept_workers` run on with their process id.
    """

    moves: tuple[Move, ...]
    restarted_workers: tuple[WorkerSlot, ...]
    kept_workers: tuple[WorkerSlot, ...]


def diff_assignments(base: Assignment, target: Assignment) -> PlanDiff:
    """From `base` to `target`. An executor that `target` does not place is no move, but its worker changes."""
    before, after = base.workers(), target.workers()
    slots = slots_in_order(before.keys() | after.keys())
    return PlanDiff(
        moves=tuple(Move(e, base.slot_of.get(e), target.slot_of[e]) for e in in_order(moved_executors(base, target))),
        restarted_workers=tuple(slot for slot in slots if before.get(slot) != after.get(slot)),
        kept_workers=tuple(slot for slot in slots if before.get(slot) == after.get(slot)),
    )


def moved_executors(base: Assignment, target: Assignment) -> list[Executor]:
    """Those that `target` places, and not where `base` does; in no order."""
    before = base.slot_of
    return [executor for executor, slot in target.slot_of.items() if before.get(executor) != slot]
