"""A load that comes again every day: two busy times, spikes at the same hours, and what no day has in common.

Made for judging forecasts. Common to all days, drawn once by the seed: when spikes come, how high and how long they
are. Of each day its own: how busy it is as a whole, by how much each spike is late, higher or longer, spikes that
nobody could have known of, and noise. Spikes begin at whole quarters of an hour, as what cron starts does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from storm_operator.core.arrays import Floats

DAY_SECONDS = 86_400.0
QUARTERS = 96
BUSY_TIMES = ((11.0 / 24.0, 2.5 / 24.0, 1.0), (20.0 / 24.0, 2.0 / 24.0, 1.6))
"""Of a day: middle, width (as shares of it), and how much is added to the base there, in bases."""
COMMON, OWN, NOISE = 0, 1, 2
"""What a draw is for: part of its seed."""


@dataclass(frozen=True, slots=True)
class Spike:
    """Load is `factor` times as much from one second to another."""

    start_seconds: float
    end_seconds: float
    factor: float


@dataclass(frozen=True, slots=True)
class DailyLoad:
    """`base` tuples per second at night; a `LoadShape`. Shorter `day_seconds` compress all but the noise.

    `spikes` of a length in `spike_seconds` come daily, up to `late_seconds` late (both of a real day);
    `unknown_spikes` of half that length come once, at any time.
    `level_deviation` is that of the logarithm of a day's level, `noise` that of a factor drawn every `noise_seconds`.
    """

    base: float
    seed: int = 0
    day_seconds: float = DAY_SECONDS
    spikes: int = 8
    unknown_spikes: int = 2
    spike_seconds: tuple[float, float] = (120.0, 600.0)
    late_seconds: float = 30.0
    level_deviation: float = 0.08
    noise: float = 0.05
    noise_seconds: float = 10.0

    def rate_at(self, seconds: float) -> float:
        day = math.floor(seconds / self.day_seconds)
        draw = np.random.default_rng((self.seed, NOISE, math.floor(seconds / self.noise_seconds))).standard_normal()
        steady = float(self._steady(np.array([seconds]), day)[0])
        return steady * max(0.0, 1.0 + self.noise * float(draw))

    def means(self, day: int, interval_seconds: float) -> Floats:
        """Mean rate in each interval of a day, noise drawn once for each."""
        each = max(1, round(interval_seconds))
        count = round(self.day_seconds / interval_seconds)
        steps = np.arange(count * each, dtype=np.float64)
        at = day * self.day_seconds + (steps + 0.5) * (interval_seconds / each)
        steady = self._steady(at, day).reshape(count, each).mean(axis=1)
        draws = np.random.default_rng((self.seed, NOISE, day)).standard_normal(count)
        return np.asarray(steady * np.maximum(0.0, 1.0 + self.noise * draws))

    def _steady(self, seconds: Floats, day: int) -> Floats:
        """Without noise."""
        level, spikes = _day(self, day)
        within = seconds - day * self.day_seconds
        share = within / self.day_seconds
        shape = 1.0 + sum(more * np.exp(-(((share - middle) / width) ** 2)) for middle, width, more in BUSY_TIMES)
        factor = np.ones_like(within)
        for spike in spikes:
            factor[(within >= spike.start_seconds) & (within < spike.end_seconds)] = spike.factor
        return np.asarray(self.base * level * shape * factor)


@lru_cache(maxsize=64)
def _day(load: DailyLoad, day: int) -> tuple[float, tuple[Spike, ...]]:
    """A day's level and its spikes, in seconds since it began."""
    compressed = load.day_seconds / DAY_SECONDS
    common = np.random.default_rng((load.seed, COMMON))
    quarters = np.sort(common.choice(QUARTERS, load.spikes, replace=False)) * (load.day_seconds / QUARTERS)
    heights, lengths = common.uniform(1.5, 3.0, load.spikes), common.uniform(*load.spike_seconds, load.spikes)
    own = np.random.default_rng((load.seed, OWN, day))
    level = math.exp(load.level_deviation * float(own.standard_normal()))
    known = [
        _spike(
            quarter + own.uniform(0.0, load.late_seconds) * compressed,
            length * math.exp(0.1 * own.standard_normal()) * compressed,
            1.0 + (height - 1.0) * math.exp(0.15 * own.standard_normal()),
        )
        for quarter, height, length in zip(quarters, heights, lengths, strict=True)
    ]
    unknown = [
        _spike(
            own.uniform(0.0, load.day_seconds),
            own.uniform(*load.spike_seconds) * compressed / 2.0,
            own.uniform(1.5, 3.0),
        )
        for _ in range(load.unknown_spikes)
    ]
    return level, tuple(known + unknown)


def _spike(start: float, length: float, factor: float) -> Spike:
    return Spike(float(start), float(start + length), float(factor))
