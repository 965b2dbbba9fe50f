"""Fuzzy scheduling (paper 003): scheduling as a fuzzy control problem, modelled and solved by fuzzy logic.

Paper 003 names the family and says no more. What was decided: a zero-order Sugeno controller (Takagi, Sugeno, "Fuzzy
Identification of Systems and Its Applications to Modeling and Control", IEEE SMC 15(1), 1985) for each supervisor.

Inputs are its CPU utilisation (low, medium, high: triangles that peak at `low`, `medium` and `high`, the outer ones
with shoulders) and its trend over the last periods, in utilisation a minute (falling, steady, rising: peaks at
-`steep_a_minute`, 0, `steep_a_minute`). The output is pressure, from -1 (take executors) to 1 (give some away): the
mean of the rules' outputs, weighted by the products of their memberships:

    utilisation \\ trend   falling   steady   rising
    low                    -1.0     -1.0     -0.5
    medium                 -0.5      0.0      0.5
    high                    0.0      1.0      1.0

A supervisor with pressure beyond `least_pressure` gives away that part of `largest_share` of its CPU. One with negative
pressure takes that part of what it is below `medium`. Everything else stays. Without two measured periods the trend
counts as steady: then utilisation alone decides. It adjusts every `adjust_seconds`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from storm_operator.core.arrays import Floats
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Infeasible
from storm_operator.core.placement.executor_arrays import ExecutorArrays
from storm_operator.core.placement.load_shift import ADJUST, shift_when_due
from storm_operator.core.placement.parameters import Parameter, check_ascending, read_parameters
from storm_operator.core.placement.utilisation import past_loads
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

NAME = "fuzzy"

PARAMETERS = {
    "low": Parameter(0.3, 0.0, 1.0, "utilisation that is low"),
    "medium": Parameter(0.6, 0.0, 1.0, "utilisation that is medium, above low"),
    "high": Parameter(0.9, 0.0, 1.0, "utilisation that is high, above medium"),
    "steep_a_minute": Parameter(0.2, 0.001, 100.0, "change of utilisation in a minute that is rising or falling"),
    "least_pressure": Parameter(0.25, 0.0, 1.0, "pressure that is let be"),
    "largest_share": Parameter(0.3, 0.01, 1.0, "share of a supervisor's CPU that it gives away at full pressure"),
    "adjust_seconds": ADJUST,
}
ASCENDING = ("low", "medium", "high")

RULES = np.array([[-1.0, -1.0, -0.5], [-0.5, 0.0, 0.5], [0.0, 1.0, 1.0]])
"""Pressure by utilisation (low, medium, high) and trend (falling, steady, rising)."""


def place_fuzzy(snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings) -> Assignment | Infeasible:
    """The assignment in force, with CPU moved from supervisors under pressure to those that can take it."""
    values = read_parameters(NAME, PARAMETERS, settings.scheduling.parameters)
    check_ascending(ASCENDING, values)
    periods = settings.scheduling.history_periods

    def control(arrays: ExecutorArrays, used: Floats) -> tuple[Floats, Floats]:
        pressures = np.array(
            [
                pressure(millicores / capacity, trend_a_minute(snapshot, machine.id, capacity, periods), values)
                for machine, millicores, capacity in zip(arrays.machines, used, arrays.capacities, strict=True)
            ]
        )
        surplus = np.where(pressures > values["least_pressure"], pressures, 0.0) * values["largest_share"] * used
        below = np.maximum(0.0, values["medium"] * arrays.capacities - used)
        return surplus, np.maximum(0.0, -pressures) * below

    return shift_when_due(snapshot, demand, settings, values["adjust_seconds"], control)


def pressure(utilisation: float, trend: float, values: Mapping[str, float]) -> float:
    """The controller: -1 take executors, 1 give some away; `trend` is change of utilisation in a minute."""
    steep = values["steep_a_minute"]
    low, medium, high = (values[name] for name in ASCENDING)
    level = _memberships(utilisation, (low, medium, high))
    slope = _memberships(trend, (-steep, 0.0, steep))
    return sum(a * b * float(RULES[i, j]) for i, a in enumerate(level) for j, b in enumerate(slope))


def trend_a_minute(snapshot: ClusterSnapshot, supervisor_id: str, capacity: float, periods: int) -> float:
    """Slope of the supervisor's measured utilisation (least squares), in a minute; 0 with fewer than two periods."""
    past = past_loads(snapshot, supervisor_id, periods)
    seconds, used = np.array([at for at, _ in past]), np.array([millicores for _, millicores in past])
    if len(past) < 2 or np.ptp(seconds) <= 0.0:
        return 0.0
    away = seconds - seconds.mean()
    return float(60.0 * (away @ used) / (away @ away) / capacity)


def _memberships(value: float, peaks: tuple[float, float, float]) -> tuple[float, ...]:
    """How much `value` belongs to each of three triangles with shoulders; they sum to 1."""
    return tuple(float(np.interp(value, peaks, np.eye(3)[at])) for at in range(3))
