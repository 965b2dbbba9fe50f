"""A season read at times, and a forecast from it at the level of the last periods."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_operator.core.seasonal import Season, bins_in, seasonal_forecast

SPIKE = Season(40.0, 10.0, (100.0, 100.0, 400.0, 100.0), (100.0, 100.0, 500.0, 100.0), 0.5)
"""A cycle of four periods, with a spike in the third."""


def test_the_shape_comes_again_each_cycle_and_is_averaged_over_the_time_asked_for() -> None:
    assert SPIKE.expected_between(20, 30) == SPIKE.expected_between(420, 430) == 400
    assert SPIKE.expected_between(15, 25) == 250
    assert SPIKE.expected_between(0, 40) == 175
    assert SPIKE.ready_between(22, 22) == 500


class Counting(tuple[float, ...]):
    """How many values were read, one by one or many at a time."""

    read = 0

    def __getitem__(self, which: Any) -> Any:
        found = super().__getitem__(which)
        Counting.read += len(found) if isinstance(which, slice) else 1
        return found


def test_a_time_of_many_cycles_is_averaged_as_fast_as_one_cycle() -> None:
    """A control period may be a day, and a cycle a few seconds: the loop waits for each."""
    shape = Counting((1.0, 2.0, 6.0))
    season = Season(3.0, 1.0, shape, shape, 0.5)
    assert season.expected_between(0.0, 86_400.0) == pytest.approx(3.0)
    assert season.expected_between(0.5, 86_401.5) == pytest.approx((86_400 * 3.0 + 0.5 * 1.0 + 0.5 * 2.0) / 86_401.0)
    assert Counting.read < 20


@given(
    shape=st.lists(st.floats(0.0, 1e6), min_size=1, max_size=9),
    start=st.floats(0.0, 100.0),
    seconds=st.floats(0.0, 200.0),
    width=st.sampled_from([1.0, 2.5, 30.0]),
)
def test_the_mean_is_what_each_bin_brings_for_as_long_as_it_is_asked_for(
    shape: list[float], start: float, seconds: float, width: float
) -> None:
    season = Season(width * len(shape), width, tuple(shape), tuple(shape), 0.5)
    end = start + seconds
    within = [
        (shape[place % len(shape)], min(end, (place + 1) * width) - max(start, place * width))
        for place in range(int(start // width), int(end // width) + 1)
    ]
    whole = sum(overlap for _, overlap in within)
    told = sum(value * overlap for value, overlap in within) / whole if whole else within[0][0]
    assert season.expected_between(start, end) == pytest.approx(told, rel=1e-6, abs=1e-6)


def test_a_spike_is_seen_coming_at_the_level_of_the_last_periods() -> None:
    # Both periods lay a fifth above the shape.
    assert seasonal_forecast(SPIKE, [(10, 120), (20, 120)], 30, 10) == pytest.approx(600)


def test_the_newest_level_counts_most_and_older_ones_fade() -> None:
    # Levels 1 and 3, weights 1/2 and 1: (0.5 * 100 + 300) / 150.
    assert seasonal_forecast(SPIKE, [(10, 100), (20, 300)], 60, 10) == pytest.approx(100 * 350 / 150)


def test_a_load_that_nobody_knew_of_is_taken_to_stay() -> None:
    steady = Season(400.0, 10.0, (100.0,) * 40, (110.0,) * 40, 0.5)
    calm = [(10.0 * n, 100.0) for n in range(1, 5)]
    noisy = seasonal_forecast(steady, [*calm, (50.0, 120.0)], 60, 10)
    assert noisy is not None
    assert noisy < 124.0
    assert seasonal_forecast(steady, [*calm, (50.0, 400.0)], 60, 10) == pytest.approx(400.0)
    # It is over a period later, and the level goes back to where it was.
    over = seasonal_forecast(steady, [*calm, (50.0, 400.0), (60.0, 100.0)], 70, 10)
    assert over is not None
    assert over < 250.0


def test_a_period_that_was_not_measured_ages_the_others() -> None:
    # Of the points 3 and 1 periods old only their ages count: weights 1/4 and 1.
    assert seasonal_forecast(SPIKE, [(60, 200), (80, 100)], 90, 10) == pytest.approx(100 * (0.25 * 200 + 100) / 125)


def test_where_nothing_is_expected_nothing_is_known() -> None:
    idle = Season(40.0, 10.0, (0.0,) * 4, (0.0,) * 4, 0.5)
    assert seasonal_forecast(idle, [(10, 5)], 20, 10) is None
    assert seasonal_forecast(SPIKE, [], 20, 10) is None


@pytest.mark.parametrize("stray", [0.0, 0.2, 2.0])
def test_a_few_tuples_in_the_night_do_not_multiply_what_the_day_brings(stray: float) -> None:
    day = Season(40.0, 10.0, (0.01, 0.01, 1000.0, 1000.0), (0.01, 0.01, 1000.0, 1000.0), 0.5)
    dawn = seasonal_forecast(day, [(10, 0.01), (20, stray)], 30, 10)
    assert dawn == pytest.approx(1000.0, rel=0.5)
    noon = seasonal_forecast(day, [(20, stray), (30, 1500.0)], 40, 10)
    assert noon == pytest.approx(1500.0, rel=0.01)


@pytest.mark.parametrize(("cycle", "width"), [(100.0, 30.0), (10.0, 20.0)])
def test_bins_fill_a_cycle(cycle: float, width: float) -> None:
    with pytest.raises(ValueError, match="do not fill a cycle"):
        bins_in(cycle, width)


@given(
    shape=st.lists(st.floats(10.0, 1e3), min_size=1, max_size=20),  # none so low that it tells no level
    level=st.floats(0.01, 100.0),
    start=st.integers(0, 100),
    weight=st.floats(0.0, 0.99),
)
def test_a_load_that_is_the_shape_at_some_level_is_forecast_exactly(
    shape: list[float], level: float, start: int, weight: float
) -> None:
    season = Season(10.0 * len(shape), 10.0, tuple(shape), tuple(shape), weight)
    points = [(10.0 * n, level * shape[(n - 1) % len(shape)]) for n in range(start + 1, start + 6)]
    at = 10.0 * (start + 6)
    assert seasonal_forecast(season, points, at, 10.0) == pytest.approx(level * shape[(start + 5) % len(shape)])
