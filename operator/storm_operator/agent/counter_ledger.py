"""Counters that go on when the process that counts is replaced by another.

A worker counts from zero each time it starts. The ledger adds what earlier workers had last shown, so that a series
never falls while it is exported. A worker on its way out may be read beside the one that takes its place, and its last
words come later still: of these only what is new is added. What was counted after the last reading and before the
worker's death is lost, not invented. So is what a worker had counted before the ledger was made: an earlier agent has
shown that, added to what nobody remembers now, and whoever reads a fall takes the new value whole. No clock, no I/O.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

Series = TypeVar("Series", bound=Hashable)

EARLIER_KEPT = 3
"""Incarnations that a series remembers beside the present one: those which may still be read, or leave last words."""


@dataclass(slots=True)
class _Entry:
    base: float
    incarnation: Hashable
    last: float
    seen_at_seconds: float
    earlier: tuple[tuple[Hashable, float], ...] = ()
    """The last incarnations before the present one, latest first, and what of each is in `base`."""


class CounterLedger:
    """Remembers, per series, the incarnation that counts now and what all earlier ones had counted."""

    def __init__(self) -> None:
        self._entries: dict[Hashable, _Entry] = {}
        self._from_zero: frozenset[Hashable] = frozenset()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, series: Hashable) -> bool:
        return series in self._entries

    def count_from_zero(self, incarnations: Iterable[Hashable]) -> None:
        """Until the next call, what is read first of these adds nothing, however much they have counted so far."""
        self._from_zero = frozenset(incarnations)

    def total(self, series: Hashable, incarnation: Hashable, value: float, now_seconds: float) -> float:
        """The count of `series` over all its incarnations, of which the present one shows `value`.

        A value below the last one of the same incarnation is taken for a slip of the counter and does not
        lower the total.
        """
        entry = self._entries.get(series)
        if entry is None:
            base = -value if incarnation in self._from_zero else 0.0
            self._entries[series] = _Entry(base, incarnation, value, now_seconds)
            return base + value
        if entry.incarnation == incarnation:
            entry.last = max(entry.last, value)
        elif (counted := dict(entry.earlier).get(incarnation)) is not None:
            entry.base += max(0.0, value - counted)
            entry.earlier = tuple(
                (each, max(counted, value) if each == incarnation else last) for each, last in entry.earlier
            )
        else:
            entry.base += entry.last - (value if incarnation in self._from_zero else 0.0)
            entry.earlier = ((entry.incarnation, entry.last), *entry.earlier)[:EARLIER_KEPT]
            entry.incarnation, entry.last = incarnation, value
        entry.seen_at_seconds = now_seconds
        return entry.base + entry.last

    def totals(
        self, readings: Iterable[tuple[Series, float]], incarnation: Hashable, now_seconds: float
    ) -> dict[Series, float]:
        """As `total`, for thousands of series of one incarnation at once."""
        totals: dict[Series, float] = {}
        get = self._entries.get
        for series, value in readings:
            entry = get(series)
            if entry is None or entry.incarnation != incarnation or value < entry.last:
                totals[series] = self.total(series, incarnation, value, now_seconds)
            else:
                entry.last = value
                entry.seen_at_seconds = now_seconds
                totals[series] = entry.base + value
        return totals

    def forget_unseen_since(self, before_seconds: float) -> None:
        """Drops series last read before `before_seconds`: topologies come and go, and memory must not only grow."""
        self._entries = {
            series: entry for series, entry in self._entries.items() if entry.seen_at_seconds >= before_seconds
        }
