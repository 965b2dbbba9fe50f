"""What --from, --to and --days of the pipeline's jobs may say, and which dates they choose."""

from __future__ import annotations

from datetime import date

import pytest
import typer

from storm_pipeline.dates import Bounds, Dates, days_before
from storm_pipeline.lake import Day, within
from storm_pipeline.options import parse_dates

NEWEST = date(2026, 3, 2)


def test_both_may_be_absent_or_the_same() -> None:
    assert parse_dates(None, None) == Dates()
    assert parse_dates("2026-01-31", "2026-01-31") == Dates(date(2026, 1, 31), date(2026, 1, 31))
    assert parse_dates(None, "2026-01-31", 7) == Dates(None, date(2026, 1, 31), 7)


@pytest.mark.parametrize(
    ("first", "last", "days", "chosen"),
    [
        (None, None, None, (None, None)),
        ("2026-01-31", None, None, (date(2026, 1, 31), None)),
        ("2026-01-01", "2026-01-31", None, (date(2026, 1, 1), date(2026, 1, 31))),
        (None, None, 1, (NEWEST, NEWEST)),
        (None, None, 3, (date(2026, 2, 28), NEWEST)),
        (None, "2026-01-31", 31, (date(2026, 1, 1), date(2026, 1, 31))),
        (None, "2027-01-01", 2, (date(2026, 3, 1), NEWEST)),
    ],
)
def test_days_are_counted_back_from_the_last_date_or_from_the_newest(
    first: str | None, last: str | None, days: int | None, chosen: Bounds
) -> None:
    assert parse_dates(first, last, days).of(NEWEST) == chosen


def test_there_is_no_day_before_the_first_of_all() -> None:
    assert Dates(None, date(50, 1, 1), 36_500).of(NEWEST) == (date.min, date(50, 1, 1))
    assert days_before(date.min, 1) == date.min


def test_each_cluster_has_its_own_newest_date() -> None:
    retired = [Day("blue", date(2025, 1, day)) for day in (1, 2, 4)]
    present = [Day("red", date(2026, 3, day)) for day in (1, 2)]
    assert within([*retired, *present], Dates(days=2)) == (retired[2], *present)
    assert within([*retired, *present], Dates(last=date(2025, 1, 2))) == tuple(retired[:2])
    assert within([*retired, *present], Dates()) == (*retired, *present)
    assert within([], Dates(days=2)) == ()


def test_days_and_from_exclude_each_other() -> None:
    with pytest.raises(
        typer.BadParameter, match="--days: it says where to begin, and so does --from; give one of them"
    ):
        parse_dates("2026-01-31", None, 7)


@pytest.mark.parametrize(
    ("first", "last", "said"),
    [
        ("31.1.2026", None, "--from: '31.1.2026' must be a date like 2026-01-31"),
        (None, "tomorrow", "--to: 'tomorrow' must be a date like 2026-01-31"),
        ("2026-02-01", "2026-01-31", "--to: 2026-01-31 is before --from 2026-02-01"),
    ],
)
def test_what_is_wrong_is_named(first: str | None, last: str | None, said: str) -> None:
    with pytest.raises(typer.BadParameter) as refused:
        parse_dates(first, last)
    assert said in str(refused.value)
