"""Seasons learned from history, backtests of forecasters, and the daily load that they are judged on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profile_gain.demand_path import RESOURCES, allocated_millicores

from builders import PERIOD_SECONDS, chain_topology, component_load, history
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.demand import demand_of_forecasts
from storm_operator.core.forecast import LoadForecast
from storm_operator.core.learned_profile import SEASONAL, ForecastError
from storm_operator.simulator.daily_load import DailyLoad
from storm_pipeline.models.backtest import (
    OPERATORS,
    Series,
    allocated,
    best_of,
    error_of,
    forecasts,
    judge,
    line,
    target_over,
)
from storm_pipeline.models.season import Floats, SeasonShape, learn_season

SHAPE = SeasonShape(400.0, 10.0, 0.8, 0.5)


def days(count: int, seed: int = 0, noise: float = 0.0) -> Series:
    """A spike of three periods in a cycle of forty, at levels that differ by cycle."""
    random = np.random.default_rng(seed)
    one = np.where((np.arange(40) >= 20) & (np.arange(40) < 23), 300.0, 100.0)
    values = np.concatenate([level * one for level in random.uniform(0.8, 1.2, count)])
    values *= 1.0 + noise * random.standard_normal(len(values))
    return Series(10.0 * np.arange(1, len(values) + 1, dtype=np.float64), values, 10.0)


def test_the_shape_is_learned_whatever_the_levels_of_cycles() -> None:
    series = days(7)
    season = learn_season(series.times, series.values, 10.0, SHAPE)
    assert season is not None
    ratio = np.array(season.expected_per_second) / season.expected_per_second[0]
    assert ratio == pytest.approx(np.where((np.arange(40) >= 20) & (np.arange(40) < 23), 3.0, 1.0))
    assert season.ready_per_second == pytest.approx(season.expected_per_second)


def test_what_differs_between_cycles_is_to_be_ready_for() -> None:
    series = days(8)
    late = series.values.copy()
    for cycle in (1, 4, 6):  # the spike begins a period later, and ends a period later
        late[40 * cycle + 20], late[40 * cycle + 23] = late[40 * cycle], late[40 * cycle + 21]
    season = learn_season(series.times, late, 10.0, SHAPE)
    assert season is not None
    assert season.expected_per_second[23] < 0.5 * season.ready_per_second[23]
    assert season.ready_per_second[30] == pytest.approx(season.expected_per_second[30])


def test_gaps_are_read_between_their_neighbours_and_too_little_is_nothing() -> None:
    series = days(5)
    kept = (np.arange(len(series.times)) % 40) != 10
    season = learn_season(series.times[kept], series.values[kept], 10.0, SHAPE)
    assert season is not None
    assert season.expected_per_second[10] == pytest.approx(season.expected_per_second[9], rel=0.05)
    assert learn_season(series.times[:80], series.values[:80], 10.0, SHAPE) is None
    early = (np.arange(len(series.times)) % 40) < 10
    assert learn_season(series.times[early], series.values[early], 10.0, SHAPE) is None
    assert learn_season(series.times, np.zeros_like(series.values), 10.0, SHAPE) is None


@pytest.mark.parametrize("period_seconds", [10.0, 25.0, 40.0])
def test_periods_may_be_longer_than_bins(period_seconds: float) -> None:
    times = np.arange(1, 1600.0 / period_seconds + 1) * period_seconds + 3.0
    busy = ((times - period_seconds / 2.0) % 400.0) >= 200.0
    season = learn_season(times, np.where(busy, 300.0, 100.0), period_seconds, SHAPE)
    assert season is not None
    assert season.expected_between(50.0, 150.0) == pytest.approx(100.0)
    assert season.expected_between(250.0, 350.0) == pytest.approx(300.0)


def test_a_cycle_of_short_periods_counts_no_more_than_one_of_long_ones() -> None:
    """Three cycles with a spike, in periods of a minute; then two without, in periods of ten seconds."""
    lengths = np.repeat([60.0, 10.0], [3 * 60, 2 * 360])
    times = np.cumsum(lengths)
    middles = times - lengths / 2.0
    has_spike = (middles < 3 * 3600.0) & (middles % 3600.0 >= 1200.0) & (middles % 3600.0 < 1500.0)
    season = learn_season(times, np.where(has_spike, 300.0, 100.0), lengths, SeasonShape(3600.0, 30.0, 0.9, 0.3))
    assert season is not None
    assert min(season.expected_per_second[40:50]) > 2.0 * max(season.expected_per_second[:40])


@given(st.permutations(list(range(5))))
def test_the_order_of_cycles_does_not_matter(order: list[int]) -> None:
    series = days(5, noise=0.05)
    cycles = series.values.reshape(5, 40)
    first = learn_season(series.times, series.values, 10.0, SHAPE)
    other = learn_season(series.times, cycles[order].ravel(), 10.0, SHAPE)
    assert first is not None
    assert other is not None
    assert other.expected_per_second == pytest.approx(first.expected_per_second)


def test_the_season_wins_where_there_is_one_and_not_where_there_is_none() -> None:
    found = judge(days(8, noise=0.03), 400.0, 10.0, step=60.0)
    assert found.forecaster == SEASONAL
    assert found.season is not None
    assert found.errors[SEASONAL].short_percent < 0.5 * found.errors["Line"].short_percent
    assert found.errors[SEASONAL].over_percent <= found.errors["Line"].over_percent
    wander = np.exp(np.cumsum(np.random.default_rng(1).normal(0.0, 0.02, 320))) * 100.0
    assert judge(Series(days(8).times, wander, 10.0), 400.0, 10.0).forecaster in OPERATORS


def test_judged_periods_are_not_learned_from() -> None:
    # The last cycle is nothing like the ones before: a season that had seen it would be better.
    series = days(6, noise=0.01)
    strange = series.values.copy()
    strange[200:] = np.where(np.arange(40) % 2 == 0, 50.0, 400.0)
    calm, surprised = judge(series, 400.0, 10.0), judge(Series(series.times, strange, 10.0), 400.0, 10.0)
    assert surprised.errors[SEASONAL].error_percent > 5.0 * calm.errors[SEASONAL].error_percent


def test_a_season_is_judged_by_the_periods_too_in_which_the_operator_must_do_without_it() -> None:
    """Of a load that comes out of nothing the beginning is never foreseen: before it nothing tells a level."""
    one = np.where((np.arange(40) >= 20) & (np.arange(40) < 30), 100.0, 0.0)
    series = Series(10.0 * np.arange(1, 321, dtype=np.float64), np.tile(one, 8), 10.0)
    errors = judge(series, 400.0, 10.0, step=20.0).errors
    # The first of ten busy periods has a step of 20 for a load of 100: 80 of 1,000 are lacking, whoever forecasts.
    assert (errors[SEASONAL].short_percent, errors["Line"].short_percent) == pytest.approx((8.0, 8.0))


@pytest.mark.parametrize("unseen", [range(240, 240), range(200, 240)], ids=["the newest", "before a gap"])
def test_a_period_that_ends_after_its_cycle_is_judged_with_it(unseen: range) -> None:
    series = days(8, noise=0.01)
    seen = np.isin(np.arange(240), unseen, invert=True)
    late = Series(series.times[:240][seen] + 3.0, series.values[:240][seen], 10.0)
    found = judge(late, 400.0, 10.0)
    assert found.season is not None
    assert found.errors[SEASONAL].error_percent < found.errors["Line"].error_percent


def test_too_short_a_history_has_no_season() -> None:
    found = judge(days(2), 400.0, 10.0)
    assert found.season is None
    assert found.forecaster in OPERATORS


def part_of(series: Series, first: int, last: int) -> Series:
    return Series(series.times[first:last], series.values[first:last], series.period_seconds)


def test_cycles_that_were_merely_touched_do_not_count() -> None:
    touched = part_of(days(5), 38, 124)  # the end of one, two whole ones, and the beginning of another
    assert learn_season(touched.times, touched.values, 10.0, SHAPE) is None
    assert judge(part_of(days(6), 38, 164), 400.0, 10.0).season is None
    half = part_of(days(4), 20, 160)
    assert learn_season(half.times, half.values, 10.0, SHAPE) is not None


def test_no_season_is_chosen_on_less_than_a_whole_cycle() -> None:
    series = days(5, noise=0.03)
    assert judge(part_of(series, 0, 124), 400.0, 10.0, step=60.0).season is None
    assert judge(part_of(series, 0, 160), 400.0, 10.0, step=60.0).season is not None


def test_what_was_seen_after_the_last_whole_cycle_is_judged_with_it() -> None:
    series = days(5, noise=0.01)
    strange = series.values.copy()
    strange[160:] = 400.0
    calm, surprised = (
        judge(part_of(one, 0, 164), 400.0, 10.0) for one in (series, Series(series.times, strange, 10.0))
    )
    assert surprised.errors[SEASONAL].short_percent > calm.errors[SEASONAL].short_percent


@pytest.mark.slow
def test_yardsticks_look_at_the_past_alone() -> None:
    from storm_pipeline.models.yardsticks import holt_winters, naive

    series = days(6, noise=0.02)
    changed = Series(series.times, np.where(np.arange(240) >= 200, 7.0, series.values), 10.0)
    for told in (naive, holt_winters):
        first, other = told(series, 200, 240, 400.0), told(changed, 200, 240, 400.0)
        assert first == pytest.approx(other)
    assert naive(series, 200, 240, 400.0) == pytest.approx(series.values[160:200])


@pytest.mark.slow
def test_holt_and_winters_are_fitted_to_what_was_seen_since_a_gap() -> None:
    """Of a clock that was wrong at first, a period of 1970, half a century of nothing would be fitted."""
    from storm_pipeline.models.yardsticks import holt_winters

    series = days(6, noise=0.02)
    times, values = np.append(series.times[0] - 4000.0, series.times), np.append(7.0, series.values)
    told = holt_winters(Series(times, values, 10.0), 201, 241, 400.0)
    assert told == pytest.approx(holt_winters(series, 200, 240, 400.0))
    assert np.isnan(holt_winters(Series(times, values, 10.0), 1, 41, 400.0)).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_nothing_is_said_of_a_load_that_rested_for_days() -> None:
    from storm_pipeline.models.yardsticks import holt_winters

    rested = Series(days(6).times, np.where(np.arange(240) < 200, 0.0, 100.0), 10.0)
    assert holt_winters(rested, 200, 240, 400.0).tolist() == [0.0] * 40


def test_errors_are_shares_of_the_mean_load() -> None:
    actual, told = np.array([100.0, 300.0]), np.array([100.0, 100.0])
    error = error_of(told, actual, step=100.0)
    assert error is not None
    # 200 is allocated in both periods: 100 too much, then 100 too little, of a mean of 200.
    assert (error.error_percent, error.short_percent, error.over_percent) == (50.0, 25.0, 25.0)
    assert error_of(np.full(2, np.nan), actual) is None


def test_forecasts_leave_out_what_is_older_than_the_operator_looks_back() -> None:
    series = Series(np.array([10.0, 20.0, 100.0, 110.0]), np.array([1.0, 2.0, 50.0, 60.0]), 10.0)
    assert forecasts(series, line, 3, 4).tolist() == [50.0]


def by_the_operator(needs: list[float]) -> Floats:
    """What `core.demand` gives the one executor of a component, period after period."""
    topology = chain_topology("t", ("spout", 1))
    given, demand = [], None
    for need in needs:
        seen = history("t", {"spout": [component_load(100.0, cpu=100.0)]})
        demand = _next(topology, seen, need, demand)
        given.append(demand.millicores[topology.executors[0]])
    return np.array(given)


def _next(topology: object, seen: object, need: float, before: Demand | None) -> Demand:
    from builders import snapshot, supervisors

    picture = snapshot((topology,), supervisors(1), {}, periods=seen)  # type: ignore[arg-type]
    loads = {("t", "spout"): LoadForecast(need, 0.0)}
    return demand_of_forecasts(picture, loads, before, RESOURCES, 5)


def test_the_benchmarks_path_is_the_operators() -> None:
    needs = np.random.default_rng(3).uniform(10.0, 900.0, 60)
    assert allocated_millicores(needs).tolist() == by_the_operator(needs.tolist()).tolist()
    whole = allocated(needs, RESOURCES.theta_millicores)
    assert np.clip(whole, RESOURCES.floor_millicores, RESOURCES.ceiling_millicores).tolist() == pytest.approx(
        allocated_millicores(needs).tolist()
    )


def test_a_daily_load_comes_again_but_no_day_is_another() -> None:
    load = DailyLoad(100.0, seed=4, day_seconds=3600.0)
    assert load.means(0, PERIOD_SECONDS).tolist() == load.means(0, PERIOD_SECONDS).tolist()
    calm = DailyLoad(100.0, seed=4, noise=0.0, day_seconds=3600.0)
    first, second = calm.means(0, PERIOD_SECONDS), calm.means(1, PERIOD_SECONDS)
    assert first.tolist() != second.tolist()
    assert np.corrcoef(first, second)[0, 1] > 0.5
    assert calm.rate_at(5.5) == pytest.approx(calm.means(0, 1.0)[5])
    assert DailyLoad(100.0, seed=5).means(0, 60.0).tolist() != DailyLoad(100.0, seed=6).means(0, 60.0).tolist()


def test_where_whole_steps_of_cpu_hide_the_difference_the_error_decides() -> None:
    alike = {"DampedTrend": ForecastError(5.0, 0.0, 40.0), "Line": ForecastError(0.9, 0.0, 40.0)}
    assert best_of(alike, has_season=False) == "Line"
    assert best_of(alike | {"DampedTrend": ForecastError(5.0, 0.0, 39.0)}, has_season=False) == "DampedTrend"


@pytest.mark.parametrize(("over_percent", "chosen"), [(99.9, SEASONAL), (100.1, "Line")])
def test_a_season_that_asks_for_more_cpu_than_the_line_is_not_gone_by(over_percent: float, chosen: str) -> None:
    errors = {"Line": ForecastError(20.0, 5.0, 100.0), "DampedTrend": ForecastError(20.0, 6.0, 100.0)}
    assert best_of(errors | {SEASONAL: ForecastError(10.0, 0.0, over_percent)}, has_season=True) == chosen


@pytest.mark.parametrize(
    ("short_percent", "over_percent", "target"),
    [(3.0, 80.0, 90.0), (3.0, 95.0, 96.0), (3.0, 105.0, 97.0), (3.6, 80.0, 97.0)],
    ids=["a tenth", "most of what can be saved", "nothing can be saved", "what saves leaves too much short"],
)
def test_a_season_saves_a_tenth_of_what_the_line_has_over_or_most_of_what_can_be_saved(
    short_percent: float, over_percent: float, target: float
) -> None:
    plain = {"Line": ForecastError(20.0, 5.0, 100.0), "DampedTrend": ForecastError(20.0, 6.0, 90.0)}
    seasons = [ForecastError(10.0, 0.0, 110.0), ForecastError(10.0, short_percent, over_percent)]
    assert target_over(seasons, plain) == pytest.approx(target)
