"""The benchmark of learned profiles: two ways on from one past."""

from __future__ import annotations

from dataclasses import replace

from profile_gain.learning import Arrivals
from profile_gain.whole_loop import COMPRESSED, NAME, WHOLE, LoopCase, run_days, stage_of, twin_of

from storm_operator.core.settings import Forecast

CASE = LoopCase(0, 1, 1, replace(COMPRESSED, seconds=300.0, step_seconds=2.0))


def test_a_twin_goes_on_as_the_other_does_and_apart_from_it() -> None:
    past = Arrivals(NAME)
    stage = stage_of(CASE, past)
    run_days(stage, CASE, Forecast.LINE, 1)
    twin, seen = twin_of(stage, past)
    before = len(past.points["split"][0])
    run_days(stage, CASE, Forecast.LINE, 1)
    assert len(seen.points["split"][0]) == before < len(past.points["split"][0])
    run_days(twin, CASE, Forecast.LINE, 1)
    assert seen == past
    assert twin.report("even") == stage.report("even")


def test_cases_are_told_apart_after_they_were_sent_to_a_process() -> None:
    sent = replace(CASE, days=replace(COMPRESSED))
    assert (sent.part, replace(CASE, days=replace(WHOLE)).part) == (
        "whole loop, compressed days",
        "whole loop, whole days",
    )
