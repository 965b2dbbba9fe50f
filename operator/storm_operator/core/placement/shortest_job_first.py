"""Shortest job first: "Adaptive scheduling algorithms for Storm clusters" (a digest, in Chinese), list 2, 1.

By the tasks' processing times, each goes to the node where processing takes the shortest time. A stream's task never
ends; its job is the CPU that it needs for a second of the stream. Shortest jobs are placed first, each where the jobs
placed so far and its own are done first, given the node's capacity. What else loads a node is not looked at: the
digest says that the method cannot follow that. It gives no period; a new schedule is made every `reschedule_seconds`,
or when an executor has no place.
"""

from __future__ import annotations

from collections.abc import Sequence

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Executor, Infeasible
from storm_operator.core.placement.capacity import by_supervisor, cpu_capacities
from storm_operator.core.placement.inventory import executor_loads
from storm_operator.core.placement.one_by_one import executors_in_order, place_one_by_one
from storm_operator.core.placement.triggers import RESCHEDULING, is_time_for
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

NAME = "shortest-job-first"

PARAMETERS = RESCHEDULING


def place_shortest_job_first(
    snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings
) -> Assignment | Infeasible:
    """When it is time, every movable executor, that with the least CPU first, where it is done first."""
    if not is_time_for(NAME, snapshot, settings):
        return snapshot.assignment
    capacities, jobs = cpu_capacities(snapshot), executor_loads(snapshot, demand)
    queued = by_supervisor(snapshot, settings, jobs)

    def done_first(executor: Executor, candidates: Sequence[str]) -> str:
        chosen = min(candidates, key=lambda at: ((queued[at] + jobs[executor]) / capacities[at], at))
        queued[chosen] += jobs[executor]
        return chosen

    shortest_first = sorted(executors_in_order(snapshot, settings), key=lambda executor: jobs[executor])
    return place_one_by_one(snapshot, settings, shortest_first, done_first)
