"""History -> forecast -> demand against what was needed, over days of a load that comes again; no engine.

One component at a time: its arrivals follow from the source's load by a fixed ratio, its CPU from its arrivals. The
functions are the operator's own (`core.forecast`, `core.seasonal`, `core.demand`), applied to one component instead of
a snapshot, which a test holds to be the same. Nothing queues here: what was not provided is counted, not made up for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from storm_operator.core.demand import allocation, held_share
from storm_operator.core.settings import ResourceSettings
from storm_pipeline.models.backtest import Forecaster, Series, forecasts

RESOURCES = ResourceSettings()
MS_PER_SECOND = 1000.0
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Stage:
    """One component: tuples for each of the source's, CPU milliseconds of each, executors."""

    name: str
    per_source_tuple: float
    cpu_ms: float
    executors: int

    @property
    def step(self) -> float:
        """The load that one theta of CPU for each executor carries, in tuples per second."""
        return RESOURCES.theta_millicores * self.executors / self.cpu_ms


STAGES = (Stage("spout", 1.0, 0.2, 2), Stage("count", 1.0, 0.8, 8))
"""At 1,500 tuples per second, the load at night, 150 millicores an executor; eight times as much at the worst spike."""


@dataclass(frozen=True, slots=True)
class Provided:
    """CPU-seconds that executors lacked, and that were reserved for them in vain."""

    under: float
    over: float

    def __add__(self, other: Provided) -> Provided:
        return Provided(self.under + other.under, self.over + other.over)


def provided(stage: Stage, series: Series, first: int, forecaster: Forecaster) -> Provided:
    """What a component's executors lack and have too much from period `first` on; those before are history."""
    told = forecasts(series, forecaster, first, len(series.times))
    millicores = allocated_millicores(told * stage.cpu_ms / stage.executors)
    # A thread cannot use more than a core, whatever it is given.
    needed = np.minimum(series.values[first:] * stage.cpu_ms / stage.executors, RESOURCES.ceiling_millicores)
    spare = (millicores - needed) * stage.executors * series.lengths[first:] / MS_PER_SECOND
    return Provided(float(np.maximum(0.0, -spare).sum()), float(np.maximum(0.0, spare).sum()))


def allocated_millicores(needs: Floats) -> Floats:
    """What each executor is given, period after period, for what it is thought to need."""
    given, held = np.empty_like(needs), None
    for index, need in enumerate(needs.tolist()):
        held = held_share(need, held, RESOURCES.theta_millicores)
        given[index] = allocation(held, RESOURCES)
    return given
