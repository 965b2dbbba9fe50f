"""What the assignment in force may bear: more than a plan would fill, so that load may rise and fall under it.

A plan leaves room; what runs already is in trouble only when it lacks what it needs now or surely comes to need.
"""

from __future__ import annotations

from dataclasses import replace

from storm_operator.core.model import Assignment, Demand
from storm_operator.core.placement.objective import cost_seen, prices_of, see
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

BUSY_FRACTION = 0.95
"""A supervisor that uses this share of its capacity is overloaded, whatever its demand is thought to be."""


def with_what_is_borne(settings: PlacementSettings) -> PlacementSettings:
    """What is in force may fill more than a plan would: any overload outprices restarts, the slightest too."""
    scheduling = settings.scheduling
    borne = max(scheduling.headroom_fraction, BUSY_FRACTION)
    return replace(settings, scheduling=replace(scheduling, headroom_fraction=borne))


def only_makes_room(snapshot: ClusterSnapshot, found: Assignment, demand: Demand, settings: PlacementSettings) -> bool:
    """Whether nobody lacks anything in force, where all have a place, and `found` saves less than its restarts cost."""
    if _is_any_busy(snapshot):
        return False
    borne, coming = with_what_is_borne(settings), demand.of_coming()
    in_force = see(snapshot, snapshot.assignment, coming, borne)
    if in_force.overloaded_millicores or in_force.overfull_megabytes:
        return False
    prices = prices_of(snapshot, settings)
    then = see(snapshot, found, coming, borne)
    return cost_seen(snapshot, then, prices).total >= cost_seen(snapshot, in_force, prices).total


def _is_any_busy(snapshot: ClusterSnapshot) -> bool:
    used = snapshot.supervisor_cpu_millicores
    return any(
        used.get(s.id, 0.0) >= BUSY_FRACTION * s.cpu_capacity_millicores
        for s in snapshot.supervisors
        if s.cpu_capacity_millicores
    )
