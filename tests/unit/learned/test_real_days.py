"""What the real compressed days come to: the need that is fitted, and what is short and over by it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from profile_gain.real_days import (
    BASELINE,
    LEARNED,
    RESOURCES,
    Period,
    Sums,
    change_percent,
    load_of_a_theta,
    needs_by_load,
    summed,
)

from storm_pipeline.models.backtest import Series

PERIOD_SECONDS = 5.0
COUNT = ("count", 1)


def period(number: int, topology: str, offered: float, limit: float, used: float, waited: float = 0.0) -> Period:
    return Period(PERIOD_SECONDS * number, topology, COUNT, offered, limit, used, waited)


def test_need_is_fitted_where_no_limit_cut_it_short() -> None:
    free = [period(n, BASELINE, 10.0 * n, 1000.0, 5.0 + 2.0 * 10.0 * n) for n in range(1, 31)]
    cut = [period(n, LEARNED, 500.0, 100.0, 100.0, waited=0.6) for n in range(1, 31)]
    idle, each = needs_by_load(free + cut)[COUNT]
    assert idle == pytest.approx(5.0)
    assert each == pytest.approx(2.0)


def test_too_few_periods_show_no_need() -> None:
    assert needs_by_load([period(1, BASELINE, 10.0, 100.0, 20.0)]) == {}


def test_short_and_over_of_periods_that_both_have() -> None:
    both = [
        period(1, BASELINE, 100.0, 150.0, 150.0),
        period(1, LEARNED, 100.0, 190.0, 190.0),
        period(2, BASELINE, 50.0, 150.0, 100.0),
        period(2, LEARNED, 50.0, 125.0, 100.0),
    ]
    alone = [period(3, LEARNED, 100.0, 0.0, 0.0)]
    sums = summed(both + alone, {COUNT: (0.0, 2.0)}, PERIOD_SECONDS)
    assert (sums[BASELINE].under, sums[BASELINE].over) == pytest.approx((0.25, 0.25))
    assert (sums[LEARNED].under, sums[LEARNED].over) == pytest.approx((0.05, 0.125))
    assert change_percent(sums) == {"under": pytest.approx(-80.0), "over": pytest.approx(-50.0)}


def test_nobody_needs_more_than_a_core() -> None:
    pair = [period(1, name, 1000.0, 900.0, 900.0) for name in (BASELINE, LEARNED)]
    assert summed(pair, {COUNT: (0.0, 2.0)}, PERIOD_SECONDS)[LEARNED].under == pytest.approx(0.5)


def test_no_ratio_over_nothing() -> None:
    change = change_percent({BASELINE: Sums(0.0, 1.0), LEARNED: Sums(0.0, 0.5)})
    assert math.isnan(change["under"])
    assert change["over"] == pytest.approx(-50.0)


def test_a_theta_carries_what_the_cost_of_a_tuple_allows() -> None:
    # Two executors use 30 and 20 millicores for 100 tuples a second together: half a millicore each.
    both = [
        Period(PERIOD_SECONDS * n, LEARNED, ("count", task), 100.0, 200.0, used, 0.0)
        for n in (1, 2)
        for task, used in ((1, 30.0), (2, 20.0))
    ]
    others = [period(1, BASELINE, 100.0, 200.0, 500.0)]
    series = Series(np.array([5.0, 10.0]), np.array([100.0, 100.0]), PERIOD_SECONDS)
    assert load_of_a_theta("count", series, both + others) == pytest.approx(RESOURCES.theta_millicores * 2 / 0.5)
