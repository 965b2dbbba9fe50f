"""How `evaluate` tells what plans changed."""

from __future__ import annotations

from datetime import date

import pytest

from storm_pipeline.jobs.evaluate import change, no_plan_in


@pytest.mark.parametrize(
    ("percent", "told"),
    [
        (None, "-"),
        (-100.0, "-100%"),
        (-99.99, "-99.9%"),
        (-99.52, "-99.5%"),
        (-98.6, "-99%"),
        (0.0, "+0%"),
        (12.4, "+12%"),
    ],
)
def test_what_is_not_wholly_gone_is_not_said_to_be(percent: float | None, told: str) -> None:
    assert change(percent) == told


@pytest.mark.parametrize(
    ("first", "last", "when"),
    [
        (None, None, ""),
        (date(2026, 1, 30), None, " from 2026-01-30"),
        (date(2026, 1, 30), date(2026, 1, 31), " from 2026-01-30 up to 2026-01-31"),
    ],
)
def test_where_no_plan_was_recorded_it_is_said_of_when(first: date | None, last: date | None, when: str) -> None:
    said = f"policies of blue: no plan was recorded{when}, so what plans bring is unknown"
    assert no_plan_in("blue", first, last) == said
