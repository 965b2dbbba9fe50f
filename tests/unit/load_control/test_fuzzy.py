"""The fuzzy family of paper 003: a Sugeno controller of pressure, and what it moves."""

from __future__ import annotations

import re

import pytest

from control_cases import after_adjustments, cpu_of, crowded
from placement_cases import Case, placed_or_fail
from storm_operator.adapters.resource_schema import InvalidResource
from storm_operator.adapters.resource_settings import checked_section, scheduling_settings
from storm_operator.core.model import Assignment
from storm_operator.core.placement.fuzzy import PARAMETERS, place_fuzzy, pressure, trend_a_minute

DEFAULTS = {name: parameter.default for name, parameter in PARAMETERS.items()}


def place(case: Case) -> Assignment:
    return placed_or_fail(place_fuzzy(case.snapshot, case.demand, case.settings))


@pytest.mark.parametrize(
    ("utilisation", "trend", "expected"),
    [
        (0.3, 0.0, -1.0),  # the nine rules, each alone
        (0.0, -9.0, -1.0),
        (0.1, 9.0, -0.5),
        (0.6, -0.2, -0.5),
        (0.6, 0.0, 0.0),
        (0.6, 0.2, 0.5),
        (0.9, -0.2, 0.0),
        (1.0, 0.0, 1.0),
        (1.2, 0.5, 1.0),
        (0.75, 0.0, 0.5),  # half medium, half high
        (0.45, 0.1, -0.25),  # four rules, a quarter each: -1, -0.5, 0 and 0.5
    ],
)
def test_pressure_by_the_rule_table(utilisation: float, trend: float, expected: float) -> None:
    assert pressure(utilisation, trend, DEFAULTS) == pytest.approx(expected)


def test_pressure_never_falls_with_utilisation_or_trend() -> None:
    steps = [at / 20 for at in range(25)]
    for fixed in (-0.3, -0.1, 0.0, 0.1, 0.3):
        by_level = [pressure(level, fixed, DEFAULTS) for level in steps]
        assert by_level == sorted(by_level)
    for level in (0.2, 0.5, 0.7, 0.95):
        by_trend = [pressure(level, step - 0.6, DEFAULTS) for step in steps]
        assert by_trend == sorted(by_trend)


def test_the_trend_is_the_slope_of_what_was_measured() -> None:
    case = crowded(past={"s1": [500.0, 600.0, 700.0, 800.0]})  # 900 now: 100 millicores more every 10 s
    assert trend_a_minute(case.snapshot, "s1", 1000.0, 5) == pytest.approx(0.6)
    assert trend_a_minute(case.snapshot, "s2", 1000.0, 5) == 0.0  # one period is no trend


def test_an_overloaded_supervisor_is_relieved_and_idle_ones_take_it() -> None:
    case = crowded()
    after = place(case)
    assert cpu_of(after, {}, "s1") == 630.0  # 30% of 900 less
    assert cpu_of(after, {}, "s2") + cpu_of(after, {}, "s3") == 270.0


def test_it_comes_to_rest_below_high_and_stays() -> None:
    case = after_adjustments(place_fuzzy, crowded(), 10, {})
    assert cpu_of(case.snapshot.assignment, {}, "s1") < 700.0
    assert place(case) == case.snapshot.assignment


def test_rising_load_is_relieved_where_steady_load_of_the_same_height_is_not() -> None:
    def moves(past: list[float]) -> bool:
        case = crowded(past={"s1": past}, medium=0.9, high=1.0)
        return bool(place(case) != case.snapshot.assignment)

    assert not moves([900.0] * 4)
    assert moves([100.0, 300.0, 500.0, 700.0])


def test_where_everyone_is_under_pressure_nobody_can_take() -> None:
    case = crowded(other={"s2": 900.0, "s3": 900.0})
    assert place(case) == case.snapshot.assignment


@pytest.mark.parametrize("case", [crowded(now_seconds=1019.0), crowded(least_pressure=1.0)])
def test_between_adjustments_and_below_the_least_pressure_nothing_moves(case: Case) -> None:
    assert place(case) == case.snapshot.assignment


@pytest.mark.parametrize("low", [0.6, 0.7])
def test_levels_that_do_not_ascend_are_refused_where_they_are_read(low: float) -> None:
    """Not at the first plan: what `storm-operator check` finds right is to be planned with."""
    says = f"spec.scheduling.parameters: low = {low:g}, medium = 0.6, high = 0.9: each must be above the one before"
    with pytest.raises(InvalidResource, match=re.escape(says)):
        scheduling_settings(checked_section("scheduling", {"policy": "fuzzy", "parameters": {"low": low}}))
    case = crowded(low=low)
    with pytest.raises(ValueError, match="each must be above the one before"):
        place_fuzzy(case.snapshot, case.demand, case.settings)
