"""Plans that wait for a person, through the whole loop: kept, superseded, outdated, approved, rejected, taken back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

import loop_scene
from builders import placed, slot
from fake_cluster import FakeCluster
from loop_scene import SETTINGS, SPECS, SPREAD, WORDS, Scene, last_state, scene, with_mode
from storm_operator.adapters.errors import ZooKeeperUnreachable
from storm_operator.apply import Applier
from storm_operator.approval_desk import OTHERS_MOVE, ApprovalDesk
from storm_operator.core.decision import Decision, Hold, HoldReason, Plan, PlanCause
from storm_operator.core.model import Assignment, Executor
from storm_operator.core.plan_record import AUTO, PlanRecord, PlanState
from storm_operator.core.settings import (
    ApprovalMode,
    ApprovalSettings,
    AutoApproval,
    ExcludedWindow,
    Mode,
    SchedulingSettings,
    Separation,
)
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.topology_spec import TopologySpec
from storm_operator.core.wording import figure
from storm_operator.group_turns import MEASURED_ANEW, GroupTurns

RECOMMEND = with_mode(Mode.RECOMMEND)
COUNT_ON_S2 = sorted(e for e, place in SPREAD.items() if place == slot("s2:6701"))[0]


def with_scheduling(scheduling: SchedulingSettings) -> dict[str, TopologySpec]:
    return {"words": replace(SPECS["words"], scheduling=scheduling)}


def with_approval(mode: ApprovalMode, conditions: AutoApproval | None = None) -> dict[str, TopologySpec]:
    return with_scheduling(replace(SETTINGS, approval=ApprovalSettings(mode, conditions)))


def proposed(played: Scene, specs: Mapping[str, TopologySpec] = RECOMMEND) -> Plan:
    """One pass that proposes and moves nothing."""
    plan = played.run(specs)
    assert isinstance(plan, Plan)
    assert played.cluster.plans == {}
    return plan


def told(played: Scene, plan_id: str) -> PlanRecord:
    """The last that was told of a plan."""
    return [record for record in played.audience.records if record.plan.id == plan_id][-1]


def states(played: Scene) -> list[tuple[str, PlanState]]:
    """What was told of plans, repetitions left out."""
    return list(dict.fromkeys((record.plan.id, record.state) for record in played.audience.records))


def waiting(played: Scene) -> list[str]:
    return [record.plan.id for record in played.loop.memory.proposals.waiting]


def harmful_plan(played: Scene) -> Plan:
    """One that is in force, and has made the topology slower."""
    made = played.run()
    assert isinstance(made, Plan)
    played.observer.latency_ms = 40.0
    return made


def move_by_hand(cluster: FakeCluster) -> None:
    """Somebody else, or Storm's own scheduler, moves an executor."""
    cluster.assignment = cluster.assignment.with_moves({COUNT_ON_S2: slot("s3:6702")})


def verified_plan(played: Scene) -> Plan:
    plan = proposed(played)
    played.loop.desk.approve(plan.id, "somebody")
    played.observer.latency_ms = 2.0
    while told(played, plan.id).state is not PlanState.VERIFIED:
        played.run(RECOMMEND)
    return plan


def until_done(played: Scene, plan: Plan) -> PlanRecord:
    for _ in range(10):
        if told(played, plan.id).state.is_final:
            break
        played.run(RECOMMEND)
    return told(played, plan.id)


def test_proposal_is_told_with_what_it_waits_for() -> None:
    played = scene()
    plan = proposed(played)
    record = told(played, plan.id)
    assert record.state is PlanState.PROPOSED
    assert record.message == "mode is Recommend: plans are carried out when approved"
    assert record.before.inter_supervisor_tuples_per_second == pytest.approx(450.0)


def test_manual_approval_makes_a_plan_wait_in_mode_enforce() -> None:
    played = scene()
    plan = proposed(played, with_approval(ApprovalMode.MANUAL))
    assert "approval is Manual" in told(played, plan.id).message


@pytest.mark.parametrize(("where", "state"), [("s2:6702", PlanState.EXPIRED), ("s9:6700", PlanState.PROPOSED)])
def test_proposal_was_reckoned_with_others_where_they_were(where: str, state: PlanState) -> None:
    """Carried out after theirs, it may gather where nobody is any more."""
    played = scene()
    plan = proposed(played)
    others = Executor("others", 1, 1, "spout")
    theirs = replace(
        plan,
        id="theirs",
        topology_ids=("others",),
        base=Assignment({others: slot("s8:6700")}),
        target=Assignment({others: slot(where)}),
    )
    played.loop.desk.release(theirs)
    assert told(played, plan.id).state is state
    assert (told(played, plan.id).message == OTHERS_MOVE.format("theirs")) is (not waiting(played))


def others_plan(plan: Plan) -> Plan:
    """Of a topology that nobody here knows, on a supervisor of `plan`."""
    others = Executor("others", 1, 1, "spout")
    base, target = Assignment({others: slot("s1:6705")}), Assignment({others: slot("s2:6705")})
    return replace(plan, id="theirs", topology_ids=("others",), base=base, target=target)


def test_proposal_that_another_plan_of_the_same_pass_outdates_is_told_as_a_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What nobody can approve is no plan: figures and conditions would take it for one."""
    played, decide_and_apply = scene(), GroupTurns._decide_and_apply

    def and_then_others(turns: GroupTurns, *about: Any) -> Decision:
        made = decide_and_apply(turns, *about)
        assert isinstance(made, Plan)
        turns.desk.release(others_plan(made))
        return made

    monkeypatch.setattr(GroupTurns, "_decide_and_apply", and_then_others)
    decision = played.run(RECOMMEND)
    assert isinstance(decision, Hold)
    assert (decision.reason, decision.message) == (HoldReason.APPLYING, MEASURED_ANEW)


def test_a_way_back_outdates_proposals_beside_it_as_any_plan_does(monkeypatch: pytest.MonkeyPatch) -> None:
    played = scene()
    plan = harmful_plan(played)
    in_hand = played.loop.memory.records[-1]
    theirs = replace(in_hand, plan=others_plan(plan), state=PlanState.PROPOSED, approved_by="")
    for drop in ("drop_those_of_gone", "drop_those_of_unmanaged"):  # of others nothing runs in this scene
        monkeypatch.setattr(ApprovalDesk, drop, lambda *_: None)
    played.loop.memory.proposals = played.loop.memory.proposals.having(theirs)
    while PlanState.ROLLED_BACK not in {record.state for record in played.loop.memory.records}:
        assert waiting(played) == ["theirs"]
        played.run()
    assert waiting(played) == []


def test_what_was_approved_is_carried_out_whatever_others_do() -> None:
    played = scene()
    plan = proposed(played)
    played.loop.desk.approve(plan.id, "somebody")
    played.loop.desk.release(others_plan(plan))
    assert waiting(played) == [plan.id]


def test_proposal_that_still_stands_is_kept_and_told_once() -> None:
    played = scene()
    first = proposed(played)
    for _ in range(4):
        assert proposed(played) == first
    assert waiting(played) == [first.id]
    assert states(played) == [(first.id, PlanState.PROPOSED)]


def test_plan_that_meets_all_conditions_is_applied_without_a_person() -> None:
    played = scene()
    easy = AutoApproval(minimum_gain_percent=10.0, maximum_restarted_workers=9, maximum_payback_seconds=600.0)
    played.run(with_approval(ApprovalMode.AUTO, easy))
    assert last_state(played) is PlanState.SETTLING


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        (AutoApproval(minimum_gain_percent=99.0), "its gain of 80.3% is below the 99%"),
        (AutoApproval(maximum_restarted_workers=0), "up to 0 need no approval"),
        (AutoApproval(maximum_payback_seconds=1.0), "pays back in 70.9 s; up to 1 s"),
    ],
)
def test_plan_that_misses_a_condition_waits_and_says_which(conditions: AutoApproval, words: str) -> None:
    played = scene()
    plan = proposed(played, with_approval(ApprovalMode.AUTO, conditions))
    assert words in told(played, plan.id).message


def test_the_time_that_a_plan_waited_for_a_person_is_none_of_its_way_into_force() -> None:
    played = scene()
    plan = proposed(played)
    for _ in range(30):
        proposed(played)
    played.loop.desk.approve(plan.id, "somebody")
    played.run(RECOMMEND)
    record = told(played, plan.id)
    assert record.started_at_seconds == plan.created_at_seconds + 310.0
    assert record.in_force_at_seconds is not None
    assert record.seconds_to_in_force == record.in_force_at_seconds - record.started_at_seconds


def test_exactly_the_approved_plan_is_carried_out() -> None:
    played = scene()
    plan = proposed(played)
    assert played.loop.desk.approve(plan.id, "somebody")
    assert played.run(RECOMMEND) == plan
    assert played.cluster.plans["words"] == plan
    assert played.cluster.assignment.slot_of == plan.target.slot_of
    assert told(played, plan.id).state is PlanState.SETTLING
    assert told(played, plan.id).approved_by == "somebody"
    assert waiting(played) == []


@pytest.mark.parametrize(("missing", "foretold"), [(False, 4500.0), (True, 450.0)])
def test_approved_plan_is_foretold_by_the_load_that_it_begins_with(
    missing: bool, foretold: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where that was not measured, as it was shown."""
    played = scene()
    plan = proposed(played)
    monkeypatch.setattr(loop_scene, "RATE", 10.0 * loop_scene.RATE)
    played.observer.missing = missing
    played.loop.desk.approve(plan.id, "somebody")
    carried_out = played.run(RECOMMEND)
    assert isinstance(carried_out, Plan)
    assert carried_out.before.inter_supervisor_tuples_per_second == pytest.approx(foretold)
    assert (carried_out.id, carried_out.target, carried_out.moves) == (plan.id, plan.target, plan.moves)
    assert told(played, plan.id).plan == carried_out


def test_gain_of_a_plan_is_the_one_it_was_decided_by() -> None:
    plan = proposed(scene())
    assert plan.gain_percent is not None
    assert f"tuple-ms/s (-{figure(plan.gain_percent)}%)" in plan.reason


def test_plan_that_needs_no_word_is_approved_automatically() -> None:
    played = scene()
    plan = played.run()
    assert isinstance(plan, Plan)
    assert told(played, plan.id).approved_by == AUTO
    assert told(played, plan.id).approved_at_seconds == played.cluster.clock.now()


def test_approved_plan_is_carried_out_even_if_another_would_be_proposed_by_now() -> None:
    played = scene()
    plan = proposed(played)
    played.loop.desk.approve(plan.id, "somebody")
    too_much = with_scheduling(replace(SETTINGS, mode=Mode.RECOMMEND, minimum_gain_percent=99.0))
    assert played.run(too_much) == plan
    assert played.cluster.plans["words"] == plan


def test_approved_plan_waits_for_the_one_that_settles() -> None:
    played = scene()
    first = played.run()
    assert isinstance(first, Plan)
    record = replace(told(played, first.id), state=PlanState.PROPOSED, approved_by="")
    again = replace(first, id="p-again", base=first.target, target=first.base)
    played.loop.memory.proposals = played.loop.memory.proposals.having(replace(record, plan=again))
    played.loop.desk.approve("p-again", "somebody")
    held = played.run()
    assert isinstance(held, Hold)
    assert held.reason is HoldReason.APPLYING
    assert waiting(played) == ["p-again"]
    assert played.cluster.plans["words"] == first


def test_plan_that_was_approved_while_another_settled_begins_in_the_pass_that_verifies_that_one() -> None:
    played = scene()
    first = proposed(played)
    played.loop.desk.approve(first.id, "somebody")
    played.observer.latency_ms = 2.0
    played.run(RECOMMEND)
    second = replace(first, id="p-second", base=first.target, target=first.base)
    record = replace(told(played, first.id), plan=second, state=PlanState.PROPOSED, approved_by="")
    played.loop.memory.proposals = played.loop.memory.proposals.having(record)
    played.loop.desk.approve(second.id, "somebody")
    while told(played, first.id).state is PlanState.SETTLING:
        assert waiting(played) == [second.id]
        played.run(RECOMMEND)
    assert told(played, first.id).state is PlanState.VERIFIED
    assert told(played, second.id).state is PlanState.SETTLING


def test_plan_that_needs_nobody_s_yes_any_more_begins_in_the_place_of_the_proposal_that_says_the_same() -> None:
    """Else that one would wait on while it is carried out, and then say that somebody had moved executors."""
    played = scene()
    shown = proposed(played, with_approval(ApprovalMode.MANUAL))
    begun = played.run(with_approval(ApprovalMode.AUTO))
    assert isinstance(begun, Plan)
    assert begun.target == shown.target
    assert waiting(played) == []
    assert told(played, shown.id).message == f"superseded by plan {begun.id}"
    told_of = [record.plan.id for record in played.audience.records]
    since = set(told_of[told_of.index(begun.id) :])
    assert since == {begun.id}, "what is said last of the topology is of the plan in hand, while it is begun, too"


def test_only_a_plan_that_waits_can_be_approved() -> None:
    played = scene()
    plan = proposed(played)
    assert not played.loop.desk.approve("p-other", "somebody")
    played.loop.desk.withdraw(plan.id, "asked for")
    assert not played.loop.desk.approve(plan.id, "somebody")


def test_moved_executors_outdate_a_proposal() -> None:
    played = scene()
    plan = proposed(played)
    move_by_hand(played.cluster)
    played.run(RECOMMEND)
    assert told(played, plan.id).state is PlanState.EXPIRED
    assert "no longer where the plan would move them from" in told(played, plan.id).message


def test_approved_plan_is_never_carried_out_from_another_start() -> None:
    played = scene()
    plan = proposed(played)
    played.loop.desk.approve(plan.id, "somebody")
    move_by_hand(played.cluster)
    other = played.run(RECOMMEND)
    assert isinstance(other, Plan)
    assert other.id != plan.id
    assert played.cluster.calls == []
    assert told(played, plan.id).state is PlanState.EXPIRED
    assert waiting(played) == [other.id]


def test_another_plan_supersedes_the_proposal_that_waits() -> None:
    played = scene()
    first = proposed(played)
    other_target = first.target.with_moves({COUNT_ON_S2: slot("s3:6703")})
    shown = replace(told(played, first.id), plan=replace(first, id="p-old", target=other_target))
    played.loop.memory.proposals = played.loop.memory.proposals.without(first.id).having(shown)
    second = proposed(played)
    assert told(played, "p-old").state is PlanState.EXPIRED
    assert told(played, "p-old").message == f"superseded by plan {second.id}"
    assert waiting(played) == [second.id]


def test_proposal_that_would_not_be_made_now_expires() -> None:
    played = scene()
    plan = proposed(played)
    played.run(with_mode(Mode.OBSERVE))
    assert told(played, plan.id).state is PlanState.EXPIRED
    assert "it would not be proposed now: mode is Observe" in told(played, plan.id).message


def test_proposal_outlives_a_pass_without_complete_metrics() -> None:
    played = scene()
    plan = proposed(played)
    played.observer.missing = True
    assert isinstance(played.run(RECOMMEND), Hold)
    assert waiting(played) == [plan.id]
    played.observer.missing = False
    assert proposed(played).id == plan.id


def test_proposal_outlives_an_excluded_window() -> None:
    played = scene()
    plan = proposed(played)
    always = (ExcludedWindow("* * * * *", 60),)
    held = played.run(with_scheduling(replace(SETTINGS, mode=Mode.RECOMMEND, excluded_windows=always)))
    assert isinstance(held, Hold)
    assert held.reason is HoldReason.EXCLUDED_WINDOW
    assert waiting(played) == [plan.id]


def test_approved_plan_waits_for_the_end_of_an_excluded_window() -> None:
    played = scene()
    plan = proposed(played)
    assert played.loop.desk.approve(plan.id, "somebody")
    always = (ExcludedWindow("* * * * *", 60),)
    held = played.run(with_scheduling(replace(SETTINGS, mode=Mode.RECOMMEND, excluded_windows=always)))
    assert isinstance(held, Hold)
    assert held.reason is HoldReason.EXCLUDED_WINDOW
    assert plan.id in held.message
    assert played.run(with_mode(Mode.RECOMMEND)) == plan
    assert last_state(played) is not PlanState.PROPOSED


def waits_for_the_end_of_a_window(played: Scene, plan: Plan) -> Hold:
    always = (ExcludedWindow("* * * * *", 60),)
    manual = ApprovalSettings(ApprovalMode.MANUAL, None)
    held = played.run(with_scheduling(replace(SETTINGS, approval=manual, excluded_windows=always)))
    assert isinstance(held, Hold)
    assert plan.id in held.message
    assert waiting(played) == [plan.id]
    return held


def test_while_an_approved_plan_waits_for_the_end_of_a_window_cpu_that_gets_short_is_told() -> None:
    played = scene()
    plan = proposed(played, with_approval(ApprovalMode.MANUAL))
    played.loop.desk.approve(plan.id, "somebody")
    assert waits_for_the_end_of_a_window(played, plan).reason is HoldReason.EXCLUDED_WINDOW
    played.observer.capacity_millicores = 60.0
    held = waits_for_the_end_of_a_window(played, plan)
    assert (held.reason, held.short_topologies) == (HoldReason.TOO_LITTLE_CAPACITY, ("words",))


def test_while_an_approved_plan_waits_for_the_end_of_a_window_limits_of_the_unmeasured_stay() -> None:
    played = scene()
    plan = proposed(played, with_approval(ApprovalMode.MANUAL))
    played.loop.desk.approve(plan.id, "somebody")
    waits_for_the_end_of_a_window(played, plan)
    assert played.cluster.limits["words"]
    played.cluster.limits["words"] = {}
    played.observer.missing = True
    assert waits_for_the_end_of_a_window(played, plan).reason is HoldReason.METRICS_INCOMPLETE
    assert played.cluster.limits["words"] == {}
    played.observer.missing = False
    waits_for_the_end_of_a_window(played, plan)
    assert played.cluster.limits["words"]


@pytest.mark.parametrize("missing", [False, True], ids=["measured", "not measured"])
def test_approved_plan_is_not_carried_out_once_the_mode_is_observe(missing: bool) -> None:
    played = scene()
    plan = proposed(played)
    played.loop.desk.approve(plan.id, "somebody")
    always = (ExcludedWindow("* * * * *", 60),)
    played.run(with_scheduling(replace(SETTINGS, mode=Mode.RECOMMEND, excluded_windows=always)))
    played.observer.missing = missing
    assert isinstance(played.run(with_mode(Mode.OBSERVE)), Hold)
    assert (told(played, plan.id).state, told(played, plan.id).message) == (
        PlanState.EXPIRED,
        "mode is Observe by now: nothing is carried out",
    )
    assert (waiting(played), played.cluster.plans) == ([], {})


def test_approved_plan_does_not_move_a_topology_that_nobody_manages_any_more() -> None:
    """As where one of two StormTopologies was deleted, and its topology left running."""
    played = scene()
    plan = proposed(played)
    played.loop.desk.approve(plan.id, "somebody")
    (known,) = played.loop.memory.proposals.waiting
    of_both = replace(known, plan=replace(plan, topology_ids=("others", "words")))
    played.loop.memory.proposals = played.loop.memory.proposals.having(of_both)
    picture = played.audience.reports[-1].snapshot
    assert picture is not None
    assert played.loop.desk.review(("others", "words"), plan, picture) == of_both
    assert played.loop.desk.review(("words",), plan, picture) is None
    assert (told(played, plan.id).state, told(played, plan.id).message) == (
        PlanState.EXPIRED,
        "others is managed by other settings by now, or by nobody",
    )


SUSPENDED = {"words": replace(RECOMMEND["words"], suspend=True)}


@pytest.mark.parametrize("specs", [{}, SUSPENDED], ids=["deleted", "suspended"])
def test_proposal_of_a_topology_that_nobody_manages_any_more_expires(specs: Mapping[str, TopologySpec]) -> None:
    """Else an approval would do nothing until somebody manages the topology again, and move executors then."""
    played = scene()
    plan = proposed(played)
    played.run(specs)
    assert (told(played, plan.id).state, told(played, plan.id).message) == (
        PlanState.EXPIRED,
        "its topologies are no longer managed",
    )
    assert not played.loop.desk.approve(plan.id, "somebody")
    assert waiting(played) == []


def test_way_back_that_was_asked_for_is_carried_out_in_any_mode() -> None:
    played = scene()
    back = played.loop.desk.propose_way_back(verified_plan(played), "somebody")
    played.run(with_mode(Mode.OBSERVE))
    assert told(played, back.id).state is PlanState.SETTLING
    assert played.cluster.assignment.slot_of == SPREAD


@pytest.mark.parametrize("policy", ["aniello-online", "etw-wtn", "genetic", "t-storm"])
def test_proposal_stands_until_its_policy_looks_again(policy: str) -> None:
    played = scene()
    specs = with_scheduling(replace(SETTINGS, policy=policy, mode=Mode.RECOMMEND, separation=Separation.NEVER))
    while isinstance(plan := played.run(specs), Hold):
        assert plan.reason is HoldReason.NOT_DUE
    for _ in range(3):
        held = played.run(specs)
        assert isinstance(held, Hold)
        assert held.reason is HoldReason.NOT_DUE
        assert f"{policy} looks for something better in" in held.message
        assert waiting(played) == [plan.id]
    assert played.loop.desk.approve(plan.id, "somebody")
    assert played.run(specs) == plan


def test_proposal_of_a_topology_that_is_gone_expires() -> None:
    played = scene()
    plan = proposed(played)
    renamed = replace(WORDS, id="words-2")
    original = played.observer.observe

    def observe(*arguments: object) -> ClusterSnapshot:
        picture = original(*arguments)  # type: ignore[arg-type]
        return replace(picture, topologies=(renamed,), assignment=Assignment({}))

    played.observer.observe = observe  # type: ignore[method-assign, assignment]
    played.run(RECOMMEND)
    assert told(played, plan.id).state is PlanState.EXPIRED
    assert told(played, plan.id).message == "words no longer runs"
    assert not played.loop.desk.approve(plan.id, "somebody")


def test_rejected_target_is_not_proposed_again() -> None:
    played = scene()
    plan = proposed(played)
    played.loop.desk.reject(plan, "rejected by annotation")
    assert told(played, plan.id).state is PlanState.REJECTED
    assert told(played, plan.id).message == "rejected by annotation"
    held = played.run(RECOMMEND)
    assert isinstance(held, Hold)
    assert held.reason is HoldReason.KNOWN_BAD
    assert waiting(played) == []


def test_withdrawn_proposal_is_made_anew_under_another_id() -> None:
    played = scene()
    first = proposed(played)
    played.loop.desk.withdraw(first.id, "refresh was asked for")
    assert (told(played, first.id).state, told(played, first.id).message) == (
        PlanState.EXPIRED,
        "refresh was asked for",
    )
    second = proposed(played)
    assert second.id != first.id
    assert second.target == first.target


def test_way_back_leads_to_where_executors_were_and_is_not_undone() -> None:
    played = scene()
    plan = verified_plan(played)
    played.observer.latency_ms = 8.0
    back = played.loop.desk.propose_way_back(plan, "somebody")
    done = until_done(played, back)
    assert done.state is PlanState.VERIFIED
    assert (done.rollback_of, done.plan.cause) == (plan.id, PlanCause.TAKEN_BACK)
    assert told(played, plan.id).state is PlanState.ROLLED_BACK, "that it had been verified is no longer how it ended"
    assert told(played, plan.id).message == f"plan {back.id} takes it back"
    assert played.cluster.assignment.slot_of == SPREAD
    for _ in range(5):
        assert isinstance(played.run(RECOMMEND), Hold)
    assert played.cluster.assignment.slot_of == SPREAD


def test_target_that_was_taken_back_is_not_proposed_again() -> None:
    played = scene()
    plan = verified_plan(played)
    until_done(played, played.loop.desk.propose_way_back(plan, "somebody"))
    held = played.run(RECOMMEND, seconds=600.0)
    assert isinstance(held, Hold)
    assert held.reason is HoldReason.KNOWN_BAD


@pytest.mark.parametrize(
    ("specs", "words"),
    [
        (RECOMMEND, "mode is Recommend: plans are carried out when approved"),
        (with_approval(ApprovalMode.MANUAL), "approval is Manual: plans are carried out when approved"),
    ],
    ids=["Recommend", "Manual"],
)
def test_way_back_from_a_plan_that_made_things_worse_waits_where_all_plans_do(
    specs: Mapping[str, TopologySpec], words: str
) -> None:
    played = scene()
    worse = harmful_plan(played)
    for _ in range(6):
        played.run(specs)
    assert played.cluster.assignment.slot_of == worse.target.slot_of
    (back,) = waiting(played)
    assert (told(played, back).rollback_of, told(played, back).message) == (worse.id, words)
    assert told(played, worse.id).state is PlanState.EXPIRED
    assert told(played, worse.id).message.endswith(
        f"40 ms, at most 8 ms expected; plan {back} takes it back once somebody approves it: {words}"
    )
    played.loop.desk.approve(back, "somebody")
    for _ in range(5):
        played.run(specs)
    assert (told(played, back).state, told(played, back).approved_by) == (PlanState.VERIFIED, "somebody")
    assert told(played, worse.id).state is PlanState.ROLLED_BACK
    assert played.cluster.assignment.slot_of == SPREAD


def test_way_back_that_waits_is_told_last_and_not_lost_to_a_plan_that_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    played = scene()
    worse = harmful_plan(played)
    while not waiting(played):
        played.run(RECOMMEND)
    (back,) = waiting(played)
    assert [record.plan.id for record in played.audience.records[-2:]] == [worse.id, back]
    elsewhere = {executor: replace(slot, port=6703) for executor, slot in worse.target.slot_of.items()}
    other = replace(worse, id="p-other", base=worse.target, target=Assignment(elsewhere), cause=PlanCause.SAVINGS)
    monkeypatch.setattr("storm_operator.group_turns.decide", lambda *_, **__: other)
    decision = played.run(RECOMMEND)
    assert isinstance(decision, Hold)
    assert decision.reason is HoldReason.AWAITING_APPROVAL
    assert decision.message.startswith(f"plan {back}, which takes {worse.id} back, waits for a person first; ")
    assert waiting(played) == [back]
    urgent = replace(other, cause=PlanCause.OVERLOAD)
    monkeypatch.setattr("storm_operator.group_turns.decide", lambda *_, **__: urgent)
    played.run(RECOMMEND)
    assert waiting(played) == ["p-other"]


def test_way_back_that_was_rejected_is_not_proposed_again() -> None:
    played = scene()
    worse = harmful_plan(played)
    for _ in range(4):
        played.run(RECOMMEND)
    (back,) = played.loop.memory.proposals.waiting
    played.loop.desk.reject(back.plan, "rejected by annotation")
    for _ in range(30):
        played.run(RECOMMEND)
    assert waiting(played) == []
    assert played.cluster.assignment.slot_of == worse.target.slot_of


@pytest.mark.parametrize("is_approved", [False, True])
def test_way_back_from_a_plan_that_made_things_worse_is_made_anew_at_once(is_approved: bool) -> None:
    """No pass would: to the policy, what did harm is good."""
    played = scene()
    worse = harmful_plan(played)
    while not waiting(played):
        played.run(RECOMMEND)
    (first,) = waiting(played)
    if is_approved:
        played.loop.desk.approve(first, "somebody")
    played.cluster.clock.seconds += 1.0
    again = played.loop.desk.have_made_anew(first, "refresh was asked for")
    assert again is not None
    for _ in range(3):
        played.run(RECOMMEND)
    assert waiting(played) == [again.plan.id]
    assert told(played, first).state is PlanState.EXPIRED
    assert played.cluster.assignment.slot_of == worse.target.slot_of
    played.loop.desk.approve(again.plan.id, "somebody")
    assert until_done(played, again.plan).message == f"rolled back {worse.id}"
    assert played.cluster.assignment.slot_of == SPREAD


def test_way_back_that_a_person_asks_for_no_more_is_not_made_anew() -> None:
    played = scene()
    back = played.loop.desk.propose_way_back(verified_plan(played), "somebody")
    assert played.loop.desk.have_made_anew(back.id, "refresh was asked for") is None
    assert waiting(played) == []


def test_way_back_supersedes_the_proposal_that_waits() -> None:
    played = scene()
    plan = verified_plan(played)
    other = replace(plan, id="p-other", base=plan.target, target=plan.base)
    shown = replace(told(played, plan.id), plan=other, state=PlanState.PROPOSED, approved_by="")
    played.loop.memory.proposals = played.loop.memory.proposals.having(shown)
    back = played.loop.desk.propose_way_back(plan, "somebody")
    assert told(played, "p-other").state is PlanState.EXPIRED
    assert told(played, "p-other").message == f"superseded by plan {back.id}"
    assert waiting(played) == [back.id]


def test_way_back_from_where_nobody_is_any_more_expires() -> None:
    played = scene()
    plan = verified_plan(played)
    calls = list(played.cluster.calls)
    played.cluster.plans.clear()
    played.cluster.assignment = Assignment(placed(WORDS, {"spout": "s3", "split": "s3", "count": "s3:6701"}))
    back = played.loop.desk.propose_way_back(plan, "somebody")
    assert until_done(played, back).state is PlanState.EXPIRED
    assert played.cluster.calls == calls


def test_way_back_to_a_supervisor_that_has_died_expires() -> None:
    played = scene()
    plan = verified_plan(played)
    gathered, calls = played.cluster.assignment, list(played.cluster.calls)
    died = min({place.supervisor_id for place in SPREAD.values()}.difference(gathered.used_supervisors()))
    played.observer.gone = frozenset({died})
    done = until_done(played, played.loop.desk.propose_way_back(plan, "somebody"))
    assert (done.state, done.message) == (
        PlanState.EXPIRED,
        f"it would lead to {died}, where nothing can run any more",
    )
    assert (played.cluster.assignment, played.cluster.calls) == (gathered, calls)


def test_way_back_to_a_slot_that_another_topology_has_taken_expires() -> None:
    played = scene()
    plan = verified_plan(played)
    left = min(set(SPREAD.values()).difference(played.cluster.assignment.slot_of.values()))
    stranger = replace(WORDS.executors[0], topology_id="other")
    played.cluster.assignment = played.cluster.assignment.with_moves({stranger: left})
    calls = list(played.cluster.calls)
    done = until_done(played, played.loop.desk.propose_way_back(plan, "somebody"))
    assert (done.state, done.message) == (
        PlanState.EXPIRED,
        f"it would lead to slot {left.supervisor_id}:{left.port}, where other runs by now",
    )
    assert played.cluster.calls == calls


def test_way_back_to_where_executors_had_no_place_expires() -> None:
    played = scene()
    played.cluster.assignment = Assignment({e: place for e, place in SPREAD.items() if e != COUNT_ON_S2})
    plan = verified_plan(played)
    assert plan.cause is PlanCause.WITHOUT_PLACE
    given, calls = played.cluster.assignment, list(played.cluster.calls)
    done = until_done(played, played.loop.desk.propose_way_back(plan, "somebody"))
    assert (done.state, done.message) == (
        PlanState.EXPIRED,
        "it would leave executors without a place, as they were before",
    )
    assert (played.cluster.assignment, played.cluster.calls) == (given, calls)


def test_approved_plan_that_could_not_be_saved_is_carried_out_in_the_next_pass() -> None:
    played = scene()
    plan = proposed(played)
    played.loop.desk.approve(plan.id, "somebody")
    played.journal.refuse_next(ZooKeeperUnreachable("no answer"))
    hold = played.run(RECOMMEND)
    assert isinstance(hold, Hold)
    assert hold.reason is HoldReason.CLUSTER_UNREACHABLE
    assert not played.loop.has_pending_plan
    assert played.run(RECOMMEND) == plan
    (record,) = played.loop.memory.records
    assert record.approved_by == "somebody"
    assert played.loop.memory.proposals.waiting == ()


def test_approved_plan_is_finished_by_the_next_life_of_the_operator() -> None:
    played = scene()
    plan = proposed(played)
    played.loop.desk.approve(plan.id, "somebody")
    played.run(RECOMMEND)
    reborn = scene()
    reborn.loop.applier = Applier(played.cluster, played.cluster, played.cluster, played.cluster.clock)
    reborn.loop.journal, reborn.loop.clock = played.journal, played.cluster.clock
    recovered = reborn.loop.recover()
    assert recovered is not None
    assert recovered.plan == plan
    assert reborn.loop.has_pending_plan


def test_approved_plan_holds_nobody_to_limits_where_the_mode_holds_nobody() -> None:
    """Its limits are of when it was begun: load that rose since would be held to them while it settles."""
    played = scene()
    plan = proposed(played)
    assert played.loop.desk.approve(plan.id, "somebody")
    assert played.run(with_mode(Mode.RECOMMEND)) == plan
    assert last_state(played) is PlanState.SETTLING
    assert not played.cluster.limits.get("words")
    played.run(with_mode(Mode.RECOMMEND))
    assert not played.cluster.limits.get("words")


def test_limits_are_lifted_at_once_where_the_mode_holds_nobody_any_more_though_a_plan_settles() -> None:
    played = scene()
    played.run()
    assert last_state(played) is PlanState.SETTLING
    assert played.cluster.limits["words"]
    played.run(with_mode(Mode.RECOMMEND))
    assert last_state(played) is PlanState.SETTLING
    assert not played.cluster.limits["words"]
