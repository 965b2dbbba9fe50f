"""What the assignment in force may bear: more than a plan would fill, so that load may rise and fall under it.

A plan leaves room; what runs already is in trouble only when it lacks what it needs now or surely comes to need. Where
nobody lacks anything a plan must pay, and what `decide` would refuse need not be searched for.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Supervisor
from storm_operator.core.placed_traffic import rows_of_topologies
from storm_operator.core.placement.capacity import LEAST_MILLICORES
from storm_operator.core.placement.objective import (
    SeenAssignment,
    beyond_threads,
    cost_seen,
    excess,
    losses_of,
    overload_cost,
    room_for_executors,
    see,
    wanted_millicores,
)
from storm_operator.core.placement.prices import Prices, prices_of
from storm_operator.core.settings import PlacementSettings, Trigger
from storm_operator.core.snapshot import ClusterSnapshot

BUSY_FRACTION = 0.95
"""A supervisor that uses this share of its capacity is overloaded, whatever its demand is thought to be."""

ROUNDING = 1e-9


def with_what_is_borne(settings: PlacementSettings) -> PlacementSettings:
    """What is in force may fill more than a plan would: any overload outprices restarts, the slightest too."""
    scheduling = settings.scheduling
    borne = max(scheduling.headroom_fraction, BUSY_FRACTION)
    return replace(settings, scheduling=replace(scheduling, headroom_fraction=borne))


def cost_of_others(
    snapshot: ClusterSnapshot, in_force: SeenAssignment, demand: Demand, prices: Prices, settings: PlacementSettings
) -> float:
    """What the topologies that must not move cost: no plan can lower it, no gain is measured by it.

    That is their network, the supervisors that they keep in use, what these lose, and the CPU that they alone need
    beyond what may be filled.
    """
    others = _others(snapshot, settings)
    if not others:
        return 0.0
    traffic = in_force.traffic.within(rows_of_topologies(snapshot.traffic, others))
    theirs = in_force.assignment.restricted_to(others)
    rooms = room_for_executors(snapshot, settings, in_force.worker_overhead)
    overload = excess(wanted_millicores(theirs, demand), rooms) + beyond_threads(theirs, demand)
    return (
        traffic.network_usage(prices.between_workers_ms)
        + len(theirs.used_supervisors()) * prices.per_supervisor
        + losses_of(theirs, prices)
        + overload_cost(overload, 0.0, prices)
    )


def _others(snapshot: ClusterSnapshot, settings: PlacementSettings) -> set[str]:
    return {topology.id for topology in snapshot.topologies} - settings.movable


@dataclass(frozen=True, slots=True)
class Saving:
    """What a change would save of what runs, in tuple-ms/s."""

    running_cost: float
    """In force, without that of topologies that must not move."""
    saved_cost: float

    @property
    def is_none(self) -> bool:
        return self.saved_cost <= 0.0

    def is_below(self, percent: float) -> bool:
        return self.saved_cost < percent / 100.0 * self.running_cost


class Bearable:
    """The assignment in force, seen by what is needed now or surely soon: nobody lacks anything."""

    def __init__(
        self, snapshot: ClusterSnapshot, seen: SeenAssignment, demand: Demand, settings: PlacementSettings
    ) -> None:
        self._snapshot, self._seen, self._demand, self._settings = snapshot, seen, demand, settings
        self._prices = prices_of(snapshot, settings)
        self._running = cost_seen(snapshot, seen, self._prices).running
        self._of_others = cost_of_others(snapshot, seen, demand.of_coming(), self._prices, with_what_is_borne(settings))

    @property
    def is_beyond_gain(self) -> bool:
        """Whether a plan would gain too little even if it left no network at all, on as few supervisors as can be."""
        kept = len(self._seen.assignment.restricted_to(_others(self._snapshot, self._settings)).used_supervisors())
        least = self._of_others + max(0, self._fewest_supervisors() - kept) * self._prices.per_supervisor
        return self._saving(least).is_below(self._settings.scheduling.minimum_gain_percent)

    def saving_of(self, found: Assignment) -> Saving:
        """At the present shares."""
        borne, coming = with_what_is_borne(self._settings), self._demand.of_coming()
        return self._saving(cost_seen(self._snapshot, see(self._snapshot, found, coming, borne), self._prices).running)

    def _saving(self, running_then: float) -> Saving:
        return Saving(self._running - self._of_others, self._running - running_then)

    def _fewest_supervisors(self) -> int:
        """That could give all the room that any can give, if executors came in any size."""
        rooms = room_for_executors(self._snapshot, self._settings)
        wanted = self._room_wanted(rooms)
        filled = itertools.accumulate(sorted(rooms.values(), reverse=True))
        return next((number for number, room in enumerate(filled, start=1) if room >= wanted), len(rooms))

    def _room_wanted(self, rooms: Mapping[str, float]) -> float:
        """In millicores: of no executor more than the largest supervisor has, of who must not move what theirs have."""
        largest = max(rooms.values(), default=0.0)
        movable, fixed = 0.0, dict.fromkeys(rooms, 0.0)
        for executor, slot in self._snapshot.assignment.slot_of.items():
            want = min(largest, self._demand.room_millicores.get(executor, 0.0))
            if executor.topology_id in self._settings.movable:
                movable += want
            elif slot.supervisor_id in fixed:
                fixed[slot.supervisor_id] += want
        return (1.0 - ROUNDING) * (movable + math.fsum(min(rooms[at], want) for at, want in fixed.items()))


def bearable(snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings) -> Bearable | None:
    """The assignment in force of a cluster in which all have a place.

    None where anybody lacks anything, or where plans need not gain anything (`scheduling.trigger: Policy`).
    """
    if settings.scheduling.trigger is not Trigger.GAIN or any(is_busy(s, snapshot) for s in snapshot.supervisors):
        return None
    seen = see(snapshot, snapshot.assignment, demand.of_coming(), with_what_is_borne(settings))
    if seen.overloaded_millicores or seen.overfull_megabytes:
        return None
    return Bearable(snapshot, seen, demand, settings)


def is_beyond_gain(snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings) -> bool:
    """Whether nobody lacks anything, and no plan could gain enough for `decide`."""
    standing = bearable(snapshot, demand, settings)
    return standing is not None and standing.is_beyond_gain


def is_busy(supervisor: Supervisor, snapshot: ClusterSnapshot) -> bool:
    """Whether it uses nearly all that it has, as far as that is known."""
    capacity = supervisor.cpu_capacity_millicores
    used = snapshot.supervisor_cpu_millicores.get(supervisor.id, 0.0)
    return capacity is not None and used >= BUSY_FRACTION * max(capacity, LEAST_MILLICORES)
