"""Which past periods are kept: as many as any setting may look back over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import chain_topology, component_load, history, snapshot, supervisors
from storm_operator.adapters.resource_schema import topology_schema
from storm_operator.core.load_history import (
    KEPT_PERIODS,
    each_since,
    executors_needed,
    load_period,
    periods_seen,
    with_period,
)
from storm_operator.core.model import ExecutorLoad
from storm_operator.core.placement.aniello_online import PARAMETERS
from storm_operator.core.placement.triggers import seconds_at_bound
from storm_operator.core.snapshot import LoadPeriod

NOW = 100_000.0


def kept(period_seconds: float, passes: int = 1000) -> tuple[LoadPeriod, ...]:
    history: tuple[LoadPeriod, ...] = ()
    for age in range(passes - 1, -1, -1):
        period = LoadPeriod(NOW - age * period_seconds, period_seconds, {}, {"s1": 1000.0})
        history = with_period(history, period)
    return history


@pytest.mark.parametrize(("period_seconds", "periods"), [(1.0, 600), (7.0, 86), (10.0, 60), (60.0, 60)])
def test_the_last_sixty_periods_are_kept_and_all_of_the_last_ten_minutes(period_seconds: float, periods: int) -> None:
    assert len(kept(period_seconds)) == periods


@pytest.mark.parametrize("percent", range(1, 101))
def test_a_share_of_executors_that_is_met_exactly_is_met(percent: int) -> None:
    """As numbers have it, 0.55 * 100 is more than 55."""
    assert executors_needed(percent / 100, 100) == percent
    assert executors_needed(percent / 100, 200) == 2 * percent


def test_a_period_counts_in_which_just_as_many_were_measured_as_must_be() -> None:
    many = chain_topology("words", ("spout", 1), ("split", 99))
    loads = dict.fromkeys(many.executors[:55], ExecutorLoad(100.0, 300.0, 300.0, 300.0, 0.0, 0.0))
    assert load_period([many], loads, {}, NOW, 10.0, {many.id: 0.55}) is not None
    assert load_period([many], loads, {}, NOW, 10.0, {many.id: 0.56}) is None


def test_what_was_measured_of_a_topology_before_it_counts_is_left_out_and_of_others_it_stays() -> None:
    load = component_load(100)
    periods = tuple(
        LoadPeriod(NOW + 10.0 * at, 10.0, {("words", "spout"): load, ("others", "spout"): load}, {}) for at in range(3)
    )
    kept = each_since(periods, {"words": NOW})
    assert [sorted(owner for owner, _ in period.components) for period in kept] == [
        ["others"],
        ["others", "words"],
        ["others", "words"],
    ]
    assert each_since(periods, {"words": NOW + 20.0, "others": NOW + 20.0}) == ()
    assert each_since(periods, {}) == periods


@pytest.mark.parametrize("setting", ["historyPeriods", "minimumPeriods"])
def test_no_setting_may_ask_for_more_periods_than_are_kept(setting: str) -> None:
    scheduling = topology_schema()["properties"]["spec"]["properties"]["scheduling"]["properties"]
    assert scheduling[setting]["maximum"] <= KEPT_PERIODS


@pytest.mark.parametrize("period_seconds", [1.0, 7.0, 10.0, 30.0])
def test_the_longest_overload_that_may_be_asked_for_is_seen(period_seconds: float) -> None:
    seen = replace(snapshot((), supervisors(1, capacity=1000.0)), history=kept(period_seconds))
    assert seconds_at_bound(seen, "s1", 1000.0) > PARAMETERS["overload_seconds"].most


def test_a_period_without_anything_measured_changes_nothing() -> None:
    history = kept(10.0)
    assert with_period(history, None) == history


def test_periods_that_were_seen_are_those_of_the_topology_that_came_last() -> None:
    own = history("words", {"spout": [component_load(300.0)] * 3})
    others = history("others", {"spout": [component_load(300.0)] * 20})
    assert periods_seen((*others, *own), ["words"]) == 3
    assert periods_seen((*others, *own), ["words", "others"]) == 3
    assert periods_seen(others, ["words"]) == 20, "whom nobody measures is held for that, or not at all"
