"""Load shapes: how many tuples per second a source is offered, as a function of time. Values, seeded, repeatable.

A shape gives the rate of all executors of a spout together. Shapes can be laid one over the other: `Noisy` and `Spiky`
take another shape and disturb it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

import numpy as np

NOISE_INTERVAL_SECONDS = 1.0


class LoadShape(Protocol):
    """Tuples per second at a time in seconds since the beginning of the simulation (0 or more)."""

    def rate_at(self, seconds: float) -> float: ...


@dataclass(frozen=True, slots=True)
class Constant:
    """Always the same."""

    tuples_per_second: float

    def rate_at(self, seconds: float) -> float:
        return self.tuples_per_second


@dataclass(frozen=True, slots=True)
class Step:
    """`steps` are (from second, tuples per second), seconds ascending; before the first one nothing is offered."""

    steps: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        _check_ascending("steps", [at for at, _ in self.steps])

    def rate_at(self, seconds: float) -> float:
        reached = bisect_right([at for at, _ in self.steps], seconds)
        return self.steps[reached - 1][1] if reached else 0.0


@dataclass(frozen=True, slots=True)
class Sine:
    """Between `low` and `high` with the given period; begins in the middle and rises."""

    low: float
    high: float
    period_seconds: float

    def rate_at(self, seconds: float) -> float:
        wave = math.sin(2.0 * math.pi * seconds / self.period_seconds)
        return (self.low + self.high) / 2.0 + (self.high - self.low) / 2.0 * wave


@dataclass(frozen=True, slots=True)
class Triangle:
    """Rises from `low` to `high` in half a period in steps of `step_seconds`, and falls again.

    Liu et al. (004), figure 6: five minutes up, five minutes down, a step every ten seconds.
    """

    low: float
    high: float
    period_seconds: float = 600.0
    step_seconds: float = 10.0

    def rate_at(self, seconds: float) -> float:
        held = math.floor(seconds / self.step_seconds) * self.step_seconds
        phase = (held % self.period_seconds) / self.period_seconds
        return self.low + (self.high - self.low) * (1.0 - abs(2.0 * phase - 1.0))


@dataclass(frozen=True, slots=True)
class RandomLevels:
    """A new level in every interval: a random whole number of producers in `fewest..most`, each of a fixed rate, on top
    of what is always offered.

    Liu et al. (004), figure 9: every 10 s a random integer in [1, 25] of Kafka producers.
    """

    tuples_per_second_each: float
    fewest: int = 1
    most: int = 25
    interval_seconds: float = 10.0
    seed: int = 0
    always_per_second: float = 0.0

    def rate_at(self, seconds: float) -> float:
        draw = _uniform(self.seed, math.floor(seconds / self.interval_seconds))
        producers = self.fewest + math.floor(draw * (self.most - self.fewest + 1))
        return self.always_per_second + self.tuples_per_second_each * producers


@dataclass(frozen=True, slots=True)
class Spiky:
    """`base`, and `factor` times as much for `length_seconds` at each of the seconds `at`."""

    base: LoadShape
    at: tuple[float, ...]
    length_seconds: float
    factor: float

    def rate_at(self, seconds: float) -> float:
        within = any(start <= seconds < start + self.length_seconds for start in self.at)
        return self.base.rate_at(seconds) * (self.factor if within else 1.0)


@dataclass(frozen=True, slots=True)
class Noisy:
    """`base` times a normal factor of mean 1 and deviation `fraction`, drawn anew each second; never negative."""

    base: LoadShape
    fraction: float
    seed: int = 0

    def rate_at(self, seconds: float) -> float:
        draw = _normal(self.seed, math.floor(seconds / NOISE_INTERVAL_SECONDS))
        return self.base.rate_at(seconds) * max(0.0, 1.0 + self.fraction * draw)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded series of (second, tuples per second), seconds ascending, read with straight lines between points.

    Before the first and after the last point their values hold; `repeats` begins anew after the last one.
    """

    points: tuple[tuple[float, float], ...]
    repeats: bool = False
    _seconds: tuple[float, ...] = field(init=False, repr=False, compare=False)
    _rates: tuple[float, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_seconds", tuple(at for at, _ in self.points))
        object.__setattr__(self, "_rates", tuple(rate for _, rate in self.points))
        _check_ascending("points", list(self._seconds))

    def rate_at(self, seconds: float) -> float:
        length = self._seconds[-1]
        at = seconds % length if self.repeats and length > 0.0 else seconds
        return float(np.interp(at, self._seconds, self._rates))


@dataclass(frozen=True, slots=True)
class Periodic:
    """`base` from its beginning again after each period."""

    base: LoadShape
    period_seconds: float

    def rate_at(self, seconds: float) -> float:
        return self.base.rate_at(seconds % self.period_seconds)


@dataclass(frozen=True, slots=True)
class Scaled:
    """`base` times `factor`."""

    base: LoadShape
    factor: float

    def rate_at(self, seconds: float) -> float:
        return self.base.rate_at(seconds) * self.factor


def _check_ascending(name: str, seconds: list[float]) -> None:
    if not seconds or any(later <= earlier for earlier, later in pairwise(seconds)):
        raise ValueError(f"{name}: its seconds are {seconds}; at least one, each later than the one before, is right")


def _uniform(seed: int, index: int) -> float:
    """A number in [0, 1) that depends on seed and index alone, so that any time can be asked for in any order."""
    return float(np.random.default_rng((seed, index)).random())


def _normal(seed: int, index: int) -> float:
    return float(np.random.default_rng((seed, index)).standard_normal())
