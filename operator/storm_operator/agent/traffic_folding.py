"""Bounds the series of task pairs: the largest keep their own, the others are folded by source task and stream.

What was counted while a pair was folded stays with the fold, and what was counted while it had its own series stays
there: each tuple is in exactly one of them, and neither ever falls when a pair changes sides. To keep series steady a
pair changes sides rarely: into places that are free at once, into the place of another pair only in a review, and only
when it carried much more than that one since the last. No clock, no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

REVIEW_SECONDS = 60.0
CLEARLY_MORE = 2.0
"""A folded pair takes the place of another when it carried so many times as many tuples since the last review."""

Pair = tuple[str, int, str, int]
"""(topology id, source task, stream, target task)."""
Row = tuple[str, int, str]
"""(topology id, source task, stream)."""


@dataclass(frozen=True, slots=True)
class FoldedTraffic:
    """Totals of one scrape: of the pairs with a series of their own, of the folds, and what was folded by topology."""

    pairs: Sequence[tuple[Pair, float]]
    folds: Sequence[tuple[Row, float]]
    folded_pairs: Mapping[str, int]
    folded_tuples: Mapping[str, float]


class TrafficFolding:
    """Remembers who has a series of its own, and which tuples were counted where."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._named: set[Pair] = set()
        self._last: dict[Pair, float] = {}
        self._folded_of: dict[Pair, float] = {}
        self._folds: dict[Row, float] = {}
        self._folded_tuples: dict[str, float] = {}
        self._reviewed: dict[Pair, float] = {}
        self._review_at_seconds = 0.0

    def fold(self, totals: Mapping[Pair, float], now_seconds: float) -> FoldedTraffic:
        """`totals` are those of all pairs present, which never fall (see `CounterLedger`)."""
        self._choose(totals, now_seconds)
        folded = [pair for pair in totals if pair not in self._named] if len(self._named) < len(totals) else []
        for pair in folded:
            self._count(pair, totals[pair] - self._last.get(pair, 0.0))
        self._last.update(totals)
        present = {pair[:3] for pair in totals} if self._folds else set()
        return FoldedTraffic(
            pairs=self._with_own_series(totals),
            folds=[(row, total) for row, total in self._folds.items() if row in present],
            folded_pairs=_by_topology(folded),
            folded_tuples=self._folded_tuples.copy(),
        )

    def forget_unless(self, is_kept: Callable[[Pair], bool]) -> None:
        """Drops what is remembered of pairs, and of topologies without any, that nobody will speak of again."""
        self._last = {pair: total for pair, total in self._last.items() if is_kept(pair)}
        self._folded_of = {pair: total for pair, total in self._folded_of.items() if pair in self._last}
        rows, topologies = {pair[:3] for pair in self._last}, {pair[0] for pair in self._last}
        self._folds = {row: total for row, total in self._folds.items() if row in rows}
        self._folded_tuples = {name: total for name, total in self._folded_tuples.items() if name in topologies}

    def _count(self, pair: Pair, tuples: float) -> None:
        row, topology_id = pair[:3], pair[0]
        self._folded_of[pair] = self._folded_of.get(pair, 0.0) + tuples
        self._folds[row] = self._folds.get(row, 0.0) + tuples
        self._folded_tuples[topology_id] = self._folded_tuples.get(topology_id, 0.0) + tuples

    def _with_own_series(self, totals: Mapping[Pair, float]) -> Sequence[tuple[Pair, float]]:
        if not self._folded_of:
            return list(totals.items())
        folded_of = self._folded_of
        return [(pair, total - folded_of.get(pair, 0.0)) for pair, total in totals.items() if pair in self._named]

    def _choose(self, totals: Mapping[Pair, float], now_seconds: float) -> None:
        if len(totals) <= self._limit:
            self._named = set(totals)
            return
        self._named.intersection_update(totals)
        free = self._limit - len(self._named)
        # A review that is farther away than they lie apart is of before the clock was set back.
        is_due = not 0.0 < self._review_at_seconds - now_seconds <= REVIEW_SECONDS
        if free or is_due:
            largest_first = self._by_flow(totals, totals.keys() - self._named)
            self._named.update(largest_first[:free])
            if is_due:
                self._review(totals, largest_first[free:])
                self._reviewed = dict(totals)
                self._review_at_seconds = now_seconds + REVIEW_SECONDS

    def _review(self, totals: Mapping[Pair, float], folded: Sequence[Pair]) -> None:
        """The largest of the folded pairs against the smallest of the others, and so on while they carried more."""
        smallest_first = reversed(self._by_flow(totals, self._named))
        for large, small in zip(folded, smallest_first, strict=False):
            if self._flow(totals, large) <= CLEARLY_MORE * self._flow(totals, small):
                break
            self._named.remove(small)
            self._named.add(large)

    def _by_flow(self, totals: Mapping[Pair, float], pairs: Iterable[Pair]) -> list[Pair]:
        """Those that carried most since the last review first; ties by name."""
        return sorted(pairs, key=lambda pair: (-self._flow(totals, pair), pair))

    def _flow(self, totals: Mapping[Pair, float], pair: Pair) -> float:
        return totals[pair] - self._reviewed.get(pair, 0.0)


def _by_topology(pairs: Iterable[Pair]) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    for pair in pairs:
        counts[pair[0]] = counts.get(pair[0], 0) + 1
    return counts
