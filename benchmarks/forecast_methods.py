"""Ways to forecast a load from the last few periods, beside Liu's least-squares line; times in seconds.

Pure functions of (time, value) points, oldest first and one at least, and the time to forecast. Missing periods are
missing points: each method goes by the points' times, not by their number.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from storm_operator.core.damped_trend import damped_trend as core_damped_trend
from storm_operator.core.forecast import Point, forecast_series

Method = Callable[[Sequence[Point], float], float]
PERIOD_SECONDS = 10.0
HAMPEL_DEVIATIONS = 3.0
NORMAL_MAD = 1.4826
"""Times the median absolute deviation is the standard deviation of a normal variable."""


def line(points: Sequence[Point], at_seconds: float) -> float:
    """Liu's (section III-A.1): what the operator uses."""
    found = forecast_series(points, at_seconds)
    assert found is not None
    return found


def newest(points: Sequence[Point], at_seconds: float) -> float:
    """As it was."""
    return points[-1][1]


def mean(points: Sequence[Point], at_seconds: float) -> float:
    """No trend."""
    return statistics.fmean(value for _, value in points)


def median(points: Sequence[Point], at_seconds: float) -> float:
    """No trend, no spikes."""
    return statistics.median(value for _, value in points)


def damped_line(points: Sequence[Point], at_seconds: float, damping: float) -> float:
    """The least-squares line with `damping` times its slope, around the points' mean."""
    middle = mean(points, at_seconds)
    return max(0.0, middle + damping * (_unbounded_line(points, at_seconds) - middle))


def chosen(points: Sequence[Point], at_seconds: float) -> float:
    """`DampedTrend` as the operator has it: alpha, beta and damping 0.5."""
    found = core_damped_trend(points, at_seconds, PERIOD_SECONDS)
    assert found is not None
    return found


def damped_trend(points: Sequence[Point], at_seconds: float, alpha: float, beta: float, damping: float) -> float:
    """Gardner and McKenzie, "Forecasting Trends in Time Series", Management Science 31(10), 1985: Holt's level and
    trend, the trend multiplied by `damping` each period; a longer gap damps it by as much more."""
    (before, level), *others = points
    trend = 0.0
    for time, value in others:
        expected, kept = _advance(level, trend, time - before, damping)
        higher = alpha * value + (1.0 - alpha) * expected
        trend = beta * (higher - level) / ((time - before) / PERIOD_SECONDS) + (1.0 - beta) * kept
        level, before = higher, time
    return max(0.0, _advance(level, trend, at_seconds - before, damping)[0])


def theil_sen(points: Sequence[Point], at_seconds: float) -> float:
    """The line with the median of all slopes between two points (Theil 1950, Sen 1968): spikes do not tilt it."""
    if len(points) == 1:
        return points[0][1]
    slope = statistics.median((v2 - v1) / (t2 - t1) for (t1, v1), (t2, v2) in itertools.combinations(points, 2))
    return max(0.0, statistics.median(value + slope * (at_seconds - time) for time, value in points))


def line_without_spikes(points: Sequence[Point], at_seconds: float) -> float:
    """The least-squares line through the points within three deviations of the median (Hampel's identifier)."""
    middle = median(points, at_seconds)
    deviation = NORMAL_MAD * statistics.median(abs(value - middle) for _, value in points)
    kept = [(t, v) for t, v in points if abs(v - middle) <= HAMPEL_DEVIATIONS * deviation]
    return line(kept or points, at_seconds)


def _advance(level: float, trend: float, seconds: float, damping: float) -> tuple[float, float]:
    """Level and trend after `seconds`, nothing being measured."""
    for _ in range(max(1, round(seconds / PERIOD_SECONDS))):
        trend *= damping
        level += trend
    return level, trend


def _unbounded_line(points: Sequence[Point], at_seconds: float) -> float:
    if len(points) == 1:
        return points[0][1]
    return statistics.linear_regression([t - at_seconds for t, _ in points], [v for _, v in points]).intercept


METHODS: Mapping[str, Method] = {
    "line": line,
    "newest": newest,
    "mean": mean,
    "median": median,
    "theil-sen": theil_sen,
    "line without spikes": line_without_spikes,
    **{f"line, slope times {d:g}": partial(damped_line, damping=d) for d in (0.25, 0.5, 0.75)},
    "damped trend 0.5/0.5/0.5": chosen,
    **{
        f"damped trend {a:g}/{b:g}/{d:g}": partial(damped_trend, alpha=a, beta=b, damping=d)
        for a in (0.5, 0.8)
        for b in (0.2, 0.5)
        for d in (0.5, 0.8)
        if (a, b, d) != (0.5, 0.5, 0.5)
    },
}
"""The line first: it is what the others must beat."""
