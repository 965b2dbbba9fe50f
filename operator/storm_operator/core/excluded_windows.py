"""Whether a moment lies in a time in which no plan is applied, but for the way back of one that did harm."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from storm_operator.core.cron import parse_cron
from storm_operator.core.settings import ExcludedWindow

MINUTE = timedelta(minutes=1)
FOLLOWED_WINDOWS = 50
"""So many windows in a row are looked at: some follow one another for ever."""


def window_over(windows: Iterable[ExcludedWindow], at_seconds: float) -> tuple[ExcludedWindow, float] | None:
    """The first of `windows` that the Unix time `at_seconds` lies in, and when no window is over it any more.

    That is infinity where windows follow one another without a gap for as far as anybody looks.
    """
    windows = tuple(windows)
    over = [(window, end) for window in windows if (end := _end(window, at_seconds)) is not None]
    if not over:
        return None
    first, _ = over[0]
    free_at = max(end for _, end in over)
    for _ in range(FOLLOWED_WINDOWS):
        later = max((end for window in windows if (end := _end(window, free_at)) is not None), default=None)
        if later is None:
            return first, free_at
        free_at = later
    return first, math.inf


def _end(window: ExcludedWindow, at_seconds: float) -> float | None:
    """None where it is not over `at_seconds`."""
    began = _last_begin(window, int(at_seconds // 60))
    if began is None or at_seconds >= began + window.duration_seconds:
        return None
    return began + window.duration_seconds


def zone_named(name: str) -> tzinfo:
    """The time zone by its IANA name. Raises ValueError when there is none."""
    if name == "UTC":  # known without a time zone database
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # OSError: the name is that of a folder, e.g. Europe
        raise ValueError(f"there is no time zone {name!r}; its IANA name is expected, e.g. Europe/Berlin") from error


@lru_cache(maxsize=256)
def _last_begin(window: ExcludedWindow, minute: int) -> float | None:
    """Unix time of the last begin that can still reach into `minute` (counted since 1970).

    What was to begin within the hour that clocks skip begins at its end, as crontab has it.
    """
    schedule, zone = parse_cron(window.cron), zone_named(window.time_zone)
    local = _on_the_clock(minute, zone)
    for begin in range(minute, minute - window.duration_seconds // 60 - 1, -1):
        before = _on_the_clock(begin - 1, zone)
        if schedule.matches(local) or any(map(schedule.matches, _skipped(before, local))):
            return begin * 60.0
        local = before
    return None


def _on_the_clock(minute: int, zone: tzinfo) -> datetime:
    return datetime.fromtimestamp(minute * 60, zone).replace(tzinfo=None)


def _skipped(before: datetime, local: datetime) -> Iterator[datetime]:
    """The minutes that a clock which shows `before` skips where a minute later it shows `local`."""
    shown = before + MINUTE
    while shown < local:
        yield shown
        shown += MINUTE
