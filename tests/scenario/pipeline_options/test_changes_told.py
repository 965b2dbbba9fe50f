"""How `evaluate` tells what plans changed."""

from __future__ import annotations

import pytest

from storm_pipeline.jobs.evaluate import change


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
