"""Tables of the report: what a person reads of a frame."""

from __future__ import annotations

import pandas as pd

from storm_pipeline.reporting.texts import cells, heads


def test_columns_that_say_nothing_are_left_out() -> None:
    frame = pd.DataFrame({"component": ["split"], "hour_of_week": [None], "used_millicores": [12.0]})
    assert heads(frame) == ["component", "used millicores"]
    assert cells(frame) == [["split", "12"]]


def test_values_are_told_in_words() -> None:
    frame = pd.DataFrame(
        {
            "is_winner": [True, False],
            "spread": [1.092e-14, 0.25],
            "missing": [None, 3.0],
            "reasons": [{}, {"too late": 2}],
        }
    )
    assert cells(frame) == [["yes", "0", "-", "none"], ["no", "0.25", "3", "too late: 2"]]
