"""CPU shared max-min, and waits by the formulas of queueing theory."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_operator.agent.cgroups import PERIOD_US
from storm_operator.simulator.cpu import (
    UNLIMITED,
    LevelSearch,
    fair_levels,
    held_back,
    mean_wait_seconds,
    stretch_by_others,
)
from storm_operator.simulator.engine import MOST_SHARING_ROUNDS
from storm_operator.simulator.model import LIMIT_PERIOD_SECONDS


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


def searched(handed_on: float, capacity: float) -> LevelSearch:
    """On each of two machines one thread always has work, and hands on `handed_on` millicores for each of its own.

    That goes to threads of the other machine, each of which wants less than it does.
    """
    search = LevelSearch.begin(np.full(2, 1000.0), np.arange(2), 2)
    for _ in range(MOST_SHARING_ROUNDS):
        most = np.minimum(search.levels, 1000.0)
        left = capacity - handed_on * most[::-1]
        search = search.next(np.where(left < 1000.0, np.maximum(left, 10.0), UNLIMITED))
        if search.is_over:
            break
    return search


@pytest.mark.parametrize("handed_on", [0.5, 1.0, 2.0, 5.0, 10.0])
def test_levels_are_found_where_more_for_some_is_more_work_for_others(handed_on: float) -> None:
    search = searched(handed_on, 1200.0)
    assert search.is_over
    assert search.levels == pytest.approx(1200.0 / (1.0 + handed_on), rel=0.01)


def test_nobody_shares_where_there_is_enough_for_the_work_that_is_handed_on_too() -> None:
    assert searched(1.0, 2100.0).levels.tolist() == [UNLIMITED, UNLIMITED]


def test_wait_is_that_of_mm1_and_md1() -> None:
    rate = np.array([10.0])
    assert mean_wait_seconds(np.array([8.0]), rate, np.array([1.0])) == pytest.approx(0.4)  # rho / (mu - lambda)
    assert mean_wait_seconds(np.array([8.0]), rate, np.array([0.0])) == pytest.approx(0.2)


def stretch(utilisation: float, cores: float, one_of_them: float) -> float:
    return float(stretch_by_others(np.array([utilisation]), np.array([cores]), np.array([one_of_them / cores]))[0])


def test_many_others_on_one_core_stretch_as_processor_sharing_does() -> None:
    assert [stretch(busy, 1.0, 0.0) for busy in (0.0, 0.5, 0.75)] == pytest.approx([1.0, 2.0, 4.0])
    assert 1.0 < stretch(0.5, 4.0, 0.0) < 1.2


@pytest.mark.parametrize("others", [1, 2, 7])
def test_others_that_always_run_leave_a_core_in_turns(others: int) -> None:
    assert stretch(1.0, 1.0, 1.0 / others) == pytest.approx(others + 1.0)


@pytest.mark.parametrize(
    ("cores", "others", "load", "measured"),
    [
        (1, 2, 0.8, 2.11),
        (1, 4, 0.95, 4.38),
        (1, 4, 1.0, 4.38),
        (2, 4, 0.8, 1.87),
        (2, 8, 0.8, 2.33),
        (2, 8, 0.95, 3.73),
    ],
)
def test_few_others_stretch_as_real_threads_do(cores: int, others: int, load: float, measured: float) -> None:
    """Measured by benchmarks/shared_cores.py."""
    assert stretch(load, cores, load * cores / others) == pytest.approx(measured, rel=0.2)


@given(st.floats(0.0, 1.0), st.integers(1, 64), st.floats(0.001, 1.0))
def test_few_others_stretch_less_than_many_and_never_help(busy: float, cores: int, one_of_them: float) -> None:
    assert 1.0 <= stretch(busy, cores, one_of_them) <= stretch(busy, cores, 0.0)


def test_the_simulated_period_of_limits_is_the_agents() -> None:
    assert round(1e6 * LIMIT_PERIOD_SECONDS) == PERIOD_US


def test_a_limit_that_lets_bursts_through_makes_nobody_wait() -> None:
    none = np.zeros(3)
    held = held_back(np.array([0.5, 0.5, 0.98]), np.array([0.05, 20.0, 0.05]), none, none)
    assert held[0] > 0.8
    assert held[1] < 1e-6
    assert held[2] > held[0]


@pytest.mark.parametrize(
    ("load", "tuple_seconds", "deviation", "limit", "together"),
    [
        (0.7, 0.005, 0.0, 0.2, 1),
        (0.85, 0.005, 0.0, 0.2, 1),
        (0.85, 0.005, 0.0, 0.4, 1),
        (0.85, 0.001, 1.0, 0.2, 1),
        (0.9, 0.001, 1.0, 0.4, 1),
        (0.7, 0.005, 1.0, 0.4, 1),
        (0.85, 0.005, 1.0, 0.2, 1),
        (0.5, 0.02, 0.0, 0.2, 1),
        (0.7, 0.001, 0.0, 0.2, 10),
        (0.85, 0.001, 0.0, 0.4, 10),
    ],
)
def test_the_wait_behind_a_limit_is_that_of_the_kernels_quota(
    load: float, tuple_seconds: float, deviation: float, limit: float, together: int
) -> None:
    """What the limit adds to the wait, within a factor of 1.7; tuples come alone or `together`."""
    quota, came = limit * LIMIT_PERIOD_SECONDS, arrivals(load * limit / tuple_seconds, together)
    exact = wait_at_quota(came, tuple_seconds, deviation, quota) - wait_at_quota(came, tuple_seconds, deviation, np.inf)
    batch = (together - 1) / 2
    held = held_back(*(np.array([one]) for one in (load, quota / tuple_seconds, deviation, batch)))[0]
    free, behind = (waiting(load * limit, share, tuple_seconds, deviation, batch) for share in (1.0, limit))
    assert exact / 1.7 < held * (behind - free) < 1.7 * exact


def waiting(work: float, share: float, tuple_seconds: float, deviation: float, batch: float) -> float:
    """At `share` of a core."""
    given = (work / tuple_seconds, share / tuple_seconds, deviation, batch)
    return float(mean_wait_seconds(*(np.array([one]) for one in given))[0])


def arrivals(per_second: float, together: int) -> npt.NDArray[np.float64]:
    """Times at which 80,000 tuples come, by chance, so many at once."""
    times = np.cumsum(np.random.default_rng(1).exponential(together / per_second, 80_000 // together))
    return np.repeat(times, together)


def wait_at_quota(came: npt.NDArray[np.float64], tuple_seconds: float, deviation: float, quota: float) -> float:
    """The mean wait for a thread that may use `quota` in each period and what the last one left, played out.

    Of tuples that come together, that of the first.
    """
    period, left, refill, now = LIMIT_PERIOD_SECONDS, 2.0 * quota, LIMIT_PERIOD_SECONDS, 0.0
    works = tuple_seconds * (1.0 - deviation + deviation * np.random.default_rng(2).exponential(1.0, len(came)))
    waits = []
    for at, work in zip(came.tolist(), works.tolist(), strict=True):
        begun, now, todo = now, max(now, at), work
        while True:
            if now >= refill:
                periods = int((now - refill) / period) + 1
                left, refill = min(2.0 * quota, left + periods * quota), refill + periods * period
            run = min(todo, left, refill - now)
            now, todo, left = now + run, todo - run, left - run
            if todo <= 1e-12:
                break
            now = refill  # nothing is left of the quota, or the period is over
        waits.append((at, max(0.0, begun - at), now - max(begun, at) - work))
    first = {at: index for index, (at, _, _) in reversed(list(enumerate(waits)))}
    return float(np.mean([waits[index][1] + waits[index][2] for index in first.values()]))
