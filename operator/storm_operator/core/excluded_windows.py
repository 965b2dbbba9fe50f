"""Whether a moment lies in a time in which no plan is applied."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from storm_operator.core.cron import parse_cron
from storm_operator.core.settings import ExcludedWindow


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
    """Unix time of the last begin that can still reach into `minute` (counted since 1970)."""
    schedule, zone = parse_cron(window.cron), zone_named(window.time_zone)
    for begin in range(minute, minute - window.duration_seconds // 60 - 1, -1):
        if schedule.matches(datetime.fromtimestamp(begin * 60, zone)):
            return begin * 60.0
    return None
