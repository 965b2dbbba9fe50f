"""A place for those who have none, where slots are short: one for each topology is enough."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import chain_topology, placed, placement_settings, same_demand, slot, snapshot, supervisors
from placement_cases import placed_or_fail
from storm_operator.core.model import Assignment, Executor, Infeasible, Supervisor, Topology, WorkerSlot
from storm_operator.core.placement.homes import with_homes
from storm_operator.core.placement.registry import POLICIES

ASK_FOR_ALL_THEIR_WORKERS = {"aniello-offline", "aniello-online", "etw-wtn", "even"}
SEARCHING = ("ant-colony", "genetic")
FIRST, SECOND = (chain_topology(name, ("spout", 1), ("bolt", 4), num_workers=4) for name in ("first", "second"))
BOTH = (FIRST, SECOND)
IN_ALL_SLOTS = dict(
    zip(FIRST.executors, map(slot, ("s1:6700", "s1:6701", "s2:6700", "s2:6701", "s2:6701")), strict=True)
)
WHEN_ALL_ARE_DUE = 86400.0


def place(name: str, machines: tuple[Supervisor, ...], here: Mapping[Executor, WorkerSlot]) -> Assignment:
    picture = replace(snapshot(BOTH, machines, here), taken_at_seconds=WHEN_ALL_ARE_DUE)
    return placed_or_fail(POLICIES[name](picture, same_demand(BOTH, 100.0), placement_settings(BOTH)))


@pytest.mark.parametrize("name", sorted(set(POLICIES) - ASK_FOR_ALL_THEIR_WORKERS))
@pytest.mark.parametrize("here", [{}, IN_ALL_SLOTS], ids=["nobody has a place", "the first topology has all slots"])
def test_a_topology_finds_a_slot_though_another_would_fill_them_all(
    name: str, here: Mapping[Executor, WorkerSlot]
) -> None:
    assignment = place(name, supervisors(2, 4000.0, slots=2), here)
    assert set(assignment.slot_of) == {*FIRST.executors, *SECOND.executors}
    assert all(len({executor.topology_id for executor in inside}) == 1 for inside in assignment.workers().values())


@pytest.mark.parametrize("name", SEARCHING)
def test_a_search_gives_a_topology_the_slot_that_another_has_on_a_supervisor_of_its_own(name: str) -> None:
    here = placed(FIRST, {"spout": "s1", "bolt": ["s1", "s2", "s3", "s4"]})
    assignment = place(name, supervisors(4, 4000.0, slots=1), here)
    assert set(assignment.slot_of) == {*FIRST.executors, *SECOND.executors}
    assert all(len({executor.topology_id for executor in inside}) == 1 for inside in assignment.workers().values())


def test_the_smallest_worker_moves_in_with_the_next_one_on_its_supervisor() -> None:
    settled = placed_or_fail(
        with_homes(snapshot(BOTH, supervisors(2, slots=2), IN_ALL_SLOTS), placement_settings(BOTH))
    )
    assert [settled.slot_of[executor] for executor in FIRST.executors] == list(
        map(slot, ("s1:6701", "s1:6701", "s2:6700", "s2:6701", "s2:6701"))
    )
    assert set(settled.restricted_to(["second"]).workers()) == {slot("s1:6700")}


def test_nobody_changes_supervisors_for_another_topology() -> None:
    here = placed(FIRST, {"spout": "s1", "bolt": ["s1", "s2"]})
    settled = with_homes(snapshot(BOTH, supervisors(2, slots=1), here), placement_settings(BOTH))
    assert settled == Infeasible("each topology needs a slot and 1 more would have to be free")


def test_workers_of_topologies_that_may_not_move_stay() -> None:
    settled = with_homes(snapshot(BOTH, supervisors(2, slots=2), IN_ALL_SLOTS), placement_settings((SECOND,)))
    assert settled == Infeasible("each topology needs a slot and 1 more would have to be free")


@st.composite
def crowded(draw: st.DrawFn) -> tuple[list[Topology], tuple[Supervisor, ...], dict[Executor, WorkerSlot]]:
    """Topologies with executors in slots of their own, in ones of a supervisor that died, or nowhere."""
    machines = supervisors(draw(st.integers(1, 3)), slots=draw(st.integers(1, 3)))
    slots = [*(place for machine in machines for place in machine.slots), slot("gone:6700"), slot("gone:6701")]
    topologies = [
        chain_topology(f"t{at}", ("spout", 1), ("bolt", draw(st.integers(1, 4))), num_workers=draw(st.integers(1, 5)))
        for at in range(draw(st.integers(1, 4)))
    ]
    owner = {place: draw(st.sampled_from(topologies)).id for place in slots}
    here: dict[Executor, WorkerSlot] = {}
    for topology in topologies:
        own = [place for place in slots if owner[place] == topology.id]
        here |= {e: at for e in topology.executors if (at := draw(st.sampled_from([None, *own]))) is not None}
    return topologies, machines, here


@given(crowded())
def test_everyone_has_a_place_and_nobody_leaves_a_supervisor_that_is_there(
    cluster: tuple[list[Topology], tuple[Supervisor, ...], dict[Executor, WorkerSlot]],
) -> None:
    topologies, machines, here = cluster
    settled = with_homes(snapshot(topologies, machines, here), placement_settings(topologies))
    existing = {place for machine in machines for place in machine.slots}
    used = {(e.topology_id, at.supervisor_id) for e, at in here.items() if at in existing}
    housed = {topology_id for topology_id, _ in used}
    if isinstance(settled, Infeasible):
        assert len(used) + sum(topology.id not in housed for topology in topologies) > len(existing)
        return
    assert set(settled.slot_of) == {executor for topology in topologies for executor in topology.executors}
    assert set(settled.slot_of.values()) <= existing
    for executor, at in here.items():
        assert at not in existing or settled.slot_of[executor].supervisor_id == at.supervisor_id
    for inside in settled.workers().values():
        assert len({executor.topology_id for executor in inside}) == 1
    free_before = existing - set(here.values())
    if len(free_before) >= sum(topology.id not in housed for topology in topologies):
        assert all(settled.slot_of[executor] == at for executor, at in here.items() if at in existing)
