"""Load shapes: the values that their definitions give, and the same ones whenever they are asked for."""

from __future__ import annotations

import statistics

import pytest

from storm_operator.simulator.load import (
    Constant,
    LoadShape,
    Noisy,
    RandomLevels,
    Recorded,
    Scaled,
    Sine,
    Spiky,
    Step,
    Triangle,
)


@pytest.mark.parametrize(
    ("shape", "at", "rate"),
    [
        (Constant(7.0), 1000.0, 7.0),
        (Step(((10.0, 5.0), (20.0, 9.0))), 9.9, 0.0),
        (Step(((10.0, 5.0), (20.0, 9.0))), 10.0, 5.0),
        (Step(((10.0, 5.0), (20.0, 9.0))), 99.0, 9.0),
        (Sine(100.0, 500.0, 120.0), 0.0, 300.0),
        (Sine(100.0, 500.0, 120.0), 30.0, 500.0),
        (Sine(100.0, 500.0, 120.0), 90.0, 100.0),
        (Triangle(0.0, 300.0), 300.0, 300.0),
        (Triangle(0.0, 300.0), 159.9, 150.0),
        (Triangle(0.0, 300.0), 450.0, 150.0),
        (Triangle(0.0, 300.0), 600.0, 0.0),
        (Spiky(Constant(10.0), (60.0,), 5.0, 3.0), 59.9, 10.0),
        (Spiky(Constant(10.0), (60.0,), 5.0, 3.0), 64.9, 30.0),
        (Spiky(Constant(10.0), (60.0,), 5.0, 3.0), 65.0, 10.0),
        (Recorded(((0.0, 1.0), (10.0, 3.0))), 5.0, 2.0),
        (Recorded(((0.0, 1.0), (10.0, 3.0))), 50.0, 3.0),
        (Recorded(((0.0, 1.0), (10.0, 3.0)), repeats=True), 15.0, 2.0),
        (Scaled(Constant(4.0), 2.5), 3.0, 10.0),
    ],
)
def test_values(shape: LoadShape, at: float, rate: float) -> None:
    assert shape.rate_at(at) == pytest.approx(rate)


def test_random_levels_are_whole_numbers_of_producers_and_hold_for_their_interval() -> None:
    shape = RandomLevels(1000.0, seed=3)
    drawn = [shape.rate_at(10.0 * interval) / 1000.0 for interval in range(300)]
    assert set(drawn) == set(range(1, 26))
    assert statistics.fmean(drawn) == pytest.approx(13.0, abs=1.5)
    assert shape.rate_at(40.0) == shape.rate_at(49.9)
    assert drawn == [RandomLevels(1000.0, seed=3).rate_at(10.0 * interval) / 1000.0 for interval in range(300)]
    assert drawn != [RandomLevels(1000.0, seed=4).rate_at(10.0 * interval) / 1000.0 for interval in range(300)]


def test_noise_has_its_mean_and_deviation_and_is_the_same_in_any_order() -> None:
    shape = Noisy(Constant(100.0), 0.1, seed=1)
    rates = [shape.rate_at(float(second)) for second in range(2000)]
    assert statistics.fmean(rates) == pytest.approx(100.0, rel=0.01)
    assert statistics.stdev(rates) == pytest.approx(10.0, rel=0.1)
    assert [shape.rate_at(float(second)) for second in reversed(range(2000))] == rates[::-1]


@pytest.mark.parametrize("seconds", [(), (1.0, 1.0), (2.0, 1.0)])
def test_seconds_that_do_not_ascend_are_refused(seconds: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="each later than the one before"):
        Recorded(tuple((at, 1.0) for at in seconds))
