"""CPU per executor: the worked numbers of Liu's equations 2-5, up at once, down late, and what we add."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import chain_topology, component_load, history, snapshot, supervisors
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.demand import allocation, cpu_per_tuple, estimate_demand, executors_without_demand, held_share
from storm_operator.core.model import ExecutorLoad
from storm_operator.core.settings import Enforcement, ResourceSettings
from storm_operator.core.snapshot import ClusterSnapshot, ComponentLoad

PAPER = ResourceSettings(theta_millicores=20, floor_millicores=0, ceiling_millicores=100)
"""The paper's unit is a percent of a core: theta = 20 and at most 100."""

TOPOLOGY = chain_topology("t", ("spout", 1), ("work", 4))
SPOUT, *WORKERS = TOPOLOGY.executors


def picture(work: list[ComponentLoad], used: list[float] | None = None) -> ClusterSnapshot:
    loads = {e: ExecutorLoad(cpu_millicores=u) for e, u in zip(WORKERS, used or [], strict=False)}
    return snapshot((TOPOLOGY,), supervisors(1), periods=history("t", {"work": work}), loads=loads)


def same(millicores: float, raw: float) -> Demand:
    return Demand(dict.fromkeys(WORKERS, millicores), dict.fromkeys(WORKERS, raw))


@pytest.mark.parametrize(
    ("need", "expected"),
    [(0, 20), (10, 20), (10.1, 40), (30, 40), (31, 60), (50, 60), (70, 80), (89, 100), (95, 100), (300, 100)],
)
def test_equation_5_with_the_papers_theta(need: float, expected: float) -> None:
    assert allocation(need, PAPER) == expected


def test_floor_and_ceiling() -> None:
    settings = ResourceSettings(theta_millicores=50, floor_millicores=100, ceiling_millicores=1000)
    assert [allocation(need, settings) for need in (0, 60, 5000)] == [100, 100, 1000]


def test_rounding_noise_costs_no_step() -> None:
    assert allocation(0.1 * 3 * 100, PAPER) == 40  # 30.000000000000004


@given(st.floats(0, 90))
def test_an_allocation_has_half_a_theta_to_spare(need: float) -> None:
    given_millicores = allocation(need, PAPER)
    assert given_millicores - need >= 10 - 1e-6 or given_millicores == 100
    assert given_millicores - need < 30 + 1e-6


def test_equation_2_is_the_mean_of_ratios() -> None:
    assert cpu_per_tuple([component_load(100, cpu=100), component_load(50, cpu=100)]) == pytest.approx(1.5)


def test_kappa_divides_by_what_was_executed() -> None:
    assert cpu_per_tuple([component_load(200, executed=100, growth=100, cpu=300)]) == pytest.approx(3)


def test_idle_periods_say_nothing_about_the_cost_of_a_tuple() -> None:
    assert cpu_per_tuple([component_load(1000, cpu=500), component_load(1, cpu=50)]) == pytest.approx(0.5)
    assert cpu_per_tuple([component_load(0, cpu=50)]) is None


def test_equations_2_to_5_together() -> None:
    # kappa = 200 / 100 = 2; psi = 120 (a line through 100, 110); R = 2 * 120 = 240; r = 60; r^ = ceil(70/20) * 20.
    demand = estimate_demand(picture([component_load(100, cpu=200), component_load(110, cpu=220)]), None, PAPER, 5)
    assert [demand.raw_millicores[e] for e in WORKERS] == pytest.approx([60] * 4)
    assert [demand.millicores[e] for e in WORKERS] == [80] * 4


def test_a_saturated_component_needs_its_arrivals_and_its_backlog() -> None:
    # 100 arrive, 50 are executed at 4 each: kappa 4, psi = 100 + 50, r = 150 instead of the 50 that were measured.
    settings = ResourceSettings(theta_millicores=20, floor_millicores=0, ceiling_millicores=1000)
    demand = estimate_demand(picture([component_load(100, executed=50, growth=50, cpu=200)]), None, settings, 5)
    assert demand.raw_millicores[WORKERS[0]] == pytest.approx(150)


def test_up_at_once_and_down_only_after_half_a_theta() -> None:
    assert held_share(50.1, 50, 20) == 50.1
    assert held_share(40.1, 50, 20) == 50
    assert held_share(40, 50, 20) == 40
    assert held_share(7, None, 20) == 7


def test_a_slow_fall_accumulates() -> None:
    demand: Demand | None = None
    held = []
    for arrived in (100, 94, 88, 80, 76):  # shares 50, 47, 44, 40, 38
        demand = estimate_demand(picture([component_load(arrived, cpu=arrived * 2)]), demand, PAPER, 1)
        held.append(demand.raw_millicores[WORKERS[0]])
    assert held == pytest.approx([50, 50, 50, 40, 40])


def test_what_nobody_measured_has_no_demand() -> None:
    one = picture([component_load(100, cpu=200)])
    demand = estimate_demand(one, None, PAPER, 5)
    assert executors_without_demand(one, demand) == (SPOUT,)
    assert set(demand.millicores) == set(WORKERS)


def test_a_component_with_known_parents_but_unknown_cpu_has_no_demand() -> None:
    loads = history("t", {"spout": [component_load(100, cpu=50)]})
    assert set(estimate_demand(snapshot((TOPOLOGY,), supervisors(1), periods=loads), None, PAPER, 5).millicores) == {
        SPOUT
    }


def test_an_idle_component_needs_what_it_uses() -> None:
    demand = estimate_demand(picture([component_load(0, cpu=40)]), None, PAPER, 5)
    assert demand.raw_millicores[WORKERS[0]] == pytest.approx(10)


def test_where_one_executor_is_skewed_each_gets_what_it_uses() -> None:
    demand = estimate_demand(picture([component_load(100, cpu=200)], [110, 30, 30, 30]), None, PAPER, 5)
    assert [demand.raw_millicores[e] for e in WORKERS] == pytest.approx([110, 30, 30, 30])


def test_between_noise_and_skew_shares_pass_from_even_to_own() -> None:
    """Where the busiest is a quarter above the mean, a little more or less use changes shares by as little."""
    loads = [component_load(100, cpu=200)]
    less, more = (
        estimate_demand(picture(loads, used), None, PAPER, 5)
        for used in ([62.0, 62.0, 62.0, 14.0], [63.0, 62.0, 61.0, 14.0])
    )
    for executor in WORKERS:
        assert more.raw_millicores[executor] == pytest.approx(less.raw_millicores[executor], abs=4.0)
    assert 14.0 < less.raw_millicores[WORKERS[3]] < 50.0
    assert sum(less.raw_millicores[e] for e in WORKERS) == pytest.approx(200.0)


def test_noise_is_not_skew() -> None:
    demand = estimate_demand(picture([component_load(100, cpu=200)], [55, 45, 52, 48]), None, PAPER, 5)
    assert [demand.raw_millicores[e] for e in WORKERS] == pytest.approx([50] * 4)


def test_where_the_use_of_one_executor_is_unknown_all_get_the_same() -> None:
    demand = estimate_demand(picture([component_load(100, cpu=200)], [110, 30, 30]), None, PAPER, 5)
    assert [demand.raw_millicores[e] for e in WORKERS] == pytest.approx([50] * 4)


def test_where_none_of_them_used_any_cpu_all_get_the_same() -> None:
    demand = estimate_demand(picture([component_load(100, cpu=200)], [0.0] * 4), None, PAPER, 5)
    assert [demand.raw_millicores[e] for e in WORKERS] == pytest.approx([50] * 4)


def test_an_executor_that_is_new_is_held_back_by_no_limit() -> None:
    now = picture([component_load(100, cpu=4 * 39.5)], [39.5] * 4)
    known = Demand(dict.fromkeys(WORKERS[:3], 40.0), dict.fromkeys(WORKERS[:3], 30.0))
    assert estimate_demand(now, known, PAPER, 5).raw_millicores[WORKERS[3]] == pytest.approx(39.5)


@pytest.mark.parametrize(
    ("enforcement", "used", "expected"),
    [(Enforcement.EXECUTOR, 39.5, 80), (Enforcement.EXECUTOR, 30, 40), (Enforcement.NONE, 39.5, 60)],
)
def test_running_at_the_limit_asks_for_two_steps(enforcement: Enforcement, used: float, expected: float) -> None:
    settings = ResourceSettings(20, 0, 100, enforcement)
    now = picture([component_load(100, cpu=4 * used)], [used] * 4)
    assert estimate_demand(now, same(40, 30), settings, 5).millicores[WORKERS[0]] == expected


def test_a_limit_that_is_not_in_force_is_not_one() -> None:
    now = picture([component_load(100, cpu=4 * 55)], [55] * 4)
    assert estimate_demand(now, same(40, 30), PAPER, 5).raw_millicores[WORKERS[0]] == pytest.approx(55)


@given(st.lists(st.floats(0, 1e4), min_size=1, max_size=6), st.floats(0, 2000), st.floats(1, 300))
def test_always_within_floor_and_ceiling_and_in_steps(arrived: list[float], cpu: float, theta: float) -> None:
    settings = ResourceSettings(theta, 100, 1000)
    demand = estimate_demand(picture([component_load(a, cpu=cpu) for a in arrived]), None, settings, 5)
    for executor in WORKERS:
        given_millicores = demand.millicores[executor]
        assert 100 <= given_millicores <= 1000
        assert given_millicores in (100, 1000) or given_millicores / theta == pytest.approx(
            round(given_millicores / theta)
        )


def test_back_pressure_hides_a_need_for_three_periods_at_most() -> None:
    """Each of four executors needs 900; what is held back upstream never arrives, so that only the limit tells."""
    settings = ResourceSettings()
    demand = same(200, 100)
    limits = []
    for _ in range(4):
        limit = demand.millicores[WORKERS[0]]
        used = min(limit, 900.0)
        now = picture([component_load(arrived=4 * used, cpu=4 * used)], [used] * 4)
        demand = estimate_demand(now, demand, settings, 1)
        limits.append(demand.millicores[WORKERS[0]])
    assert limits == [600, 1000, 1000, 1000]
