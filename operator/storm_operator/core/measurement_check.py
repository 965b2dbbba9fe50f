"""Whether a snapshot is complete and fresh enough to decide by.

Only the figures of what may be moved count. What is known of neighbours is for placement to make safe
(`assumed_needs`): one of them that crashes again and again must not hold everybody's plans. Executors on supervisors
that are gone do not run, which is knowledge and no lack of it: they need a place at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.decision import Hold, HoldReason
from storm_operator.core.demand import executors_without_demand
from storm_operator.core.groups import Group
from storm_operator.core.load_history import executors_needed
from storm_operator.core.model import Assignment, Executor, WorkerSlot
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.wording import counted, figure_beside, first_of, whole_percent

UNTRUSTED = frozenset({HoldReason.METRICS_INCOMPLETE, HoldReason.METRICS_STALE})


def check_measurements(snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings) -> Hold | None:
    """Why what was measured allows no decision; None when it does."""
    scheduling = settings.scheduling
    if not snapshot.history:
        return _unmeasured(snapshot, settings)
    running = _running(snapshot, settings)
    unknown = running & {*executors_without_demand(snapshot, demand), *snapshot.completeness.missing_executors}
    known = len(running) - len(unknown)
    if known < executors_needed(scheduling.minimum_completeness, len(running)):
        return Hold(HoldReason.METRICS_INCOMPLETE, _incomplete(snapshot, unknown, known / len(running), settings))
    age_seconds, most_seconds = snapshot.completeness.age_of(settings.movable), scheduling.maximum_age_seconds
    if age_seconds > most_seconds:
        return Hold(
            HoldReason.METRICS_STALE,
            f"metrics are {figure_beside(age_seconds, most_seconds)} s old, at most {most_seconds:g} s are allowed"
            f"{_problems(snapshot)}",
        )
    return None


def unmeasured_topologies(snapshot: ClusterSnapshot, demand: Demand, groups: Iterable[Group]) -> frozenset[str]:
    """Ids of those of which too little is known to go by, whatever was decided about them, or held them.

    Each by its own figures: they are placed with others of their group, but one of these that is not measured, perhaps
    for days, must not have the limits of all others stay while their load rises.
    """
    scheduling_of = {topology_id: group.scheduling for group in groups for topology_id in group.topology_ids}
    found: set[str] = set()
    for topology_id, alone in _each_alone(snapshot):
        if topology_id in scheduling_of:
            settings = PlacementSettings(scheduling=scheduling_of[topology_id], movable=frozenset({topology_id}))
            hold = check_measurements(alone, demand, settings)
            if hold is not None and hold.reason in UNTRUSTED:
                found.add(topology_id)
    return frozenset(found)


def _each_alone(snapshot: ClusterSnapshot) -> Iterator[tuple[str, ClusterSnapshot]]:
    """By topology id, the snapshot with the executors of that topology alone: of many, all are looked at once."""
    slots_of: dict[str, dict[Executor, WorkerSlot]] = {topology.id: {} for topology in snapshot.topologies}
    for executor, slot in snapshot.assignment.slot_of.items():
        slots_of.setdefault(executor.topology_id, {})[executor] = slot
    for topology in snapshot.topologies:
        yield topology.id, replace(snapshot, topologies=(topology,), assignment=Assignment(slots_of[topology.id]))


def _unmeasured(snapshot: ClusterSnapshot, settings: PlacementSettings) -> Hold:
    """Before the first period is measured, at first or after a plan: that takes its time, but none is enough where
    nobody measures."""
    if not snapshot.topologies:
        return Hold(HoldReason.NO_CHANGE, "no topology runs: there is nothing to place")
    since = "since the start, or since the last plan or suspension"
    running = _running(snapshot, settings)
    unmeasured = (
        f"no control period has been measured {since}{_not_running(snapshot, running, settings)}{_problems(snapshot)}"
    )
    in_use = {snapshot.assignment.slot_of[executor].supervisor_id for executor in running}
    silent = sorted(
        supervisor.host
        for supervisor in snapshot.supervisors
        if supervisor.id in in_use and supervisor.id in snapshot.completeness.silent_supervisors
    )
    if silent:
        return Hold(
            HoldReason.METRICS_INCOMPLETE,
            f"no agent speaks for {first_of(silent)}, where executors run; {unmeasured}",
        )
    return Hold(HoldReason.WARMING_UP, unmeasured)


def _not_running(snapshot: ClusterSnapshot, running: Collection[Executor], settings: PlacementSettings) -> str:
    """Just submitted; or lost with their supervisor: Nimbus takes for alive what it placed in the last two minutes."""
    lost = {
        topology.name: len(set(topology.executors).difference(running))
        for topology in snapshot.topologies
        if topology.id in settings.movable
    }
    told = [f"{counted(number, 'executor')} of {name}" for name, number in sorted(lost.items()) if number]
    return f"; not running, since Storm has yet to place them: {first_of(told)}" if told else ""


def _running(snapshot: ClusterSnapshot, settings: PlacementSettings) -> set[Executor]:
    """The executors that may be moved and whose supervisor is there."""
    there = {supervisor.id for supervisor in snapshot.supervisors}
    return {
        executor
        for executor, slot in snapshot.assignment.slot_of.items()
        if executor.topology_id in settings.movable and slot.supervisor_id in there
    }


def _incomplete(
    snapshot: ClusterSnapshot, unknown: Iterable[Executor], known_share: float, settings: PlacementSettings
) -> str:
    names = [f"{executor.component} {executor.label} of {executor.topology_id}" for executor in sorted(unknown)]
    needed = settings.scheduling.minimum_completeness
    return (
        f"{whole_percent(known_share)}% of executors have metrics, {100 * needed:g}% are needed; "
        f"unknown: {first_of(names)}{_problems(snapshot)}"
    )


def _problems(snapshot: ClusterSnapshot) -> str:
    problems = snapshot.completeness.problems
    return f"; {first_of(problems, '; ')}" if problems else ""
