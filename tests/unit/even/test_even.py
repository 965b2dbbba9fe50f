"""Storm's even placement, against what EvenScheduler does with the same slots."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from builders import chain_topology, placed, placement_settings, same_demand, slot, snapshot, supervisors
from storm_operator.core.model import Assignment, Infeasible
from storm_operator.core.placement.even import interleaved_free_slots, place_even
from storm_operator.core.settings import PlacementSettings

WORDS = chain_topology("words", ("spout", 1), ("split", 2), ("count", 2), num_workers=3)


def test_slots_are_interleaved_and_the_emptiest_supervisor_comes_first() -> None:
    machines = supervisors(3, slots=2)
    free = interleaved_free_slots(machines, [slot("s1:6700")])
    assert free == tuple(slot(text) for text in ("s2:6700", "s3:6700", "s1:6701", "s2:6701", "s3:6701"))


def test_executors_are_dealt_out_over_the_workers_asked_for() -> None:
    proposal = place_even(snapshot((WORDS,), supervisors(4)), same_demand((WORDS,)), placement_settings((WORDS,)))
    assert isinstance(proposal, Assignment)
    places = [proposal.slot_of[executor].supervisor_id for executor in WORDS.executors]
    assert places == ["s1", "s2", "s3", "s1", "s2"]


def test_too_few_slots_are_shared() -> None:
    proposal = place_even(
        snapshot((WORDS,), supervisors(1, slots=2)), same_demand((WORDS,)), placement_settings((WORDS,))
    )
    assert isinstance(proposal, Assignment)
    assert len(proposal.workers()) == 2


def test_topologies_that_may_not_move_keep_their_slots() -> None:
    other = chain_topology("other", ("spout", 1), num_workers=1)
    here = placed(other, {"spout": "s1:6700"})
    proposal = place_even(
        snapshot((WORDS, other), supervisors(2, slots=2), here), same_demand((WORDS,)), placement_settings((WORDS,))
    )
    assert isinstance(proposal, Assignment)
    assert {e: s for e, s in proposal.slot_of.items() if e.topology_id == "other"} == here
    assert slot("s1:6700") not in proposal.restricted_to(["words"]).workers()


def test_no_slot_at_all_is_infeasible() -> None:
    other = chain_topology("other", ("spout", 1))
    full = snapshot((WORDS, other), supervisors(1, slots=1), placed(other, {"spout": "s1:6700"}))
    proposal = place_even(full, same_demand((WORDS,)), placement_settings((WORDS,)))
    assert isinstance(proposal, Infeasible)
    assert "words" in proposal.reason


@given(st.integers(1, 5), st.integers(2, 4), st.lists(st.tuples(st.integers(1, 6), st.integers(1, 9)), max_size=2))
def test_everyone_is_placed_once_evenly_and_alone(machines: int, slots: int, shapes: list[tuple[int, int]]) -> None:
    topologies = [
        chain_topology(f"t{at}", ("spout", 1), ("bolt", bolts), num_workers=workers)
        for at, (bolts, workers) in enumerate(shapes)
    ]
    picture = snapshot(topologies, supervisors(machines, slots=slots))
    settings: PlacementSettings = placement_settings(topologies)
    proposal = place_even(picture, same_demand(topologies), settings)
    if isinstance(proposal, Infeasible):
        assert sum(min(t.num_workers, machines * slots) for t in topologies) > machines * slots - 1
        return
    assert sorted(proposal.slot_of) == sorted(e for t in topologies for e in t.executors)
    for executors in proposal.workers().values():
        assert len({e.topology_id for e in executors}) == 1
    for topology in topologies:
        sizes = [len(group) for group in proposal.restricted_to([topology.id]).workers().values()]
        assert max(sizes) - min(sizes) <= 1
    assert place_even(dataclasses.replace(picture, assignment=proposal), same_demand(topologies), settings) == proposal
