"""What `storm-pipeline forecast` says of seasons under its table."""

from __future__ import annotations

import pytest

from storm_pipeline.jobs.forecast import seasons_in_words

DAY_SECONDS = 86_400.0


def test_a_season_that_is_not_the_best_forecaster_is_told_apart_from_none() -> None:
    said = seasons_in_words([True] * 12, [True] * 2 + [False] * 10, DAY_SECONDS)
    assert said.startswith("12 of 12 components have a season. With the published profile")
    assert "the operator forecasts 2 of them by it" in said
    assert "The other 10 stay with the forecaster of its settings" in said


@pytest.mark.parametrize("known", [0, 1])
def test_what_a_season_takes_is_told_where_a_component_has_none(known: int) -> None:
    has_season = [number < known for number in range(2)]
    said = seasons_in_words(has_season, has_season, DAY_SECONDS)
    assert said.startswith(f"{known} of 2 components have a season; it takes 4 whole cycles of history (96 hours)")
    assert ("forecasts 1 of them by it" in said) == (known == 1)
    assert "The other" not in said
