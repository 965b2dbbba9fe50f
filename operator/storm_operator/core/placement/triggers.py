"""When a policy acts, told from the snapshot alone: policies keep no memory between calls."""

from __future__ import annotations

from dataclasses import replace

from storm_operator.core.placement.inventory import existing_slots, movable_topologies
from storm_operator.core.placement.parameters import Parameter, read_parameters
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

DAY_SECONDS = 86400.0
RESCHEDULE = Parameter(60.0, 1.0, DAY_SECONDS, "time between new schedules", is_period=True)
"""For methods whose source gives no period."""
RESCHEDULING = {"reschedule_seconds": RESCHEDULE}
"""The parameters of policies that have no other."""


def has_passed(snapshot: ClusterSnapshot, every_seconds: float, offset_seconds: float = 0.0) -> bool:
    """Whether `offset_seconds` after some multiple of `every_seconds` fell into this period, or into the time before it
    in which the policy was not heard."""
    now = snapshot.taken_at_seconds - offset_seconds
    last_heard = now - snapshot.period_seconds - snapshot.unheard_seconds
    return now // every_seconds > last_heard // every_seconds


def seconds_until(snapshot: ClusterSnapshot, every_seconds: float) -> float:
    """Until the next multiple of `every_seconds`."""
    return every_seconds - snapshot.taken_at_seconds % every_seconds


def as_if_due(snapshot: ClusterSnapshot, every_seconds: float) -> ClusterSnapshot:
    """For a policy that is asked what it would do once its time has come: it was not heard for `every_seconds`."""
    return replace(snapshot, unheard_seconds=max(0.0, every_seconds - snapshot.period_seconds))


def seconds_at_bound(snapshot: ClusterSnapshot, supervisor_id: str, bound_millicores: float) -> float:
    """For how long, up to now and without a gap, the supervisor's measured CPU was at the bound or beyond.

    Periods in which no topology was measured completely are not in the history: more than half a period without any
    is a gap.
    """
    total, since = 0.0, snapshot.taken_at_seconds
    for period in reversed(snapshot.history):
        used = period.supervisor_cpu_millicores.get(supervisor_id)
        # Readings may tell of less time than lies between two passes, or of more.
        lasted = max(period.period_seconds, snapshot.period_seconds)
        if used is None or used < bound_millicores or since - period.ended_at_seconds > lasted / 2.0:
            break
        total += period.period_seconds
        since = period.ended_at_seconds - lasted
    return total


def was_at_bound(
    snapshot: ClusterSnapshot, settings: PlacementSettings, fraction: float, more_than_seconds: float
) -> bool:
    """Whether a supervisor's CPU was at `fraction` of its capacity or beyond for longer, up to now without a gap.

    One without any movable executor does not count: no new schedule could relieve it.
    """
    in_use = {at.supervisor_id for e, at in snapshot.assignment.slot_of.items() if e.topology_id in settings.movable}
    return any(
        seconds_at_bound(snapshot, machine.id, fraction * machine.cpu_capacity_millicores) > more_than_seconds
        for machine in snapshot.supervisors
        if machine.cpu_capacity_millicores is not None and machine.id in in_use
    )


def must_place_anew(snapshot: ClusterSnapshot, settings: PlacementSettings, every_seconds: float) -> bool:
    """Whether a movable executor has no place, or a multiple of `every_seconds` fell into this period."""
    return someone_has_no_place(snapshot, settings) or has_passed(snapshot, every_seconds)


def is_time_for(policy: str, snapshot: ClusterSnapshot, settings: PlacementSettings) -> bool:
    """Whether `policy`, whose parameters are `RESCHEDULING`, must place anew."""
    values = read_parameters(policy, RESCHEDULING, settings.scheduling.parameters)
    return must_place_anew(snapshot, settings, values["reschedule_seconds"])


def someone_has_no_place(snapshot: ClusterSnapshot, settings: PlacementSettings) -> bool:
    """Whether a movable executor is in no slot that exists."""
    slots = existing_slots(snapshot)
    return any(
        snapshot.assignment.slot_of.get(executor) not in slots
        for topology in movable_topologies(snapshot, settings)
        for executor in topology.executors
    )
