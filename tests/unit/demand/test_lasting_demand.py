"""Demand for as long as a plan lasts: peaks that fade, growth that is sure, what queues and limits hide."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import chain_topology, component_load, history, snapshot, supervisors
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.forecast import forecast_loads
from storm_operator.core.lasting_demand import MOST_GROWTH, lasting_demand, sure_slope, with_room_that_fits
from storm_operator.core.model import ExecutorLoad, Supervisor
from storm_operator.core.settings import Enforcement, Forecast, ResourceSettings, SchedulingSettings
from storm_operator.core.snapshot import ClusterSnapshot

TOPOLOGY = chain_topology("t", ("spout", 1), ("work", 4))
WORK = TOPOLOGY.executors_of("work")
SCHEDULING = SchedulingSettings(spare_fraction=0.2, expected_life_seconds=300.0)
RESOURCES = ResourceSettings()


def picture(
    *arrived: float, used: float = 100.0, queue: float = 0.0, throttled: float | None = None
) -> ClusterSnapshot:
    """Each tuple costs 1 ms; the newest load comes last."""
    loads = {e: ExecutorLoad(cpu_millicores=used, queue_length=queue, throttled_fraction=throttled) for e in WORK}
    periods = history("t", {"work": [component_load(rate, cpu=rate) for rate in arrived]})
    return snapshot((TOPOLOGY,), supervisors(1), periods=periods, loads=loads)


def demand_of(seen: ClusterSnapshot, previous: Demand | None = None) -> Demand:
    forecasts = forecast_loads(seen, SCHEDULING.history_periods, Forecast.DAMPED_TREND)
    return lasting_demand(seen, forecasts, previous, RESOURCES, SCHEDULING)


def test_room_is_the_need_and_a_share_to_spare() -> None:
    demand = demand_of(picture(400.0, 400.0, 400.0))
    assert demand.raw_millicores[WORK[0]] == pytest.approx(100.0)
    assert demand.room_millicores[WORK[0]] == pytest.approx(120.0)
    assert demand.of_now().room_millicores[WORK[0]] == pytest.approx(100.0)
    assert demand.millicores[WORK[0]] == 200.0


def test_a_peak_fades_over_a_plans_life_while_the_need_falls_at_once() -> None:
    high = demand_of(picture(1600.0))
    low = demand_of(picture(400.0), high)
    assert low.raw_millicores[WORK[0]] == pytest.approx(100.0)
    assert low.peak_millicores[WORK[0]] == pytest.approx(400.0 - 300.0 * 10.0 / 300.0)
    assert low.millicores[WORK[0]] == high.millicores[WORK[0]]  # limits fall as slowly
    for _ in range(30):
        low = demand_of(picture(400.0), low)
    assert low.peak_millicores[WORK[0]] == pytest.approx(100.0 + 300.0 * (1.0 - 1.0 / 30.0) ** 31)


def test_room_is_kept_for_a_peak_long_after_limits_have_forgotten_it() -> None:
    demand = demand_of(picture(1600.0))
    for _ in range(120):
        demand = demand_of(picture(300.0), demand)
    assert demand.millicores[WORK[0]] == 200.0  # twenty minutes later: what 75 and a little is rounded to
    assert demand.room_millicores[WORK[0]] == pytest.approx(75.0 + 325.0 * (1.0 - 10.0 / 3600.0) ** 120)
    again = demand_of(picture(1600.0), demand)
    assert again.room_millicores[WORK[0]] == pytest.approx(1.2 * 400.0)


def test_a_backlog_of_one_period_is_no_peak_beyond_what_an_executor_can_be_given() -> None:
    """Else limits would stay at the ceiling for a quarter of an hour, and the room for two and a half hours."""
    ceiling = RESOURCES.ceiling_millicores
    demand = demand_of(picture(400.0, queue=100_000.0))
    assert demand.raw_millicores[WORK[0]] == pytest.approx(10_100.0)
    assert demand.millicores[WORK[0]] == demand.room_millicores[WORK[0]] == ceiling
    for _ in range(30):
        demand = demand_of(picture(400.0), demand)
    assert demand.peak_millicores[WORK[0]] == pytest.approx(100.0 + 900.0 * (1.0 - 1.0 / 30.0) ** 30)
    assert demand.millicores[WORK[0]] == 600.0
    assert demand.room_millicores[WORK[0]] == pytest.approx(100.0 + 900.0 * (1.0 - 10.0 / 3600.0) ** 30)


def test_a_peak_outlives_periods_that_nobody_measured() -> None:
    high = demand_of(picture(1600.0))
    unknown = demand_of(picture(), high)
    assert not unknown.millicores
    assert demand_of(picture(400.0), unknown).peak_millicores[WORK[0]] == pytest.approx(390.0)


def test_room_is_made_for_a_growth_that_is_sure() -> None:
    rising = demand_of(picture(400.0, 440.0, 480.0, 520.0, 560.0))
    grown = 1.0 + 4.0 * 300.0 / 560.0  # 4 tuples/s more each second, for 300 s
    assert rising.room_millicores[WORK[0]] == pytest.approx(rising.raw_millicores[WORK[0]] * grown)


def test_nobody_grows_for_ever() -> None:
    steep = demand_of(picture(1.0, 101.0, 201.0))
    assert steep.room_millicores[WORK[0]] <= MOST_GROWTH * steep.raw_millicores[WORK[0]]


@pytest.mark.parametrize("periods", [3, 4, 5])
def test_a_step_is_no_growth_wherever_it_falls(periods: int) -> None:
    for low in range(1, periods):
        points = [(10.0 * at, 600.0 if at < low else 1800.0) for at in range(periods)]
        assert sure_slope(points) == pytest.approx(0.0, abs=1e-6)


def stepping(periods: int, at: int, part_of_the_period: float) -> list[float]:
    """From 600 to 1,800 tuples a second after so much of that period."""
    on_the_way = 1800.0 - 1200.0 * part_of_the_period
    return [600.0] * at + [on_the_way] + [1800.0] * (periods - at - 1)


@pytest.mark.parametrize("part", [0.25, 0.5, 0.75])
@pytest.mark.parametrize("periods", [4, 5, 8])
def test_a_step_within_a_period_is_no_growth(periods: int, part: float) -> None:
    for low in range(1, periods):
        points = [(10.0 * at, rate) for at, rate in enumerate(stepping(periods, low, part))]
        assert sure_slope(points) == pytest.approx(0.0, abs=1e-6)


def test_a_rise_goes_on_after_a_step_within_it() -> None:
    points = [(10.0 * at, rate + 20.0 * at) for at, rate in enumerate(stepping(5, 2, 0.5))]
    assert 0.0 < sure_slope(points) <= 2.0
    steady = [(10.0 * at, 600.0 + 20.0 * at + (-1) ** at) for at in range(5)]
    assert 1.5 < sure_slope(steady) <= 2.0


def test_two_points_tell_no_growth() -> None:
    assert sure_slope([(0.0, 1.0), (10.0, 2.0)]) == 0.0


def test_growth_counts_as_far_as_it_is_more_than_three_standard_errors() -> None:
    # The line is 100.6 + 0.96 t, from which these are off by 0.6, 1.8, 1.8 and 0.6; their times spread by 500 s^2.
    points = [(0.0, 100.0), (10.0, 112.0), (20.0, 118.0), (30.0, 130.0)]
    assert sure_slope(points) == pytest.approx(0.96 - 3.0 * math.sqrt(7.2 / 2.0 / 500.0))


def test_what_stands_still_does_not_grow() -> None:
    demand = demand_of(picture(1.0, 0.5, 0.0))
    assert demand.room_millicores[WORK[0]] == pytest.approx(1.2 * demand.peak_millicores[WORK[0]])


def test_what_waits_in_queues_is_to_be_worked_off() -> None:
    """Back-pressure: arrivals are what the component manages, the queue grows no more, and hides what is offered."""
    full = demand_of(picture(400.0, 400.0, 400.0, queue=1000.0))
    assert full.raw_millicores[WORK[0]] == pytest.approx((400.0 + 4 * 1000.0 / 10.0) / 4)


def test_back_pressure_at_a_limit_is_found_by_doubling_the_limit() -> None:
    """Nobody is moved for what a higher limit may mend: need and room stay."""
    given_before = Demand(dict.fromkeys(WORK, 200.0), dict.fromkeys(WORK, 200.0))
    held = demand_of(picture(800.0, used=200.0), given_before)
    assert held.millicores[WORK[0]] == 600.0  # twice the limit and a little, rounded up
    assert held.raw_millicores[WORK[0]] == pytest.approx(200.0)
    assert held.room_millicores[WORK[0]] == pytest.approx(240.0)
    again = demand_of(picture(2400.0, used=held.millicores[WORK[0]]), held)
    assert again.millicores[WORK[0]] == RESOURCES.ceiling_millicores


def test_back_pressure_at_the_highest_limit_is_found_by_doubling_the_need() -> None:
    """No limit can be raised any more: more executors are needed, or another place."""
    ceiling = RESOURCES.ceiling_millicores
    given_before = Demand(dict.fromkeys(WORK, ceiling), dict.fromkeys(WORK, ceiling))
    held = demand_of(picture(4.0 * ceiling, used=ceiling), given_before)
    assert held.raw_millicores[WORK[0]] == pytest.approx(2.0 * ceiling)


def test_whom_its_limit_keeps_waiting_is_given_more_and_moved_nowhere() -> None:
    """In bursts: half of the limit is used on the average."""
    calm = demand_of(picture(380.0))
    waiting = demand_of(picture(380.0, throttled=0.3), calm)
    assert calm.millicores[WORK[0]] == 200.0
    assert waiting.millicores[WORK[0]] == 600.0  # twice the limit and a little, rounded up
    assert waiting.raw_millicores == calm.raw_millicores
    assert waiting.room_millicores[WORK[0]] == pytest.approx(calm.room_millicores[WORK[0]])
    again = demand_of(picture(380.0, throttled=0.3), waiting)
    assert again.millicores[WORK[0]] == RESOURCES.ceiling_millicores
    later = again
    for _ in range(240):
        later = demand_of(picture(380.0, throttled=0.01), later)
    assert later.millicores == calm.millicores


def test_who_still_waits_now_and_then_keeps_what_it_has() -> None:
    waiting = demand_of(picture(380.0, throttled=0.3), demand_of(picture(380.0)))
    later = waiting
    for _ in range(240):
        later = demand_of(picture(380.0, throttled=0.05), later)
    assert later.millicores == waiting.millicores


@pytest.mark.parametrize(
    ("throttled", "enforcement"), [(0.01, Enforcement.EXECUTOR), (None, Enforcement.EXECUTOR), (0.9, Enforcement.POD)]
)
def test_a_little_waiting_or_another_s_limit_changes_nothing(throttled: float | None, enforcement: Enforcement) -> None:
    calm = demand_of(picture(400.0))
    seen = picture(400.0, throttled=throttled)
    forecasts = forecast_loads(seen, SCHEDULING.history_periods, Forecast.DAMPED_TREND)
    resources = replace(RESOURCES, enforcement=enforcement)
    assert lasting_demand(seen, forecasts, calm, resources, SCHEDULING).millicores == calm.millicores


def test_no_more_room_than_there_is() -> None:
    seen = replace(picture(400.0), supervisors=(Supervisor("s1", "a", (6700,), 1000.0),))
    demand = Demand(dict.fromkeys(WORK, 600.0), dict.fromkeys(WORK, 100.0), dict.fromkeys(WORK, 500.0))
    fitting = with_room_that_fits(demand, seen, 0.9)
    assert fitting.total(WORK) == pytest.approx(0.98 * 0.9 * 1000.0)
    assert with_room_that_fits(demand, seen, 10.0) == demand


def test_a_supervisor_without_any_cpu_is_known_to_have_none() -> None:
    """Were it unknown, nobody could tell how much room there is."""
    one, none = Supervisor("s1", "a", (6700,), 1000.0), Supervisor("s2", "b", (6700,), 0.0)
    demand = Demand(dict.fromkeys(WORK, 600.0), dict.fromkeys(WORK, 100.0), dict.fromkeys(WORK, 500.0))
    alone, beside = (replace(picture(400.0), supervisors=given) for given in ((one,), (one, none)))
    assert with_room_that_fits(demand, beside, 0.9) == with_room_that_fits(demand, alone, 0.9)


def test_where_needs_do_not_fit_all_get_the_same_part_of_theirs() -> None:
    """Else one supervisor may be as overfull as all are together: the sum of what is missing is the same."""
    seen = replace(picture(400.0), supervisors=(Supervisor("s1", "a", (6700,), 1000.0),))
    needs = {executor: 100.0 * number for number, executor in enumerate(WORK, start=4)}
    demand = Demand(dict.fromkeys(WORK, 900.0), needs, dict.fromkeys(WORK, 900.0))
    short = with_room_that_fits(demand, seen, 0.9)
    assert short.total(WORK) == pytest.approx(0.98 * 0.9 * 1000.0)
    assert [short.room_millicores[e] / needs[e] for e in WORK] == pytest.approx([882.0 / sum(needs.values())] * 4)
    assert short.raw_millicores == demand.raw_millicores
    ranked = with_room_that_fits(demand, seen, 0.9, are_all_equal=False)
    assert ranked.room_millicores == needs


def test_without_supervisors_those_that_need_nothing_now_get_no_room() -> None:
    nothing = dict.fromkeys(WORK, 0.0)
    demand = Demand(dict.fromkeys(WORK, 100.0), nothing, dict.fromkeys(WORK, 120.0))
    assert with_room_that_fits(demand, replace(picture(400.0), supervisors=()), 0.9).room_millicores == nothing


@pytest.mark.slow
@given(st.lists(st.floats(1.0, 5000.0), min_size=1, max_size=8))
def test_need_peak_and_room_are_in_that_order(arrived: list[float]) -> None:
    demand = None
    for at in range(len(arrived)):
        demand = demand_of(picture(*arrived[: at + 1]), demand)
    assert demand is not None
    for executor in WORK:
        need = demand.of_now().room_millicores[executor]
        assert need <= demand.room_millicores[executor] + 1e-6 <= RESOURCES.ceiling_millicores + 1e-5
        assert demand.raw_millicores[executor] <= demand.peak_millicores[executor] + 1e-6


def test_a_long_rise_counts_before_it_arrives_where_it_fills_the_cluster() -> None:
    rising = [100.0 + 20.0 * n for n in range(10)]
    seen = picture(*rising)
    found = demand_of(seen)
    assert found.coming_millicores[WORK[0]] > 1.5 * found.raw_millicores[WORK[0]]
    coming = sum(found.of_coming().room_millicores.values())
    roomy, tight = (
        replace(seen, supervisors=(Supervisor("s1", "a", (6700,), times * coming),)) for times in (3.0, 1.1)
    )
    assert not with_room_that_fits(found, roomy, 1.0).coming_millicores
    assert with_room_that_fits(found, tight, 1.0).coming_millicores == found.coming_millicores
    small = replace(seen, supervisors=(Supervisor("s1", "a", (6700,), 0.8 * coming),))
    cut = with_room_that_fits(found, small, 1.0)
    assert cut.of_coming().total(WORK) <= 0.8 * coming
    unknown = replace(seen, supervisors=(Supervisor("s1", "a", (6700,), None),))
    assert not with_room_that_fits(found, unknown, 1.0).coming_millicores


@pytest.mark.parametrize("arrived", [[100.0, 120.0, 140.0, 160.0, 180.0], [100.0] * 5 + [200.0] * 5, [150.0] * 10])
def test_a_short_rise_a_step_and_rest_are_not_to_come(arrived: list[float]) -> None:
    assert not demand_of(picture(*arrived)).coming_millicores


@pytest.mark.parametrize("part", [0.25, 0.5, 0.75])
@pytest.mark.parametrize("periods", [8, 9, 10])
def test_a_step_within_a_period_is_not_to_come(periods: int, part: float) -> None:
    for low in range(1, periods):
        assert not demand_of(picture(*stepping(periods, low, part))).coming_millicores


@pytest.mark.parametrize("missed", [1, 2, 5, 360])
@pytest.mark.parametrize("since", range(1, 10))
def test_a_step_while_nobody_measured_is_no_growth(missed: int, since: int) -> None:
    """A worker that died, and then works off what waited."""
    steady = demand_of(picture(*[300.0] * 10))
    stepped = picture(*[200.0] * (10 - since), *[300.0] * since)
    earlier = tuple(
        replace(period, ended_at_seconds=period.ended_at_seconds - missed * period.period_seconds)
        for period in stepped.history[:-since]
    )
    found = demand_of(replace(stepped, history=(*earlier, *stepped.history[-since:])))
    assert not found.coming_millicores
    need = found.raw_millicores[WORK[0]]
    assert found.room_millicores[WORK[0]] <= (1.0 + SCHEDULING.spare_fraction) * max(
        need, steady.raw_millicores[WORK[0]]
    )
