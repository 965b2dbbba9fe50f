"""Cron expressions, and the windows that begin by them."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from storm_operator.core.cron import InvalidCron, parse_cron
from storm_operator.core.excluded_windows import window_over, zone_named
from storm_operator.core.settings import ExcludedWindow

HOUR = 3600.0


def at(text: str, zone: str = "UTC") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


@pytest.mark.parametrize(
    ("cron", "matching", "other"),
    [
        ("* * * * *", "2024-02-29T13:37", None),
        ("30 8 * * *", "2024-05-01T08:30", "2024-05-01T08:31"),
        ("*/15 * * * *", "2024-05-01T08:45", "2024-05-01T08:50"),
        ("5/20 * * * *", "2024-05-01T08:45", "2024-05-01T08:40"),
        ("0 8-18/2 * * *", "2024-05-01T18:00", "2024-05-01T17:00"),
        ("0 8,20 * * *", "2024-05-01T20:00", "2024-05-01T09:00"),
        ("0 0 29 2 *", "2024-02-29T00:00", "2024-03-29T00:00"),
        ("0 0 * jan-mar *", "2024-03-01T00:00", "2024-04-01T00:00"),
        ("0 0 * * MON-FRI", "2024-05-03T00:00", "2024-05-04T00:00"),
        ("0 0 * * 0", "2024-05-05T00:00", "2024-05-06T00:00"),
        ("0 0 * * 7", "2024-05-05T00:00", "2024-05-06T00:00"),
        ("0 0 * * 5-7", "2024-05-05T00:00", "2024-05-06T00:00"),
        # Both days restricted: either is enough (the 13th is a Monday, the 17th a Friday).
        ("0 0 13 * FRI", "2024-05-13T00:00", "2024-05-14T00:00"),
        ("0 0 13 * FRI", "2024-05-17T00:00", "2024-05-16T00:00"),
        ("0 0 */2 * FRI", "2024-05-17T00:00", "2024-05-15T00:00"),
    ],
)
def test_a_minute_matches_or_not(cron: str, matching: str, other: str | None) -> None:
    schedule = parse_cron(cron)
    assert schedule.matches(datetime.fromisoformat(matching))
    assert other is None or not schedule.matches(datetime.fromisoformat(other))


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("0 8 * *", "has 4 fields"),
        ("60 8 * * *", "minute is '60': 0 to 59"),
        ("0 24 * * *", "hour is '24': 0 to 23"),
        ("0 8 0 * *", "day of month is '0': 1 to 31"),
        ("0 8 * 13 *", "month is '13': 1 to 12 or JAN to DEC"),
        ("0 8 * * 8", "day of week is '8': 0 to 7 or SUN to SAT"),
        ("0 8 * * FUNDAY", "day of week is 'FUNDAY'"),
        ("0 18-8 * * *", "hour is '18-8': a range begins with its smaller end"),
        ("*/0 8 * * *", "minute is '\\*/0': the step"),
        ("*/x 8 * * *", "the step behind /"),
        ("1,,2 8 * * *", "minute is ''"),
        ("-5 8 * * *", "minute is ''"),
        ("² 8 * * *", "minute is '²'"),
    ],
)
def test_what_is_no_cron_expression_is_said_by_field(cron: str, words: str) -> None:
    with pytest.raises(InvalidCron, match=words):
        parse_cron(cron)


NIGHT = ExcludedWindow("0 22 * * *", 8 * 3600)


@pytest.mark.parametrize(
    ("moment", "end"),
    [
        ("2024-05-01T21:59:59", None),
        ("2024-05-01T22:00:00", "2024-05-02T06:00"),
        ("2024-05-02T00:30:00", "2024-05-02T06:00"),
        ("2024-05-02T05:59:59", "2024-05-02T06:00"),
        ("2024-05-02T06:00:00", None),
    ],
)
def test_a_window_lasts_from_its_begin_to_before_its_end(moment: str, end: str | None) -> None:
    assert window_over([NIGHT], at(moment)) == (None if end is None else (NIGHT, at(end)))


def test_a_window_begins_in_its_own_time_zone() -> None:
    assert zone_named("UTC") is UTC, "whatever the machine's own is"
    berlin = ExcludedWindow("0 8 * * *", 3600, "Europe/Berlin")
    assert window_over([berlin], at("2024-07-01T06:30")) is not None
    assert window_over([berlin], at("2024-07-01T08:30")) is None
    assert window_over([berlin], at("2024-01-01T07:30")) is not None


def test_what_begins_in_an_hour_that_clocks_skip_begins_at_its_end_and_in_the_doubled_one_twice() -> None:
    early = ExcludedWindow("30 2 * * *", 60, "Europe/Berlin")
    spring = datetime(2024, 3, 31, tzinfo=UTC).timestamp()
    autumn = datetime(2024, 10, 27, tzinfo=UTC).timestamp()
    begins = [[s for s in range(0, 6 * 3600, 60) if window_over([early], day + s)] for day in (spring, autumn)]
    assert begins == [[60 * 60], [30 * 60, 90 * 60]]


def test_a_night_whose_midnight_is_skipped_is_excluded_all_the_same() -> None:
    cairo = ExcludedWindow("0 0 * * *", 5 * 3600, "Africa/Cairo")
    one = at("2024-04-26T01:00", "Africa/Cairo")  # the minute after 23:59
    assert window_over([cairo], one - 1.0) is None
    assert window_over([cairo], one) == (cairo, one + 5 * HOUR)


def test_a_window_that_begins_anew_while_it_lasts_never_ends() -> None:
    every_hour = ExcludedWindow("0 * * * *", 2 * 3600)
    assert window_over([every_hour], at("2024-05-01T08:10")) == (every_hour, math.inf)
    by_day = ExcludedWindow("0 8-16 * * *", 2 * 3600)
    assert window_over([by_day], at("2024-05-01T08:10")) == (by_day, at("2024-05-01T18:00"))


@pytest.mark.parametrize("next_begin", ["0 5 * * *", "0 6 * * *"], ids=["overlap", "touch"])
def test_windows_without_a_gap_between_them_end_together(next_begin: str) -> None:
    early = ExcludedWindow(next_begin, 4 * 3600)
    end = at("2024-05-02T10:00") if next_begin.startswith("0 6") else at("2024-05-02T09:00")
    for windows in ([NIGHT, early], [early, NIGHT]):
        assert window_over(windows, at("2024-05-02T03:00")) == (NIGHT, end)


def test_a_length_that_is_no_whole_number_of_minutes_holds_to_the_second() -> None:
    short = ExcludedWindow("0 8 * * *", 90)
    assert window_over([short], at("2024-05-01T08:01:29")) is not None
    assert window_over([short], at("2024-05-01T08:01:30")) is None


def test_a_week_long_window_and_none_at_all() -> None:
    week = ExcludedWindow("0 0 1 * *", 7 * 24 * 3600)
    assert window_over([week], at("2024-05-07T12:00")) == (week, at("2024-05-08T00:00"))
    assert window_over([NIGHT, week], at("2024-05-07T12:00")) == (week, at("2024-05-08T06:00"))
    assert window_over([NIGHT, week], at("2024-05-08T12:00")) is None
    assert window_over([], at("2024-05-08T12:00")) is None
