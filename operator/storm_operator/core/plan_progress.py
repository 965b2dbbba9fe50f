"""How far a plan has come: whom it concerns, which executors run where it wants them, which workers lived on. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from storm_operator.core.decision import Plan
from storm_operator.core.model import ACKER_COMPONENT, Assignment, Executor, WorkerSlot, read_only
from storm_operator.core.plan_record import ExecutorKey, PlanRecord, WorkerSeen, executor_key
from storm_operator.core.settings import ApplyMethod
from storm_operator.core.snapshot import ClusterSnapshot

Failures = Mapping[str, float]
"""Failed tuples so far, by counter."""

PLACE_LABELS = re.compile(r'(supervisor|port)="[^"]*"')
"""In a counter's name: where its executor runs, or once ran."""

Component = tuple[str, str]
"""(topology id, component)."""

Way = tuple[str, str, str]
"""(topology id, component that sends, component that executes)."""

BUSY_CORES = 0.1
"""An executor that takes more CPU works on a tuple: one that waits for tuples takes about a hundredth of a core."""


@dataclass(frozen=True, slots=True)
class InFlight:
    """What agents see of tuples that are under way: how many wait in queues, and how many were executed so far.

    Storm's own ticks are none of them. `cpu_seconds` is what each executor took so far, by counter. `age_seconds` is
    how long ago the worker that has been silent for longest wrote what this is read from. `queues_of` are the executors
    in whose queues somebody looked.
    """

    waiting: float
    executed: Mapping[Way, float]
    cpu_seconds: Mapping[str, float] = field(default_factory=dict)
    age_seconds: float = 0.0
    queues_of: frozenset[ExecutorKey] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "executed", read_only(self.executed))
        object.__setattr__(self, "cpu_seconds", read_only(self.cpu_seconds))


def still_reached(
    before: InFlight, now: InFlight, seconds: float, by: Collection[Component] | None = None
) -> frozenset[Component] | None:
    """The components that tuples of paused spouts have reached in these seconds; empty: none is under way any more.

    `by` is what this said of the seconds before. None, there and here, is anybody: something waits, an executor is
    busy with a single tuple, or a worker wrote nothing in these seconds, so that nobody knows. A tuple comes from a
    spout, or from a bolt that was reached: what bolts emit on ticks, and others execute, goes on for ever, but comes
    from one that is reached no more.
    """
    if now.waiting != 0 or now.age_seconds >= seconds or _is_any_busy(before, now, seconds):
        return None
    # Whoever nobody but ackers sends to is a spout.
    bolts = {(topology_id, receiver) for topology_id, sender, receiver in now.executed if sender != ACKER_COMPONENT}
    unreached = frozenset() if by is None else bolts.difference(by)
    return frozenset(
        (topology_id, receiver)
        for (topology_id, sender, receiver), count in now.executed.items()
        if count != before.executed.get((topology_id, sender, receiver), 0.0) and (topology_id, sender) not in unreached
    )


def queues_not_seen(plan: Plan, in_flight: InFlight, ended: Collection[str] = ()) -> tuple[Executor, ...]:
    """Executors, as placed before the plan, of the topologies that it moves, in whose queues nobody looked; sorted.

    What waits there is unknown, not nothing. Topologies that have `ended` (ids) have no queues.
    """
    placed = plan.base.restricted_to(set(moved_topologies(plan)).difference(ended)).slot_of
    return tuple(sorted(one for one in placed if executor_key(one) not in in_flight.queues_of))


def _is_any_busy(before: InFlight, now: InFlight, seconds: float) -> bool:
    return any(
        used - before.cpu_seconds[counter] > BUSY_CORES * seconds
        for counter, used in now.cpu_seconds.items()
        if counter in before.cpu_seconds
    )


def moved_topologies(plan: Plan) -> tuple[str, ...]:
    """The topologies that the plan touches: only these are paused."""
    return tuple(sorted({move.executor.topology_id for move in plan.moves}))


def to_drain(record: PlanRecord) -> tuple[str, ...]:
    """The topologies whose spouts the plan pauses and resumes: not those that somebody had deactivated before it."""
    if record.method is not ApplyMethod.DRAIN:
        return ()
    return tuple(t for t in moved_topologies(record.plan) if t not in record.inactive_before)


def supervisors_of(plan: Plan, topology_ids: Collection[str] | None = None) -> frozenset[str]:
    """The supervisors that host, or hosted, anything of the plan's topologies; of `topology_ids` alone if given."""
    executors = (*plan.base.slot_of.items(), *plan.target.slot_of.items())
    return frozenset(
        slot.supervisor_id
        for executor, slot in executors
        if topology_ids is None or executor.topology_id in topology_ids
    )


def executors_not_running(record: PlanRecord, workers: Mapping[WorkerSlot, WorkerSeen]) -> tuple[Executor, ...]:
    """Executors of the plan's restarted workers that do not run in a new process of their slot, sorted."""
    restarted = frozenset(record.plan.restarted_workers)
    # Spouts of a drained topology must not be resumed before the threads of every moved executor are there.
    everyone = record.method is ApplyMethod.DRAIN
    must_work = frozenset(record.plan.target.slot_of if everyone else record.busy_before)
    had_a_worker = frozenset(record.plan.base.slot_of.values())
    wanted = record.plan.target.workers()
    missing = []
    for executor, slot in sorted(record.plan.target.slot_of.items()):
        if slot not in restarted:
            continue
        worker, pid_before = workers.get(slot), record.worker_pids_before.get(slot)
        may_be_old = slot in had_a_worker if pid_before is None else worker is not None and worker.pid == pid_before
        if worker is None or (may_be_old and not _hosts(worker, wanted[slot])):
            missing.append(executor)
            continue
        seen = worker.at_work if executor in must_work else worker.executors
        if executor_key(executor) not in seen:
            missing.append(executor)
    return tuple(missing)


def _hosts(worker: WorkerSeen, executors: Collection[Executor]) -> bool:
    """Whether the worker hosts exactly these.

    Of a slot's worker of before the plan, or one that may be, this is how it differs from what has yet to end: one that
    the plan wants as it is never ends, such as where its supervisor has not heard of a plan that was taken back within
    seconds.
    """
    return worker.executors == frozenset(executor_key(executor) for executor in executors)


def kept_in_place(plan: Plan, present: Assignment) -> Assignment:
    """Where the plan's executors stay when it is abandoned: where they are.

    Who is nowhere to be seen, as where a supervisor is away, stays where it was before the plan. Else the plan would
    come into force once the supervisor is back, when nobody judges it any more.
    """
    seen = {(executor.topology_id, task) for executor in present.slot_of for task in executor.tasks}
    unseen = {
        executor: slot
        for executor, slot in plan.base.slot_of.items()
        if seen.isdisjoint((executor.topology_id, task) for task in executor.tasks)
    }
    return Assignment({**unseen, **present.slot_of})


def count_kept(record: PlanRecord, workers: Mapping[WorkerSlot, WorkerSeen]) -> int | None:
    """How many of the plan's kept workers still are the processes that they were; None where one was not seen."""
    before, kept = record.worker_pids_before, record.plan.kept_workers
    if not all(slot in before and slot in workers for slot in kept):
        return None
    return sum(1 for slot in kept if workers[slot].pid == before[slot])


def with_first_failures(before: Failures | None, seen: Failures | None) -> Failures | None:
    """`before`, and what counters that were not there then show when they are first seen.

    Where an executor has been earlier its counter goes on from what it had then: that is no failure of this plan. The
    counters of places that executors have left, which count no more, would double what is to be kept.
    """
    if before is None or seen is None:
        return before
    found = {_without_place(counter) for counter in seen}
    return {**seen, **{c: count for c, count in before.items() if c in seen or _without_place(c) not in found}}


def _without_place(counter: str) -> str:
    return PLACE_LABELS.sub("", counter)


def failed_since(before: Failures | None, now: Failures | None) -> float | None:
    """Tuples that failed since `before`; None where that is unknown.

    A counter falls where its agent began anew: what it had counted in between nobody knows. Nor does anybody where a
    counter is gone and shows at no other place: its spout's worker may be down, or its agent away.
    """
    if before is None or now is None or any(count > 0.0 for counter, count in now.items() if counter not in before):
        return None
    if not {_without_place(counter) for counter in before} <= {_without_place(counter) for counter in now}:
        return None
    growth = [count - before.get(counter, 0.0) for counter, count in now.items()]
    return sum(growth) if all(one >= 0.0 for one in growth) else None


def supervisors_gone(plan: Plan, snapshot: ClusterSnapshot) -> tuple[str, ...]:
    """Ids of the supervisors that the plan put executors on and that the cluster no longer has, sorted."""
    alive = {supervisor.id for supervisor in snapshot.supervisors}
    return tuple(sorted({slot.supervisor_id for slot in plan.target.slot_of.values()} - alive))


def resized_topologies(plan: Plan, snapshot: ClusterSnapshot) -> tuple[str, ...]:
    """Ids of the plan's topologies that run executors which it does not know: their numbers were changed, sorted."""
    running = snapshot.assignment.restricted_to(plan.topology_ids).slot_of.keys()
    return tuple(sorted({executor.topology_id for executor in running - plan.target.slot_of.keys()}))


def why_out_of_reach(base: Assignment, target: Assignment, snapshot: ClusterSnapshot) -> str:
    """Why not all executors can go from `base` to where an earlier look at the cluster wanted them; empty: they can."""
    if base.slot_of.keys() - target.slot_of.keys():
        return "it would leave executors without a place, as they were before"
    alive = {supervisor.id for supervisor in snapshot.supervisors}
    slots = set(target.slot_of.values())
    gone = sorted({slot.supervisor_id for slot in slots} - alive)
    if gone:
        return f"it would lead to {', '.join(gone)}, where nothing can run any more"
    own = {executor.topology_id for executor in target.slot_of}
    taken = sorted(
        (slot, executor.topology_id)
        for executor, slot in snapshot.assignment.slot_of.items()
        if slot in slots and executor.topology_id not in own
    )
    if taken:
        slot, topology_id = taken[0]
        return f"it would lead to slot {slot.supervisor_id}:{slot.port}, where {topology_id} runs by now"
    return ""
