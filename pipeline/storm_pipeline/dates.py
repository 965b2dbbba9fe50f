"""Which dates of a history a job goes through."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

Bounds = tuple[date | None, date | None]
"""First and last date, both included; None: no bound."""


@dataclass(frozen=True, slots=True)
class Dates:
    """What --from, --to and --days say. `days` counts back from the last date, or from the newest there is by then."""

    first: date | None = None
    last: date | None = None
    days: int | None = None

    def of(self, newest: date) -> Bounds:
        """Those of a history whose newest date is `newest`.

        That, and not today's, since a history that has ended, or has gaps, would else have nothing left to learn from.
        """
        if self.days is None:
            return self.first, self.last
        end = newest if self.last is None else min(self.last, newest)
        return days_before(end, self.days - 1), end


ALL_DATES = Dates()


def days_before(day: date, days: int) -> date:
    """The first day of all at the earliest."""
    return date.fromordinal(max(date.min.toordinal(), day.toordinal() - days))


def is_between(day: date, bounds: Bounds) -> bool:
    """Whether `day` is one of them."""
    first, last = bounds
    return (first is None or day >= first) and (last is None or day <= last)
