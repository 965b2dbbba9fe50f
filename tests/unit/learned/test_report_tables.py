"""Tables of the report: what a person reads of a frame."""

from __future__ import annotations

import json
from dataclasses import asdict

import pandas as pd
import pytest

from storm_operator.core.seasonal import Season
from storm_pipeline.reporting.learned import LEARNED, MOST_SEASONS
from storm_pipeline.reporting.section import Found
from storm_pipeline.reporting.texts import cells, heads
from storm_pipeline.reporting.traffic import REACH_WORDS, TRAFFIC


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


def test_what_passes_between_supervisors_is_red_whichever_else_there_is() -> None:
    frame = pd.DataFrame({"topology_id": ["words"], "window_start": [pd.Timestamp(0)], "window": ["1 minute"]})
    frame = frame.assign(tuples=[100.0], **dict.fromkeys(REACH_WORDS, 0.0))
    frame["between_workers"], frame["between_supervisors"] = 0.25, 0.75
    known = {name: Found(frame, 1, is_made=True) for name in ("reach_over_time", "reach_of_topologies")}
    plots = [plot for section in TRAFFIC[:2] for plot in section(known).plots]
    colors = [{bar.name: bar.marker.color for bar in plot.data} for plot in plots]
    assert colors == [{"between workers of a supervisor": "#636efa", "between supervisors": "#ef553b"}] * 3


@pytest.mark.parametrize(
    ("components", "cycle_seconds", "words"),
    [
        (MOST_SEASONS, 86_400.0, "What is learned of a cycle of 24 hours, bin by bin."),
        (
            MOST_SEASONS + 2,
            604_800.0,
            "What is learned of a cycle of 168 hours, bin by bin. Plots are of the first 6 of 8 components; the file "
            "beside has all.",
        ),
    ],
)
def test_seasons_say_how_long_they_are_and_how_many_have_no_plot(
    components: int, cycle_seconds: float, words: str
) -> None:
    season = json.dumps(asdict(Season(cycle_seconds, cycle_seconds / 2.0, (1.0, 2.0), (1.0, 3.0), 0.5)))
    names = [f"c{number}" for number in range(components)]
    frame = pd.DataFrame(
        {"topology_name": "words", "component": [*names, "none"], "season": [season] * components + [None]}
    )
    section = LEARNED[4]({"seasons": Found(frame, len(frame), is_made=True)})
    assert (section.name, section.words, len(section.plots)) == ("seasons", words, MOST_SEASONS)
