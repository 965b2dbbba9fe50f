"""Searches for a better placement from time to time, as ant colony and genetic scheduling do."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from storm_operator.core.arrays import Ints
from storm_operator.core.model import Assignment, Executor, Infeasible
from storm_operator.core.placement.executor_arrays import ExecutorArrays, executor_arrays, with_one_worker_each
from storm_operator.core.placement.homes import with_homes
from storm_operator.core.placement.one_by_one import executors_in_order, place_one_by_one
from storm_operator.core.placement.parameters import Parameter
from storm_operator.core.placement.triggers import RESCHEDULE, has_passed, someone_has_no_place
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

PARAMETERS = {
    "reschedule_seconds": RESCHEDULE,
    "least_gain_percent": Parameter(5.0, 0.0, 100.0, "the cost must fall by more"),
}

Search = Callable[[ExecutorArrays, Ints], tuple[Ints, float, float]]
"""From the present supervisor of each executor: the best one for each, and the costs of the present and the best."""


def search_when_due(
    snapshot: ClusterSnapshot,
    settings: PlacementSettings,
    values: Mapping[str, float],
    loads: Mapping[Executor, float],
    search: Search,
) -> Assignment | Infeasible:
    """What `search` finds, if its time has come and the cost falls by enough, else the assignment in force.

    `values` has those of `PARAMETERS`. When an executor has no place, that is time enough and any cost will do.
    """
    homeless = someone_has_no_place(snapshot, settings)
    due = homeless or has_passed(snapshot, values["reschedule_seconds"])
    if not due or not executors_in_order(snapshot, settings):
        return snapshot.assignment
    settled = with_homes(snapshot, settings)
    if isinstance(settled, Infeasible):
        settled = _all_together(snapshot, settings)
    if isinstance(settled, Infeasible):
        return settled
    arrays = executor_arrays(snapshot, settings, loads)
    best, before, after = search(arrays, arrays.supervisors_of(settled))
    if not homeless and not after < before * (1.0 - values["least_gain_percent"] / 100.0):
        return snapshot.assignment
    return with_one_worker_each(snapshot, settings, arrays, best)


def _all_together(snapshot: ClusterSnapshot, settings: PlacementSettings) -> Assignment | Infeasible:
    """Where to begin when topologies must give slots up: each in one worker."""
    executors = executors_in_order(snapshot, settings)
    return place_one_by_one(snapshot, settings, executors, lambda _, candidates: candidates[0])
