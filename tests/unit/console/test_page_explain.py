"""Why, in words: every reason has a rule, and the numbers are those that were measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from builders import snapshot, supervisors
from console_scene import page_scene
from host_name_cases import POD
from loop_scene import SPECS, SPREAD, WORDS, with_mode
from storm_operator.console.explain import explain_topology
from storm_operator.console.hold_rules import HOLD_RULES
from storm_operator.console.load_view import LoadView
from storm_operator.console.views import DecisionView, ExecutorView
from storm_operator.core.decision import Hold, HoldReason
from storm_operator.core.model import Executor, WorkerSlot
from storm_operator.core.parallelism import HeldResize
from storm_operator.core.plan_record import Outcome, PlanState
from storm_operator.core.refusal import Refusal
from storm_operator.core.settings import Mode
from storm_operator.core.wording import figure
from storm_operator.loop_ports import PassReport


@pytest.mark.parametrize("reason", sorted(set(HoldReason) - {HoldReason.NOTHING_TO_MANAGE}))
def test_every_reason_to_hold_is_explained(reason: HoldReason) -> None:
    seen = page_scene(passes=1).watcher.seen
    decision = DecisionView(("words",), "hold", reason.value, "because", None, 3.0)
    found = explain_topology("words", replace(seen.view, decisions=(decision,)), seen.loads, ())
    assert found is not None
    assert found.headline == f"Hold ({reason.value}): because."
    parts = {part.title: part.sentences for part in found.parts}
    assert parts["Rule that decided"] == (HOLD_RULES[reason].rule,)
    assert parts["What would change it"] == (HOLD_RULES[reason].change,)


def test_a_plan_is_explained_with_its_figures() -> None:
    page = page_scene(passes=8)
    parts = {part["title"]: part["sentences"] for part in page.get("topologies/words/explanation")["parts"]}
    plan = page.played.loop.memory.records[-1]
    assert "8 ms" in parts["Measured"][0]
    assert f"{figure(plan.plan.before.inter_supervisor_tuples_per_second)} tuples/s before" in " ".join(
        parts["Last plan"]
    )
    assert parts["Last plan"][0].startswith(f"{plan.plan.id} ({plan.state}): ")
    assert "Next period:" in parts["Forecast"][0]


def test_supervisors_are_told_apart_by_as_little_of_their_names_as_that_takes() -> None:
    seen = page_scene(passes=1).watcher.seen
    pods = tuple(
        replace(one, host=POD.format(at), cpu_used_millicores=500.0, cpu_capacity_millicores=1000.0)
        for at, one in enumerate(seen.view.supervisors)
    )
    found = explain_topology("words", replace(seen.view, supervisors=pods), seen.loads, ())
    assert found is not None
    (measured,) = (part.sentences for part in found.parts if part.title == "Measured")
    assert "storm-supervisor-0 uses " in measured[-1]
    assert ".svc" not in measured[-1]


def test_what_is_left_out_is_counted() -> None:
    """Of a list that was cut short nobody knows whether it is whole."""
    seen = page_scene(passes=1).watcher.seen
    loads = [LoadView("words", name, None, 10.0, 10.0 + change) for change, name in enumerate("abcde")]
    view = replace(seen.view, problems=("one", "two", "three", "four"))
    found = explain_topology("words", view, loads, ())
    assert found is not None
    parts = {part.title: part.sentences for part in found.parts}
    assert parts["Forecast"][0] == (
        "Next period: e 10 -> 14 tuples/s, d 10 -> 13 tuples/s, c 10 -> 12 tuples/s and 2 more."
    )
    assert parts["Measured"][-2:] == ("Three.", "1 more problem.")


def test_the_pass_that_plans_says_what_it_proposed() -> None:
    page = page_scene(passes=1)
    found = page.get("topologies/words/explanation")
    plan = page.played.loop.memory.records[-1].plan
    assert found["headline"] == f"Plan {plan.id}: {plan.reason}."
    parts = {part["title"]: part["sentences"] for part in found["parts"]}
    assert f"lowers the cost by {plan.gain_percent:.0f}%" in parts["Proposed"][0]
    assert parts["Last plan"][0] == f"{plan.id} (Settling): as said above."
    assert json.dumps(found).lower().count(plan.reason.lower()) == 1
    assert "What would change it" not in parts


def test_where_the_policy_was_not_asked_that_is_said() -> None:
    page = page_scene(passes=0)
    page.played.run(with_mode(Mode.OBSERVE))
    parts = {part["title"]: part["sentences"] for part in page.get("topologies/words/explanation")["parts"]}
    assert parts["Proposed"] == ["The policy was not asked: the rule below comes first."]
    assert "Recommend" in parts["What would change it"][0]


def test_executors_are_held_to_their_limits_and_not_to_what_they_need() -> None:
    """Where others of a higher priority are served first, limits are less than the need."""
    seen = page_scene(passes=1).watcher.seen
    executors = tuple(replace(one, demand_millicores=200.0, limit_millicores=30.0) for one in seen.view.executors)

    def cpu(is_held: bool, executors: tuple[ExecutorView, ...] = executors) -> str:
        topologies = tuple(replace(one, is_held_to_limits=is_held) for one in seen.view.topologies)
        found = explain_topology("words", replace(seen.view, executors=executors, topologies=topologies), (), ())
        assert found is not None
        return found.parts[0].sentences[2]

    assert f"millicores and are held to {figure(30.0 * len(executors))}." in cpu(is_held=True)
    assert f"millicores and would get {figure(200.0 * len(executors))} as CPU limits." in cpu(is_held=False)
    used = 50.0 * len(executors)
    unmanaged = replace(executors[0], cpu_used_millicores=50.0, demand_millicores=None, limit_millicores=None)
    assert cpu(False, (unmanaged,) * len(executors)) == f"Its executors use {figure(used)} millicores."


def test_limits_that_add_up_to_more_than_a_supervisor_has_are_told_with_it() -> None:
    """As with a high floor: no executor is sure of its own, though each is within its limit."""
    seen = page_scene(passes=1).watcher.seen

    def measured(limit: float | None) -> str:
        executors = tuple(replace(one, worker=0, limit_millicores=limit) for one in seen.view.executors)
        roomy = tuple(replace(one, cpu_capacity_millicores=1000.0) for one in seen.view.supervisors)
        found = explain_topology("words", replace(seen.view, executors=executors, supervisors=roomy), (), ())
        assert found is not None
        return " ".join(found.parts[0].sentences)

    host = seen.view.supervisors[seen.view.workers[0].supervisor].host
    assert measured(400.0).endswith(
        f"CPU limits add up to more than there is: 2,000 of 1,000 millicores on {host}. Executors that use all of"
        " theirs at once share what there is."
    )
    assert "add up" not in measured(200.0)
    assert "add up" not in measured(None)


def test_what_is_missing_is_named() -> None:
    page = page_scene(passes=1)
    page.played.observer.missing = True
    page.played.run()
    found = page.get("topologies/words/explanation")
    measured = next(part["sentences"] for part in found["parts"] if part["title"] == "Measured")
    assert "Only 80% of all executors of the cluster have measurements." in measured
    assert "Agent s1 is silent." in measured
    unknown = "How many tuples/s cross supervisors is unknown: not all of its executors are measured; 5 executors in "
    assert measured[1].startswith(unknown)
    assert found["headline"].startswith("Hold (MetricsIncomplete)")


def measured_of(*, slots: Mapping[Executor, WorkerSlot], missing: tuple[Executor, ...] = ()) -> tuple[str, ...]:
    page = page_scene(passes=0)
    picture = snapshot((WORDS,), supervisors(3), slots, missing=missing, problems=("agent s1 is silent",))
    page.watcher.on_pass(PassReport(1.0, picture, None, ()))
    found = page.watcher.seen.explain("words")
    assert found is not None
    assert "unknown" not in str(found)
    return found.parts[0].sentences


def test_before_anything_is_measured_that_is_one_sentence_and_no_list_of_what_is_unknown() -> None:
    assert measured_of(slots={}) == (
        "None of its 5 executors has a place yet: there is nothing to measure.",
        "Agent s1 is silent.",
    )
    assert measured_of(slots=SPREAD, missing=WORDS.executors) == (
        "Nothing of it was measured in this period; 5 executors in 5 workers on 3 supervisors.",
        "Only 0% of all executors of the cluster have measurements.",
        "Agent s1 is silent.",
    )


def test_a_plan_of_which_no_figure_is_known_is_told_without_rows_of_unknowns() -> None:
    seen = page_scene(passes=1).watcher.seen
    (plan,) = seen.plan_views()
    nothing = Outcome(None, None, None, None, None)
    blind = replace(plan, measured_before=nothing, predicted_after=None, measured_after=nothing)
    found = explain_topology("words", seen.view, (), (blind,))
    assert found is not None
    assert "unknown" not in " ".join(found.parts[-1].sentences)
    asked = explain_topology("words", seen.view, (), (replace(plan, measured_after=None),))
    assert asked is not None
    assert asked.parts[-1].sentences[-1].endswith(" predicted.")


@pytest.mark.parametrize(("missing", "of", "percent"), [(5, 2000, 99), (1, 5, 80), (71, 100, 29), (2000, 2000, 0)])
def test_where_a_measurement_is_missing_nobody_reads_that_all_are_there(missing: int, of: int, percent: int) -> None:
    seen = page_scene(passes=1).watcher.seen
    found = explain_topology("words", replace(seen.view, completeness=1.0 - missing / of), (), ())
    assert found is not None
    assert f"Only {percent}% of all executors of the cluster have measurements." in found.parts[0].sentences


@pytest.mark.parametrize(
    ("kind", "gain", "sentence"),
    [
        ("plan", -12.0, "As said above. It raises the cost by 12%."),
        ("plan", 12.0, "As said above. It lowers the cost by 12%."),
        ("hold", -3.25, "As said above. It would raise the cost by 3.2%."),
        ("hold", 3.25, "As said above. It would lower the cost by 3.2%."),
        ("hold", 0.04, "As said above."),
        ("hold", 0.0, "As said above."),  # as where it would raise the cost: that is no saving, and no more is known
    ],
)
def test_what_costs_more_than_what_is_in_force_is_not_told_as_a_saving(kind: str, gain: float, sentence: str) -> None:
    seen = page_scene(passes=1).watcher.seen
    reason = "" if kind == "plan" else HoldReason.PAYBACK_TOO_LONG.value
    decision = DecisionView(("words",), kind, reason, "because", "p-1" if kind == "plan" else None, gain)
    found = explain_topology("words", replace(seen.view, decisions=(decision,)), (), ())
    assert found is not None
    assert {part.title: part.sentences for part in found.parts}["Proposed"] == (sentence,)


def test_numbers_of_executors_that_wait_are_told_with_their_reason() -> None:
    page = page_scene(passes=1)
    assert page.get("topologies/words/explanation")["held_resize"] is None
    (topology,) = page.watcher.seen.view.topologies
    before = page.watcher.seen.changes
    held = HeldResize({"split": 5}, Hold(HoldReason.OBSERVE_ONLY, "mode is Observe: give the numbers to have them"))
    page.watcher.on_held_resizes({topology.id: held})
    page.watcher.on_held_resizes({topology.id: held})
    assert page.watcher.seen.changes == before + 1, "who asks by tag is answered anew, once"
    found = page.get("topologies/words/explanation")
    assert found["held_resize"] == {"executors": {"split": 5}, "reason": "ObserveOnly", "message": held.message}
    parts = {part["title"]: part["sentences"] for part in found["parts"]}
    (split,) = [one.executors for one in topology.components if one.name == "split"]
    assert parts["Number of executors"] == [
        f"The load asks for split 5 instead of {split}.",
        "It waits (ObserveOnly): mode is Observe: give the numbers to have them.",
    ]
    page.watcher.on_held_resizes({})
    found = page.get("topologies/words/explanation")
    assert found["held_resize"] is None
    assert "Number of executors" not in {part["title"] for part in found["parts"]}


def test_nobody_predicts_what_a_rollback_does() -> None:
    page = page_scene(passes=1)
    page.played.observer.latency_ms = 40.0
    while PlanState.ROLLED_BACK not in {record.state for record in page.played.loop.memory.records}:
        page.played.run()
    back, bad = page.get("plans")["plans"]
    assert (back["rollback_of"], back["predicted_before"], back["predicted_after"]) == (bad["id"], None, None)
    assert bad["predicted_before"]["inter_supervisor_tuples_per_second"] > 0.0
    parts = {part["title"]: part["sentences"] for part in page.get("topologies/words/explanation")["parts"]}
    assert "unknown predicted" in " ".join(parts["Last plan"])


def test_one_that_nobody_manages_says_so() -> None:
    seen = page_scene(passes=1).watcher.seen
    found = explain_topology("words", replace(seen.view, decisions=()), seen.loads, ())
    assert found is not None
    assert found.headline == "Not managed, so nothing is decided about it: no StormTopology names it."
    parts = {part.title: part.sentences for part in found.parts}
    assert "suspended or paused" in parts["Rule that decided"][0]
    assert "spec.suspend" in parts["What would change it"][0]


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        (Refusal("words: suspended, and not in Storm", "words"), "words: suspended, and not in Storm"),
        (Refusal("shop: it is being submitted", "shop"), "no StormTopology names it"),
        (Refusal("a.yaml: not valid YAML"), "no StormTopology that can be read names it"),
    ],
    ids=["its own", "another's", "nobody knows whose"],
)
def test_why_nobody_manages_it_is_what_is_known_of_its_stormtopology(refused: Refusal, why: str) -> None:
    seen = page_scene(passes=1).watcher.seen
    found = explain_topology("words", replace(seen.view, decisions=()), seen.loads, (), {}, (refused,))
    assert found is not None
    assert found.headline == f"Not managed, so nothing is decided about it: {why}."


def test_the_last_one_that_is_no_longer_managed_is_told_what_any_other_is_that_is_not() -> None:
    """As when the one file in a folder is gone: the pass says of everything that nothing is managed."""
    page = page_scene(passes=1)
    page.played.run({})
    found = page.get("topologies/words/explanation")
    seen = page.watcher.seen
    assert [one.reason for one in seen.view.decisions] == [HoldReason.NOTHING_TO_MANAGE]
    assert found["headline"] == "Not managed, so nothing is decided about it: no StormTopology names it."
    parts = {part["title"]: part["sentences"] for part in found["parts"]}
    assert "Proposed" not in parts
    assert parts["What would change it"][0].startswith("A StormTopology with spec.adopt for it")


def test_what_would_change_a_pause_is_the_end_of_it() -> None:
    seen = page_scene(passes=1).watcher.seen
    paused = Refusal("words.yaml: paused by annotation: left as it is", "words", is_pause=True)
    found = explain_topology("words", replace(seen.view, decisions=()), seen.loads, (), {}, (paused,))
    assert found is not None
    (change,) = [part for part in found.parts if part.title == "What would change it"]
    assert change.sentences == ("The annotation's removal: storm-operator.dev/paused.",)


@pytest.mark.parametrize(
    ("named", "is_managed", "is_told"),
    [("words", True, True), ("words", False, True), ("", False, True), ("", True, False), ("others", False, False)],
)
def test_why_its_stormtopology_is_not_carried_out_is_told(named: str, is_managed: bool, is_told: bool) -> None:
    why, page = "a.yaml: spec is missing: a mapping is right.", page_scene(passes=0)
    page.watcher.refused = lambda: (Refusal(why.removesuffix("."), named),)
    page.played.run(SPECS if is_managed else {})
    found = page.get("topologies/words/explanation")
    parts = {part["title"]: part["sentences"] for part in found["parts"]}
    headline_tells = found["headline"].endswith(why)
    assert headline_tells is (named == "words" and not is_managed)
    told = {"What is not carried out": [why]} if is_told and not headline_tells else {}
    assert {title: parts[title] for title in parts if title.startswith("What is not")} == told


def test_what_becomes_of_stormtopologies_between_passes_is_told_at_once() -> None:
    page = page_scene(passes=1)
    changes, view = page.watcher.seen.plan_changes, page.get("view")
    page.watcher.look_again()
    assert page.watcher.seen.plan_changes == changes, "nothing is new"
    page.watcher.refused = lambda: (Refusal("words: it is being submitted", "words"),)
    page.watcher.look_again()
    assert page.get("view") == {**view, "refused": ["words: it is being submitted"]}
    (now,) = page.get("clusters")["clusters"]
    assert now["plan_changes"] == changes + 1
    parts = {part["title"]: part["sentences"] for part in page.get("topologies/words/explanation")["parts"]}
    assert parts["What is not carried out"] == ["words: it is being submitted."]
    page.watcher.refused = tuple
    page.watcher.look_again()
    assert page.get("view") == view
