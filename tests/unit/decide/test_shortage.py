"""Too little CPU: how much is missing, who goes short first, when it begins and when it ends, who is told."""

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
    graph_topology,
    placed,
    placement_settings,
    same_demand,
    slot,
    snapshot,
    supervisors,
)
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.decide import decide
from storm_operator.core.decision import Decision, Hold, HoldReason, Plan
from storm_operator.core.decision_memory import DecisionMemory
from storm_operator.core.model import Assignment, Edge, Executor, ExecutorLoad, WorkerSlot
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.shortage import Shortage, find_shortage
from storm_operator.core.snapshot import ClusterSnapshot, LoadPeriod

HIGH, LOW, OTHER = (chain_topology(name, ("spout", 1), ("bolt", 1)) for name in ("high", "low", "other"))
ALL = (HIGH, LOW, OTHER)
PRIORITY = {"high": 2, "low": 1}


def cluster(other: str = "s2:6702") -> ClusterSnapshot:
    slot_of: dict[Executor, WorkerSlot] = {}
    rates: dict[tuple[Executor, Executor], float] = {}
    for topology, place in ((HIGH, "s1"), (LOW, "s1:6701"), (OTHER, other)):
        slot_of |= placed(topology, {"spout": place, "bolt": place})
        rates |= even_traffic(topology, 100.0)
    loads = {(topology.id, name): component_load(100.0) for topology in ALL for name in ("spout", "bolt")}
    period = LoadPeriod(NOW_SECONDS, PERIOD_SECONDS, loads, {})
    return snapshot(ALL, supervisors(3, capacity=1000.0), slot_of, rates=rates, periods=(period,))


def settings(priority: Mapping[str, int] = PRIORITY, *movable: str) -> PlacementSettings:
    topologies = [topology for topology in ALL if topology.id in (movable or ("high", "low"))]
    return replace(placement_settings(topologies), priority=priority)


def shortage(
    demand: Demand,
    chosen: PlacementSettings | None = None,
    seen: ClusterSnapshot | None = None,
    was_short: bool = False,
) -> Shortage | None:
    return find_shortage(seen or cluster(), demand, chosen or settings(), was_short=was_short)


def lacking(demand: Demand, chosen: PlacementSettings | None = None) -> list[tuple[str, float]]:
    found = shortage(demand, chosen)
    assert found is not None
    return [(topology_id, round(missing)) for topology_id, missing in found.lacking.items()]


def test_where_all_is_carried_nothing_is_missing() -> None:
    assert shortage(same_demand(ALL, 237.0)) is None, "948 of 1000 are borne"


def test_the_lowest_priority_goes_short_first() -> None:
    assert lacking(same_demand(ALL, 300.0)) == [("low", 300)], "1200 are needed, 900 may be filled"
    assert lacking(same_demand(ALL, 600.0)) == [("low", 1200), ("high", 300)]
    assert lacking(same_demand(ALL, 300.0), settings({"high": 1, "low": 1})) == [("high", 150), ("low", 150)]


def test_who_is_not_managed_goes_short_last() -> None:
    for priority in ({"high": 1}, {}):
        assert lacking(same_demand(ALL, 600.0), settings(priority, "high")) == [("high", 1200), ("low", 300)]


def test_a_shortage_of_others_is_no_matter_of_this_decision() -> None:
    demand = same_demand(ALL, 300.0)
    assert shortage(demand, settings(PRIORITY, "high")) is None, "low alone goes short"
    assert shortage(demand, settings({"other": 1}, "other")) is None, "s2 has room"


def test_it_is_told_by_the_need_and_not_by_the_room() -> None:
    needs = same_demand(ALL, 200.0)
    assert shortage(replace(needs, room_millicores=dict.fromkeys(needs.millicores, 900.0))) is None


def test_it_ends_later_than_it_begins() -> None:
    between = same_demand(ALL, 232.0)
    assert shortage(between) is None
    assert shortage(between, was_short=True) is not None
    assert shortage(same_demand(ALL, 225.0), was_short=True) is None


def test_what_workers_use_beside_their_executors_is_needed_too() -> None:
    loads = dict.fromkeys((*HIGH.executors, *LOW.executors, *OTHER.executors), ExecutorLoad(cpu_millicores=200.0))
    seen = replace(cluster(), loads=loads, supervisor_cpu_millicores={"s1": 960.0, "s2": 480.0})
    found = shortage(same_demand(ALL, 200.0), seen=seen)
    assert found is not None
    assert found.lacking == {"low": pytest.approx(60.0)}


def test_in_words() -> None:
    found = shortage(same_demand(ALL, 600.0))
    assert found is not None
    assert found.in_words(cluster()) == (
        "1 supervisor lacks 1,500 millicores of CPU (90% may be filled); "
        "short, lowest priority first: low by 1,200, high by 300"
    )


def test_of_many_that_go_short_the_first_are_named() -> None:
    topologies = [chain_topology(f"t{number}", ("spout", 1)) for number in range(7)]
    lacking = {topology.id: 10.0 for topology in topologies}
    seen = snapshot(topologies, supervisors(1))
    assert (
        Shortage(1, 0.9, lacking)
        .in_words(seen)
        .endswith(": t0 by 10, t1 by 10, t2 by 10, t3 by 10, t4 by 10 and 2 more")
    )
    all_named = Shortage(1, 0.9, {f"t{number}": 10.0 for number in range(5)})
    assert all_named.in_words(seen).endswith(", t4 by 10")


def decided(
    millicores: float,
    proposal: Assignment | None = None,
    memory: DecisionMemory | None = None,
    looks_in_seconds: float | None = None,
) -> Decision:
    seen = cluster()
    return decide(
        seen,
        same_demand(ALL, millicores),
        proposal or seen.assignment,
        settings(),
        memory or DecisionMemory(),
        now_seconds=NOW_SECONDS,
        plan_id="p",
        looks_in_seconds=looks_in_seconds,
    )


def test_where_nothing_better_is_known_the_hold_says_what_is_missing_and_to_whom() -> None:
    held = decided(300.0)
    assert isinstance(held, Hold)
    assert (held.reason, held.gain_percent) == (HoldReason.TOO_LITTLE_CAPACITY, 0.0)
    assert held.short_topologies == ("low",)
    assert held.message == (
        "1 supervisor lacks 300 millicores of CPU (90% may be filled); short, lowest priority first: low by 300; "
        "adaptive proposes nothing better"
    )


def test_a_proposal_that_is_not_worth_it_is_nothing_better() -> None:
    split_worker = cluster().assignment.with_moves({HIGH.executors[0]: slot("s1:6703")})
    held = decided(300.0, split_worker)
    assert isinstance(held, Hold)
    assert held.reason is HoldReason.TOO_LITTLE_CAPACITY
    small = decided(200.0, split_worker)
    assert isinstance(small, Hold)
    assert small.reason is HoldReason.GAIN_TOO_SMALL


def test_what_relieves_it_is_a_plan_that_says_what_is_left() -> None:
    plan = decided(400.0, cluster().assignment.with_moves({LOW.executors[0]: slot("s2:6701")}))
    assert isinstance(plan, Plan)
    assert "; 500 millicores of CPU find no room on any supervisor" in plan.reason
    enough = decided(400.0, cluster().assignment.with_moves({e: slot("s3:6701") for e in LOW.executors}))
    assert isinstance(enough, Plan)
    assert "find no room" not in enough.reason


def test_a_supervisor_without_any_cpu_lacks_all_that_is_needed_there() -> None:
    seen = cluster()
    first, *others = seen.supervisors
    seen = replace(seen, supervisors=(replace(first, cpu_capacity_millicores=0.0), *others))
    found = shortage(same_demand(ALL, 100.0), seen=seen)
    assert found is not None
    assert found.lacking == {"low": 200.0, "high": 200.0}


@pytest.mark.parametrize(("capacity", "beyond_headroom"), [(4000.0, 0.0), (1000.0, 150.0)])
def test_a_plan_that_brings_a_thread_more_than_it_can_do_says_so_and_tells_it_from_supervisors_that_are_full(
    capacity: float, beyond_headroom: float
) -> None:
    """The one bolt in the spout's worker gets all tuples: 1,600 millicores, 700 more than fill a thread."""
    topology = graph_topology("local", {"spout": 1, "bolt": 4}, [Edge("spout", "default", "bolt", "local_or_shuffle")])
    spout, *bolts = topology.executors
    rates = {(spout, bolt): 250.0 for bolt in bolts}
    places = placed(topology, {"spout": "s1", "bolt": ["gone", "s2", "s3", "s2"]})
    loads = {(topology.id, name): component_load(1000.0) for name in ("spout", "bolt")}
    period = LoadPeriod(NOW_SECONDS, PERIOD_SECONDS, loads, {})
    seen = snapshot([topology], supervisors(3, capacity=capacity), places, rates=rates, periods=(period,))
    demand = same_demand([topology], 400.0, spout=50.0)
    beside = Assignment({**places, bolts[0]: slot("s1")})
    chosen = placement_settings([topology])
    plan = decide(seen, demand, beside, chosen, DecisionMemory(), now_seconds=NOW_SECONDS, plan_id="p")
    assert isinstance(plan, Plan)
    assert "; 700 millicores of CPU are more than executors' threads can use" in plan.reason
    assert ("; 100 millicores of CPU find no room on any supervisor" in plan.reason) is plan.overloads_supervisors
    assert plan.overloads_supervisors is (beyond_headroom > 0.0)
    assert plan.beyond_threads_millicores == 700.0
    assert plan.after.overloaded_millicores == 700.0 + beyond_headroom


@pytest.mark.parametrize("reason", [HoldReason.COOL_DOWN, HoldReason.METRICS_INCOMPLETE])
def test_who_was_short_is_remembered_until_another_look(reason: HoldReason) -> None:
    memory = DecisionMemory(short_topologies=frozenset({"elsewhere"}))
    short = memory.with_decision(("high", "low"), decided(300.0))
    assert short.short_topologies == {"low", "elsewhere"}
    assert short.with_decision(("high", "low"), Hold(reason, "")) == short
    calm = Hold(HoldReason.NO_CHANGE, "")
    assert short.with_decision(("high", "low"), calm).short_topologies == {"elsewhere"}


def test_between_begin_and_end_what_was_said_is_said_again() -> None:
    calm, still = decided(232.0), decided(232.0, memory=DecisionMemory(short_topologies=frozenset({"low"})))
    assert isinstance(calm, Hold)
    assert isinstance(still, Hold)
    assert (calm.reason, still.reason) == (HoldReason.NO_CHANGE, HoldReason.TOO_LITTLE_CAPACITY)


def test_a_policy_that_has_not_looked_does_not_propose_nothing_better() -> None:
    held = decided(300.0, looks_in_seconds=43.0)
    assert isinstance(held, Hold)
    assert (held.reason, held.gain_percent, held.short_topologies) == (HoldReason.NOT_DUE, None, ("low",))
    assert held.message == (
        "1 supervisor lacks 300 millicores of CPU (90% may be filled); short, lowest priority first: low by 300; "
        "adaptive looks for something better in 43 s"
    )
    again = decided(300.0, memory=DecisionMemory().with_decision(("high", "low"), held), looks_in_seconds=33.0)
    assert isinstance(again, Hold)
    assert again.reason is HoldReason.NOT_DUE


def test_what_it_said_when_it_looked_holds_until_it_looks_again_or_nothing_is_missing() -> None:
    group = ("high", "low")
    looked = DecisionMemory().with_decision(group, decided(300.0))
    meanwhile = decided(300.0, memory=looked, looks_in_seconds=43.0)
    assert isinstance(meanwhile, Hold)
    assert (meanwhile.reason, meanwhile.short_topologies) == (HoldReason.TOO_LITTLE_CAPACITY, ("low",))
    assert meanwhile.message.endswith("; adaptive proposed nothing better when it last looked")
    assert looked.with_decision(group, meanwhile) == looked
    calm = looked.with_decision(group, decided(200.0, memory=looked, looks_in_seconds=33.0))
    plan = decided(400.0, cluster().assignment.with_moves({e: slot("s3:6701") for e in LOW.executors}), looked)
    assert isinstance(plan, Plan)
    for memory in (calm, looked.with_decision(group, plan)):
        held = decided(300.0, memory=memory, looks_in_seconds=23.0)
        assert isinstance(held, Hold)
        assert held.reason is HoldReason.NOT_DUE
    assert looked.with_decision(group, plan).short_topologies == {"low"}, "where it ends is where it ended"
