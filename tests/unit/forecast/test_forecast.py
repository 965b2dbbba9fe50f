"""Load forecast: least squares over the past, the parents' estimate, the larger one."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import (
    PERIOD_SECONDS,
    chain_topology,
    component_load,
    even_traffic,
    graph_topology,
    history,
    snapshot,
    supervisors,
)
from storm_operator.core.forecast import LoadForecast, forecast_load, forecast_loads, forecast_series
from storm_operator.core.model import ACKER_COMPONENT, Component, ComponentKind, Edge, Executor, ExecutorLoad, Topology
from storm_operator.core.settings import Forecast
from storm_operator.core.snapshot import ClusterSnapshot, ComponentLoad
from storm_operator.core.traffic import TrafficMatrix

CHAIN = chain_topology("t", ("spout", 1), ("split", 2), ("count", 2))


def loads(*arrived: float) -> list[ComponentLoad]:
    return [component_load(value) for value in arrived]


def with_waiting(component: str, tuples: float) -> ClusterSnapshot:
    """100 tuples a second through CHAIN, and so many that wait at each executor of `component`."""
    periods = history("t", {name: loads(100, 100) for name in ("spout", "split", "count")})
    queued = {executor: ExecutorLoad(queue_length=tuples) for executor in CHAIN.executors_of(component)}
    return snapshot((CHAIN,), supervisors(1), periods=periods, loads=queued)


def to_process(seen: ClusterSnapshot) -> list[float]:
    found = forecast_loads(seen, 5, Forecast.DAMPED_TREND)
    return [found["t", name].to_process_per_second for name in ("spout", "split", "count")]


def test_a_line_is_continued() -> None:
    assert forecast_series([(10, 100), (20, 110), (30, 120)], 40) == pytest.approx(130)


def test_least_squares_of_a_noisy_series() -> None:
    # Mean 16, mean time 30, slope (sum of dt*dv) / (sum of dt^2) = 400 / 1000: 16 + 0.4 * 30 at t = 60.
    points = [(10.0, 10.0), (20.0, 10.0), (30.0, 20.0), (40.0, 10.0), (50.0, 30.0)]
    assert forecast_series(points, 60) == pytest.approx(28)


def test_a_steep_fall_ends_at_zero() -> None:
    assert forecast_series([(10, 100), (20, 40)], 30) == 0.0


def test_times_since_1970_lose_no_digits() -> None:
    start = 1.8e9
    assert forecast_series([(start, 1), (start + 10, 2), (start + 20, 3)], start + 30) == pytest.approx(4, abs=1e-9)


def test_one_period_is_repeated_and_none_is_unknown() -> None:
    one = forecast_load(CHAIN, history("t", {"spout": loads(70)}), 5)
    assert one["spout"].arrivals_per_second == 70
    assert forecast_load(CHAIN, (), 5) == {}


def test_only_the_last_phi_periods_count() -> None:
    periods = history("t", {"spout": loads(9000, 100, 110, 120)})
    assert forecast_load(CHAIN, periods, 3)["spout"].arrivals_per_second == pytest.approx(130)


def test_the_parents_win_when_they_announce_more() -> None:
    # The spout rises to 130/s and split emits 3 words a line; count itself was only seen at 300 and falling.
    periods = history(
        "t",
        {
            "spout": loads(100, 110, 120),
            "split": [component_load(a, emitted=3 * a) for a in (100, 100, 100)],
            "count": loads(320, 310, 300),
        },
    )
    forecasts = forecast_load(CHAIN, periods, 5)
    assert forecasts["split"].arrivals_per_second == pytest.approx(130)
    assert forecasts["count"].arrivals_per_second == pytest.approx(390)


def test_a_components_own_past_wins_when_it_says_more() -> None:
    periods = history("t", {"spout": loads(100, 100), "split": loads(100, 200)})
    assert forecast_load(CHAIN, periods, 5)["split"].arrivals_per_second == pytest.approx(300)


def test_a_growing_queue_is_work_for_the_component_and_its_children() -> None:
    # Equation 1: psi = L + delta = 100 + 20, times rho = 2.
    slow = [component_load(100, executed=80, emitted=160, growth=20)] * 2
    forecasts = forecast_load(CHAIN, history("t", {"split": slow, "count": loads(160, 160)}), 5)
    assert forecasts["split"].to_process_per_second == pytest.approx(120)
    assert forecasts["count"].arrivals_per_second == pytest.approx(240)


def test_a_shrinking_queue_takes_nothing_from_the_arrivals() -> None:
    assert LoadForecast(100, -40).to_process_per_second == 100


def test_delta_and_rho_are_means_over_the_periods() -> None:
    split = [
        component_load(100, executed=100, emitted=100, growth=0),
        component_load(100, executed=100, emitted=300, growth=20),
    ]
    forecasts = forecast_load(CHAIN, history("t", {"split": split}), 5)
    assert forecasts["split"].queue_growth_per_second == 10
    assert forecasts["count"].arrivals_per_second == pytest.approx(110 * 2)


def test_a_window_that_is_flushed_while_its_source_pauses_is_not_announced_for_every_tuple() -> None:
    steady = component_load(1000, emitted=100)
    flush = component_load(0.5, emitted=90)
    split = [steady, steady, flush, steady, steady]
    periods = history("t", {"split": split, "count": loads(100, 100, 90, 100, 100)})
    assert forecast_load(CHAIN, periods, 5)["count"].arrivals_per_second <= 200


def test_a_spouts_emissions_are_its_load() -> None:
    """Storm counts acks as executed by a spout, or nothing at all."""
    spout = [component_load(0, executed=0, emitted=50)]
    forecasts = forecast_load(CHAIN, history("t", {"spout": spout}), 5)
    assert forecasts["spout"].arrivals_per_second == 50
    assert forecasts["split"].arrivals_per_second == 50


def test_what_waits_at_a_spout_are_acks_and_no_work_of_those_that_follow() -> None:
    assert to_process(with_waiting("spout", 20_000.0)) == pytest.approx([100, 100, 100])
    assert to_process(with_waiting("split", 500.0)) == pytest.approx([100, 200, 200])


def test_a_flush_of_storms_own_in_the_queue_of_a_bolt_with_little_to_do_is_no_work() -> None:
    """Where a topology batches one comes each millisecond: it would double the CPU of a bolt with few tuples."""
    assert to_process(with_waiting("split", 1.0)) == pytest.approx([100, 100, 100])
    assert to_process(with_waiting("split", 50.0)) == pytest.approx([100, 110, 110])


def test_what_waits_has_a_whole_period_to_be_worked_off_however_soon_the_pass_comes() -> None:
    """A pass follows a late one at once; its rates are of readings that are further apart."""
    seen = with_waiting("split", 500.0)
    soon = dataclasses.replace(seen, period_seconds=0.35)
    assert to_process(soon) == pytest.approx(to_process(seen))
    late = dataclasses.replace(seen, period_seconds=2.0 * PERIOD_SECONDS)
    assert to_process(late) == pytest.approx([100, 150, 150])


def test_traffic_tells_a_parents_children_apart() -> None:
    edges = [Edge("spout", "big", "a", "shuffle"), Edge("spout", "small", "b", "shuffle")]
    fork = graph_topology("t", {"spout": 1, "a": 1, "b": 1}, edges)
    spout, a, b = fork.executors
    periods = history("t", {"spout": loads(100, 100)})
    by_paper = forecast_load(fork, periods, 5)
    measured = forecast_load(fork, periods, 5, TrafficMatrix({(spout, a): 90.0, (spout, b): 10.0}))
    assert [by_paper[name].arrivals_per_second for name in "ab"] == pytest.approx([100, 100])
    assert [measured[name].arrivals_per_second for name in "ab"] == pytest.approx([90, 10])


def test_an_edge_that_idles_inherits_nothing_and_one_that_nobody_measured_all() -> None:
    edges = [Edge("spout", "default", "work", "shuffle"), Edge("spout", "errors", "errors", "shuffle")]
    fork = graph_topology("t", {"spout": 1, "work": 1, "errors": 1}, edges)
    spout, work, _ = fork.executors
    series = {"spout": loads(5000, 5000), "work": loads(5000, 5000)}
    traffic = TrafficMatrix({(spout, work): 5000.0})
    idle = forecast_load(fork, history("t", {**series, "errors": loads(1, 0)}), 5, traffic)
    assert idle["errors"].arrivals_per_second < 1.0
    assert idle["work"].arrivals_per_second == pytest.approx(5000)
    unknown = forecast_load(fork, history("t", series), 5, traffic)
    assert unknown["errors"].arrivals_per_second == pytest.approx(5000)


def acked_filter() -> Topology:
    """spout -> few -> end, all acked."""
    names = ("spout", "few", "end")
    plain = chain_topology("t", *((name, 1) for name in names))
    acker = Component(ACKER_COMPONENT, ComponentKind.ACKER, 1)
    executor = Executor("t", 4, 4, ACKER_COMPONENT)
    acks = (Edge(name, "__ack", ACKER_COMPONENT, "fields") for name in names)
    return dataclasses.replace(
        plain,
        components=(*plain.components, acker),
        edges=(*plain.edges, *acks),
        executors=(*plain.executors, executor),
    )


def acked_forecast(*emitted: float) -> Mapping[str, LoadForecast]:
    """1,000 tuples a second through a bolt that emits so many of them, period by period; all of them are acked."""
    topology = acked_filter()
    spout, few, end, acker = topology.executors
    newest = emitted[-1]
    flows = {(spout, few): 1000.0, (few, end): newest, (spout, acker): 1000.0, (few, acker): 1000.0}
    periods = history(
        "t",
        {
            "spout": [component_load(1000) for _ in emitted],
            "few": [component_load(1000, emitted=value) for value in emitted],
            "end": [component_load(value, emitted=0) for value in emitted],
            ACKER_COMPONENT: [component_load(2000 + value, emitted=1000) for value in emitted],
        },
    )
    return forecast_load(topology, periods, 5, TrafficMatrix({**flows, (end, acker): newest}), Forecast.DAMPED_TREND)


def test_a_bolt_that_emits_less_than_a_moment_ago_sends_no_more_acks() -> None:
    for newest in (1.0, 0.0):
        found = acked_forecast(100, 100, 100, 100, newest)
        assert found[ACKER_COMPONENT].arrivals_per_second == pytest.approx(2000, rel=0.1)


def test_a_burst_of_emissions_is_not_announced_for_every_period() -> None:
    split = [component_load(100, emitted=value) for value in (0, 0, 0, 50)]
    sender, receiver = CHAIN.executors_of("split")[0], CHAIN.executors_of("count")[0]
    found = forecast_load(CHAIN, history("t", {"split": split}), 5, TrafficMatrix({(sender, receiver): 50.0}))
    assert found["count"].arrivals_per_second == pytest.approx(100 * 0.5 / 4)


def test_several_parents_add_up() -> None:
    edges = [Edge("x", "default", "join", "fields"), Edge("y", "default", "join", "fields")]
    join = graph_topology("t", {"x": 1, "y": 1, "join": 1}, edges)
    periods = history("t", {"x": loads(10), "y": loads(5)})
    assert forecast_load(join, periods, 5)["join"].arrivals_per_second == pytest.approx(15)


def test_a_cycle_is_tolerated() -> None:
    edges = [Edge("s", "default", "a", "shuffle"), Edge("a", "default", "b", "shuffle"), Edge("b", "x", "a", "shuffle")]
    loop = graph_topology("t", {"s": 1, "a": 1, "b": 1}, edges)
    periods = history("t", {"s": loads(10), "a": loads(12), "b": loads(12)})
    assert forecast_load(loop, periods, 5)["b"].arrivals_per_second == pytest.approx(12)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=7), st.integers(1, 6))
def test_never_negative_and_deterministic(values: list[float], phi: int) -> None:
    periods = history("t", {"spout": loads(*values)})
    traffic = TrafficMatrix(even_traffic(CHAIN, 10))
    forecasts = forecast_load(CHAIN, periods, phi, traffic)
    assert forecasts == forecast_load(CHAIN, periods, phi, traffic)
    assert all(f.to_process_per_second >= 0 for f in forecasts.values())


def test_ackers_answer_to_spouts_without_loading_them_and_without_hiding_who_feeds_whom() -> None:
    # Named so that the order of names is not the order of the graph, and with Storm's edge from the acker to the spout.
    plain = chain_topology("t", ("z", 1), ("m", 1), ("a", 1))
    acker = Component(ACKER_COMPONENT, ComponentKind.ACKER, 1)
    acks = [Edge(name, "__ack", ACKER_COMPONENT, "fields") for name in ("z", "m", "a")]
    acked = dataclasses.replace(
        plain,
        components=(*plain.components, acker),
        edges=(*plain.edges, *acks, Edge(ACKER_COMPONENT, "__ack_ack", "z", "direct")),
    )
    growing = loads(100, 110, 120)
    steady = [component_load(100) for _ in range(3)]
    found = forecast_load(
        acked, history("t", {"z": growing, "m": steady, "a": steady, ACKER_COMPONENT: loads(300, 330, 360)}), 5
    )
    assert found["z"].arrivals_per_second == pytest.approx(130)
    assert found["m"].arrivals_per_second == pytest.approx(130)
    assert found["a"].arrivals_per_second == pytest.approx(130)
