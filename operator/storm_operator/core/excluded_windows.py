"""Whether a moment lies in a time in which no plan is applied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from storm_operator.core.cron import parse_cron
from storm_operator.core.settings import ExcludedWindow

MINUTE = timedelta(minutes=1)


def window_over(windows: Iterable[ExcludedWindow], at_seconds: float) -> tuple[ExcludedWindow, float] | None:
    """The first of `windows` that the Unix time `at_seconds` lies in, and the Unix time of its end."""
    for window in windows:
        began = _last_begin(window, int(at_seconds // 60))
        if began is not None and at_seconds < began + window.duration_seconds:
            return window, began + window.duration_seconds
    return None


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
