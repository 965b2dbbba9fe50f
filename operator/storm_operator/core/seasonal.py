"""Loads that come again: the same position of every day (or week) has much the same load, up to a level that drifts.

A season is the load's shape over one cycle, in bins. What the next period brings is the shape there, times the level at
which the last periods lay above or below the shape: the multiplicative seasonal model with a smoothed level of Winters,
"Forecasting Sales by Exponentially Weighted Moving Averages", Management Science 6(3), 1960, with the seasonal
factors learned from recorded history instead of updated in passing. A load is needed in time, and spikes do not come to
the second: beside what is expected a season has what to be ready for, which is higher only where days differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

LEAST_EXPECTED_PER_SECOND = 1e-6
"""A shape below this says nothing about the level."""

TELLING_SHARE = 0.01
"""Where less than this share of the shape's mean is expected, what lacks counts as measured just so: a few tuples in a
night may be many times what was expected, and do not say that the day will bring as many times its own."""

SURPRISE = 1.2
"""A load of this many times what was to be ready for is no noise: nobody knew of it."""
CURRENT_PERIODS = 1.5
"""A point that ended longer ago is not the last period's."""


@dataclass(frozen=True)
class Season:
    """Tuples per second by position in a cycle that begins whenever the seconds since 1970 (UTC) are a multiple of it.

    `expected_per_second` and `ready_per_second` have a value for each bin of `bin_seconds`; `level_weight` (0 to 1) is
    how much of the newest period's level counts, the ones before fading with it.
    """

    cycle_seconds: float
    bin_seconds: float
    expected_per_second: tuple[float, ...]
    ready_per_second: tuple[float, ...]
    level_weight: float

    @cached_property
    def mean_per_second(self) -> float:
        """Of what is expected, over a whole cycle, which may have thousands of bins."""
        return sum(self.expected_per_second) / len(self.expected_per_second)

    def expected_between(self, start_seconds: float, end_seconds: float) -> float:
        """The mean of the shape between two times."""
        return self._mean(self.expected_per_second, start_seconds, end_seconds)

    def ready_between(self, start_seconds: float, end_seconds: float) -> float:
        """The mean of what to be ready for between two times."""
        return self._mean(self.ready_per_second, start_seconds, end_seconds)

    def _mean(self, shape: Sequence[float], start: float, end: float) -> float:
        """Of both ends' bins what lies between them, and whole bins: a control period may be a day, a bin a second."""
        width, first = self.bin_seconds, math.floor(start / self.bin_seconds)
        last = math.ceil(end / width) - 1
        if last <= first:
            return shape[first % len(shape)]
        head, tail = (first + 1) * width - start, end - last * width
        ends = head * shape[first % len(shape)] + tail * shape[last % len(shape)]
        whole = _sum_of_bins(shape, first + 1, last)
        return (ends + width * whole) / (head + tail + width * (last - first - 1))


def _sum_of_bins(shape: Sequence[float], first: int, end: int) -> float:
    """Of the bins `first` to `end` (without it), of however many cycles."""
    cycles, rest = divmod(end - first, len(shape))
    first %= len(shape)
    beyond = max(0, first + rest - len(shape))
    whole = cycles * sum(shape[:]) if cycles else 0.0
    return whole + sum(shape[first : first + rest]) + sum(shape[:beyond])


def bins_in(cycle_seconds: float, bin_seconds: float) -> int:
    """How many bins a cycle has; ValueError unless they fill it exactly."""
    bins = round(cycle_seconds / bin_seconds)
    if bins < 1 or not math.isclose(bins * bin_seconds, cycle_seconds):
        raise ValueError(f"bins of {bin_seconds:g} s do not fill a cycle of {cycle_seconds:g} s exactly")
    return bins


def seasonal_forecast(
    season: Season, points: Sequence[tuple[float, float]], at_seconds: float, period_seconds: float
) -> float | None:
    """What to be ready for in the period that ends at `at_seconds`, in the points' unit; never negative.

    `points` are (end of period, load), oldest first. None where they tell no level: there are none, or nothing is
    expected where they lie. A load that was clearly more than what was to be ready for is taken to stay: nobody knew of
    it, and nobody knows when it ends.
    """
    level = _level(season, points, at_seconds, period_seconds)
    if level is None:
        return None
    ready = max(0.0, level * season.ready_between(at_seconds - period_seconds, at_seconds))
    newest_at, newest = points[-1]
    before = _level(season, points[:-1], at_seconds, period_seconds)
    if before is None or at_seconds - newest_at > CURRENT_PERIODS * period_seconds:
        return ready
    was_ready = before * season.ready_between(newest_at - period_seconds, newest_at)
    return max(ready, newest) if newest > SURPRISE * was_ready else ready


def _level(
    season: Season, points: Sequence[tuple[float, float]], at_seconds: float, period_seconds: float
) -> float | None:
    """How far the load lies above or below the shape, newer points counting more."""
    measured = expected = telling = 0.0
    for time, value in points:
        age = max(0, round((at_seconds - time) / period_seconds) - 1)
        weight = (1.0 - season.level_weight) ** age
        measured += weight * value
        expected += weight * season.expected_between(time - period_seconds, time)
        telling += weight * TELLING_SHARE * season.mean_per_second
    if expected < LEAST_EXPECTED_PER_SECOND:
        return None
    lacking = max(0.0, telling - expected)
    return (measured + lacking) / (expected + lacking)
