"""Executors that are not where the last pass saw them, and why: told once, and never of what we did ourselves."""

from __future__ import annotations

from dataclasses import replace

from builders import chain_topology, placed, snapshot, supervisors
from kube_builders import GATHERED, SPREAD, TOPOLOGY_ID, WORDS
from storm_operator.core.model import Assignment, Topology
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.kube.assignment_drift import GRACE_PASSES, AssignmentDrift

MORE = chain_topology(TOPOLOGY_ID, ("spout", 1), ("split", 2), ("count", 1), stateful=("count",))
MORE_SPREAD = Assignment(placed(MORE, {"spout": "s1", "split": ["s2", "s1"], "count": "s2:6701"}))


def picture(assignment: Assignment, topology: Topology = WORDS, count: int = 2) -> ClusterSnapshot:
    return snapshot((topology,), supervisors(count), assignment.slot_of)


class TestMoves:
    def test_of_somebody_else_are_told_once(self) -> None:
        drift = AssignmentDrift()
        assert drift.look(picture(SPREAD), ()) == {}
        assert drift.look(picture(GATHERED), ()) == {
            TOPOLOGY_ID: "somebody moved 1 executor, by no plan of the operator"
        }
        assert drift.look(picture(GATHERED), ()) == {}

    def test_of_a_plan_are_none(self) -> None:
        drift = AssignmentDrift()
        drift.look(picture(SPREAD), ())
        drift.look(picture(SPREAD), {TOPOLOGY_ID})  # the pass that applies it has looked before
        assert drift.look(picture(GATHERED), ()) == {}
        assert drift.look(picture(SPREAD), ()) != {}

    def test_off_a_supervisor_that_is_gone_are_storms(self) -> None:
        drift = AssignmentDrift()
        drift.look(picture(SPREAD), ())
        all_on_first = SPREAD.with_moves(dict.fromkeys(SPREAD.slot_of, GATHERED.slot_of[WORDS.executors[0]]))
        found = drift.look(picture(all_on_first, count=1), ())
        assert found == {TOPOLOGY_ID: "Storm moved 2 executors whose supervisor is gone"}

    def test_by_way_of_no_place_are_told_when_there_is_one(self) -> None:
        drift = AssignmentDrift()
        drift.look(picture(SPREAD), ())
        assert drift.look(picture(Assignment({})), ()) == {}
        assert TOPOLOGY_ID in drift.look(picture(GATHERED), ())

    def test_of_a_topology_that_is_placed_for_the_first_time_are_none(self) -> None:
        drift = AssignmentDrift()
        drift.look(picture(Assignment({})), ())
        assert drift.look(picture(SPREAD), ()) == {}

    def test_of_a_topology_that_is_new_are_none(self) -> None:
        drift = AssignmentDrift()
        drift.look(picture(SPREAD), ())
        renamed = chain_topology("words-2-2", ("spout", 1), ("split", 1), ("count", 1))
        spread = Assignment(placed(renamed, {"spout": "s1", "split": "s2", "count": "s2:6701"}))
        assert drift.look(picture(spread, renamed), ()) == {}


class TestNumberOfExecutors:
    def test_that_somebody_else_changed_is_told(self) -> None:
        drift = AssignmentDrift()
        drift.look(picture(SPREAD), ())
        found = drift.look(picture(MORE_SPREAD, MORE), ())
        assert found == {TOPOLOGY_ID: "somebody else changed the number of executors: split from 1 to 2"}

    def test_is_the_same_where_one_has_no_place_for_a_while(self) -> None:
        """As while a supervisor is away for longer than it is waited for."""
        drift = AssignmentDrift()
        drift.look(picture(SPREAD), ())
        kept = {e: slot for e, slot in SPREAD.slot_of.items() if slot.supervisor_id != "s2"}
        assert 0 < len(kept) < len(SPREAD.slot_of)
        assert drift.look(picture(Assignment(kept)), ()) == {}
        assert drift.look(picture(SPREAD), ()) == {}

    def test_that_we_asked_for_is_expected_for_a_while(self) -> None:
        drift = AssignmentDrift()
        drift.look(picture(SPREAD), ())
        drift.expect_resize(TOPOLOGY_ID)
        drift.look(picture(SPREAD), ())
        assert drift.look(picture(MORE_SPREAD, MORE), ()) == {}
        for _ in range(GRACE_PASSES):
            drift.look(picture(MORE_SPREAD, MORE), ())
        assert drift.look(picture(SPREAD), ()) != {}


def test_assignments_of_these_tests_differ_in_one_executor() -> None:
    moved = [e for e in WORDS.executors if SPREAD.slot_of[e] != GATHERED.slot_of[e]]
    assert len(moved) == 1
    assert replace(SPREAD) == SPREAD
