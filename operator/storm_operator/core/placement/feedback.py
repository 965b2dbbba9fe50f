"""Feedback scheduling (paper 003): measured performance is fed back, and the schedule adjusted to it as it runs.

Paper 003 names the family and says no more. What was decided: a proportional-integral controller on CPU. The set point
of every supervisor is the utilisation of the whole cluster; the error is how far it is above. The control signal is

    proportional_gain * error now + integral_gain * mean error over the last periods

so that what lasts counts in full, a short spike in part. A supervisor whose error is beyond the dead band loses
executors for as much CPU as the signal says, but not more than the error: what lasted before the last adjustment must
not count twice (integral windup). Supervisors below the set point take them, up to it. Everything else stays.

It adjusts every `adjust_seconds`. Periods in which nobody measured a supervisor do not count.
"""

from __future__ import annotations

import statistics

import numpy as np

from storm_operator.core.arrays import Floats
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Infeasible
from storm_operator.core.placement.executor_arrays import ExecutorArrays
from storm_operator.core.placement.load_shift import ADJUST, shift_when_due
from storm_operator.core.placement.parameters import Parameter, read_parameters
from storm_operator.core.placement.utilisation import past_loads
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

NAME = "feedback"

PARAMETERS = {
    "proportional_gain": Parameter(0.5, 0.0, 1.0, "weight of the error now"),
    "integral_gain": Parameter(0.5, 0.0, 1.0, "weight of the mean error over the last periods"),
    "dead_band": Parameter(0.1, 0.0, 1.0, "utilisation above the cluster's that is let be"),
    "adjust_seconds": ADJUST,
}


def place_feedback(snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings) -> Assignment | Infeasible:
    """The assignment in force, with CPU moved from supervisors above the set point to those below it."""
    values = read_parameters(NAME, PARAMETERS, settings.scheduling.parameters)
    periods = settings.scheduling.history_periods

    def control(arrays: ExecutorArrays, used: Floats) -> tuple[Floats, Floats]:
        set_point = used.sum() / arrays.capacities.sum()
        errors = used / arrays.capacities - set_point
        lasting = np.array(
            [
                _mean_past_error(snapshot, machine.id, capacity, periods, set_point, error)
                for machine, capacity, error in zip(arrays.machines, arrays.capacities, errors, strict=True)
            ]
        )
        signal = np.minimum(errors, values["proportional_gain"] * errors + values["integral_gain"] * lasting)
        surplus = np.where(errors > values["dead_band"], np.maximum(0.0, signal), 0.0) * arrays.capacities
        return surplus, np.maximum(0.0, -errors) * arrays.capacities

    return shift_when_due(snapshot, demand, settings, values["adjust_seconds"], control)


def _mean_past_error(
    snapshot: ClusterSnapshot, supervisor_id: str, capacity: float, periods: int, set_point: float, error_now: float
) -> float:
    """Against today's set point; the error of now where nobody measured the past."""
    past = past_loads(snapshot, supervisor_id, periods)
    return statistics.fmean(used / capacity for _, used in past) - set_point if past else error_now
