"""Neighbours whose need is unknown: their supervisors look neither empty nor overloaded for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from builders import chain_topology, even_traffic, placed, placement_settings, same_demand, slot, snapshot, supervisors
from storm_operator.core.assumed_needs import with_assumed_needs
from storm_operator.core.model import Demand, Executor, ExecutorLoad
from storm_operator.core.placement.objective import cost_of, overloaded_millicores
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.worker_overhead import worker_overhead

WORDS = chain_topology("words", ("spout", 1), ("bolt", 1))
STRANGER = chain_topology("stranger", ("spout", 1), ("bolt", 1))
SETTINGS = placement_settings([WORDS])
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


def needs(seen: ClusterSnapshot, demand: Demand = KNOWN) -> list[float]:
    found = with_assumed_needs(seen, demand, SETTINGS)
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


def test_the_use_of_the_unknown_is_no_overhead_of_the_others() -> None:
    assert worker_overhead(picture({"s1": 480.0, "s2": 900.0})) == pytest.approx(1.2)
    assert worker_overhead(picture({"s2": 500.0}, words="s2")) == pytest.approx(1.25), "no other supervisor tells"


def test_a_supervisor_whose_use_is_unknown_says_nothing_of_overhead() -> None:
    assert worker_overhead(picture({"s1": 480.0, "s2": 480.0}, STRANGER.executors)) == pytest.approx(1.2)
    assert worker_overhead(picture({"s1": 480.0}, STRANGER.executors)) == pytest.approx(1.2)
    assert worker_overhead(picture({}, STRANGER.executors)) == 1.0
