"""Liu's placement: Algorithms 1, 2 and 3 case by case, and what must hold for any cluster."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import (
    chain_topology,
    graph_topology,
    placed,
    placement_settings,
    same_demand,
    slot,
    snapshot,
    supervisors,
)
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import (
    Assignment,
    Edge,
    Executor,
    Infeasible,
    Supervisor,
    Topology,
    WorkerSlot,
)
from storm_operator.core.placement.liu import breadth_first, place_liu
from storm_operator.core.settings import PlacementSettings, SchedulingSettings, Separation

FULL = SchedulingSettings(headroom_fraction=1.0)
WORDS = chain_topology("words", ("spout", 1), ("split", 4), ("count", 4), stateful=("count",))


def place(
    topologies: list[Topology],
    machines: tuple[Supervisor, ...],
    here: dict[Executor, WorkerSlot],
    demand: Demand,
    scheduling: SchedulingSettings = FULL,
) -> Assignment | Infeasible:
    return place_liu(
        snapshot(topologies, machines, here), demand, placement_settings(topologies, scheduling=scheduling)
    )


def done(proposal: Assignment | Infeasible) -> Assignment:
    assert isinstance(proposal, Assignment), proposal
    return proposal


def where(proposal: Assignment, topology: Topology, component: str) -> list[str]:
    places = [proposal.slot_of[executor] for executor in topology.executors_of(component)]
    return [f"{at.supervisor_id}:{at.port}" for at in places]


def test_a_new_topology_fills_supervisors_in_breadth_first_order() -> None:
    # 9 executors of 200 on supervisors of 1000: 5 and 4, neighbours close, state apart.
    proposal = done(place([WORDS], supervisors(4), {}, same_demand([WORDS])))
    assert proposal.used_supervisors() == ("s1", "s2")
    assert {at[:2] for at in where(proposal, WORDS, "split")} == {"s1"}
    assert {at[:2] for at in where(proposal, WORDS, "count")} == {"s2"}


def test_nothing_moves_while_everything_fits() -> None:
    here = placed(WORDS, {"spout": "s1:6700", "split": "s1:6700", "count": "s1:6701"})
    assert done(place([WORDS], supervisors(4), here, same_demand([WORDS], 100))) == Assignment(here)


def test_overload_disturbs_the_stateless_worker_only() -> None:
    here = placed(WORDS, {"spout": "s1:6700", "split": "s1:6700", "count": "s1:6701"})
    proposal = done(place([WORDS], supervisors(2), here, same_demand([WORDS], 200)))
    assert set(where(proposal, WORDS, "count")) == {"s1:6701"}
    stateless = where(proposal, WORDS, "spout") + where(proposal, WORDS, "split")
    assert stateless.count("s1:6700") == 1
    assert stateless.count("s2:6700") == 4


def test_overload_by_state_alone_disturbs_the_stateful_worker_only() -> None:
    here = placed(WORDS, {"spout": "s1:6700", "split": "s1:6700", "count": "s1:6701"})
    proposal = done(place([WORDS], supervisors(2), here, same_demand([WORDS], 100, count=300)))
    assert set(where(proposal, WORDS, "split") + where(proposal, WORDS, "spout")) == {"s1:6700"}
    assert where(proposal, WORDS, "count") == ["s1:6701", "s2:6700", "s2:6700", "s2:6700"]


def test_overload_by_both_disturbs_both() -> None:
    here = placed(WORDS, {"spout": "s1:6700", "split": "s1:6700", "count": "s1:6701"})
    proposal = done(place([WORDS], supervisors(4), here, same_demand([WORDS], 300, count=300)))
    assert proposal.used_supervisors() == ("s1", "s2", "s3")
    assert proposal.slot_of[WORDS.executors[0]] == slot("s1:6700")


FORK = graph_topology(
    "fork",
    {"spout": 1, "a": 2, "b": 2},
    [Edge("spout", "default", "a", "shuffle"), Edge("a", "default", "b", "fields")],
    stateful=("b",),
)


def test_zero_affected_comes_before_one_affected() -> None:
    """s2 has no stateless worker, s3 has one with as much room: s2 takes the overflow and s3 is left alone."""
    spout, a1, a2, b1, b2 = FORK.executors
    here = {
        spout: slot("s3:6700"),
        a1: slot("s1:6700"),
        a2: slot("s1:6700"),
        b1: slot("s2:6700"),
        b2: slot("s2:6700"),
    }
    demand = Demand({spout: 600, a1: 600, a2: 600, b1: 200, b2: 200}, {})
    proposal = done(place([FORK], supervisors(4), here, demand))
    assert proposal.slot_of[spout] == slot("s3:6700")
    assert proposal.slot_of[a1] == slot("s1:6700")
    assert proposal.slot_of[a2] == slot("s2:6701")


def test_one_affected_comes_before_a_free_supervisor() -> None:
    spout, a1, a2, b1, b2 = FORK.executors
    here = {
        spout: slot("s2:6700"),
        a1: slot("s1:6700"),
        a2: slot("s1:6700"),
        b1: slot("s1:6701"),
        b2: slot("s1:6701"),
    }
    demand = Demand({spout: 500, a1: 400, a2: 400, b1: 200, b2: 200}, {})
    proposal = done(place([FORK], supervisors(4), here, demand))
    assert proposal.used_supervisors() == ("s1", "s2")
    assert proposal.slot_of[b1] == proposal.slot_of[b2] == slot("s1:6701")
    assert {proposal.slot_of[e].supervisor_id for e in (spout, a1, a2)} == {"s1", "s2"}


def test_a_free_supervisor_is_the_last_resort_and_those_in_use_come_first() -> None:
    other = chain_topology("zother", ("spout", 1))
    here = placed(WORDS, {"spout": "s1:6700", "split": "s1:6700", "count": "s1:6701"})
    here |= placed(other, {"spout": "s4:6700"})
    proposal = done(place([WORDS, other], supervisors(4), here, same_demand([WORDS, other], 200, count=100)))
    assert proposal.used_supervisors() == ("s1", "s4")


def test_what_others_need_is_not_there_to_take() -> None:
    other = chain_topology("other", ("spout", 1))
    here = placed(WORDS, {"spout": "s1:6700", "split": "s1:6700", "count": "s1:6701"})
    here |= placed(other, {"spout": "s1:6702"})
    picture = snapshot([WORDS, other], supervisors(2), here)
    rules = PlacementSettings(FULL, frozenset({"words"}))
    demand = Demand({**same_demand([WORDS], 100).millicores, other.executors[0]: 800.0}, {})
    proposal = done(place_liu(picture, demand, rules))
    assert proposal.slot_of[other.executors[0]] == slot("s1:6702")
    assert demand.total(e for e, at in proposal.slot_of.items() if at.supervisor_id == "s1") <= 1000


def test_scale_in_merges_the_least_loaded_supervisor_into_others() -> None:
    here = placed(WORDS, {"spout": "s1:6700", "split": ["s1:6700", "s2:6700"], "count": ["s1:6701", "s2:6701"]})
    proposal = done(place([WORDS], supervisors(4), here, same_demand([WORDS], 100)))
    assert proposal.used_supervisors() == ("s1",)
    assert sorted(proposal.workers()) == [slot("s1:6700"), slot("s1:6701")]


def test_scale_in_looks_for_the_stateless_workers_target_first() -> None:
    """Lines 5 to 10 of Algorithm 3: s2 has 150 left and takes one worker of 100, s3 with 300 left the other."""
    halves = chain_topology("halves", ("spout", 3), ("count", 3), stateful=("count",))
    here = placed(halves, {"spout": ["s1:6700", "s2:6700", "s3:6700"], "count": ["s1:6701", "s2:6701", "s3:6701"]})
    needs = dict(zip(halves.executors, (100.0, 450.0, 350.0, 100.0, 400.0, 350.0), strict=True))
    proposal = done(place([halves], supervisors(3), here, Demand(needs, needs)))
    assert where(proposal, halves, "spout") == ["s2:6700", "s2:6700", "s3:6700"]
    assert where(proposal, halves, "count") == ["s3:6701", "s2:6701", "s3:6701"]


def test_scale_in_orders_the_targets_once() -> None:
    """s1 has 200 left, s2 400: the stateless 250 of s3 go to s2, which is fuller then; the stateful 50 still to s1."""
    thirds = chain_topology("thirds", ("spout", 3), ("count", 3), stateful=("count",))
    here = placed(thirds, {"spout": ["s1:6700", "s2:6700", "s3:6700"], "count": ["s1:6701", "s2:6701", "s3:6701"]})
    needs = dict(zip(thirds.executors, (400.0, 300.0, 250.0, 400.0, 300.0, 50.0), strict=True))
    proposal = done(place([thirds], supervisors(3), here, Demand(needs, needs)))
    assert where(proposal, thirds, "spout") == ["s1:6700", "s2:6700", "s2:6700"]
    assert where(proposal, thirds, "count") == ["s1:6701", "s2:6701", "s1:6701"]


def test_scale_in_needs_one_target_for_each_worker() -> None:
    """700 on each supervisor: the least loaded one's stateful worker (400) fits nowhere in one piece."""
    here = placed(WORDS, {"spout": "s1:6700", "split": ["s1:6700", "s2:6700"], "count": ["s1:6701", "s2:6701"]})
    demand = same_demand([WORDS], 200, spout=50)
    assert done(place([WORDS], supervisors(2), here, demand)) == Assignment(here)


def test_topologies_on_different_supervisors_are_brought_together() -> None:
    one, two = chain_topology("one", ("spout", 2)), chain_topology("two", ("spout", 1))
    here = placed(one, {"spout": "s1:6700"}) | placed(two, {"spout": "s2:6700"})
    proposal = done(place([one, two], supervisors(2), here, same_demand([one, two])))
    assert proposal.used_supervisors() == ("s1",)
    assert len(proposal.workers()) == 2


def test_a_topology_leaves_a_supervisor_that_others_keep_in_use() -> None:
    """s2 cannot be emptied, its other topology must stay; `words` still needs no two supervisors."""
    other = chain_topology("other", ("spout", 1))
    here = placed(WORDS, {"spout": "s1:6700", "split": ["s1:6700", "s2:6700"], "count": "s1:6701"})
    here |= placed(other, {"spout": "s2:6702"})
    demand = Demand({**same_demand([WORDS], 100).millicores, other.executors[0]: 500.0}, {})
    rules = PlacementSettings(FULL, frozenset({"words"}))
    proposal = done(place_liu(snapshot([WORDS, other], supervisors(2), here), demand, rules))
    assert proposal.restricted_to(["words"]).used_supervisors() == ("s1",)
    assert proposal.slot_of[other.executors[0]] == slot("s2:6702")


def test_a_mixed_worker_is_split_where_it_is() -> None:
    here = placed(WORDS, {"spout": "s1:6703", "split": "s1:6703", "count": "s1:6703"})
    proposal = done(place([WORDS], supervisors(2), here, same_demand([WORDS], 100)))
    assert set(where(proposal, WORDS, "split") + where(proposal, WORDS, "spout")) == {"s1:6703"}
    assert set(where(proposal, WORDS, "count")) == {"s1:6700"}


def test_many_workers_of_an_even_placement_become_two() -> None:
    here = placed(WORDS, {"spout": "s1:6700", "split": ["s1:6700", "s1:6701"], "count": ["s1:6702", "s1:6701"]})
    proposal = done(place([WORDS], supervisors(1), here, same_demand([WORDS], 100)))
    assert set(where(proposal, WORDS, "split")) == {"s1:6700"}
    assert len(set(where(proposal, WORDS, "count"))) == 1
    assert len(proposal.workers()) == 2


def test_without_a_second_slot_state_goes_elsewhere() -> None:
    here = placed(WORDS, {"spout": "s1:6700", "split": "s1:6700", "count": "s1:6700"})
    proposal = done(place([WORDS], supervisors(2, slots=1), here, same_demand([WORDS], 100)))
    assert set(where(proposal, WORDS, "split")) == {"s1:6700"}
    assert set(where(proposal, WORDS, "count")) == {"s2:6700"}


def test_separation_never_gives_one_worker() -> None:
    scheduling = dataclasses.replace(FULL, separation=Separation.NEVER)
    proposal = done(place([WORDS], supervisors(2), {}, same_demand([WORDS], 100), scheduling))
    assert len(proposal.workers()) == 1


def test_executors_of_a_lost_supervisor_find_a_new_place_and_the_rest_stays() -> None:
    here = placed(WORDS, {"spout": "s1:6700", "split": "s1:6700", "count": "gone:6700"})
    proposal = done(place([WORDS], supervisors(2), here, same_demand([WORDS], 100)))
    assert set(where(proposal, WORDS, "split")) == {"s1:6700"}
    assert set(where(proposal, WORDS, "count")) == {"s1:6701"}


def test_headroom_is_kept_free() -> None:
    here = placed(WORDS, {"spout": "s1:6700", "split": "s1:6700", "count": "s1:6701"})
    proposal = done(place([WORDS], supervisors(2), here, same_demand([WORDS], 110), SchedulingSettings()))
    assert proposal.used_supervisors() == ("s1", "s2")


def test_an_executor_larger_than_any_supervisor_gets_one_to_itself() -> None:
    topology = chain_topology("t", ("spout", 1), ("work", 1))
    proposal = done(place([topology], supervisors(2, capacity=500), {}, same_demand([topology], 400, work=1000)))
    assert len(proposal.used_supervisors()) == 2


def test_infeasible_names_the_executor_and_what_is_left() -> None:
    proposal = place([WORDS], supervisors(1), {}, same_demand([WORDS], 200))
    assert isinstance(proposal, Infeasible)
    assert "topology words: executor 6-6 (count) needs 200 millicores" in proposal.reason
    assert "is 0 (s1)" in proposal.reason


@pytest.mark.parametrize("capacity", [5000.0, None])
def test_infeasible_says_so_where_it_is_a_slot_that_is_missing(capacity: float | None) -> None:
    """State takes the one slot that there is; of CPU there is plenty, or nobody knows how much."""
    proposal = place([WORDS], supervisors(1, capacity, slots=1), {}, same_demand([WORDS], 100))
    assert proposal == Infeasible(
        "topology words: executor 1-1 (spout) needs 100 millicores on a supervisor with a slot for it; "
        "none has a slot left; with separation Never its stateful and stateless executors would share one"
    )


def test_infeasible_says_nothing_of_separation_where_there_is_nothing_to_separate() -> None:
    lines = [chain_topology(name, ("spout", 1), ("bolt", 1)) for name in ("a", "b")]
    proposal = place(lines, supervisors(1, slots=1), {}, same_demand(lines, 100))
    assert isinstance(proposal, Infeasible)
    assert proposal.reason.endswith("; none has a slot left")


def test_infeasible_does_not_count_what_is_left_where_no_slot_is() -> None:
    other = chain_topology("other", ("spout", 1))
    machines = (*supervisors(1, 1000.0), supervisors(2, 9000.0, slots=1)[1])
    picture = snapshot([WORDS, other], machines, placed(other, {"spout": "s2:6700"}))
    rules = PlacementSettings(FULL, frozenset({"words"}))
    proposal = place_liu(picture, same_demand([WORDS, other], 300), rules)
    assert isinstance(proposal, Infeasible)
    assert proposal.reason.endswith("; the most left on one is 100 (s1)")


def test_no_supervisor_is_infeasible() -> None:
    proposal = place([WORDS], (), {}, same_demand([WORDS]))
    assert isinstance(proposal, Infeasible)
    assert "there is no supervisor" in proposal.reason


def test_breadth_first_order_puts_ackers_last() -> None:
    edges = [Edge("s", "d", "z", "shuffle"), Edge("s", "d", "b", "shuffle"), Edge("b", "d", "c", "shuffle")]
    assert breadth_first(graph_topology("t", {"c": 1, "s": 1, "z": 1, "b": 1}, edges)) == ("s", "b", "z", "c")


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Topology], tuple[Supervisor, ...], dict[Executor, WorkerSlot], Demand]:
    """Up to three topologies, some executors placed by anybody in slots that no two topologies share."""
    machines = supervisors(draw(st.integers(1, 4)), capacity=1000, slots=draw(st.integers(1, 4)))
    slots = [place for machine in machines for place in machine.slots]
    topologies = [
        chain_topology(f"t{at}", ("spout", 1), ("map", draw(st.integers(1, 3))), ("sum", 2), stateful=("sum",))
        for at in range(draw(st.integers(1, 3)))
    ]
    owner = {place: draw(st.sampled_from(topologies)).id for place in slots}
    here = {}
    for topology in topologies:
        own = [place for place in slots if owner[place] == topology.id]
        for executor in topology.executors:
            place_or_none = draw(st.sampled_from([None, *own]))
            if place_or_none is not None:
                here[executor] = place_or_none
    needs = {e: float(draw(st.sampled_from([100, 200, 400, 600]))) for t in topologies for e in t.executors}
    return topologies, machines, here, Demand(needs, needs)


@given(clusters(), st.booleans())
def test_any_proposal_keeps_the_rules(
    cluster: tuple[list[Topology], tuple[Supervisor, ...], dict[Executor, WorkerSlot], Demand], one_fixed: bool
) -> None:
    topologies, machines, here, demand = cluster
    movable = topologies[1:] if one_fixed else topologies
    picture = snapshot(topologies, machines, here)
    rules = placement_settings(movable, scheduling=FULL)
    proposal = place_liu(picture, demand, rules)
    assert proposal == place_liu(picture, demand, rules)
    if isinstance(proposal, Infeasible):
        return
    fixed = {e: at for e, at in here.items() if e.topology_id not in rules.movable}
    assert set(proposal.slot_of) == set(fixed) | {e for t in movable for e in t.executors}
    assert {e: proposal.slot_of[e] for e in fixed} == fixed
    ports = {place for machine in machines for place in machine.slots}
    for place, executors in proposal.workers().items():
        assert place in ports
        assert len({e.topology_id for e in executors}) == 1
        if executors[0].topology_id in rules.movable:
            assert len({picture.is_stateful(e) for e in executors}) == 1
    for machine in machines:
        there = [e for e, at in proposal.slot_of.items() if at.supervisor_id == machine.id]
        fixed_load = demand.total(e for e in there if e in fixed)
        assert demand.total(there) <= max(1000, fixed_load) + 1e-6
        for topology in movable:
            assert len({proposal.slot_of[e] for e in there if e.topology_id == topology.id}) <= 2


@pytest.mark.slow
@given(clusters())
def test_a_proposal_in_force_is_proposed_again(
    cluster: tuple[list[Topology], tuple[Supervisor, ...], dict[Executor, WorkerSlot], Demand],
) -> None:
    topologies, machines, here, demand = cluster
    rules = placement_settings(topologies, scheduling=FULL)
    proposal = place_liu(snapshot(topologies, machines, here), demand, rules)
    if isinstance(proposal, Assignment):
        assert place_liu(snapshot(topologies, machines, proposal.slot_of), demand, rules) == proposal


@pytest.mark.parametrize("millicores", [100, 200])
def test_a_lone_topology_that_fits_by_count_is_always_placed(millicores: float) -> None:
    """Equal executors with room for all of them, state apart: first fit cannot fail with two slots everywhere."""
    proposal = done(place([WORDS], supervisors(2, slots=2), {}, same_demand([WORDS], millicores)))
    assert len(proposal.slot_of) == len(WORDS.executors)
