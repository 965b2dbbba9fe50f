"""Executors whose need is unknown: their supervisors look neither empty nor overloaded for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from builders import (
    NOW_SECONDS,
    chain_topology,
    component_load,
    even_traffic,
    history,
    placed,
    placement_settings,
    same_demand,
    slot,
    snapshot,
    supervisors,
)
from storm_operator.core.assumed_needs import with_assumed_needs
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.decide import decide
from storm_operator.core.decision import Decision, Hold, HoldReason, Plan
from storm_operator.core.decision_memory import DecisionMemory
from storm_operator.core.model import Assignment, Executor, ExecutorLoad
from storm_operator.core.placement.objective import cost_of, overloaded_millicores
from storm_operator.core.settings import PlacementSettings, SchedulingSettings, Trigger
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.worker_overhead import worker_overhead

WORDS = chain_topology("words", ("spout", 1), ("bolt", 1))
STRANGER = chain_topology("stranger", ("spout", 1), ("bolt", 1))
SETTINGS = placement_settings([WORDS])
ALL = placement_settings([WORDS, STRANGER])
KNOWN = same_demand([WORDS], 200.0)


def picture(
    used: Mapping[str, float], seen: tuple[Executor, ...] = (), words: str = "s1", capacity: float | None = 1000.0
) -> ClusterSnapshot:
    """`stranger` is on s2, `words` where it is told; each executor of `words` and of `seen` uses 200 millicores."""
    where = placed(WORDS, {"spout": words, "bolt": words})
    where |= placed(STRANGER, {"spout": "s2:6701", "bolt": "s2:6701"})
    loads = dict.fromkeys((*WORDS.executors, *seen), ExecutorLoad(cpu_millicores=200.0))
    rates = even_traffic(WORDS, 100.0)
    machines = supervisors(2, capacity=capacity)
    return snapshot((WORDS, STRANGER), machines, where, rates=rates, loads=loads, supervisor_cpu=used)


def needs(seen: ClusterSnapshot, demand: Demand = KNOWN, settings: PlacementSettings = SETTINGS) -> list[float]:
    found = with_assumed_needs(seen, demand, settings)
    return [found.of_now().room_millicores.get(executor, -1.0) for executor in STRANGER.executors]


def test_where_all_is_known_nothing_is_assumed() -> None:
    demand = same_demand([WORDS, STRANGER], 200.0)
    assert with_assumed_needs(picture({}), demand, SETTINGS) is demand


def test_what_is_measured_of_them_is_taken() -> None:
    assert needs(picture({"s1": 400.0, "s2": 400.0}, STRANGER.executors)) == [200.0, 200.0]


def test_else_they_share_what_their_supervisor_uses_beyond_the_others() -> None:
    assert needs(picture({"s1": 400.0, "s2": 600.0})) == [300.0, 300.0]
    assert needs(picture({"s1": 400.0, "s2": 600.0}, STRANGER.executors[:1])) == [200.0, 400.0]
    assert needs(picture({"s2": 600.0}, words="s2"))[0] == pytest.approx((600.0 / 1.5 - 400.0) / 2)


def test_where_the_supervisor_is_unknown_they_leave_no_room_and_overload_nobody() -> None:
    assert needs(picture({"s1": 400.0})) == [450.0, 450.0]
    there = picture({}, words="s2")
    assert needs(there) == [250.0, 250.0]
    assumed = with_assumed_needs(there, KNOWN, SETTINGS)
    assert overloaded_millicores(there, there.assignment, assumed, SETTINGS) == 0.0
    assert needs(picture({}, capacity=None)) == [0.0, 0.0], "no capacity is known, so no limit is kept"


def test_room_is_kept_for_the_most_that_was_known() -> None:
    lately = replace(KNOWN, peak_millicores=dict.fromkeys(STRANGER.executors, 350.0))
    found = with_assumed_needs(picture({"s1": 400.0, "s2": 0.0}), lately, SETTINGS)
    assert [found.room_millicores[executor] for executor in STRANGER.executors] == [350.0, 350.0]
    assert needs(picture({"s1": 400.0, "s2": 0.0}), lately) == [0.0, 0.0]


def test_it_costs_to_move_to_where_a_neighbour_is_unknown() -> None:
    """s2 looks empty without a guess, and as good as s1."""
    seen = picture({"s1": 400.0})
    there = seen.assignment.with_moves({executor: slot("s2") for executor in WORDS.executors})
    overload = [
        cost_of(seen, there, demand, SETTINGS).overload for demand in (KNOWN, with_assumed_needs(seen, KNOWN, SETTINGS))
    ]
    assert overload[0] == 0.0 < overload[1]


def test_who_may_be_moved_and_is_unknown_counts_as_a_neighbour_does() -> None:
    """Of a topology that needs not be measured completely, a component that nobody has measured for long."""
    for seen in (picture({"s1": 400.0, "s2": 600.0}), picture({"s1": 400.0}), picture({}, STRANGER.executors[:1])):
        assert needs(seen, settings=ALL) == needs(seen)
        there = seen.assignment.with_moves({executor: slot("s2") for executor in WORDS.executors})
        assert cost_of(seen, there, with_assumed_needs(seen, KNOWN, ALL), ALL).overload > 0.0


def test_who_is_to_get_a_place_needs_the_most_that_was_known_of_it() -> None:
    spout, bolt = STRANGER.executors
    lately = replace(KNOWN, peak_millicores={spout: 350.0}, room_peak_millicores={spout: 400.0})
    seen = picture({"s1": 400.0, "s2": 600.0})
    for lost in (
        replace(seen, supervisors=seen.supervisors[:1]),
        replace(seen, assignment=seen.assignment.restricted_to([WORDS.id])),
    ):
        found = with_assumed_needs(lost, lately, ALL)
        assert found.of_now().room_millicores[spout] == found.room_millicores[spout] == 400.0
        assert bolt not in found.millicores, "nobody ever knew"


def decided(minimum_completeness: float) -> Decision:
    """What becomes of a proposal to bring `stranger`, whose bolt nobody measures, to `words`."""
    scheduling = SchedulingSettings(trigger=Trigger.POLICY, minimum_completeness=minimum_completeness)
    settings = placement_settings([WORDS, STRANGER], scheduling=scheduling)
    known = {**KNOWN.millicores, STRANGER.executors[0]: 200.0}
    periods = history(WORDS.id, {name: [component_load(100.0)] for name in ("spout", "bolt")})
    seen = replace(picture({"s1": 400.0, "s2": 300.0}, STRANGER.executors[:1]), history=periods)
    moved = {executor: slot("s1:6701") for executor in STRANGER.executors}
    demand = with_assumed_needs(seen, Demand(known, known), settings)
    proposal = Assignment({**seen.assignment.slot_of, **moved})
    return decide(seen, demand, proposal, settings, DecisionMemory(), now_seconds=NOW_SECONDS, plan_id="p1")


def test_what_is_assumed_sets_no_limit_and_excuses_no_hold() -> None:
    plan, hold = decided(0.7), decided(1.0)
    assert isinstance(plan, Plan)
    assert plan.cpu_limits_millicores.keys() == {STRANGER.executors[0]}
    assert isinstance(hold, Hold)
    assert hold.reason is HoldReason.METRICS_INCOMPLETE


def test_the_use_of_the_unknown_is_no_overhead_of_the_others() -> None:
    assert worker_overhead(picture({"s1": 480.0, "s2": 900.0})) == pytest.approx(1.2)
    assert worker_overhead(picture({"s2": 500.0}, words="s2")) == pytest.approx(1.25), "no other supervisor tells"


def test_a_supervisor_whose_use_is_unknown_says_nothing_of_overhead() -> None:
    assert worker_overhead(picture({"s1": 480.0, "s2": 480.0}, STRANGER.executors)) == pytest.approx(1.2)
    assert worker_overhead(picture({"s1": 480.0}, STRANGER.executors)) == pytest.approx(1.2)
    assert worker_overhead(picture({}, STRANGER.executors)) == 1.0
