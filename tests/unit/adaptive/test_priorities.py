"""Too little CPU for all: topologies of lower priority go short first, and are moved for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from builders import (
    NOW_SECONDS,
    PERIOD_SECONDS,
    chain_topology,
    component_load,
    even_traffic,
    placed,
    placement_settings,
    same_demand,
    snapshot,
    supervisors,
)
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.decide import decide
from storm_operator.core.decision import Plan
from storm_operator.core.decision_memory import DecisionMemory
from storm_operator.core.model import Assignment, Executor, ExecutorLoad, Infeasible, WorkerSlot
from storm_operator.core.placement.adaptive import place_adaptive
from storm_operator.core.placement.objective import cost_of, room_for_executors
from storm_operator.core.placement.priorities import RANK_FACTOR, outranking_millicores
from storm_operator.core.placement.tiers import place_tier_by_tier
from storm_operator.core.settings import Enforcement, PlacementSettings, ResourceSettings
from storm_operator.core.snapshot import ClusterSnapshot, ComponentLoad, LoadPeriod

HIGH, LOW, LOWER = (chain_topology(name, ("spout", 1), ("bolt", 1)) for name in ("high", "low", "lower"))
ALL = (HIGH, LOW, LOWER)
NEEDS = same_demand(ALL, 400.0)
"""Six executors of 400 on two supervisors of which 900 each may be filled: 600 too much."""
RISING = {"high": 3, "low": 2, "lower": 1}
ALIKE = dict.fromkeys(RISING, 1)


def cluster(where: Mapping[str, str], machines: int = 2) -> ClusterSnapshot:
    """Each topology on the slot of its name, all with the same traffic."""
    slot_of: dict[Executor, WorkerSlot] = {}
    rates: dict[tuple[Executor, Executor], float] = {}
    loads: dict[tuple[str, str], ComponentLoad] = {}
    for topology in ALL:
        slot_of |= placed(topology, {"spout": where[topology.id], "bolt": where[topology.id]})
        rates |= even_traffic(topology, 100.0)
        loads |= {(topology.id, component): component_load(100.0, 400.0) for component in ("spout", "bolt")}
    period = LoadPeriod(NOW_SECONDS, PERIOD_SECONDS, loads, {})
    return snapshot(ALL, supervisors(machines, capacity=1000.0), slot_of, rates=rates, periods=(period,))


def settings(priority: Mapping[str, int]) -> PlacementSettings:
    return replace(placement_settings(ALL), priority=priority)


def nobody_held(priority: Mapping[str, int]) -> PlacementSettings:
    """Who is on a supervisor that is too small goes short there whatever its priority."""
    return replace(settings(priority), resources=ResourceSettings(enforcement=Enforcement.NONE))


def measured(where: Mapping[str, str]) -> ClusterSnapshot:
    """What executors need is what they use, and supervisors use a tenth more."""
    picture = cluster(where)
    used = {at: 1.1 * NEEDS.total(residents) for at, residents in picture.assignment.residents().items()}
    of_each = {e: ExecutorLoad(cpu_millicores=need) for e, need in NEEDS.millicores.items()}
    return replace(picture, loads=of_each, supervisor_cpu_millicores=used)


def loads(assignment: Assignment | Infeasible) -> dict[str, set[str]]:
    """The topologies on each supervisor."""
    assert not isinstance(assignment, Infeasible)
    found: dict[str, set[str]] = {}
    for executor, slot in assignment.slot_of.items():
        found.setdefault(slot.supervisor_id, set()).add(executor.topology_id)
    return found


@pytest.mark.parametrize("first", ["high", "low", "lower"])
def test_highest_priority_shares_with_nobody_and_the_others_go_short(first: str) -> None:
    in_force = cluster({"high": "s1:6700", "low": "s1:6701", "lower": "s2:6700"})
    priority = dict.fromkeys(RISING, 1) | {first: 2}
    target = place_adaptive(in_force, NEEDS, nobody_held(priority))
    assert {first} in loads(target).values()


@pytest.mark.parametrize("unmeasured", [None, "high"])
def test_each_tier_finds_the_room_that_there_is_for_executors_whoever_waits(unmeasured: str | None) -> None:
    in_force = measured({"high": "s1:6700", "low": "s1:6701", "lower": "s2:6700"})
    known = {e: load for e, load in in_force.loads.items() if e.topology_id != unmeasured}
    picture = replace(in_force, loads=known)
    elsewhere = {"s1": WorkerSlot("s2", 6703), "s2": WorkerSlot("s1", 6703)}
    rooms: list[tuple[str, float]] = []

    def exchange(seen: ClusterSnapshot, demand: Demand, own: PlacementSettings) -> Assignment:
        """Later tiers find earlier ones where nobody measured them."""
        rooms.extend(room_for_executors(seen, own).items())
        mine = {e: at for e, at in seen.assignment.slot_of.items() if e.topology_id in own.movable}
        return seen.assignment.with_moves({e: elsewhere[at.supervisor_id] for e, at in mine.items()})

    place_tier_by_tier(exchange, picture, NEEDS, settings(RISING))
    whole = room_for_executors(picture, settings(RISING))
    assert {at for at, _ in rooms} == {"s1", "s2"}
    assert all(room == pytest.approx(whole[at]) for at, room in rooms)


def test_what_those_who_wait_use_takes_no_room_from_the_highest_priority() -> None:
    """It needs 800 of the 818 that its workers leave of 900: one supervisor suffices."""
    in_force = measured({"high": "s1:6700", "low": "s1:6701", "lower": "s2:6700"})
    target = place_tier_by_tier(place_adaptive, in_force, NEEDS, nobody_held(RISING))
    assert loads(target) == {"s1": {"high"}, "s2": {"low", "lower"}}


def test_where_the_highest_priority_is_served_first_it_may_share_and_stays_where_it_is() -> None:
    """On each of two supervisors, which is all the CPU that there is; the others wait. Not a worker restarts for it."""
    halves = {"spout": "s1:6700", "bolt": "s2:6701"}
    spread = cluster(dict.fromkeys(RISING, "s1:6700"))
    where = placed(HIGH, halves) | placed(LOW, dict.fromkeys(halves, "s1:6702"))
    where |= placed(LOWER, dict.fromkeys(halves, "s2:6703"))
    in_force = replace(spread, assignment=Assignment(where))
    priority = {"high": 2, "low": 1, "lower": 1}
    assert place_adaptive(in_force, NEEDS, settings(priority)) == in_force.assignment
    assert place_adaptive(in_force, NEEDS, nobody_held(priority)) != in_force.assignment


def test_who_is_served_first_is_moved_where_it_goes_short_of_what_others_have() -> None:
    """1,600 of the highest priority on a supervisor of 900, and 800 of the lowest on the other."""
    in_force = cluster({"high": "s1:6700", "low": "s1:6701", "lower": "s2:6700"})
    target = place_adaptive(in_force, NEEDS, settings({"high": 2, "low": 2, "lower": 1}))
    assert not isinstance(target, Infeasible)
    there = {at: sum(e.topology_id != "lower" for e in residents) for at, residents in target.residents().items()}
    assert there == {"s1": 2, "s2": 2}


def test_equal_priorities_are_placed_as_without_any() -> None:
    in_force = cluster({"high": "s1:6700", "low": "s1:6701", "lower": "s2:6700"})
    assert place_adaptive(in_force, NEEDS, settings(ALIKE)) == place_adaptive(in_force, NEEDS, settings({}))


def test_priority_moves_nothing_where_there_is_room_for_all() -> None:
    in_force = cluster({"high": "s1:6700", "low": "s1:6701", "lower": "s2:6700"})
    small = same_demand(ALL, 200.0)
    assert place_adaptive(in_force, small, settings(RISING)) == place_adaptive(in_force, small, settings({}))


def test_a_plan_frees_a_high_priority_though_the_overload_stays_as_large() -> None:
    in_force = cluster({"high": "s1:6700", "low": "s1:6701", "lower": "s2:6700"})
    chosen = nobody_held(RISING)
    proposal = place_adaptive(in_force, NEEDS, chosen)
    decision = decide(in_force, NEEDS, proposal, chosen, DecisionMemory(), now_seconds=NOW_SECONDS, plan_id="p")
    assert isinstance(decision, Plan)
    assert decision.topology_ids == ("low",), "it goes to where the lowest one is"
    assert decision.after.overloaded_millicores == decision.before.overloaded_millicores
    after = in_force.assignment.with_moves({move.executor: move.target for move in decision.moves})
    assert loads(after) == {"s1": {"high"}, "s2": {"low", "lower"}}


def test_where_the_best_is_in_force_nothing_is_to_be_done() -> None:
    in_force = cluster({"high": "s1:6700", "low": "s2:6701", "lower": "s2:6700"})
    assert loads(in_force.assignment) == {"s1": {"high"}, "s2": {"low", "lower"}}
    assert place_adaptive(in_force, NEEDS, nobody_held(RISING)) == in_force.assignment


def test_no_high_priority_is_made_to_share_what_only_a_low_one_lacks() -> None:
    """Less is missing in all where both share the large supervisor; in force only the low priority goes short."""
    high = chain_topology("high", ("spout", 2))
    low = chain_topology("low", ("spout", 2), ("split", 2), ("count", 1))
    large, small = supervisors(2, capacity=600.0)
    machines = (large, replace(small, cpu_capacity_millicores=300.0))
    where = {"spout": ["s2:6700", "s1:6701"], "split": "s2:6700", "count": "s2:6700"}
    slot_of = placed(high, {"spout": "s1:6700"}) | placed(low, where)
    needs = dict(zip((*high.executors, *low.executors), (99.0, 199.0, 38.0, 132.0, 24.0, 96.0, 263.0), strict=True))
    rates = even_traffic(high, 300.0) | even_traffic(low, 300.0)
    in_force = snapshot((high, low), machines, slot_of, rates=rates)
    chosen = replace(placement_settings((high, low)), priority={"high": 5, "low": 0})
    demand = Demand(dict.fromkeys(needs, 1000.0), needs)
    proposal = place_adaptive(in_force, demand, chosen)
    assert not isinstance(proposal, Infeasible)
    before, after = (cost_of(in_force, one, demand, chosen).total for one in (in_force.assignment, proposal))
    assert after <= before


def test_a_low_priority_uses_what_a_high_one_leaves_and_no_more() -> None:
    """Two low ones beside the high ones lack only 100, most of it the high ones; with one there low ones lack 150.

    Where the high ones are served first low ones lack 50 in all beside them, and go to where that is.
    """
    high, low = chain_topology("high", ("spout", 2)), chain_topology("low", ("spout", 2), ("bolt", 2))
    large, small = supervisors(2, capacity=1000.0)
    machines = (large, replace(small, cpu_capacity_millicores=500.0))
    slot_of = placed(high, {"spout": "s1:6700"}) | placed(low, {"spout": "s2:6701", "bolt": "s2:6701"})
    in_force = snapshot((high, low), machines, slot_of, rates=even_traffic(low, 100.0))
    needs = dict.fromkeys(high.executors, 300.0) | dict.fromkeys(low.executors, 200.0)
    chosen = replace(placement_settings((high, low)), priority={"high": 1, "low": 0})
    on_s1 = []
    for enforcement in (Enforcement.NONE, Enforcement.EXECUTOR):
        resources = ResourceSettings(enforcement=enforcement)
        target = place_adaptive(in_force, Demand(needs, needs), replace(chosen, resources=resources))
        assert not isinstance(target, Infeasible)
        on_s1.append(sorted(e.topology_id for e in target.residents()["s1"]))
    assert on_s1 == [["high", "high", "low"], ["high", "low", "low", "low"]]


def test_obstacles_keep_their_place_whatever_their_priority() -> None:
    in_force = cluster({"high": "s1:6700", "low": "s1:6701", "lower": "s2:6700"})
    only_low = replace(settings(RISING), movable=frozenset({"low"}))
    target = place_adaptive(in_force, NEEDS, only_low)
    assert loads(target) == {"s1": {"high"}, "s2": {"low", "lower"}}


def test_overload_counts_ten_times_for_each_step_of_priority() -> None:
    wanted = {"high": {"s1": 800.0}, "low": {"s1": 800.0}, "lower": {"s2": 800.0}}
    room = {"s1": 900.0, "s2": 900.0}
    one_step = RANK_FACTOR - 1.0
    for are_held, counted in ((False, 700.0 * one_step / 2), (True, 0.0)):
        assert outranking_millicores(wanted, room, {"high": 9, "low": 4}, are_held=are_held) == counted
        assert outranking_millicores(wanted, room, ALIKE, are_held=are_held) == 0.0
        assert outranking_millicores(wanted, {"s1": 1600.0, "s2": 900.0}, RISING, are_held=are_held) == 0.0
    both = {"high": 9, "low": 9, "lower": 4}
    assert outranking_millicores(wanted, room, both, are_held=True) == 700.0 * one_step
    found = outranking_millicores(wanted, {"s1": 300.0}, RISING, are_held=True)
    assert found == (1300.0 + 500.0 * RANK_FACTOR) * one_step


def test_the_objective_prices_who_goes_short() -> None:
    together = cluster({"high": "s1:6700", "low": "s1:6701", "lower": "s2:6700"})
    apart = cluster({"high": "s1:6700", "low": "s2:6701", "lower": "s2:6700"})
    for priority, is_cheaper in ((RISING, True), (ALIKE, False)):
        costs = [cost_of(one, one.assignment, NEEDS, settings(priority)).overload for one in (apart, together)]
        assert (costs[0] < costs[1]) is is_cheaper
