"""Successive halving: all settings on a little history, the better ones on more, the best on all, again and again.

Jamieson and Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter Optimization", AISTATS 2016. The
present settings stay to the end: everybody is compared with them, on the same stretches with the same seeds.

The best of many that are no better than the present ones looks better than they. So whoever comes out first is replayed
once more beside them, on stretches and seeds that had no part in that, and these replays alone tell how much better it
is: one comparison, a paired t-test at a level of 5%.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from storm_pipeline.tuning.candidates import Overrides
from storm_pipeline.tuning.replay import Outcome, Try

CERTAINTY = 0.95
"""Of each bound: 90% of intervals contain the change, and one in twenty equals is taken for better."""
PRESENT = 0
"""The number of the candidate that is the present settings."""
PlayAll = Callable[[Sequence[Try]], list[Outcome]]


@dataclass(frozen=True, slots=True)
class Ladder:
    """`seconds` of history there are; each of the `rungs` but the last gets `keep` times less than the next.

    After each rung one of `keep` stays. The finalists are played `choosing` times, at different stretches and seeds,
    and the best of them and the present settings `replays` times more, at others.
    """

    seconds: float
    rungs: int = 4
    keep: int = 5
    finalists: int = 5
    choosing: int = 3
    replays: int = 8
    least_seconds: float = 120.0

    @property
    def final(self) -> int:
        """The number of the round of the finalists; that of the best one and the present settings is the next."""
        return self.rungs

    def length(self, rung: int) -> float:
        """Seconds of history that each setting gets in a rung."""
        shorter = float(self.keep ** (self.rungs - 1 - rung))
        return min(self.seconds, max(self.least_seconds, self.seconds / shorter))


@dataclass(frozen=True, slots=True)
class Standing:
    """A finalist against the present settings: change of the score in percent, and the bounds of its 90% interval."""

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
    finalists = _best([o for o in outcomes if o.tried.rung == ladder.rungs - 1], ladder.finalists)
    outcomes += _repeated(candidates, ladder, finalists, (ladder.final, ladder.choosing, seed + 100), play_all)
    best = _totals([o for o in outcomes if o.tried.rung == ladder.final])
    contest = [PRESENT, *sorted(best, key=lambda number: (best[number], number))[:1]]
    return outcomes + _repeated(candidates, ladder, contest, (ladder.final + 1, ladder.replays, seed + 200), play_all)


def _repeated(
    candidates: Sequence[Overrides],
    ladder: Ladder,
    alive: Sequence[int],
    round_: tuple[int, int, int],
    play_all: PlayAll,
) -> list[Outcome]:
    """`alive` at each of so many stretches, with a seed of its own; a round is its number, how many, the first seed."""
    rung, times, seed = round_
    length = ladder.length(ladder.rungs - 2)
    tries = [
        Try(rung, number, candidates[number], _start(ladder, length, seed, replay), length, seed + replay)
        for replay in range(times)
        for number in alive
    ]
    return sorted(play_all(tries), key=lambda outcome: (outcome.tried.seed, outcome.tried.candidate))


def _totals(outcomes: Sequence[Outcome]) -> Mapping[int, float]:
    """Sums of the scores of all but the present settings."""
    sums: dict[int, float] = {}
    for outcome in outcomes:
        if outcome.tried.candidate != PRESENT:
            sums[outcome.tried.candidate] = sums.get(outcome.tried.candidate, 0.0) + outcome.score
    return sums


def standings(outcomes: Sequence[Outcome], ladder: Ladder) -> list[Standing]:
    """The best finalist and the present settings, better one first, by the replays that decide; then the others.

    The others are judged by the replays that they lost, and come last however well they look.
    """
    finals, contest = (_by_seed(outcomes, rung) for rung in (ladder.final, ladder.final + 1))
    decided = [_standing(number, own, contest[PRESENT]) for number, own in contest.items()]
    others = [_standing(number, own, finals[PRESENT]) for number, own in finals.items() if number not in contest]
    return [*_ranked(decided), *_ranked(others)]


def _by_seed(outcomes: Sequence[Outcome], rung: int) -> Mapping[int, Mapping[int, Outcome]]:
    found: dict[int, dict[int, Outcome]] = {}
    for outcome in outcomes:
        if outcome.tried.rung == rung:
            found.setdefault(outcome.tried.candidate, {})[outcome.tried.seed] = outcome
    return found


def _ranked(found: Sequence[Standing]) -> list[Standing]:
    return sorted(found, key=lambda one: (one.change_percent, one.candidate))


def is_surely_better(high_percent: float) -> bool:
    """Whether the first of `standings` beats the present settings beyond doubt; only then it is recommended."""
    return high_percent < 0.0


def _standing(candidate: int, own: Mapping[int, Outcome], present: Mapping[int, Outcome]) -> Standing:
    """The ratio of both scores' sums; its error is that of the pairs around it."""
    seeds = sorted(own)
    mine = np.array([own[seed].score for seed in seeds])
    theirs = np.array([present[seed].score for seed in seeds])
    outcomes = tuple(own[seed] for seed in seeds)
    overrides = outcomes[0].tried.overrides
    if theirs.sum() <= 0.0:
        return Standing(candidate, overrides, 0.0, 0.0, 0.0, outcomes)
    ratio = float(mine.sum() / theirs.sum())
    error = float((mine - ratio * theirs).std(ddof=1)) / math.sqrt(len(seeds)) / float(theirs.mean())
    either_way = 100.0 * float(stdtrit(len(seeds) - 1, CERTAINTY)) * error
    change = 100.0 * (ratio - 1.0)
    return Standing(candidate, overrides, change, change - either_way, change + either_way, outcomes)


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
