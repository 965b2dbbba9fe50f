"""Least task first: "Adaptive scheduling algorithms for Storm clusters" (a digest, in Chinese), list 1, 4.

Each executor goes to the node that has the fewest tasks at the moment, whatever the node's capacity. Movable topologies
are placed as after a `storm rebalance`, anew; the answer stays the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Executor, Infeasible
from storm_operator.core.placement.capacity import by_supervisor
from storm_operator.core.placement.inventory import obstacles
from storm_operator.core.placement.one_by_one import executors_in_order, place_one_by_one
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

NAME = "least-task-first"


def place_least_task_first(
    snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings
) -> Assignment | Infeasible:
    """Every movable executor where there are fewest tasks; demand plays no part."""
    fixed = {executor: float(len(executor.tasks)) for executor in obstacles(snapshot, settings)}
    tasks = by_supervisor(snapshot, settings, fixed)

    def with_fewest_tasks(executor: Executor, candidates: Sequence[str]) -> str:
        chosen = min(candidates, key=lambda at: (tasks[at], at))
        tasks[chosen] += len(executor.tasks)
        return chosen

    return place_one_by_one(snapshot, settings, executors_in_order(snapshot, settings), with_fewest_tasks)
