"""Level and fading trend: by hand, with gaps, and never less than nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import chain_topology, component_load, history
from storm_operator.core import damped_trend as module
from storm_operator.core.damped_trend import damped_trend
from storm_operator.core.forecast import forecast_load
from storm_operator.core.settings import Forecast

CHAIN = chain_topology("t", ("spout", 1), ("bolt", 1))


def test_by_hand() -> None:
    # Level 100; then 100 + 0.5 * 100 = 150 and trend 0.5 * 50 = 25. One period on the trend is 12.5.
    assert damped_trend([(10, 100), (20, 200)], 30, 10) == pytest.approx(162.5)
    # 162.5 is expected, 200 comes: level 181.25, trend 12.5 + 0.5 * (31.25 - 12.5) = 21.875.
    assert damped_trend([(10, 100), (20, 200), (30, 200)], 40, 10) == pytest.approx(181.25 + 21.875 / 2)


def test_a_missing_period_fades_the_trend_once_more() -> None:
    # Levels 100 -> 150 within two periods: trend 0.5 * 25 = 12.5; two periods ahead 12.5 / 2 + 12.5 / 4.
    assert damped_trend([(10, 100), (30, 200)], 50, 10) == pytest.approx(150 + 9.375)


def test_a_clock_that_was_set_right_by_decades_is_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def counted(count: int) -> range:
        assert count < 1000
        return range(count)

    monkeypatch.setattr(module, "range", counted, raising=False)
    assert damped_trend([(10, 100), (20, 200)], 1.7e9, 10) == pytest.approx(175.0)


def test_one_point_is_repeated_and_none_is_unknown() -> None:
    assert damped_trend([(10, 70)], 20, 10) == 70
    assert damped_trend([], 20, 10) is None


def test_a_steep_fall_ends_at_zero() -> None:
    assert damped_trend([(10, 1000), (20, 0), (30, 0), (40, 0), (50, 0)], 60, 10) == 0.0


@given(st.floats(0, 1e6), st.integers(1, 10), st.integers(1, 5))
def test_a_constant_load_stays(load: float, count: int, ahead: int) -> None:
    points = [(10.0 * n, load) for n in range(count)]
    assert damped_trend(points, 10.0 * (count + ahead), 10.0) == pytest.approx(load)


def test_a_spike_is_taken_over_by_less_than_the_line_does() -> None:
    periods = history("t", {"spout": [component_load(v) for v in (100, 100, 100, 100, 300)]})
    line, damped = (forecast_load(CHAIN, periods, 5, method=m)["spout"].arrivals_per_second for m in Forecast)
    assert line == pytest.approx(260)
    assert damped == pytest.approx(225)
