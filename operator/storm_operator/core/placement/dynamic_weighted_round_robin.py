"""Dynamic weighted round robin: "Adaptive scheduling algorithms for Storm clusters" (a digest, in Chinese), list 2, 3.

As weighted round robin, but a node's weight follows its load: it is the CPU that the supervisor has left, after what
others use and what was placed so far. A full one keeps a hundredth of its capacity as weight. The digest gives no
period; a new schedule is made every `reschedule_seconds`, or when an executor has no place.
"""

from __future__ import annotations

from collections.abc import Sequence

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Executor, Infeasible
from storm_operator.core.placement.capacity import cpu_capacities, cpu_of_others
from storm_operator.core.placement.inventory import executor_loads
from storm_operator.core.placement.one_by_one import executors_in_order, place_one_by_one
from storm_operator.core.placement.smooth_turns import SmoothTurns
from storm_operator.core.placement.triggers import RESCHEDULING, is_time_for
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

NAME = "dynamic-weighted-round-robin"

PARAMETERS = RESCHEDULING
LEAST_WEIGHT_FRACTION = 0.01


def place_dynamic_weighted_round_robin(
    snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings
) -> Assignment | Infeasible:
    """When it is time, every movable executor in turn, supervisors weighted by the CPU that they have left."""
    if not is_time_for(NAME, snapshot, settings):
        return snapshot.assignment
    capacities, loads = cpu_capacities(snapshot), executor_loads(snapshot, demand)
    used = cpu_of_others(snapshot, settings, loads)
    turns = SmoothTurns()

    def next_in_turn(executor: Executor, candidates: Sequence[str]) -> str:
        chosen = turns.next_of(
            {at: max(capacities[at] - used[at], LEAST_WEIGHT_FRACTION * capacities[at]) for at in candidates}
        )
        used[chosen] += loads[executor]
        return chosen

    return place_one_by_one(snapshot, settings, executors_in_order(snapshot, settings), next_in_turn)
