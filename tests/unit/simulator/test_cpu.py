"""CPU shared max-min, and waits by the formulas of queueing theory."""

from __future__ import annotations

import numpy as np
import pytest

from storm_operator.simulator.cpu import fair_levels, mean_wait_seconds, stretch_by_others, wait_behind_limit


def levels(wanted: list[float], groups: list[int], capacity: list[float]) -> list[float]:
    return [float(level) for level in fair_levels(np.array(wanted), np.array(groups), np.array(capacity))]


def test_who_wants_little_gets_it_and_the_rest_is_shared_evenly() -> None:
    assert levels([200.0, 900.0, 700.0], [0, 0, 0], [1000.0]) == [400.0]
    assert levels([800.0, 800.0], [0, 0], [1000.0]) == [500.0]


def test_nothing_is_limited_where_there_is_enough() -> None:
    assert levels([200.0, 800.0, 900.0], [0, 0, 1], [1000.0, 500.0]) == [np.inf, 500.0]


def test_members_of_no_group_take_nothing() -> None:
    assert levels([800.0, 800.0], [0, -1], [1000.0]) == [np.inf]


def test_levels_use_up_the_capacity_exactly() -> None:
    random = np.random.default_rng(5)
    wanted, group = random.random(500) * 1000.0, random.integers(0, 40, 500)
    capacity = random.random(40) * 8000.0
    level = fair_levels(wanted, group, capacity)
    for number in range(40):
        got = np.minimum(wanted[group == number], level[number]).sum()
        assert got == pytest.approx(min(capacity[number], wanted[group == number].sum()))


def test_wait_is_that_of_mm1_and_md1() -> None:
    rate = np.array([10.0])
    assert mean_wait_seconds(np.array([8.0]), rate, np.array([1.0])) == pytest.approx(0.4)  # rho / (mu - lambda)
    assert mean_wait_seconds(np.array([8.0]), rate, np.array([0.0])) == pytest.approx(0.2)


def test_others_on_one_core_stretch_as_processor_sharing_does() -> None:
    one = stretch_by_others(np.array([0.0, 0.5, 0.75]), np.array([1.0, 1.0, 1.0]))
    assert one == pytest.approx([1.0, 2.0, 4.0])
    four = stretch_by_others(np.array([0.5]), np.array([4.0]))
    assert 1.0 < four[0] < 1.2


def test_a_limit_that_lets_bursts_through_makes_nobody_wait() -> None:
    wait = wait_behind_limit(np.array([0.5, 0.5, 0.98]), np.array([0.1, 20.0, 0.1]), np.zeros(3))
    assert wait[0] > 0.9
    assert wait[1] < 1e-6
    assert wait[2] > wait[0]
