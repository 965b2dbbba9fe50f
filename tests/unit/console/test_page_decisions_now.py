"""What is decided now: a plan that is being applied stands before what the last pass decided about its topologies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from console_scene import PageScene, page_scene
from loop_scene import SPECS, with_mode
from storm_operator.console.decisions_now import decisions_now
from storm_operator.console.views import DecisionView
from storm_operator.core.decision import HoldReason
from storm_operator.core.plan_record import PlanRecord, PlanState
from storm_operator.core.settings import Mode
from storm_operator.loop_ports import Audience, PassReport


class Onlooker:
    """Looks at each step of a plan that is being applied, as a person may."""

    def __init__(self, look: Callable[[], None]) -> None:
        self.look = look

    def on_pass(self, report: PassReport) -> None: ...

    def on_record(self, record: PlanRecord) -> None:
        if record.state is PlanState.APPLYING:
            self.look()


def looked_at(page: PageScene, look: Callable[[], None]) -> None:
    """A pass that only observes, then one that plans and applies, with `look` at each step of the latter."""
    page.played.run(with_mode(Mode.OBSERVE))
    page.played.loop.listener = Audience((page.watcher, Onlooker(look)), print)
    page.played.run(SPECS)


def test_what_is_explained_is_the_plan_that_is_being_applied() -> None:
    page, headlines = page_scene(passes=0), []
    looked_at(page, lambda: headlines.append(page.get("topologies/words/explanation")["headline"]))
    (plan,) = page.get("plans")["plans"]
    assert set(headlines) == {f"Plan {plan['id']}: is being applied: {plan['reason']}."}


def test_the_view_of_now_has_it_and_that_of_then_what_was_decided_then() -> None:
    page, of_now, of_then = page_scene(passes=0), [], []

    def look() -> None:
        view = page.get("view")
        of_now.append(view["decisions"][0])
        of_then.append(page.get("view", at=str(view["at_seconds"]))["decisions"][0])

    looked_at(page, look)
    assert {(one["kind"], one["topologies"][0]) for one in of_now} == {("plan", "words")}
    assert {one["reason"] for one in of_then} == {"ObserveOnly"}


def test_an_answer_of_before_the_plan_is_not_taken_for_that_of_now() -> None:
    page, tags = page_scene(passes=0), []
    page.played.run(with_mode(Mode.OBSERVE))
    before = page.ask("view").tag.strip('"')
    assert page.ask("view", tag=f'"{before}"').status == 304
    page.played.loop.listener = Audience((page.watcher, Onlooker(lambda: tags.append(page.ask("view").tag))), print)
    page.played.run(SPECS)
    assert tags
    assert f'"{before}"' not in tags


def test_a_way_back_that_is_applied_is_told_as_one() -> None:
    page = page_scene(passes=1)
    page.watcher.on_record(
        replace(page.played.loop.memory.records[-1], state=PlanState.APPLYING, rollback_of="p-before")
    )
    parts = {part["title"]: part["sentences"] for part in page.get("topologies/words/explanation")["parts"]}
    assert parts["Rule that decided"] == ["p-before is taken back."]


APPLIED = replace(page_scene(passes=1).played.loop.memory.records[-1], state=PlanState.APPLYING)


def held(reason: HoldReason, *topologies: str) -> DecisionView:
    return DecisionView(topologies, "hold", reason.value, "because", None, None)


@pytest.mark.parametrize(
    "told",
    [held(HoldReason.APPLYING, "words"), held(HoldReason.CLUSTER_UNREACHABLE, "words"), held(HoldReason.APPLYING)],
)
def test_why_a_plan_that_was_cut_short_is_not_in_force_yet_is_told(told: DecisionView) -> None:
    assert decisions_now((told,), APPLIED.started_at_seconds, [APPLIED]) == (told,)


def test_a_hold_of_before_the_plan_is_about_another_one() -> None:
    """As where it waited for another group's plan, and began when that was verified."""
    told = held(HoldReason.APPLYING, "words")
    first, *rest = decisions_now((told,), APPLIED.started_at_seconds - 10.0, [APPLIED])
    assert (first.plan_id, rest) == (APPLIED.plan.id, [told])


def test_beside_a_plan_that_is_being_applied_something_is_managed() -> None:
    """As of a topology that was submitted after the last pass, which saw none."""
    (only,) = decisions_now((held(HoldReason.NOTHING_TO_MANAGE),), APPLIED.started_at_seconds - 10.0, [APPLIED])
    assert only.plan_id == APPLIED.plan.id


def test_what_waits_for_another_topology_says_nothing_of_the_plan() -> None:
    told = held(HoldReason.APPLYING, "others")
    first, *rest = decisions_now((told,), APPLIED.started_at_seconds, [APPLIED])
    assert (first.plan_id, rest) == (APPLIED.plan.id, [told])


@pytest.mark.parametrize("state", [state for state in PlanState if state is not PlanState.APPLYING])
def test_a_plan_that_waits_or_is_in_force_is_not_being_applied(state: PlanState) -> None:
    told = held(HoldReason.COOL_DOWN, "words")
    assert decisions_now((told,), APPLIED.started_at_seconds, [replace(APPLIED, state=state)]) == (told,)
