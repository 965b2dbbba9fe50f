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
NOBODY = MissedTurns()
HEARD = Hold(HoldReason.NO_CHANGE, "")


def seen_at(seconds: float) -> ClusterSnapshot:
    return replace(snapshot((LINE,), supervisors(2)), taken_at_seconds=seconds)


def played(
    decision: Decision, in_hand: tuple[str, ...], *at_seconds: float, missed: MissedTurns = NOBODY
) -> MissedTurns:
    """After passes at these times, in all of which that was decided."""
    for at in at_seconds:
        missed = MissedTurns(missed.after(OWN, seen_at(at), decision, in_hand))
    return missed


def is_due(missed: MissedTurns, at_seconds: float) -> bool:
    return has_passed(missed.made_up_for(OWN, seen_at(at_seconds)), 300.0)


@pytest.mark.parametrize(
    ("reason", "in_hand"),
    [
        (HoldReason.APPLYING, OTHERS),
        (HoldReason.WARMING_UP, OTHERS),
        (HoldReason.METRICS_INCOMPLETE, OTHERS),
        (HoldReason.WARMING_UP, ()),
        (HoldReason.METRICS_INCOMPLETE, ()),
        (HoldReason.METRICS_STALE, ()),
    ],
)
def test_a_turn_in_which_nobody_could_hear_the_policy_is_made_up_for(
    reason: HoldReason, in_hand: tuple[str, ...]
) -> None:
    assert is_due(played(Hold(reason, ""), in_hand, 300.0, 310.0, 320.0), 330.0)


@pytest.mark.parametrize(
    ("reason", "in_hand"),
    [
        (HoldReason.APPLYING, OWN),
        (HoldReason.METRICS_INCOMPLETE, OWN),
        (HoldReason.NOT_DUE, OTHERS),
        (HoldReason.COOL_DOWN, ()),
        (HoldReason.EXCLUDED_WINDOW, ()),
    ],
)
def test_no_other_is(reason: HoldReason, in_hand: tuple[str, ...]) -> None:
    assert not is_due(played(Hold(reason, ""), in_hand, 300.0, 310.0, 320.0), 330.0)


def test_a_turn_between_two_passes_that_are_far_apart_is_made_up_for() -> None:
    """What is measured after a gap is of its end alone."""
    before = played(HEARD, (), 270.0, 280.0)
    assert not has_passed(seen_at(311.0), 300.0)
    assert is_due(before, 311.0)
    assert not is_due(played(HEARD, (), 311.0, missed=before), 321.0)
    assert is_due(played(Hold(HoldReason.METRICS_INCOMPLETE, ""), (), 311.0, missed=before), 321.0)


def test_a_turn_before_the_first_pass_is_not() -> None:
    assert not is_due(NOBODY, 311.0)
    assert not is_due(played(Hold(HoldReason.WARMING_UP, ""), (), 311.0), 321.0)


def test_nobody_waits_for_a_clock_that_was_set_back() -> None:
    ahead = played(HEARD, (), 4000.0)
    assert not is_due(ahead, 290.0)
    assert is_due(played(Hold(HoldReason.METRICS_INCOMPLETE, ""), (), 290.0, 300.0, missed=ahead), 310.0)


def test_who_was_not_heard_while_nothing_was_due_is_not_due_for_it() -> None:
    assert not is_due(played(Hold(HoldReason.APPLYING, ""), OTHERS, 320.0, 330.0), 340.0)


def test_who_has_been_heard_since_is_not_due_again() -> None:
    missed = played(Hold(HoldReason.APPLYING, ""), OTHERS, 300.0, 310.0)
    assert not is_due(played(HEARD, OTHERS, 320.0, missed=missed), 330.0)


def test_how_long_a_supervisor_was_full_is_told_without_the_turns_that_were_missed() -> None:
    """A gap of two minutes is one, however long nobody was heard."""
    periods = tuple(LoadPeriod(at, 10.0, {}, {"s1": 900.0}) for at in (180.0, 190.0, 200.0))
    seen = replace(seen_at(330.0), history=periods)
    asked = played(Hold(HoldReason.METRICS_INCOMPLETE, ""), OTHERS, 20.0, 320.0).made_up_for(OWN, seen)
    assert seconds_at_bound(seen, "s1", 800.0) == 0.0
    assert seconds_at_bound(asked, "s1", 800.0) == 0.0
    assert seconds_at_bound(as_if_due(seen, 300.0), "s1", 800.0) == 0.0
    assert has_passed(asked, 300.0)
    assert has_passed(as_if_due(seen, 300.0), 300.0)


def test_nobody_else_is_affected() -> None:
    seen = seen_at(330.0)
    assert played(Hold(HoldReason.APPLYING, ""), OTHERS, 300.0).made_up_for(("third",), seen) is seen
    assert seen.period_seconds == PERIOD_SECONDS
