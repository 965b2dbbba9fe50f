"""Which worker gets which slot of a supervisor, so that as many as possible go on without a restart."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from storm_operator.core.model import Assignment, Executor, WorkerSlot
from storm_operator.core.placement.inventory import free_slots
from storm_operator.core.snapshot import ClusterSnapshot

Members = frozenset[Executor]


def on_free_slots(
    snapshot: ClusterSnapshot,
    fixed: Mapping[Executor, WorkerSlot],
    workers_by_supervisor: Mapping[str, Sequence[Members]],
) -> Assignment:
    """`fixed` as it is, and the workers of each supervisor on its slots that `fixed` does not hold (`match_slots`)."""
    free = free_slots(snapshot, fixed.values())
    in_force = {slot: frozenset(inside) for slot, inside in snapshot.assignment.workers().items()}
    slot_of = dict(fixed)
    for supervisor_id, workers in workers_by_supervisor.items():
        for slot, members in match_slots(workers, free[supervisor_id], in_force).items():
            slot_of.update(dict.fromkeys(members, slot))
    return Assignment(slot_of)


def in_slots_of_before(snapshot: ClusterSnapshot, chosen: Assignment, movable: Collection[str]) -> Assignment:
    """`chosen` with the workers of these topologies on the same supervisors, in slots that suit them (`match_slots`).

    For whoever chooses ports without regard to those in force: workers that are there already would restart for a
    number alone, and in each pass again, since who gives executors away restarts on a fresh port.
    """
    fixed = {executor: slot for executor, slot in chosen.slot_of.items() if executor.topology_id not in movable}
    workers: dict[str, list[Members]] = {}
    for slot, executors in chosen.workers().items():
        if executors[0].topology_id in movable:
            workers.setdefault(slot.supervisor_id, []).append(frozenset(executors))
    return on_free_slots(snapshot, fixed, workers)


def match_slots(
    workers: Sequence[Members], slots: Sequence[WorkerSlot], in_force: Mapping[WorkerSlot, Members]
) -> Mapping[WorkerSlot, Members]:
    """Unchanged workers keep their slot; then the greatest overlap with who was there wins; then the lowest port.

    Needs at least as many slots as workers.
    """
    if len(slots) < len(workers):
        raise ValueError(f"{len(workers)} workers do not fit into {len(slots)} slots")
    if not workers:
        return {}
    unchanged = 1.0 + sum(len(members) for members in workers)
    gain = np.zeros((len(workers), len(slots)))
    for column, slot in enumerate(slots):
        before = in_force.get(slot, frozenset())
        for row, members in enumerate(workers):
            gain[row, column] = len(members & before) + (unchanged if members == before else 0.0) - 1e-6 * column
    rows, columns = linear_sum_assignment(gain, maximize=True)
    return {slots[column]: workers[row] for row, column in zip(rows.tolist(), columns.tolist(), strict=True)}
