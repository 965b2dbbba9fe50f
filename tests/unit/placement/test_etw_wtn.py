"""Algorithms ETW and WTN of Jayalakshmi et al., and the criteria for rescheduling that their monitors watch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import chain_topology, placed, placement_settings, same_demand, snapshot, supervisors
from placement_cases import Case, placed_or_fail
from storm_operator.core.model import Assignment, Infeasible
from storm_operator.core.placement.etw_wtn import place_etw_wtn
from storm_operator.core.snapshot import LoadPeriod

BETWEEN_CHECKS = 1020.0
AT_A_CHECK = 1050.0

CHAIN = replace(chain_topology("chain", ("spout", 2), ("bolt", 2)), num_workers=2)
SPOUT_1, SPOUT_2, BOLT_1, BOLT_2 = CHAIN.executors
STREAMS = {(SPOUT_1, BOLT_2): 100.0, (SPOUT_2, BOLT_1): 90.0}
CROSSED = placed(CHAIN, {"spout": ["s1", "s2"], "bolt": ["s1", "s2"]})
STRAIGHT = placed(CHAIN, {"spout": ["s1", "s2"], "bolt": ["s2", "s1"]})


def case_at(seconds: float, capacity: float = 1000.0, cpu_of_s1: float = 0.0) -> Case:
    picture = snapshot((CHAIN,), supervisors(2, capacity=capacity), CROSSED, rates=STREAMS)
    history = (LoadPeriod(seconds, 10.0, {}, {"s1": cpu_of_s1}),)
    picture = replace(picture, taken_at_seconds=seconds, period_seconds=10.0, history=history)
    return Case(picture, same_demand((CHAIN,), 400.0), placement_settings((CHAIN,)))


def place(case: Case) -> Assignment:
    return placed_or_fail(place_etw_wtn(case.snapshot, case.demand, case.settings))


def together(assignment: Assignment) -> set[frozenset[str]]:
    return {frozenset(executor.label for executor in inside) for inside in assignment.workers().values()}


def test_etw_puts_the_pairs_with_most_traffic_into_one_worker_each() -> None:
    assert together(place(case_at(AT_A_CHECK))) == {frozenset({"1-1", "4-4"}), frozenset({"2-2", "3-3"})}


def test_wtn_puts_interacting_workers_on_one_node_as_far_as_its_load_capacity_goes() -> None:
    linked = STREAMS | {(SPOUT_1, BOLT_1): 1.0}
    tight, roomy = (case_at(AT_A_CHECK, capacity) for capacity in (1000.0, 2000.0))
    for case, nodes in ((tight, 2), (roomy, 1)):
        picture = replace(case.snapshot, traffic=snapshot((CHAIN,), (), rates=linked).traffic)
        assert len(place(replace(case, snapshot=picture)).used_supervisors()) == nodes


def test_the_criteria_are_checked_at_intervals() -> None:
    between = case_at(BETWEEN_CHECKS, cpu_of_s1=950.0)
    assert place(between) == between.snapshot.assignment


def test_the_traffic_manager_objects_to_any_schedule_that_can_be_bettered() -> None:
    worse = case_at(AT_A_CHECK)
    assert place(worse) != worse.snapshot.assignment
    best = case_at(AT_A_CHECK).in_force(Assignment(STRAIGHT))
    assert place(best) == best.snapshot.assignment


@pytest.mark.parametrize(("cpu", "moves"), [(900.0, True), (899.0, False)])
def test_the_load_monitor_objects_to_a_node_at_its_load_capacity(cpu: float, moves: bool) -> None:
    # Both workers on s1: no traffic between nodes that could fall, but s1 needs 1600 of its 1000 millicores.
    crowded = placed(CHAIN, {"spout": ["s1:6700", "s1:6701"], "bolt": ["s1:6701", "s1:6700"]})
    case = case_at(AT_A_CHECK, cpu_of_s1=cpu).in_force(Assignment(crowded))
    assert (len(place(case).used_supervisors()) == 2) == moves


def test_the_load_monitor_does_not_object_to_a_node_that_others_fill() -> None:
    case = case_at(AT_A_CHECK, cpu_of_s1=950.0)
    elsewhere = placed(CHAIN, {"spout": ["s2:6700", "s2:6701"], "bolt": ["s2:6701", "s2:6700"]})
    case = case.in_force(Assignment(elsewhere))
    assert place(case) == case.snapshot.assignment


def test_an_executor_without_a_place_waits_for_no_interval() -> None:
    case = case_at(BETWEEN_CHECKS).in_force(Assignment({SPOUT_1: CROSSED[SPOUT_1]}))
    assert set(place(case).slot_of) == set(CHAIN.executors)


def test_alpha_bounds_the_executors_of_a_worker() -> None:
    all_together = {(SPOUT_1, other): 100.0 for other in (SPOUT_2, BOLT_1, BOLT_2)}
    case = case_at(AT_A_CHECK, capacity=10_000.0)
    case = replace(case, snapshot=replace(case.snapshot, traffic=snapshot((CHAIN,), (), rates=all_together).traffic))
    sizes = [len(inside) for inside in place(case).workers().values()]
    assert sorted(sizes) == [2, 2]
    uneven = case.under(parameters=(("alpha", 1.0),)).in_force(Assignment({}))
    assert sorted(len(inside) for inside in place(uneven).workers().values()) == [1, 3]


def test_too_few_slots() -> None:
    case = case_at(AT_A_CHECK).in_force(Assignment({}))
    one_slot = (replace(case.snapshot.supervisors[0], ports=(6700,)),)
    result = place_etw_wtn(replace(case.snapshot, supervisors=one_slot), case.demand, case.settings)
    assert result == Infeasible("2 workers are asked for but only 1 slots are free")
