"""Crontab's five fields (minute, hour, day of month, month, day of week) as sets of numbers.

Each field is `*`, a number, a range, or a list of these, each perhaps with a step: `*/15`, `8-18/2`, `1,15`. Months and
days of the week also go by their first three letters; 0 and 7 are Sunday. As in crontab, where both day of month and
day of week are restricted, either is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


class InvalidCron(ValueError):
    """A text that is no cron expression; the message names the field, the value and what would be right."""


@dataclass(frozen=True, slots=True)
class CronSchedule:
    """The minutes at which something begins. `weekdays` counts from Sunday, 0."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    """Day of month and day of week are both restricted."""

    def matches(self, local: datetime) -> bool:
        """Whether something begins in the minute of `local`, a time in the schedule's own zone."""
        return (
            local.minute in self.minutes
            and local.hour in self.hours
            and local.month in self.months
            and self._is_day(local)
        )

    def _is_day(self, local: datetime) -> bool:
        is_day, is_weekday = local.day in self.days, local.isoweekday() % 7 in self.weekdays
        return is_day or is_weekday if self.either_day else is_day and is_weekday


@lru_cache(maxsize=256)
def parse_cron(text: str) -> CronSchedule:
    """The schedule that `text` writes. Raises `InvalidCron`."""
    fields = text.split()
    if len(fields) != 5:
        raise InvalidCron(f"has {len(fields)} fields; minute, hour, day of month, month and day of week are needed")
    minute, hour, day, month, weekday = fields
    return CronSchedule(
        minutes=_numbers("minute", minute, 0, 59),
        hours=_numbers("hour", hour, 0, 23),
        days=_numbers("day of month", day, 1, 31),
        months=_numbers("month", month, 1, 12, MONTHS),
        weekdays=frozenset(number % 7 for number in _numbers("day of week", weekday, 0, 7, WEEKDAYS)),
        either_day=not day.startswith("*") and not weekday.startswith("*"),
    )


def _numbers(name: str, text: str, low: int, high: int, words: Sequence[str] = ()) -> frozenset[int]:
    """All numbers of a field; `words` name its numbers from `low` on."""
    found: set[int] = set()
    for part in text.split(","):
        span, slash, step = part.partition("/")
        if slash and (not step.isdecimal() or int(step) < 1):
            raise InvalidCron(f"{name} is {part!r}: the step behind / must be a whole number of 1 or more")
        first, dash, last = (str(low), "-", str(high)) if span == "*" else span.partition("-")
        begin = _number(name, first, low, high, words)
        end = _number(name, last, low, high, words) if dash else high if slash else begin
        if begin > end:
            raise InvalidCron(f"{name} is {part!r}: a range begins with its smaller end")
        found.update(range(begin, end + 1, int(step) if slash else 1))
    return frozenset(found)


def _number(name: str, text: str, low: int, high: int, words: Sequence[str]) -> int:
    if text.upper() in words:
        return low + words.index(text.upper())
    if not text.isdecimal() or not low <= int(text) <= high:
        alternative = f" or {words[0]} to {words[-1]}" if words else ""
        raise InvalidCron(f"{name} is {text!r}: {low} to {high}{alternative} is expected")
    return int(text)
