"""Whose policy looks later than it should have, and whose waits for its next turn."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import PERIOD_SECONDS, chain_topology, snapshot, supervisors
from storm_operator.core.decision import Decision, Hold, HoldReason
from storm_operator.core.missed_turns import MissedTurns
from storm_operator.core.placement.triggers import as_if_due, has_passed, seconds_at_bound
from storm_operator.core.snapshot import ClusterSnapshot, LoadPeriod

LINE = chain_topology("line", ("spout", 1), ("bolt", 1))
OWN, OTHERS = (LINE.id,), ("another",)


def seen_at(seconds: float) -> ClusterSnapshot:
    return replace(snapshot((LINE,), supervisors(2)), taken_at_seconds=seconds)


def played(reason: HoldReason, last_moved: tuple[str, ...], *at_seconds: float) -> MissedTurns:
    """After passes at these times, all of which held with `reason`."""
    missed, held = MissedTurns(), Hold(reason, "")
    for at in at_seconds:
        missed = MissedTurns(missed.still_missed(OWN, seen_at(at), held, last_moved))
    return missed


def is_due(missed: MissedTurns, at_seconds: float) -> bool:
    return has_passed(missed.made_up_for(OWN, seen_at(at_seconds)), 300.0)


@pytest.mark.parametrize("reason", [HoldReason.APPLYING, HoldReason.WARMING_UP, HoldReason.METRICS_INCOMPLETE])
def test_a_turn_that_fell_into_the_plan_of_others_is_made_up_for(reason: HoldReason) -> None:
    assert is_due(played(reason, OTHERS, 300.0, 310.0, 320.0), 330.0)


@pytest.mark.parametrize(
    ("reason", "last_moved"),
    [
        (HoldReason.APPLYING, OWN),
        (HoldReason.NOT_DUE, OTHERS),
        (HoldReason.COOL_DOWN, OTHERS),
        (HoldReason.METRICS_INCOMPLETE, ()),
    ],
)
def test_no_other_is(reason: HoldReason, last_moved: tuple[str, ...]) -> None:
    assert not is_due(played(reason, last_moved, 300.0, 310.0, 320.0), 330.0)


def test_who_was_not_heard_while_nothing_was_due_is_not_due_for_it() -> None:
    assert not is_due(played(HoldReason.APPLYING, OTHERS, 310.0, 320.0), 330.0)


def test_who_has_been_heard_since_is_not_due_again() -> None:
    missed = played(HoldReason.APPLYING, OTHERS, 300.0, 310.0)
    heard: Decision = Hold(HoldReason.NO_CHANGE, "")
    assert not is_due(MissedTurns(missed.still_missed(OWN, seen_at(320.0), heard, OTHERS)), 330.0)


def test_how_long_a_supervisor_was_full_is_told_without_the_turns_that_were_missed() -> None:
    """A gap of two minutes is one, however long nobody was heard."""
    periods = tuple(LoadPeriod(at, 10.0, {}, {"s1": 900.0}) for at in (180.0, 190.0, 200.0))
    seen = replace(seen_at(330.0), history=periods)
    asked = played(HoldReason.METRICS_INCOMPLETE, OTHERS, 20.0, 320.0).made_up_for(OWN, seen)
    assert seconds_at_bound(seen, "s1", 800.0) == 0.0
    assert seconds_at_bound(asked, "s1", 800.0) == 0.0
    assert seconds_at_bound(as_if_due(seen, 300.0), "s1", 800.0) == 0.0
    assert has_passed(asked, 300.0)
    assert has_passed(as_if_due(seen, 300.0), 300.0)


def test_nobody_else_is_affected() -> None:
    seen = seen_at(330.0)
    assert played(HoldReason.APPLYING, OTHERS, 300.0).made_up_for(("third",), seen) is seen
    assert seen.period_seconds == PERIOD_SECONDS
