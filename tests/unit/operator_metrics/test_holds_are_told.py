"""Why nothing is done is told of every topology that is left as it is."""

from __future__ import annotations

import pytest

from loop_scene import SPECS, Scene, scene, with_mode
from storm_operator.core.decision import Plan
from storm_operator.core.settings import Mode
from storm_operator.operator_metrics.holds import HoldBook

NAMES = {"words": "words"}


def told(book: HoldBook) -> dict[tuple[str, tuple[str, ...]], float]:
    return {(one.metric, one.labels): one.value for one in book.readings() if one.value}


def decided(played: Scene, book: HoldBook) -> Plan:
    """The plan of the last pass, which `book` has seen."""
    report = played.audience.reports[-1]
    book.see(report, NAMES)
    ((_, decision),) = report.decisions
    assert isinstance(decision, Plan)
    return decision


@pytest.mark.slow
def test_while_a_plan_waits_for_a_person_that_is_the_hold_and_its_gain_the_gap() -> None:
    played, book = scene(), HoldBook()
    for passes in (1, 2):
        played.run(with_mode(Mode.RECOMMEND))
        plan = decided(played, book)
        assert plan.gain_percent is not None
        saved = plan.gain_percent / 100.0
        assert told(book) == {
            ("holds_total", ("AwaitingApproval",)): passes,
            ("holding", ("AwaitingApproval",)): 1.0,
            ("topology_hold", ("words", "AwaitingApproval")): 1.0,
            ("best_known_gain_ratio", ("words",)): pytest.approx(saved),
            ("gap_to_best_known_ratio", ("words",)): pytest.approx(saved / (1.0 - saved)),
        }


def test_a_plan_that_is_carried_out_is_no_hold() -> None:
    played, book = scene(), HoldBook()
    played.run(SPECS)
    decided(played, book)
    assert told(book) == {}


def test_a_plan_that_waited_is_no_hold_once_it_is_carried_out() -> None:
    played, book = scene(), HoldBook()
    played.run(with_mode(Mode.RECOMMEND))
    assert played.loop.desk.approve(decided(played, book).id, "somebody")
    played.run(with_mode(Mode.RECOMMEND))
    decided(played, book)
    assert told(book) == {("holds_total", ("AwaitingApproval",)): 1.0}
