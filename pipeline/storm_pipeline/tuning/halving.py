"""Successive halving: all settings on a little history, the better ones on more, the best on all, again and again.

Jamieson and Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter Optimization", AISTATS 2016. The
present settings stay to the end: everybody is compared with them, on the same stretches with the same seeds.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from storm_pipeline.tuning.candidates import Overrides
from storm_pipeline.tuning.replay import Outcome, Try

RESAMPLES = 2000
PRESENT = 0
"""The number of the candidate that is the present settings."""
PlayAll = Callable[[Sequence[Try]], list[Outcome]]


@dataclass(frozen=True, slots=True)
class Ladder:
    """`seconds` of history there are; each of the `rungs` but the last gets `keep` times less than the next.

    After each rung one of `keep` stays. The last rung is played `replays` times, at different stretches and seeds.
    """

    seconds: float
    rungs: int = 4
    keep: int = 4
    finalists: int = 5
    replays: int = 5
    least_seconds: float = 120.0

    def length(self, rung: int) -> float:
        """Seconds of history that each setting gets in a rung."""
        shorter = float(self.keep ** (self.rungs - 1 - rung))
        return min(self.seconds, max(self.least_seconds, self.seconds / shorter))


@dataclass(frozen=True, slots=True)
class Standing:
    """A finalist against the present settings: change of the score in percent, and the bounds of 90% of resamples."""

    candidate: int
    overrides: Overrides
    change_percent: float
    low_percent: float
    high_percent: float
    outcomes: tuple[Outcome, ...]


def climb(candidates: Sequence[Overrides], ladder: Ladder, seed: int, play_all: PlayAll) -> list[Outcome]:
    """Play all rungs; every outcome, in order. The first of `candidates` is the present settings."""
    alive = list(range(len(candidates)))
    outcomes: list[Outcome] = []
    for rung in range(ladder.rungs):
        length = ladder.length(rung)
        start = _start(ladder, length, seed, rung)
        tries = [Try(rung, number, candidates[number], start, length, seed + rung) for number in alive]
        played = sorted(play_all(tries), key=lambda outcome: outcome.tried.candidate)
        outcomes += played
        alive = _best(played, max(ladder.finalists, math.ceil(len(alive) / ladder.keep)))
    finals = [
        Try(ladder.rungs, number, candidates[number], start, ladder.length(ladder.rungs - 2), seed + 100 + replay)
        for replay in range(ladder.replays)
        for start in (_start(ladder, ladder.length(ladder.rungs - 2), seed + 100, replay),)
        for number in _best([o for o in outcomes if o.tried.rung == ladder.rungs - 1], ladder.finalists)
    ]
    return outcomes + sorted(play_all(finals), key=lambda outcome: (outcome.tried.seed, outcome.tried.candidate))


def standings(outcomes: Sequence[Outcome], ladder: Ladder) -> list[Standing]:
    """The finalists, best first; the present settings among them with a change of 0."""
    finals: dict[int, dict[int, Outcome]] = {}
    for outcome in outcomes:
        if outcome.tried.rung == ladder.rungs:
            finals.setdefault(outcome.tried.candidate, {})[outcome.tried.seed] = outcome
    found = [_standing(number, own, finals[PRESENT]) for number, own in sorted(finals.items())]
    return sorted(found, key=lambda one: (one.change_percent, one.candidate))


def is_surely_better(high_percent: float) -> bool:
    """Whether 90% of resamples of a finalist beat the present settings; only then it is recommended."""
    return high_percent < 0.0


def _standing(candidate: int, own: Mapping[int, Outcome], present: Mapping[int, Outcome]) -> Standing:
    seeds = sorted(own)
    mine = np.array([own[seed].score for seed in seeds])
    theirs = np.array([present[seed].score for seed in seeds])
    change = 100.0 * (mine.sum() / theirs.sum() - 1.0) if theirs.sum() > 0.0 else 0.0
    drawn = np.random.default_rng(candidate).integers(0, len(seeds), (RESAMPLES, len(seeds)))
    below = theirs[drawn].sum(axis=1)
    changes = 100.0 * (mine[drawn].sum(axis=1) / np.where(below > 0.0, below, 1.0) - 1.0)
    low, high = np.quantile(changes, (0.05, 0.95)).tolist()
    outcomes = tuple(own[seed] for seed in seeds)
    return Standing(candidate, outcomes[0].tried.overrides, float(change), float(low), float(high), outcomes)


def _best(outcomes: Sequence[Outcome], count: int) -> list[int]:
    ranked = sorted(outcomes, key=lambda outcome: (outcome.score, outcome.tried.candidate))
    kept = {outcome.tried.candidate for outcome in ranked[:count]}
    return sorted(kept | {PRESENT})


def _start(ladder: Ladder, length: float, seed: int, number: int) -> float:
    """Where in the history a stretch of `length` begins; the same for all who are compared."""
    room = max(0.0, ladder.seconds - length)
    return round(float(np.random.default_rng((seed, number)).uniform(0.0, 1.0)) * room)


def mean_of(outcomes: Sequence[Outcome], figure: str) -> float:
    """Mean of one of an outcome's figures."""
    return statistics.fmean(float(getattr(outcome, figure)) for outcome in outcomes)
