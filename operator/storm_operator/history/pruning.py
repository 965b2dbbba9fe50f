"""What is deleted of published history: the oldest, beyond an age in days and a size in bytes."""

from __future__ import annotations

import math
import posixpath
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from storm_operator.history.at_once import at_once
from storm_operator.history.files import Files

AGREEING_DATES = 2
USUAL_DAYS = 4
"""A date that has not so many others within so many days before it may be that of a clock that is wrong."""
PRUNED_SHARE = 0.01
"""Of what is kept at most, in bytes: so much more is published before it is looked at again on the same day."""


@dataclass(slots=True)
class Pruning:
    """Of the history of one cluster: folders of `tables`, below each of which is one for each date. None: no bound."""

    files: Files
    tables: tuple[str, ...]
    keep_bytes: int | None
    keep_days: float | None
    _pruned_for: str = ""
    _published_bytes: int = 0

    def note(self, published_bytes: int) -> None:
        """So much has been published."""
        self._published_bytes += published_bytes

    def look(self, newest_date: str) -> None:
        """Prune, once for a date or after much was published: to list all of it takes an object store a while."""
        most = self.keep_bytes
        is_more = most is not None and self._published_bytes > PRUNED_SHARE * most
        if newest_date != self._pruned_for or is_more:
            self.prune(newest_date)
            self._pruned_for, self._published_bytes = newest_date, 0

    def prune(self, newest_date: str) -> int:
        """Delete the oldest files beyond age (counted from `newest_date`) and size; returns how many went.

        A clock that is wrong for a while makes nothing old: a `newest_date` far beyond all others does not count.
        """
        if self.keep_bytes is None and self.keep_days is None:
            return 0
        days = self._published_days()
        oldest = self._oldest_kept(_sure_date(newest_date, days))
        most = math.inf if self.keep_bytes is None else self.keep_bytes
        beyond = sum(day.bytes for day in days.values()) - most
        gone = 0
        for date, day in sorted(days.items()):
            too_old = oldest is not None and date < oldest
            if not (too_old or beyond > 0):
                break
            if too_old or beyond >= day.bytes:
                for folder in sorted(day.folders):
                    self.files.delete(folder)
                gone += day.files
            else:
                gone += self._delete_oldest(day, beyond)
            beyond -= day.bytes
        return gone

    def _delete_oldest(self, day: _Day, least_bytes: float) -> int:
        """Files of a date, of large tables last, until so many bytes are gone; returns how many files those were."""
        found = [file for folder in day.folders for file in self.files.below(folder)]
        chosen: list[str] = []
        for path, size in sorted(found, key=lambda one: (posixpath.basename(one[0]), one[0])):
            if least_bytes <= 0:
                break
            chosen.append(path)
            least_bytes -= size
        at_once(self.files.delete, chosen)
        return len(chosen)

    def _oldest_kept(self, newest_date: str) -> str | None:
        if self.keep_days is None:
            return None
        try:
            return f"{_midnight(newest_date) - timedelta(days=self.keep_days):%Y-%m-%d}"
        except OverflowError:  # longer than there are dates
            return None

    def _published_days(self) -> dict[str, _Day]:
        """What is published, by date."""
        days: dict[str, _Day] = {}
        for table in self.tables:
            for path, size in self.files.below(table):
                folder = posixpath.dirname(path)
                date = posixpath.basename(folder).removeprefix("date=")
                if _is_date(date):
                    days.setdefault(date, _Day()).note(folder, size)
        return days


@dataclass(slots=True)
class _Day:
    """How much is published of a date, and where."""

    folders: set[str] = field(default_factory=set)
    files: int = 0
    bytes: int = 0

    def note(self, folder: str, size: int) -> None:
        self.folders.add(folder)
        self.files += 1
        self.bytes += size


def _sure_date(newest: str, dates: Iterable[str]) -> str:
    """What days are counted from: `newest`, or an earlier date while there are too few others close before it."""
    earlier = sorted(date for date in dates if date < newest)[-AGREEING_DATES:]
    if not earlier or _midnight(newest) - _midnight(earlier[0]) <= timedelta(days=USUAL_DAYS):
        return newest
    return earlier[0]


def _midnight(date: str) -> datetime:
    return datetime.fromisoformat(date).replace(tzinfo=UTC)


def _is_date(text: str) -> bool:
    try:
        return f"{_midnight(text):%Y-%m-%d}" == text
    except ValueError:
        return False
