"""Section 3 and 3.1 of Aniello et al., DEBS'13, and the claims of section 4.1 that follow from them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import (
    chain_topology,
    even_traffic,
    graph_topology,
    placement_settings,
    same_demand,
    snapshot,
    supervisors,
)
from placement_cases import Case, acked_chain, placed_or_fail
from storm_operator.core.model import Assignment, Edge, Topology
from storm_operator.core.placement.aniello_offline import (
    linear_order,
    most_executors_in_slot,
    place_aniello_offline,
)


def case_of(topology: Topology, machines: int = 4, slots: int = 5, **parameters: float) -> Case:
    picture = snapshot((topology,), supervisors(machines, slots=slots), rates=even_traffic(topology, 100.0))
    case = Case(picture, same_demand((topology,)), placement_settings((topology,)))
    return case.under(parameters=tuple(sorted(parameters.items())))


def place(case: Case) -> Assignment:
    return placed_or_fail(place_aniello_offline(case.snapshot, case.demand, case.settings))


def local_share(case: Case, assignment: Assignment) -> float:
    traffic = case.snapshot.traffic
    return 1.0 - traffic.inter_worker(assignment) / traffic.total()


def reference_chain(stages: int, replication: int, workers: int) -> Topology:
    steps = [(f"stage{n}", replication) for n in range(stages)]
    return replace(chain_topology("reference", *steps), num_workers=workers)


@pytest.mark.parametrize(("alpha", "most"), [(0.0, 4), (0.05, 5), (0.2, 8), (1.0, 23)])
def test_alpha_of_the_evaluation(alpha: float, most: int) -> None:
    # "We varied alpha from 0 to 0.2, which corresponds to varying the maximum number of executors per slot from 4
    # to 8", and 5 at 0.05: 30 executors on 8 workers (section 4.1, figures 8 and 9). At 1 it is E - W + 1.
    assert most_executors_in_slot(30, 8, alpha) == most


def test_linear_order_puts_parents_first_and_leaves_acker_answers_out() -> None:
    diamond = graph_topology(
        "diamond",
        {"join": 1, "left": 1, "right": 1, "spout": 1},
        [
            Edge(a, "default", b, "shuffle")
            for a, b in (("spout", "left"), ("spout", "right"), ("left", "join"), ("right", "join"))
        ],
    )
    assert linear_order(diamond) == ("spout", "left", "right", "join")
    assert linear_order(acked_chain("acked", ("spout", 1), ("bolt", 1))) == ("spout", "bolt", "__acker")


def test_a_cycle_among_bolts_is_survived() -> None:
    edges = [Edge(a, "default", b, "shuffle") for a, b in (("spout", "a"), ("a", "b"), ("b", "a"))]
    assert linear_order(graph_topology("cycle", {"spout": 1, "a": 1, "b": 1}, edges)) == ("spout", "a", "b")


@pytest.mark.parametrize("replication", [2, 4])
def test_about_one_in_f_streams_becomes_local(replication: int) -> None:
    # "about 1/F of the tuples flowing among consecutive components get sent within the same node" (section 4.1).
    case = case_of(reference_chain(4, replication, replication), beta=1.0)
    assert local_share(case, place(case)) == pytest.approx(1.0 / replication)


def test_every_worker_is_used_and_slots_go_to_supervisors_in_turn() -> None:
    assignment = place(case_of(reference_chain(5, 2, 5)))
    assert len(assignment.workers()) == 5
    assert len(assignment.used_supervisors()) == 4


def test_a_topology_that_asks_for_no_worker_gets_one() -> None:
    assert len(place(case_of(reference_chain(3, 2, 0))).workers()) == 1


@pytest.mark.parametrize("alpha", [0.0, 0.2, 0.5, 1.0])
def test_no_slot_holds_more_than_m(alpha: float) -> None:
    assignment = place(case_of(reference_chain(6, 5, 8), machines=8, alpha=alpha))
    most = max(len(executors) for executors in assignment.workers().values())
    assert most <= most_executors_in_slot(30, 8, alpha)


@pytest.mark.parametrize(
    ("beta", "first_slot"),
    [
        (0.0, ["stage0"]),
        (0.5, ["stage0", "stage1", "stage2"]),
        (1.0, ["stage0", "stage1", "stage2", "stage3", "stage4"]),
    ],
)
def test_beta_decides_when_the_empty_slot_is_used(beta: float, first_slot: list[str]) -> None:
    # One executor a stage on two slots: from component floor(beta * 6) + 1 on the empty one is used. With beta = 1 that
    # never happens, and only M = 5 sends the last one there.
    assignment = place(case_of(reference_chain(6, 1, 2), alpha=1.0, beta=beta))
    beside_spout = next(
        executors
        for executors in assignment.workers().values()
        if any(executor.component == "stage0" for executor in executors)
    )
    assert [executor.component for executor in beside_spout] == first_slot


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("alpha", 1.5, "scheduling.parameters.alpha = 1.5: must be from 0 to 1"),
        ("beta", -0.1, "scheduling.parameters.beta = -0.1: must be from 0 to 1"),
        (
            "gamma",
            0.5,
            "scheduling.parameters.gamma = 0.5: policy aniello-offline has no such parameter; it has alpha, beta",
        ),
    ],
)
def test_a_wrong_parameter_is_named(name: str, value: float, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        place(case_of(reference_chain(2, 1, 1), beta=0.5).under(parameters=((name, value),)))
