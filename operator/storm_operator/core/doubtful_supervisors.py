"""Supervisors of which not all is known: those whose executors run there stay, and no worker begins there.

Storm no longer sees a supervisor whose daemon restarts, though its workers run on, and lets them be for a while. Were
they moved at once, healthy workers would be killed when the daemon is back. Where it is known to go it is not waited
for: its workers end soon, and can be relieved while they run. And of what runs beside no agent nobody knows what it
does: the topology would be held from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from storm_operator.core.metrics_window import MetricsWindow
from storm_operator.core.model import Assignment, Executor, Supervisor, WorkerSlot, in_order
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.snapshot_builder import ClusterView
from storm_operator.core.window_readings import Place, WindowReadings

PATIENCE_SECONDS = 60.0
"""As Storm's own, `nimbus.supervisor.timeout.secs`."""


@dataclass(frozen=True, slots=True)
class LastSeen:
    """The cluster as of the pass before; by supervisor when Storm last knew of it, and which pass first missed it."""

    view: ClusterView
    at_seconds: Mapping[str, float] = field(default_factory=dict)
    missed_at_seconds: Mapping[str, float] = field(default_factory=dict)

    def away(self, now_seconds: float) -> frozenset[str]:
        """Ids of the supervisors of the view that Storm did not see in the pass at `now_seconds`."""
        return frozenset(one.id for one in self.view.supervisors if self.at_seconds.get(one.id) != now_seconds)


def nobody_goes(_host: str) -> bool:
    """Where nobody tells of supervisors that they are about to end."""
    return False


def with_those_away(
    view: ClusterView,
    window: MetricsWindow,
    last: LastSeen | None,
    now_seconds: float,
    is_going: Callable[[str], bool] = nobody_goes,
) -> tuple[ClusterView, LastSeen]:
    """`view` with the supervisors that Storm does not see now, but whose workers `window` shows at work; to remember.

    They have no slots but those in use. Of what became of their executors Storm tells nothing: those that are placed
    nowhere else are where they were. Patience begins in the pass that first misses a supervisor: with long periods the
    pass before it is longer ago than any daemon's restart takes. Nobody is patient with one whose host `is_going`.
    """
    seen_at = dict.fromkeys((supervisor.id for supervisor in view.supervisors), now_seconds)
    if last is None:
        return view, LastSeen(view, seen_at)
    there = {*seen_at, *(supervisor.host for supervisor in view.supervisors)}
    away, stay = [], dict(view.assignment.slot_of)
    missed_at: dict[str, float] = {}
    homeless = {
        executor
        for topology in view.topologies
        for executor in topology.executors
        if executor not in view.assignment.slot_of
    }
    for supervisor in last.view.supervisors:
        seen = last.at_seconds.get(supervisor.id, now_seconds)
        missed = last.missed_at_seconds.get(supervisor.id, now_seconds)
        is_waited_for = seen <= missed <= now_seconds <= missed + PATIENCE_SECONDS
        if there & {supervisor.id, supervisor.host} or not is_waited_for or is_going(supervisor.host):
            continue
        at_work = _at_work(supervisor, homeless, last.view.assignment, window)
        if at_work:
            away.append(_with_slots_in_use(supervisor, at_work.values()))
            stay |= at_work
            seen_at[supervisor.id], missed_at[supervisor.id] = seen, missed
    if not away:
        return view, LastSeen(view, seen_at)
    problems = (
        f"Storm does not see the supervisor on {one.host}; its workers run on, and stay for now" for one in away
    )
    merged = ClusterView(
        tuple(sorted((*view.supervisors, *away), key=lambda one: one.id)),
        view.topologies,
        Assignment(stay),
        (*view.problems, *problems),
    )
    return merged, LastSeen(merged, seen_at, missed_at)


def held_where_away(snapshot: ClusterSnapshot, supervisor_ids: Collection[str]) -> ClusterSnapshot:
    """The snapshot in which what runs on these supervisors counts as unmeasured, though its loads are known.

    Their topologies are held then: no plan of theirs could come into force before Storm sees the supervisor again.
    """
    if not supervisor_ids:
        return snapshot
    there = {one for one, slot in snapshot.assignment.slot_of.items() if slot.supervisor_id in supervisor_ids}
    known = snapshot.completeness
    completeness = replace(
        known,
        missing_executors=tuple(sorted({*known.missing_executors, *there})),
        silent_supervisors=tuple(sorted({*known.silent_supervisors, *supervisor_ids})),
    )
    return replace(snapshot, completeness=completeness)


def without_free_slots(snapshot: ClusterSnapshot, supervisor_ids: Collection[str]) -> ClusterSnapshot:
    """The snapshot in which no worker can begin on these supervisors that does not run there already."""
    if not supervisor_ids:
        return snapshot
    used = snapshot.assignment.workers()
    return replace(
        snapshot,
        supervisors=tuple(
            _with_slots_in_use(one, used) if one.id in supervisor_ids else one for one in snapshot.supervisors
        ),
    )


def _at_work(
    supervisor: Supervisor, homeless: Collection[Executor], before: Assignment, window: MetricsWindow
) -> dict[Executor, WorkerSlot]:
    """The executors that were there before, have no other place now, and were measured, or at least are seen.

    Those that no tuple has come to yet are among them: their CPU is unknown until one comes, and their worker runs on.
    """
    readings_in, there = WindowReadings(window), {}
    for executor in in_order(homeless):
        slot = before.slot_of.get(executor)
        if slot is None or slot.supervisor_id != supervisor.id:
            continue
        place = Place(supervisor.host, slot.port)
        reading = readings_in.executor(executor, place, is_spout=False)
        if not reading.missing or reading.load.never_busy or readings_in.shows_at_work(executor, place):
            there[executor] = slot
    return there


def _with_slots_in_use(supervisor: Supervisor, used: Collection[WorkerSlot]) -> Supervisor:
    ports = {slot.port for slot in used if slot.supervisor_id == supervisor.id}
    return replace(supervisor, ports=tuple(port for port in supervisor.ports if port in ports))
