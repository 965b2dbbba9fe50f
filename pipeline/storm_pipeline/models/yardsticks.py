"""Seasonal forecasters of others, to be compared with; the operator does not have them.

They tell a whole cycle ahead, from the cycles before it alone: the load as it was a cycle ago, and Holt and Winters'
exponential smoothing (statsmodels). What they do not see is how the day goes so far; that is what the season with the
level of the last periods has over them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
from statsmodels.tools.sm_exceptions import ConvergenceWarning
from statsmodels.tsa.holtwinters import ExponentialSmoothing

from storm_pipeline.models.backtest import Series
from storm_pipeline.models.season import Floats

NAIVE, HOLT_WINTERS = "SeasonalNaive", "HoltWinters"
BINS_OF_A_CYCLE = 48
"""Of Holt and Winters' season: more take minutes to fit."""
Yardstick = Callable[[Series, int, int], Floats]


def yardsticks(cycle_seconds: float) -> Mapping[str, Yardstick]:
    """By name."""
    return {
        NAIVE: lambda series, first, last: naive(series, first, last, cycle_seconds),
        HOLT_WINTERS: lambda series, first, last: holt_winters(series, first, last, cycle_seconds),
    }


def naive(series: Series, first: int, last: int, cycle_seconds: float) -> Floats:
    """As it was a cycle ago; NaN where nothing was measured then."""
    wanted = series.times[first:last] - cycle_seconds
    half = series.lengths[first:last] / 2.0
    index = np.clip(np.searchsorted(series.times, wanted - half), 0, len(series.times) - 1)
    near = np.abs(series.times[index] - wanted) < half
    return np.where(near, series.values[index], np.nan)


def holt_winters(series: Series, first: int, last: int, cycle_seconds: float) -> Floats:
    """Additive Holt-Winters on bins of a 48th of a cycle, fitted anew before each cycle; NaN where it cannot be.

    Fitted is what was seen since the last gap of a cycle: a straight line over it has no season, and may be years long.
    """
    width = cycle_seconds / BINS_OF_A_CYCLE
    bins = np.floor((series.times - series.lengths / 2.0) / width).astype(np.int64)
    told = np.full(last - first, np.nan)
    for origin in np.unique(bins[first:last] // BINS_OF_A_CYCLE) * BINS_OF_A_CYCLE:
        past = np.flatnonzero(bins < origin)
        past = past[_after_last_gap(np.append(bins[past], origin)) :]
        if not len(past) or origin - bins[past[0]] < 2 * BINS_OF_A_CYCLE:
            continue
        begin = bins[past[0]]
        ahead = _fit(bins[past] - begin, series.values[past], int(origin - begin))
        at = bins[first:last] - origin
        now = (at >= 0) & (at < BINS_OF_A_CYCLE)
        told[now] = np.maximum(0.0, ahead[at[now]])
    return told


def _after_last_gap(bins: npt.NDArray[np.int64]) -> int:
    """Where in ascending `bins` those begin that follow the last gap of a cycle or more."""
    gaps = np.flatnonzero(np.diff(bins) > BINS_OF_A_CYCLE)
    return int(gaps[-1]) + 1 if len(gaps) else 0


def _fit(bins: npt.NDArray[np.int64], values: Floats, count: int) -> Floats:
    sums, sizes = np.bincount(bins, values, count)[:count], np.bincount(bins, minlength=count)[:count]
    known = np.flatnonzero(sizes)
    means = np.interp(np.arange(count), known, sums[known] / sizes[known])
    with warnings.catch_warnings(), np.errstate(divide="ignore"):  # of its likelihood, where the load was nothing
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = ExponentialSmoothing(
            means, seasonal="add", seasonal_periods=BINS_OF_A_CYCLE, initialization_method="heuristic"
        )
        return np.asarray(model.fit().forecast(BINS_OF_A_CYCLE), dtype=np.float64)
