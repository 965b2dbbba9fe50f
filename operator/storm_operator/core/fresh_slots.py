"""Workers that give executors away restart in a slot that nobody sends to.

For some seconds after a move other workers still send to where an executor was. A worker that restarts in its old slot
without that executor gets such a tuple while it starts, and Storm (2.8) answers with a NullPointerException that ends
the worker: it then starts twice, which takes four to five seconds more (measured). In a slot that was not in use, stale
tuples find nobody, and the new process starts while the old one ends.
"""

from __future__ import annotations

from collections.abc import Iterable

from storm_operator.core.model import Assignment, Executor, Supervisor


def on_fresh_slots(in_force: Assignment, target: Assignment, supervisors: Iterable[Supervisor]) -> Assignment:
    """`target` with each such worker in a free slot of its supervisor, where there is one.

    A slot is free when neither the assignment in force nor the target uses it; the lowest port is taken. Workers that
    do not change, only gain executors, or begin in a free slot stay where the target has them.
    """
    before, after = in_force.workers(), target.workers()
    free = {
        supervisor.id: [slot for slot in supervisor.slots if slot not in before and slot not in after]
        for supervisor in supervisors
    }
    slot_of = dict(target.slot_of)
    for slot, executors in after.items():
        if gives_away(before.get(slot, ()), executors) and free.get(slot.supervisor_id):
            fresh = free[slot.supervisor_id].pop(0)
            slot_of.update(dict.fromkeys(executors, fresh))
    return Assignment(slot_of)


def gives_away(before: tuple[Executor, ...], after: tuple[Executor, ...]) -> bool:
    """Whether a slot that ran `before` is without one of them in `after`."""
    return not set(before) <= set(after)
