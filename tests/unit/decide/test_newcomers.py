"""Nobody is moved, for what it saves, to where a topology was submitted a moment ago that was hardly measured yet."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import pytest

from builders import (
    NOW_SECONDS,
    chain_topology,
    component_load,
    even_traffic,
    history,
    placed,
    placement_settings,
    same_demand,
    snapshot,
    supervisors,
)
from storm_operator.core.decide import DecisionMemory, decide
from storm_operator.core.decision import Decision, Hold, HoldReason, Plan, PlanCause
from storm_operator.core.model import Assignment, submitted_at_seconds
from storm_operator.core.settings import SchedulingSettings, Trigger

LINE = chain_topology("line", ("spout", 1), ("a", 2), ("b", 1))
APART = placed(LINE, {"spout": "s2", "a": ["s2", "s3"], "b": "s2:6701"})
TOGETHER = {"spout": "s1:6702", "a": "s1:6702", "b": "s1:6702"}
MINE = history("line", {name: [component_load(100)] * 3 for name in ("spout", "a", "b")})


def decision(
    submitted_seconds_ago: float = 20.0,
    at: str = "s1",
    periods: int = 0,
    demand_millicores: float = 100.0,
    target: Mapping[str, str | Sequence[str]] = TOGETHER,
    **scheduling: object,
) -> Decision:
    """What becomes of gathering the line at `target`; another topology runs at `at`, measured for so many periods."""
    other = chain_topology(f"news-7-{NOW_SECONDS - submitted_seconds_ago:.0f}", ("source", 1), ("sink", 1))
    theirs = history(other.id, {name: [component_load(100)] * 3 for name in ("source", "sink")})
    both = tuple(
        dataclasses.replace(mine, components={**mine.components, **(other.components if number >= 3 - periods else {})})
        for number, (mine, other) in enumerate(zip(MINE, theirs, strict=True))
    )
    seen = snapshot(
        [LINE, other],
        supervisors(3),
        {**APART, **placed(other, {"source": at, "sink": at})},
        rates=even_traffic(LINE, 1000),
        periods=both,
    )
    rules = dataclasses.replace(SchedulingSettings(), **scheduling)  # type: ignore[arg-type]
    return decide(
        seen,
        same_demand([LINE], demand_millicores),
        Assignment(placed(LINE, target)),
        placement_settings([LINE], scheduling=rules),
        DecisionMemory(),
        now_seconds=NOW_SECONDS,
        plan_id="p-1",
    )


@pytest.mark.parametrize("periods", [0, 1, 2])
def test_a_saving_waits_until_the_newcomer_is_measured(periods: int) -> None:
    made = decision(periods=periods)
    assert isinstance(made, Hold)
    assert made.reason is HoldReason.WARMING_UP
    news = f"news-7-980 on 10.77.0.11 was submitted lately and measured for {periods} of 3 periods"
    assert made.message == f"{news} (proposed: moves 4 executors, restarts 1 worker)"


def test_once_it_is_measured_it_does_not() -> None:
    assert isinstance(decision(periods=3), Plan)


def test_one_that_has_run_for_long_and_is_not_measured_holds_nobody_for_ever() -> None:
    assert isinstance(decision(submitted_seconds_ago=119.0), Hold)
    assert isinstance(decision(submitted_seconds_ago=121.0), Plan)


def test_one_elsewhere_is_not_in_the_way() -> None:
    assert isinstance(decision(at="s2"), Plan)


def test_a_supervisor_that_is_overloaded_is_relieved_at_once() -> None:
    """Three executors of 400 millicores are more than the supervisor has; one of them goes beside the newcomer."""
    made = decision(demand_millicores=400.0, target={"spout": "s2", "a": ["s2", "s3"], "b": "s1:6702"})
    assert isinstance(made, Plan)
    assert made.cause is PlanCause.OVERLOAD


def test_a_policy_that_goes_by_its_own_trigger_is_not_held() -> None:
    assert isinstance(decision(trigger=Trigger.POLICY), Plan)


def test_a_clock_of_nimbus_that_is_ahead_by_a_little_tells_of_a_newcomer_and_one_by_years_of_nothing() -> None:
    assert isinstance(decision(submitted_seconds_ago=-5.0), Hold)
    assert isinstance(decision(submitted_seconds_ago=-500_000.0), Plan)


@pytest.mark.parametrize(
    ("topology_id", "seconds"), [("words-3-1700000000", 1.7e9), ("words", None), ("a-b-c", None), ("words-1", None)]
)
def test_the_time_of_submission_stands_in_the_id(topology_id: str, seconds: float | None) -> None:
    assert submitted_at_seconds(topology_id) == seconds
