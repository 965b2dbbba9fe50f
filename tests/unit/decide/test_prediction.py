"""Prediction: traffic, CPU and latency of an assignment from measured rates."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import (
    chain_topology,
    even_traffic,
    graph_topology,
    latency,
    network_path_ms,
    placed,
    placement_settings,
    same_demand,
    snapshot,
    supervisors,
)
from storm_operator.core.model import (
    ACKER_COMPONENT,
    Assignment,
    Component,
    ComponentKind,
    Edge,
    Executor,
    Topology,
    WorkerSlot,
)
from storm_operator.core.prediction import predict
from storm_operator.core.proposed_change import examine_proposal
from storm_operator.core.settings import PlacementSettings

LINE = chain_topology("line", ("spout", 1), ("a", 2), ("b", 1))
APART = placed(LINE, {"spout": "s1", "a": "s2", "b": "s1:6701"})
TOGETHER = placed(LINE, {"spout": "s1", "a": "s1", "b": "s1"})


def test_all_figures_of_a_line() -> None:
    picture = snapshot(
        [LINE], supervisors(2), APART, rates=even_traffic(LINE, 100), topology_rates={"line": latency(10)}
    )
    demand = same_demand([LINE], 500)
    apart = predict(picture, Assignment(APART), demand, placement_settings([LINE]))
    assert apart.inter_supervisor_tuples_per_second == pytest.approx(200)
    assert apart.inter_worker_tuples_per_second == pytest.approx(200)
    assert apart.network_usage == pytest.approx(200 * 4)
    assert apart.supervisors_used == 2
    assert apart.overloaded_millicores == pytest.approx(2 * (1000 - 900))
    assert apart.complete_latency_ms == pytest.approx(10)
    together = predict(picture, Assignment(TOGETHER), demand, placement_settings([LINE]))
    assert together.inter_worker_tuples_per_second == 0
    assert together.overloaded_millicores == pytest.approx(2000 - 900)
    # Two hops of half a round trip of 4 ms each are saved.
    assert together.complete_latency_ms == pytest.approx(6)


def test_only_part_of_the_tuples_pays_a_hop() -> None:
    half = {**TOGETHER, LINE.executors_of("a")[0]: APART[LINE.executors_of("a")[0]]}
    picture = snapshot([LINE], supervisors(2), half, rates=even_traffic(LINE, 100))
    assert network_path_ms(picture, LINE, Assignment(half)) == pytest.approx(2)


def test_the_slowest_branch_counts() -> None:
    fork = graph_topology(
        "f", {"s": 1, "near": 1, "far": 1}, [Edge("s", "d", "near", "shuffle"), Edge("s", "d", "far", "shuffle")]
    )
    here = placed(fork, {"s": "s1", "near": "s1:6701", "far": "s2"})
    picture = snapshot([fork], supervisors(2), here, rates=even_traffic(fork, 10))
    assert network_path_ms(picture, fork, Assignment(here)) == pytest.approx(2)


def acked_chain() -> Topology:
    plain = chain_topology("t", ("spout", 1), ("bolt", 1))
    acker = Executor("t", 3, 3, ACKER_COMPONENT)
    components = (*plain.components, Component(ACKER_COMPONENT, ComponentKind.ACKER, 1))
    return replace(plain, components=components, executors=(*plain.executors, acker))


@pytest.mark.parametrize(
    ("spout", "bolt", "acker", "path_ms"),
    [
        ("s1", "s1", "s2", 0),  # both messages are as long under way: the acker sees no time between them
        ("s1", "s2", "s2", 0),  # the spout's message takes as long as its tuple, the ack no time
        ("s1", "s2", "s1", 4),  # the acker hears at once of the tree; the tuple goes there, its ack comes back
        ("s1", "s2", "s3", 2),
    ],
)
def test_latency_is_what_the_acker_sees(spout: str, bolt: str, acker: str, path_ms: float) -> None:
    acked = acked_chain()
    first, second, third = acked.executors
    here = placed(acked, {"spout": spout, "bolt": bolt, ACKER_COMPONENT: acker})
    rates = {(first, second): 10.0, (first, third): 10.0, (second, third): 10.0, (third, first): 10.0}
    picture = snapshot([acked], supervisors(3), here, rates=rates)
    assert network_path_ms(picture, acked, Assignment(here)) == pytest.approx(path_ms)


def test_each_spout_begins_trees_of_its_own() -> None:
    """The near spout's message to the acker says nothing about the trees of the far one."""
    plain = graph_topology(
        "t", {"near": 1, "far": 1, "bolt": 1}, [Edge(spout, "d", "bolt", "shuffle") for spout in ("near", "far")]
    )
    acker = Executor("t", 4, 4, ACKER_COMPONENT)
    components = (*plain.components, Component(ACKER_COMPONENT, ComponentKind.ACKER, 1))
    acked = replace(plain, components=components, executors=(*plain.executors, acker))
    here = placed(acked, {"near": "s1", "far": "s2", "bolt": "s1", ACKER_COMPONENT: "s1"})
    rates = even_traffic(plain, 10) | {(executor, acker): 10.0 for executor in plain.executors}
    assert network_path_ms(snapshot([acked], supervisors(2), here, rates=rates), acked, Assignment(here)) == 0


@pytest.mark.parametrize(("again", "expected_ms"), [(0.0, 4.0), (5.0, 8.0)])
def test_a_tuple_goes_round_a_cycle_as_often_as_it_is_sent_back(again: float, expected_ms: float) -> None:
    """One of two that the second bolt gets goes back to the first: on average each goes round once more."""
    edges = [Edge("s", "d", "a", "shuffle"), Edge("a", "d", "b", "shuffle"), Edge("b", "x", "a", "shuffle")]
    loop = graph_topology("t", {"s": 1, "a": 1, "b": 1}, edges)
    spout, first, second = loop.executors
    here = placed(loop, {"s": "s1", "a": "s2", "b": "s1"})
    rates = {(spout, first): 5.0, (first, second): 5.0 + again, (second, first): again}
    picture = snapshot([loop], supervisors(2), here, rates={pair: rate for pair, rate in rates.items() if rate})
    assert network_path_ms(picture, loop, Assignment(here)) == pytest.approx(expected_ms, rel=0.02)


def test_latency_that_the_network_does_not_explain_stays() -> None:
    """Less was measured than the network alone should take: the new network time is all that can be said."""
    picture = snapshot(
        [LINE], supervisors(2), APART, rates=even_traffic(LINE, 100), topology_rates={"line": latency(1)}
    )
    after = predict(picture, Assignment(TOGETHER), same_demand([LINE]), placement_settings([LINE]))
    assert after.complete_latency_ms == 0


def test_unknown_latency_stays_unknown_and_others_traffic_is_left_out() -> None:
    other = chain_topology("other", ("spout", 1), ("bolt", 1))
    here = APART | placed(other, {"spout": "s1:6702", "bolt": "s2:6702"})
    picture = snapshot([LINE, other], supervisors(2), here, rates=even_traffic(LINE, 100) | even_traffic(other, 7))
    demand = same_demand([LINE, other])
    managed = predict(picture, Assignment(here), demand, placement_settings([LINE]))
    everything = predict(picture, Assignment(here), demand, PlacementSettings())
    assert managed.complete_latency_ms is None
    assert managed.inter_supervisor_tuples_per_second == pytest.approx(200)
    assert everything.inter_supervisor_tuples_per_second == pytest.approx(207)


@pytest.mark.parametrize(("others_place", "in_use"), [("s1:6702", 1), ("s2:6702", 2)])
def test_a_supervisor_that_others_keep_in_use_is_not_saved(others_place: str, in_use: int) -> None:
    other = chain_topology("other", ("spout", 1))
    theirs = placed(other, {"spout": others_place})
    picture = snapshot([LINE, other], supervisors(2), APART | theirs, rates=even_traffic(LINE, 100))
    demand = same_demand([LINE, other])
    together = predict(picture, Assignment(TOGETHER | theirs), demand, placement_settings([LINE]))
    assert together.supervisors_used == in_use


@pytest.mark.parametrize(
    ("in_force", "proposed", "need", "is_told"),
    [
        (APART, TOGETHER, 100, True),
        (TOGETHER, APART, 500, False),  # s1 is relieved: nothing tells how long tuples wait for its CPU now
        (APART, TOGETHER, 500, True),  # s1 gets more than it has: they will wait longer than the figure says
        (
            {e: s for e, s in APART.items() if e.component != "a"},
            TOGETHER,
            100,
            True,
        ),  # what is acked does without them
    ],
)
def test_no_latency_is_told_where_waiting_ends(
    in_force: dict[Executor, WorkerSlot], proposed: dict[Executor, WorkerSlot], need: float, is_told: bool
) -> None:
    picture = snapshot(
        [LINE], supervisors(2), in_force, rates=even_traffic(LINE, 100), topology_rates={"line": latency(10)}
    )
    change = examine_proposal(picture, same_demand([LINE], need), Assignment(proposed), placement_settings([LINE]))
    assert change is not None
    assert change.before.complete_latency_ms == pytest.approx(10)
    assert (change.after.complete_latency_ms is not None) == is_told
