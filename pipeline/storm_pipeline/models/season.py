"""Learns the season of a load from its history: what to expect at each position of a day or week, and be ready for.

Robust in both directions: a bin's expectation is the median over cycles, so that one bad day changes nothing, and
what to be ready for is a high quantile of the same values, which is far above the median only where cycles differ,
such as at the edges of a spike that does not come to the second. Cycles are brought to one level first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from storm_operator.core.seasonal import Season, bins_in

Floats = npt.NDArray[np.float64]

FEWEST_CYCLES = 3
"""Fewer have no median worth the name."""
LEAST_COVERAGE = 0.5
"""Share of a cycle's bins that must have been seen for it to count as whole; bins that none has are read between their
neighbours."""
LEAST_RATE = 1e-6


@dataclass(frozen=True, slots=True)
class SeasonShape:
    """What kind of season to learn: `ready_quantile` of the cycles' values is what to be ready for."""

    cycle_seconds: float
    bin_seconds: float
    ready_quantile: float
    level_weight: float


def learn_season(times: Floats, values: Floats, period_seconds: float | Floats, shape: SeasonShape) -> Season | None:
    """The season of a load; None where too few cycles were seen, or nothing ever came.

    `times` are the ends of periods in seconds since 1970, ascending; `values` are tuples per second in them;
    `period_seconds` is how long all of them were, or each.
    """
    count = bins_in(shape.cycle_seconds, shape.bin_seconds)
    pieces = _pieces(times, period_seconds, shape.cycle_seconds, shape.bin_seconds)
    if len(_well_seen(pieces, count)) < FEWEST_CYCLES or values.max(initial=0.0) < LEAST_RATE:
        return None
    # A bin has more of them from a cycle of shorter periods, which is not to count for more than the others.
    weights = np.rint(pieces.seconds / pieces.seconds.min()).astype(np.int64)
    values = np.repeat(values[pieces.period], weights)
    bins = np.repeat(pieces.bin, weights)
    cycles = np.unique(np.repeat(pieces.cycle, weights), return_inverse=True)[1]
    level = values / _levels(bins, cycles, values, count)[cycles]
    expected = _filled(_by_bin(bins, level, count, 0.5))
    high = _filled(_by_bin(bins, level, count, shape.ready_quantile))
    seen = expected > LEAST_RATE
    usual = float(np.median(high[seen] / expected[seen])) if seen.any() else 1.0
    ready = np.maximum(expected, high / usual)
    return Season(
        shape.cycle_seconds,
        shape.bin_seconds,
        tuple(expected.tolist()),
        tuple(ready.tolist()),
        shape.level_weight,
    )


def whole_cycles(
    times: Floats, period_seconds: float | Floats, cycle_seconds: float, bin_seconds: float
) -> list[float]:
    """The beginnings of the cycles of which enough was seen, ascending."""
    pieces = _pieces(times, period_seconds, cycle_seconds, bin_seconds)
    return [float(cycle) * cycle_seconds for cycle in _well_seen(pieces, bins_in(cycle_seconds, bin_seconds))]


def with_readiness(season: Season, factor: float) -> Season:
    """The season with what to be ready for multiplied by `factor`."""
    ready = tuple(factor * value for value in season.ready_per_second)
    return Season(season.cycle_seconds, season.bin_seconds, season.expected_per_second, ready, season.level_weight)


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Periods in pieces that are no longer than a bin: which period each is of, where it lies, how long it is."""

    period: npt.NDArray[np.int64]
    cycle: npt.NDArray[np.int64]
    bin: npt.NDArray[np.int64]
    seconds: Floats


def _pieces(times: Floats, period_seconds: float | Floats, cycle_seconds: float, bin_seconds: float) -> _Pieces:
    """A period that is longer than a bin tells of each that it lies in."""
    lengths = np.broadcast_to(np.asarray(period_seconds, dtype=np.float64), times.shape)
    parts = np.maximum(1, np.ceil(lengths / bin_seconds)).astype(np.int64)
    period = np.repeat(np.arange(len(times)), parts)
    place = np.arange(len(period)) - np.repeat(np.cumsum(parts) - parts, parts)
    middles = times[period] - lengths[period] * (place + 0.5) / parts[period]
    cycle = np.floor(middles / cycle_seconds).astype(np.int64)
    bins = np.floor((middles % cycle_seconds) / bin_seconds).astype(np.int64) % bins_in(cycle_seconds, bin_seconds)
    return _Pieces(period, cycle, bins, (lengths / parts)[period])


def _well_seen(pieces: _Pieces, count: int) -> npt.NDArray[np.int64]:
    """The cycles, counted since 1970, of which at least `LEAST_COVERAGE` of the `count` bins were seen."""
    seen = np.unique(pieces.cycle * count + pieces.bin) // count
    cycles, bins_seen = np.unique(seen, return_counts=True)
    return cycles[bins_seen >= LEAST_COVERAGE * count]


def _levels(bins: npt.NDArray[np.int64], cycles: npt.NDArray[np.int64], values: Floats, count: int) -> Floats:
    """How far each cycle lies above or below the median one; 1 for a cycle in which nothing was expected."""
    usual = _filled(_by_bin(bins, values, count, 0.5))[bins]
    measured = np.bincount(cycles, weights=values)
    expected = np.bincount(cycles, weights=usual)
    known = (expected > LEAST_RATE) & (measured > LEAST_RATE)
    return np.where(known, measured / np.where(known, expected, 1.0), 1.0)


def _by_bin(bins: npt.NDArray[np.int64], values: Floats, count: int, quantile: float) -> Floats:
    """A quantile of the values in each bin; NaN in bins without any."""
    order = np.lexsort((values, bins))
    ordered, sizes = values[order], np.bincount(bins, minlength=count)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    position = quantile * np.maximum(sizes - 1, 0)
    below, above = np.floor(position).astype(np.int64), np.ceil(position).astype(np.int64)
    last = len(ordered) - 1
    low, high = ordered[np.minimum(starts + below, last)], ordered[np.minimum(starts + above, last)]
    return np.where(sizes > 0, low + (position - below) * (high - low), np.nan)


def _filled(shape: Floats) -> Floats:
    """Bins that nobody saw, on straight lines between their neighbours around the cycle."""
    known = np.flatnonzero(~np.isnan(shape))
    if len(known) == len(shape):
        return shape
    return np.interp(np.arange(len(shape)), known, shape[known], period=len(shape))
