"""What --from and --to of the pipeline's jobs may say."""

from __future__ import annotations

from datetime import date

import pytest
import typer

from storm_pipeline.options import parse_dates


def test_both_may_be_absent_or_the_same() -> None:
    assert parse_dates(None, None) == (None, None)
    assert parse_dates("2026-01-31", "2026-01-31") == (date(2026, 1, 31), date(2026, 1, 31))
    assert parse_dates(None, "2026-01-31") == (None, date(2026, 1, 31))


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
