"""What `storm-pipeline traffic` says at its end."""

from __future__ import annotations

import pytest

from storm_pipeline.jobs.traffic import outcome


@pytest.mark.parametrize(
    ("made", "there", "said"),
    [
        (0, 0, "traffic: there is no cleaned history of such dates: nothing made"),
        (2, 2, "traffic: 2 of 2 days made"),
        (1, 3, "traffic: 1 of 3 days made; 2 had not changed"),
    ],
)
def test_what_was_made_and_what_was_not(made: int, there: int, said: str) -> None:
    assert outcome(made, there) == said
