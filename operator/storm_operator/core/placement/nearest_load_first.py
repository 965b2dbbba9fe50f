"""Nearest load first: "Adaptive scheduling algorithms for Storm clusters" (a digest, in Chinese), list 2, 2.

Each task goes to the node whose load is nearest to the average, which is told anew after each task. Load is the share
of a supervisor's CPU in use, by others and by what was placed so far. Taken literally, a node far below the average
would stay empty for ever; as the method is to balance load, only nodes that are not above the average are compared.
The digest gives no period; a new schedule is made every `reschedule_seconds`, or when an executor has no place.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Executor, Infeasible
from storm_operator.core.placement.capacity import cpu_capacities, cpu_of_others
from storm_operator.core.placement.inventory import executor_loads
from storm_operator.core.placement.one_by_one import executors_in_order, place_one_by_one
from storm_operator.core.placement.triggers import RESCHEDULING, is_time_for
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

NAME = "nearest-load-first"

PARAMETERS = RESCHEDULING


def place_nearest_load_first(
    snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings
) -> Assignment | Infeasible:
    """When it is time, every movable executor where the load is nearest to the average and not above it."""
    if not is_time_for(NAME, snapshot, settings):
        return snapshot.assignment
    capacities, loads = cpu_capacities(snapshot), executor_loads(snapshot, demand)
    shares = {at: used / capacities[at] for at, used in cpu_of_others(snapshot, settings, loads).items()}

    def nearest_to_average(executor: Executor, candidates: Sequence[str]) -> str:
        average = fmean(shares.values())
        chosen = min(candidates, key=lambda at: (shares[at] > average + 1e-9, abs(shares[at] - average), at))
        shares[chosen] += loads[executor] / capacities[chosen]
        return chosen

    return place_one_by_one(snapshot, settings, executors_in_order(snapshot, settings), nearest_to_average)
