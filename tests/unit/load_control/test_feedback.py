"""The feedback family of paper 003: a controller that relieves supervisors above the set point."""

from __future__ import annotations

from dataclasses import replace

import pytest

from control_cases import EACH, after_adjustments, cpu_of, crowded, measured
from placement_cases import Case, placed_or_fail
from storm_operator.core.model import Assignment
from storm_operator.core.placement.feedback import place_feedback


def place(case: Case) -> Assignment:
    return placed_or_fail(place_feedback(case.snapshot, case.demand, case.settings))


def test_an_overloaded_supervisor_is_relieved_to_the_set_point() -> None:
    """900 millicores on one of three: the set point is 300, which six of ten executors are above."""
    case = crowded(past={"s1": [900.0] * 4})
    assert [cpu_of(place(case), {}, name) for name in ("s1", "s2", "s3")] == [360.0, 270.0, 270.0]


def test_a_spike_counts_in_part() -> None:
    """Half of the error (600), and a fifth of the other half: 360 of 900 millicores leave, in executors of 90."""
    case = crowded(past={"s1": [300.0] * 4})
    assert cpu_of(place(case), {}, "s1") == 900.0 - 4 * EACH


def test_what_lasted_before_the_last_adjustment_does_not_count_twice() -> None:
    relieved = crowded(past={"s1": [900.0] * 4}, integral_gain=1.0)
    first = place(relieved)
    again = measured(relieved.in_force(first), {}, {"s1": [900.0] * 4})
    assert place(again) == first


def test_it_comes_to_rest_within_the_dead_band_and_stays() -> None:
    other = {"s2": 200.0}
    case = after_adjustments(place_feedback, crowded(other=other, count=4), 6, other)
    used = [cpu_of(case.snapshot.assignment, other, m.id) for m in case.snapshot.supervisors]
    assert max(used) <= sum(used) / 4 + 100.0
    assert place(case) == case.snapshot.assignment


def test_load_that_is_not_storms_counts_as_well() -> None:
    case = crowded(other={"s2": 900.0}, past={"s1": [900.0] * 4})
    assert cpu_of(place(case), {}, "s2") == 0.0


@pytest.mark.parametrize("case", [crowded(now_seconds=1019.0), crowded(dead_band=0.7)])
def test_between_adjustments_and_within_the_dead_band_nothing_moves(case: Case) -> None:
    assert place(case) == case.snapshot.assignment


def test_periods_that_nobody_measured_do_not_count_as_idle() -> None:
    case = crowded(past={"s2": [0.0] * 4})  # s1 was not measured then
    blind = tuple(period for period in case.snapshot.history if "s1" in period.supervisor_cpu_millicores)
    forgetful = replace(case, snapshot=replace(case.snapshot, history=blind))
    assert place(case) == place(forgetful)
