"""A level and a trend that fades, for loads that do not go on as they began.

Gardner and McKenzie, "Forecasting Trends in Time Series", Management Science 31(10), 1985: Holt's exponential smoothing
with the trend multiplied by a factor in each period. On recorded loads it misses by less than Liu's least-squares line,
and lacks less (docs/benchmarks/forecasts.md); a line through five noisy points, read one period ahead, makes the noise
larger.
"""

from __future__ import annotations

from collections.abc import Sequence

LEVEL_WEIGHT = 0.5
"""How much of a new value the level takes (alpha)."""
TREND_WEIGHT = 0.5
"""How much of the level's newest change the trend takes (beta)."""
DAMPING = 0.5
"""What a period leaves of the trend (phi)."""
PERIODS_OF_A_TREND = 64
"""After so many nothing is left of a trend. A clock that is set right may step over a hundred million of them."""


def damped_trend(points: Sequence[tuple[float, float]], at_seconds: float, period_seconds: float) -> float | None:
    """The load at `at_seconds`, from (time, value) `points`, oldest first; never negative, None of nothing.

    The first value is the first level, without a trend. A period without a point fades the trend once more.
    """
    if not points:
        return None
    (before, level), *others = points
    trend = 0.0
    for time, value in others:
        periods = _periods(time - before, period_seconds)
        expected, faded = _advance(level, trend, periods)
        higher = expected + LEVEL_WEIGHT * (value - expected)
        trend = faded + TREND_WEIGHT * ((higher - level) / periods - faded)
        level, before = higher, time
    return max(0.0, _advance(level, trend, _periods(at_seconds - before, period_seconds))[0])


def _periods(seconds: float, period_seconds: float) -> int:
    return max(1, round(seconds / period_seconds))


def _advance(level: float, trend: float, periods: int) -> tuple[float, float]:
    """Level and trend after so many periods in which nothing is measured."""
    for _ in range(min(periods, PERIODS_OF_A_TREND)):
        trend *= DAMPING
        level += trend
    return level, trend
