"""What a change relieves of what is wrong in force, the worst first, and whether that can wait. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from storm_operator.core.decision import Move, PlanCause
from storm_operator.core.model import Supervisor
from storm_operator.core.placement.bearable import is_busy
from storm_operator.core.placement.objective import SeenAssignment
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.wording import counted

LEAST_RELIEF_FRACTION = 0.05
"""Of a supervisor's capacity. Where all are full, what is measured says no better who has how much too much: to shift
less than that is not urgent, and saves nothing by itself."""
ROUNDING_MILLICORES = 1e-6
"""Sums of the same needs in another order, as of one worker instead of two, differ by less: that relieves nothing."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something wrong with the assignment in force, as a sentence and as one word."""

    what: str
    cause: PlanCause
    is_urgent: bool


def relieved_trouble(
    moves: tuple[Move, ...],
    snapshot: ClusterSnapshot,
    needed: SeenAssignment,
    needed_then: SeenAssignment,
    coming: SeenAssignment,
    coming_then: SeenAssignment,
    settings: PlacementSettings,
) -> Trouble | None:
    """The worst that `moves` relieve; None where they only save, or shift it. `needed` is by what executors need now,
    `coming` by what they will where growth is sure to go on, each in force and `then`, after the change."""
    return (
        _without_place(moves, snapshot)
        or _relieved_overload(snapshot, needed, needed_then, settings)
        or _relieved_memory(needed, needed_then)
        or _relieved_rise(snapshot, coming, coming_then, settings)
    )


def _without_place(moves: tuple[Move, ...], snapshot: ClusterSnapshot) -> Trouble | None:
    alive = {supervisor.id for supervisor in snapshot.supervisors}
    lost = sum(move.source is None or move.source.supervisor_id not in alive for move in moves)
    if not lost:
        return None
    return Trouble(f"{counted(lost, 'executor')} without a place", PlanCause.WITHOUT_PLACE, is_urgent=True)


def _relieved_overload(
    snapshot: ClusterSnapshot, in_force: SeenAssignment, then: SeenAssignment, settings: PlacementSettings
) -> Trouble | None:
    """The worst overload of a supervisor that the change relieves; None when it relieves none, or only shifts it."""
    fallen = in_force.overloaded_millicores - then.overloaded_millicores
    if then.overloaded_millicores > 0.0 and fallen <= ROUNDING_MILLICORES:
        return None
    needed, needed_then = in_force.wanted_millicores, then.wanted_millicores
    found = []
    for supervisor in snapshot.supervisors:
        need = needed.get(supervisor.id, 0.0)
        trouble = _overload_of(supervisor, need * in_force.worker_overhead, snapshot, settings)
        relief = need - needed_then.get(supervisor.id, 0.0)
        if trouble is None or relief <= ROUNDING_MILLICORES:
            continue
        noticed = LEAST_RELIEF_FRACTION * (supervisor.cpu_capacity_millicores or 0.0)
        if in_force.overloaded_millicores > 0.0:
            relief = min(relief, fallen)
        found.append((trouble.is_urgent and relief >= noticed, need, trouble))
    if not found:
        return None
    is_urgent, _, trouble = max(found, key=lambda item: item[:2])
    return replace(trouble, is_urgent=is_urgent)


def _relieved_memory(in_force: SeenAssignment, then: SeenAssignment) -> Trouble | None:
    if then.overfull_megabytes >= in_force.overfull_megabytes:
        return None
    megabytes = in_force.overfull_megabytes
    what = f"{megabytes:,.0f} MB of declared memory more than supervisors have"
    return Trouble(what, PlanCause.MEMORY, is_urgent=False)


def _relieved_rise(
    snapshot: ClusterSnapshot, coming: SeenAssignment, coming_then: SeenAssignment, settings: PlacementSettings
) -> Trouble | None:
    """The worst overload that the growth which is sure to go on would bring, and the change makes less of."""
    if coming.overloaded_millicores - coming_then.overloaded_millicores <= ROUNDING_MILLICORES:
        return None
    overhead, found = coming.worker_overhead, []
    for supervisor in snapshot.supervisors:
        need = coming.wanted_millicores.get(supervisor.id, 0.0)
        capacity = math.inf if supervisor.cpu_capacity_millicores is None else supervisor.cpu_capacity_millicores
        usable = capacity * settings.scheduling.headroom_fraction
        relief = need - coming_then.wanted_millicores.get(supervisor.id, 0.0)
        if need * overhead > usable and relief > ROUNDING_MILLICORES:
            found.append((need * overhead - usable, supervisor.host, usable))
    if not found:
        return None
    beyond, host, usable = max(found)
    what = (
        f"supervisor {host} will need {usable + beyond:,.0f} millicores as its load rises, {usable:,.0f} may be filled"
    )
    return Trouble(what, PlanCause.COMING_OVERLOAD, is_urgent=False)


def _overload_of(
    supervisor: Supervisor, need: float, snapshot: ClusterSnapshot, settings: PlacementSettings
) -> Trouble | None:
    capacity = supervisor.cpu_capacity_millicores
    if capacity is None:
        return None
    used = snapshot.supervisor_cpu_millicores.get(supervisor.id, 0.0)
    usable = capacity * settings.scheduling.headroom_fraction
    if need > capacity:
        what = f"supervisor {supervisor.host} needs {need:,.0f} of {capacity:,.0f} millicores"
        return Trouble(what, PlanCause.OVERLOAD, is_urgent=True)
    if is_busy(supervisor, snapshot):
        what = f"supervisor {supervisor.host} uses {used:,.0f} of {capacity:,.0f} millicores"
        return Trouble(what, PlanCause.OVERLOAD, is_urgent=True)
    if need > usable:
        what = (
            f"supervisor {supervisor.host} needs {need:,.0f} millicores, {usable:,.0f} of {capacity:,.0f} may be filled"
        )
        return Trouble(what, PlanCause.LITTLE_HEADROOM, is_urgent=False)
    return None
