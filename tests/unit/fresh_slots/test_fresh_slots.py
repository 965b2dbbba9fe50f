"""Workers that give executors away begin anew in a free slot; all others stay where they are."""

from __future__ import annotations

from builders import chain_topology, placed, slot, supervisors
from storm_operator.core.fresh_slots import on_fresh_slots
from storm_operator.core.model import Assignment

WORDS = chain_topology("words", ("spout", 1), ("split", 1), ("count", 1))
SPOUT, SPLIT, COUNT = (WORDS.executors_of(name)[0] for name in ("spout", "split", "count"))
TOGETHER = Assignment(placed(WORDS, {"spout": "s1", "split": "s1", "count": "s1"}))
APART = Assignment(placed(WORDS, {"spout": "s1", "split": "s1", "count": "s2"}))


def test_worker_that_gives_an_executor_away_gets_the_first_free_port() -> None:
    fresh = on_fresh_slots(TOGETHER, APART, supervisors(2))
    assert fresh.slot_of == {SPOUT: slot("s1:6701"), SPLIT: slot("s1:6701"), COUNT: slot("s2:6700")}


def test_worker_that_only_gains_stays() -> None:
    assert on_fresh_slots(APART, TOGETHER, supervisors(2)).slot_of == TOGETHER.slot_of


def test_without_a_free_port_the_worker_stays() -> None:
    assert on_fresh_slots(TOGETHER, APART, supervisors(2, slots=1)).slot_of == APART.slot_of


def test_ports_of_others_are_not_free() -> None:
    other = chain_topology("other", ("spout", 1))
    in_force = Assignment({**TOGETHER.slot_of, **placed(other, {"spout": "s1:6701"})})
    target = in_force.with_moves({COUNT: slot("s2")})
    fresh = on_fresh_slots(in_force, target, supervisors(2))
    assert fresh.slot_of[SPOUT] == slot("s1:6702")
    assert fresh.slot_of[other.executors[0]] == slot("s1:6701")


def test_nothing_changes_where_nothing_changes() -> None:
    assert on_fresh_slots(APART, APART, supervisors(2)).slot_of == APART.slot_of
