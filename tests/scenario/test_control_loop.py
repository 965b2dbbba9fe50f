"""The whole loop on a fake cluster and a fake clock: what it decides, does, holds, verifies, rolls back."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

import kube_builders
import loop_scene
from builders import PERIOD_SECONDS
from fake_cluster import Killed
from loop_scene import SETTINGS, SPECS, SPREAD, WORDS, FakeObserver, Scene, last_state, scene, with_mode
from storm_operator.adapters.errors import (
    MalformedDocument,
    NimbusError,
    NimbusUnreachable,
    TopologyNotAlive,
    ZooKeeperUnreachable,
)
from storm_operator.apply import Applier
from storm_operator.core.backoff import LONGEST_PASS_RETRY_SECONDS
from storm_operator.core.decision import Hold, HoldReason, Plan, PlanCause
from storm_operator.core.model import Assignment, Executor, WorkerSlot
from storm_operator.core.plan_record import PlanRecord, PlanState
from storm_operator.core.settings import ApplyMethod, ExcludedWindow, Mode, Trigger
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.topology_spec import TopologySpec
from storm_operator.terminal import TerminalListener


def test_what_is_kept_for_an_ended_topology_goes_after_two_passes_without_it() -> None:
    played = scene()
    played.cluster.limits["old-1"] = {}
    played.run()
    assert "old-1" in played.cluster.limits
    played.run()
    assert "old-1" not in played.cluster.limits
    assert "words" in played.cluster.planned_topologies()


def test_what_is_remembered_of_an_ended_topology_goes_after_two_passes_without_it() -> None:
    played = scene()
    short = Hold(HoldReason.TOO_LITTLE_CAPACITY, "too small", short_topologies=("old-1",))
    memory = played.loop.memory
    failed = kube_builders.plan(topology_ids=("old-1",))
    known = memory.decisions.with_change("old-1", 0.0).with_decision(["old-1"], short)
    memory.decisions = known.with_failure(failed, 0.0)
    played.run()
    assert "old-1" in memory.decisions.changed_at_seconds
    played.run()
    assert list(memory.decisions.changed_at_seconds) == ["words"]
    assert "old-1" not in memory.decisions.short_topologies | memory.decisions.unhelped_topologies
    assert not memory.decisions.setbacks


def test_plan_of_a_killed_topology_holds_it_until_it_has_finished() -> None:
    played = scene()
    played.cluster.limits["old-1"] = {}
    played.cluster.finishing = {"old-1"}
    for _ in range(3):
        played.run()
    assert "old-1" in played.cluster.limits
    played.cluster.finishing = set()
    played.run()
    assert "old-1" not in played.cluster.limits


def harmful(played: Scene) -> None:
    """A plan is in force that made things worse, and its way back has just failed."""
    played.run()
    played.observer.latency_ms = 80.0
    played.cluster.rejects = True
    for _ in range(3):
        played.run()
    worse, back = played.loop.memory.records[:2]
    assert (worse.state, back.state, back.rollback_of) == (PlanState.EXPIRED, PlanState.FAILED, worse.plan.id)


def test_a_way_back_that_failed_is_tried_again_ever_more_slowly_until_it_is_in_force() -> None:
    played = scene()
    harmful(played)
    tries = []
    for _ in range(30):
        before = played.loop.memory.records[-1].plan.id
        played.run()
        tries += [played.cluster.clock.seconds] if played.loop.memory.records[-1].plan.id != before else []
    pauses = [later - earlier for earlier, later in pairwise(tries)]
    assert len(pauses) >= 2
    assert pauses == sorted(pauses)
    assert pauses[0] < pauses[-1]
    worse = played.loop.memory.records[0]
    assert worse.state is PlanState.EXPIRED
    assert "is in force all the same: its way back" in worse.message
    assert worse.message.endswith("failed, which is tried again after a pause")
    played.cluster.rejects = False
    for _ in range(40):
        played.run()
    assert played.cluster.assignment.slot_of == SPREAD
    worse, back = played.loop.memory.records
    assert (worse.state, back.state) == (PlanState.ROLLED_BACK, PlanState.VERIFIED)
    assert worse.message == f"plan {back.plan.id} takes it back"
    failed = {record.plan.id for record in played.audience.records if record.state is PlanState.FAILED}
    assert len(failed) > len(tries)
    assert played.audience.records[-1].plan.id == back.plan.id, "what happened last is told last"


@pytest.mark.parametrize("passes_before_the_end", [0, 1, 12])
def test_a_way_back_that_failed_is_tried_again_by_the_next_life_too(passes_before_the_end: int) -> None:
    played = scene()
    harmful(played)
    for _ in range(passes_before_the_end):
        played.run()
    reborn = next_life_of(played, latency_ms=80.0)
    assert reborn.loop.recover() is None
    assert last_state(reborn) is PlanState.FAILED
    reborn.run()
    assert last_state(reborn) is PlanState.FAILED, "after a pause"
    played.cluster.rejects = False
    for _ in range(8):
        reborn.run()
    assert played.cluster.assignment.slot_of == SPREAD
    assert last_state(reborn) is PlanState.VERIFIED
    assert played.journal.kept is None


@pytest.mark.parametrize("why_not", ["mode is Observe", "somebody moved it", "its supervisors are gone"])
def test_a_way_back_that_failed_is_not_tried_again_where_it_leads_nowhere_and_says_so(why_not: str) -> None:
    played = scene()
    harmful(played)
    specs, words = SPECS, ""
    tried = {record.plan.id for record in played.audience.records}
    match why_not:
        case "mode is Observe":
            specs, words = with_mode(Mode.OBSERVE), "which is not tried again: mode of words is Observe by now"
        case "somebody moved it":
            elsewhere = {executor: WorkerSlot(slot.supervisor_id, 6703) for executor, slot in SPREAD.items()}
            played.cluster.assignment = Assignment(elsewhere)
            words = "executors are no longer where the plan would move them from"
        case _:
            played.observer.gone = frozenset({"s1", "s2", "s3"} - set(played.cluster.assignment.used_supervisors()))
            words = "it would lead to "
    played.run(specs)
    worse = played.loop.memory.records[0]
    assert worse.message.startswith("it did harm, and its way back, plan ")
    assert words in worse.message
    assert played.audience.records[-1] == worse
    for _ in range(30):
        played.run(specs)
    later = [record for record in played.audience.records if record.plan.id not in tried]
    assert [record for record in later if record.rollback_of] == []
    if why_not == "mode is Observe":
        played.run()
        assert "which is tried again after a pause" in played.loop.memory.records[0].message


def test_a_way_back_that_failed_waits_for_a_person_where_all_plans_do() -> None:
    played = scene()
    harmful(played)
    for _ in range(30):
        played.run(with_mode(Mode.RECOMMEND))
    worse, failed = played.loop.memory.records
    (asked,) = [
        record for record in played.audience.records if record.state is PlanState.PROPOSED and record.rollback_of
    ]
    assert f"plan {failed.plan.id}, failed; plan {asked.plan.id} is another, once somebody approves it" in worse.message
    played.cluster.rejects = False
    assert played.loop.desk.approve(asked.plan.id, "somebody")
    for _ in range(12):
        played.run(with_mode(Mode.RECOMMEND))
    assert played.cluster.assignment.slot_of == SPREAD
    assert played.loop.memory.records[0].state is PlanState.ROLLED_BACK


def test_who_rejects_a_way_back_that_failed_is_not_asked_for_it_again() -> None:
    played = scene()
    harmful(played)
    played.run(with_mode(Mode.RECOMMEND))
    asked = played.audience.records[-1]
    assert asked.rollback_of
    played.loop.desk.reject(asked.plan, "rejected by somebody")
    for _ in range(30):
        played.run(with_mode(Mode.RECOMMEND))
    assert {record.plan.id for record in played.audience.records if record.rollback_of and not record.approved_by} == {
        asked.plan.id
    }


@pytest.mark.parametrize("silent", ["s2", "s3", "s2 and s3"])
def test_nobody_comes_to_a_supervisor_whose_agent_is_silent_unless_no_other_is_left(silent: str) -> None:
    """What ran there would be measured by nobody, and held from then on."""
    played = scene()
    played.run()
    (at,) = played.cluster.assignment.used_supervisors()
    others = sorted({"s1", "s2", "s3"} - {at})
    played.observer.gone = frozenset({at})
    played.observer.silent = tuple(others) if silent == "s2 and s3" else (others[silent == "s3"],)
    for _ in range(12):
        played.run()
    used = played.cluster.assignment.used_supervisors()
    assert at not in used
    assert silent == "s2 and s3" or not set(used) & set(played.observer.silent)


def test_spread_topology_is_gathered_verified_and_left_alone() -> None:
    played = scene()
    decision = played.run()
    assert isinstance(decision, Plan)
    assert len(played.cluster.assignment.used_supervisors()) == 1
    assert last_state(played) is PlanState.SETTLING
    played.observer.latency_ms = 2.0
    settling = played.run()
    assert isinstance(settling, Hold)
    assert last_state(played) is PlanState.SETTLING
    played.run()
    played.run()
    assert last_state(played) is PlanState.VERIFIED
    assert played.journal.kept is None
    calls = len([call for call in played.cluster.calls if call.startswith("rebalance")])
    for _ in range(5):
        assert isinstance(played.run(), Hold)
    assert len([call for call in played.cluster.calls if call.startswith("rebalance")]) == calls == 1


@pytest.mark.parametrize("policy", ["round-robin", "t-storm", "dynamic-weighted-round-robin"])
def test_under_trigger_policy_a_published_policy_acts_by_its_own_trigger_and_then_rests(policy: str) -> None:
    scheduling = replace(SETTINGS, policy=policy, trigger=Trigger.POLICY, parameters=())
    specs = {"words": replace(SPECS["words"], scheduling=scheduling)}
    played = scene()
    plans = [decision for decision in (played.run(specs) for _ in range(60)) if isinstance(decision, Plan)]
    assert len(plans) == 1
    assert last_state(played) is PlanState.VERIFIED


def test_under_trigger_gain_a_published_policy_must_bring_a_gain() -> None:
    specs = {"words": replace(SPECS["words"], scheduling=replace(SETTINGS, policy="round-robin"))}
    decision = scene().run(specs)
    assert isinstance(decision, Hold)
    assert decision.reason is HoldReason.GAIN_TOO_SMALL


def test_limits_follow_demand_between_plans_but_not_while_one_settles() -> None:
    played = scene()
    played.run()
    settling = dict(played.cluster.limits["words"])
    played.run()
    assert played.cluster.limits["words"] == settling
    while last_state(played) is PlanState.SETTLING:
        played.run()
    assert played.loop.memory.demand is not None
    assert played.cluster.limits["words"] == dict(played.loop.memory.demand.millicores)
    assert played.cluster.limits["words"] != settling


def one_with_limits() -> Scene:
    """A plan is verified, and executors are held to CPU limits."""
    played = scene()
    while not played.loop.memory.records or last_state(played) is PlanState.SETTLING:
        played.run()
    assert played.cluster.limits["words"]
    return played


def test_limits_are_lifted_when_the_last_topology_is_no_longer_managed() -> None:
    played = one_with_limits()
    played.run({})
    assert played.cluster.limits == {"words": {}}
    assert played.loop.memory.limited == frozenset()


@pytest.mark.parametrize("specs", [{}, SPECS], ids=["unmanaged", "managed"])
def test_limits_that_a_life_without_an_end_left_are_lifted_by_the_next_one(specs: Mapping[str, TopologySpec]) -> None:
    killed = one_with_limits()
    reborn = scene()
    reborn.loop.applier, reborn.loop.clock = killed.loop.applier, killed.cluster.clock
    reborn.loop.recover()
    reborn.loop.run_once(specs)
    assert bool(killed.cluster.limits["words"]) is bool(specs)
    reborn.loop.release()
    assert killed.cluster.limits == {"words": {}}


def test_plan_that_settles_ends_when_its_topologies_are_no_longer_managed() -> None:
    played = scene()
    played.run()
    assert last_state(played) is PlanState.SETTLING
    played.run({})
    assert last_state(played) is PlanState.EXPIRED
    assert played.loop.memory.records[-1].message == "its topologies are no longer managed"
    assert played.journal.kept is None
    assert played.cluster.limits == {"words": {}}


def played_with_failures(
    before: Mapping[str, float] | None, moved: Mapping[str, float] | None, after: Mapping[str, float] | None
) -> float | None:
    """Failed tuples of a plan when agents show these before the move, right after it, and at the verdict."""
    played = scene()
    original = played.cluster.rebalance

    def rebalance(topology_id: str) -> None:
        original(topology_id)
        played.cluster.failed = moved

    played.cluster.rebalance = rebalance  # type: ignore[method-assign]
    played.cluster.failed = before
    played.run()
    played.cluster.failed = after
    while last_state(played) is PlanState.SETTLING:
        played.run()
    assert last_state(played) is PlanState.VERIFIED
    return played.loop.memory.records[-1].failed_tuples


def test_what_failed_where_an_executor_was_earlier_is_no_failure_of_the_plan_that_brings_it_back() -> None:
    left, back = 'moved{supervisor="a"}', 'moved{supervisor="b"}'
    before, moved = {"kept": 10.0, left: 3.0}, {"kept": 12.0, back: 5000.0}
    assert played_with_failures(before, moved, {"kept": 15.0, back: 5001.0}) == 6.0


@pytest.mark.parametrize("silent_at", [0, 2], ids=["before", "after"])
def test_failures_are_unknown_where_an_agent_was_silent(silent_at: int) -> None:
    readings: list[Mapping[str, float] | None] = [{"kept": 10.0}, {"kept": 12.0}, {"kept": 15.0}]
    readings[silent_at] = None
    before, moved, after = readings
    assert played_with_failures(before, moved, after) is None


def test_failures_are_unknown_of_a_counter_that_was_not_seen_right_after_the_move() -> None:
    assert played_with_failures({"kept": 10.0}, None, {"kept": 10.0, "back": 0.0}) == 0.0
    assert played_with_failures({"kept": 10.0}, None, {"kept": 10.0, "back": 5000.0}) is None


@pytest.mark.parametrize("after", [{"kept": 15.0}, {}], ids=["of one", "of all"])
def test_failures_are_unknown_where_a_counter_is_no_longer_shown(after: Mapping[str, float]) -> None:
    """Its spout's worker is down, or its supervisor gone with its agent."""
    both = {"kept": 10.0, "other": 5.0}
    assert played_with_failures(both, both, after) is None


def test_failures_are_unknown_where_an_agent_began_to_count_anew() -> None:
    assert played_with_failures({"kept": 500.0}, {"kept": 501.0}, {"kept": 30.0}) is None


def test_readings_from_before_a_plan_are_not_kept_once_it_is_over() -> None:
    """Of fifty plans for thousands of executors they would be more than a hundred megabytes."""
    played = scene()
    played.cluster.failed = {"kept": 10.0}
    played.run()
    (begun,) = played.loop.memory.records
    assert begun.failures_before == {"kept": 10.0}
    assert begun.worker_pids_before
    while last_state(played) is PlanState.SETTLING:
        played.run()
    (over,) = played.loop.memory.records
    assert (over.state, over.failed_tuples) == (PlanState.VERIFIED, 0.0)
    for record in (over, played.audience.records[-1]):
        assert (record.failures_before, dict(record.worker_pids_before)) == (None, {})
    assert over.busy_before == begun.busy_before


def test_plan_that_doubles_latency_is_rolled_back_and_not_proposed_again() -> None:
    played = scene()
    played.run()
    played.observer.latency_ms = 40.0
    for _ in range(3):
        played.run()
    states = [record.state for record in played.loop.memory.records]
    assert PlanState.ROLLED_BACK in states
    assert played.cluster.assignment.slot_of == SPREAD
    played.observer.latency_ms = 8.0
    decision = played.run(seconds=600.0)
    assert isinstance(decision, Hold)
    assert decision.reason is HoldReason.KNOWN_BAD


def test_plan_that_doubles_latency_is_rolled_back_where_one_executor_never_has_metrics_and_need_not() -> None:
    enough = {"words": replace(SPECS["words"], scheduling=replace(SETTINGS, minimum_completeness=0.5))}
    played = scene()
    played.observer.missing = True
    played.run(enough)
    played.observer.latency_ms = 40.0
    for _ in range(3):
        played.run(enough)
    bad = played.loop.memory.records[0]
    assert (bad.state, bad.message) == (
        PlanState.ROLLED_BACK,
        "median complete latency 40 ms, at most 8 ms expected",
    )
    assert played.cluster.assignment.slot_of == SPREAD


def test_plan_that_made_things_worse_is_taken_back_in_an_excluded_window_too() -> None:
    played = scene()
    played.run()
    played.observer.latency_ms = 40.0
    always = replace(SETTINGS, excluded_windows=(ExcludedWindow("* * * * *", 60),))
    specs = {"words": replace(SPECS["words"], scheduling=always)}
    while last_state(played) is PlanState.SETTLING and not played.loop.memory.records[-1].rollback_of:
        played.run(specs)
    assert played.cluster.assignment.slot_of == SPREAD


def test_plan_under_which_a_topology_that_never_acks_falls_behind_is_rolled_back_and_remembered() -> None:
    played = scene()
    played.observer.queued = 5.0
    played.run()
    played.observer.queued = 3000.0
    while last_state(played) is PlanState.SETTLING and not played.loop.memory.decisions.known_bad:
        played.run()
    bad = played.loop.memory.records[0]
    assert (bad.state, bad.message) == (PlanState.ROLLED_BACK, "tuples wait 10.0 s in queues, 0.0 s before")
    assert played.cluster.assignment.slot_of == SPREAD
    assert played.loop.memory.decisions.known_bad_like(bad.plan.target, played.cluster.clock.seconds, exactly=True)


def test_plan_that_a_topology_that_never_acks_fares_well_under_is_verified_by_what_it_emits() -> None:
    played = scene()
    played.observer.queued = 5.0
    played.run()
    while last_state(played) is PlanState.SETTLING:
        played.run()
    verified = played.loop.memory.records[-1]
    assert verified.state is PlanState.VERIFIED
    assert "nothing is acked, emitted 300 -> 300 tuples/s; wait in queues 16.7 -> 16.7 ms" in verified.message


def test_readings_that_reach_back_to_before_its_workers_ran_say_nothing_of_a_plan() -> None:
    """A control period of a minute, longer than the plan has to settle: the next pass still counts the restart."""
    played = scene()
    played.run()
    played.observer.latency_ms, played.observer.counted_seconds = 40.0, 65.0
    played.run(seconds=60.0)
    played.observer.latency_ms = 8.0
    played.run(seconds=60.0)
    assert [record.state for record in played.loop.memory.records] == [PlanState.VERIFIED]


def test_plan_of_which_all_readings_reach_back_to_before_its_workers_ran_expires_with_that_reason() -> None:
    played = scene()
    played.run()
    played.observer.counted_seconds = 1000.0
    while last_state(played) is PlanState.SETTLING:
        played.run()
    assert last_state(played) is PlanState.EXPIRED
    assert "reaches back to before its workers ran" in played.loop.memory.records[-1].message


def test_plan_that_could_not_be_verified_names_the_first_of_many_problems_and_why() -> None:
    played = scene()
    played.run()
    played.observer.counted_seconds = 1000.0
    played.observer.problems = tuple(f"agent s{n} is silent" for n in range(300))
    while last_state(played) is PlanState.SETTLING:
        played.run()
    assert played.loop.memory.records[-1].message == (
        "in force, but could not be verified: agent s0 is silent; agent s1 is silent; agent s2 is silent; "
        "agent s3 is silent; agent s4 is silent; and 295 more; what was measured reaches back to before its workers ran"
    )


def test_what_was_counted_while_executors_were_not_seen_to_run_is_neither_load_nor_verdict() -> None:
    """They are given 90 s: readings of a minute that are taken just after that are for the most part of that time."""
    played = scene()
    played.cluster.hidden = True
    played.run()
    assert played.loop.memory.records[-1].seconds_to_running is None
    played.observer.latency_ms, played.observer.counted_seconds = 40.0, 60.0
    played.run(seconds=10.0)
    assert last_state(played) is PlanState.SETTLING
    assert played.loop.memory.history == ()
    played.observer.latency_ms = 8.0
    played.run(seconds=60.0)
    assert last_state(played) is PlanState.VERIFIED
    assert played.loop.memory.history


def test_plan_whose_executors_were_not_seen_to_run_is_taken_back_by_the_first_figures_after_that() -> None:
    played = scene()
    played.cluster.hidden = True
    played.run()
    played.cluster.hidden = False
    played.observer.latency_ms = 40.0
    played.run(seconds=12.0)
    assert PlanState.ROLLED_BACK in {record.state for record in played.loop.memory.records}


def test_what_was_measured_before_a_way_back_is_no_reason_for_another_plan() -> None:
    """The plan had also overloaded a supervisor: the way back has relieved that already."""
    played = scene()
    played.run()
    played.observer.latency_ms, played.observer.capacity_millicores = 40.0, 250.0
    while PlanState.ROLLED_BACK not in {record.state for record in played.loop.memory.records}:
        decision = played.run()
    assert isinstance(decision, Hold)
    assert decision.reason is HoldReason.APPLYING
    assert [record.state for record in played.loop.memory.records] == [PlanState.ROLLED_BACK, PlanState.SETTLING]
    assert played.cluster.assignment.slot_of == SPREAD


def test_limits_do_not_fall_while_the_workers_of_a_way_back_start() -> None:
    played = scene()
    played.run()
    played.observer.latency_ms = 40.0
    while PlanState.ROLLED_BACK not in {record.state for record in played.loop.memory.records}:
        played.run()
    assert played.loop.memory.demand is not None
    needs = dict(played.loop.memory.demand.millicores)
    assert all(limit > needs[e] for e, limit in played.cluster.limits["words"].items())
    played.observer.unknown = True  # a way back waits for no figures: it is not judged
    while last_state(played) is PlanState.SETTLING:
        played.run()
    bad, back = played.loop.memory.records
    assert (back.state, back.message) == (PlanState.VERIFIED, f"rolled back {bad.plan.id}")
    assert played.cluster.limits["words"] == needs


def test_way_back_that_could_not_be_begun_is_begun_in_a_later_pass() -> None:
    played = scene()
    played.run()
    played.observer.latency_ms = 40.0
    played.journal.refuse_next(ZooKeeperUnreachable("no answer"), of=lambda record: bool(record.rollback_of))
    while played.journal.refused == 0:
        played.run()
    assert last_state(played) is PlanState.SETTLING
    assert PlanState.ROLLED_BACK not in {record.state for record in played.audience.records}, "not told yet"
    played.run()
    bad, back = played.loop.memory.records
    assert (bad.state, back.state) == (PlanState.ROLLED_BACK, PlanState.SETTLING)
    assert played.cluster.assignment.slot_of == SPREAD
    assert played.loop.memory.decisions.known_bad
    while last_state(played) is PlanState.SETTLING:
        played.run()
    assert last_state(played) is PlanState.VERIFIED
    assert played.journal.kept is None
    told = [record.state for record in played.audience.records if record.plan.id == bad.plan.id]
    assert told.count(PlanState.ROLLED_BACK) == 1


def test_plan_whose_way_back_was_kept_without_an_answer_is_told_as_rolled_back(monkeypatch: pytest.MonkeyPatch) -> None:
    played = scene()
    played.run()
    played.observer.latency_ms = 40.0
    lose_the_answer_to_one_save(played, monkeypatch)
    while played.journal.kept is not None and not played.journal.kept.rollback_of:
        played.run()
    assert last_state(played) is PlanState.SETTLING
    played.run()
    bad, back = played.loop.memory.records
    assert (bad.state, back.rollback_of) == (PlanState.ROLLED_BACK, bad.plan.id)
    assert back.plan.id in bad.message
    assert played.cluster.assignment.slot_of == SPREAD


def test_way_back_whose_beginning_nimbus_refuses_is_tried_again_after_a_pause() -> None:
    played = scene()
    played.run()
    plan = played.loop.memory.records[-1].plan
    played.observer.latency_ms = 40.0

    original = played.cluster.being_rebalanced

    def refuse(topology_ids: Collection[str]) -> Collection[str]:
        raise NimbusError("Nimbus failed in getClusterInfo")

    played.cluster.being_rebalanced = refuse  # type: ignore[method-assign]
    while last_state(played) is PlanState.SETTLING:
        played.run()
    worse, back = played.loop.memory.records
    assert (worse.state, back.state, back.rollback_of) == (PlanState.EXPIRED, PlanState.FAILED, plan.id)
    assert worse.message.startswith("median complete latency 40 ms, at most 8 ms expected; it did harm")
    assert back.plan.id in worse.message
    assert back.message == "cannot be begun: Nimbus failed in getClusterInfo"
    assert played.journal.kept is None
    played.cluster.being_rebalanced = original  # type: ignore[method-assign]
    for _ in range(6):
        played.run()
    assert played.cluster.assignment.slot_of == SPREAD
    worse, back = played.loop.memory.records
    assert (worse.state, back.state) == (PlanState.ROLLED_BACK, PlanState.VERIFIED)


def test_way_back_that_nobody_can_keep_ends_with_the_reason_and_others_go_on() -> None:
    played = scene()
    played.run()
    played.observer.latency_ms = 40.0
    played.journal.refuse_next(MalformedDocument("too large"), of=lambda record: bool(record.rollback_of))
    while played.journal.refused == 0:
        played.run()
    assert last_state(played) is PlanState.EXPIRED
    assert played.loop.memory.records[-1].message.endswith("it cannot be taken back: too large")
    assert played.audience.reports[-1].snapshot is not None


def test_plan_that_made_things_worse_is_not_taken_back_to_a_supervisor_that_has_died_since() -> None:
    played = scene()
    first = played.run()
    assert isinstance(first, Plan)
    gathered = played.cluster.assignment.slot_of
    (kept,) = {slot.supervisor_id for slot in gathered.values()}
    left = sorted({slot.supervisor_id for slot in SPREAD.values()} - {kept})
    played.observer.latency_ms, played.observer.gone = 40.0, frozenset(left[:1])
    while last_state(played) is PlanState.SETTLING:
        played.run()
    assert last_state(played) is PlanState.EXPIRED
    assert played.loop.memory.records[-1].message == (
        "median complete latency 40 ms, at most 8 ms expected; it cannot be taken back: "
        f"it would lead to {left[0]}, where nothing can run any more"
    )
    assert played.cluster.assignment.slot_of == gathered
    assert played.journal.kept is None


def test_plan_that_gave_an_executor_a_place_is_not_taken_back_to_where_it_had_none() -> None:
    played = scene()
    homeless = WORDS.executors[-1]
    played.cluster.assignment = Assignment({e: slot for e, slot in SPREAD.items() if e != homeless})
    first = played.run()
    assert isinstance(first, Plan)
    assert first.cause is PlanCause.WITHOUT_PLACE
    given = played.cluster.assignment.slot_of
    played.observer.latency_ms = 40.0
    while last_state(played) is PlanState.SETTLING:
        played.run()
    assert last_state(played) is PlanState.EXPIRED
    assert played.loop.memory.records[-1].message.endswith(
        "it cannot be taken back: it would leave executors without a place, as they were before"
    )
    assert played.cluster.assignment.slot_of == given


def test_plan_that_nobody_can_keep_holds_its_topologies_alone() -> None:
    played = scene()
    played.journal.refuse_next(MalformedDocument("too large"))
    decision = played.run()
    assert isinstance(decision, Hold)
    assert decision.message.endswith("cannot be begun: too large")
    report = played.audience.reports[-1]
    assert report.snapshot is not None
    assert report.limits_millicores, "limits followed all the same"
    assert not [call for call in played.cluster.calls if "plan" in call or "rebalance" in call]
    assert isinstance(played.run(), Plan)


def test_plan_after_which_nothing_is_acked_is_not_verified_and_ends_with_the_reason() -> None:
    played = scene()
    played.run()
    gathered = played.cluster.assignment.slot_of
    played.observer.stopped = True
    while last_state(played) is PlanState.SETTLING:
        played.run()
    assert last_state(played) is PlanState.EXPIRED
    assert "no tuple is acked any more, 300 a second were before" in played.loop.memory.records[-1].message
    assert played.cluster.assignment.slot_of == gathered, "its sources may be dry: that is no reason to go back"


def test_plan_whose_topology_acks_again_in_time_is_verified() -> None:
    played = scene()
    played.run()
    played.observer.stopped = True
    for _ in range(4):
        played.run()
    assert last_state(played) is PlanState.SETTLING
    played.observer.stopped = False
    played.run()
    assert last_state(played) is PlanState.VERIFIED


def test_observe_and_recommend_touch_nothing() -> None:
    for mode in (Mode.OBSERVE, Mode.RECOMMEND):
        played = scene()
        decision = played.run(with_mode(mode))
        assert isinstance(decision, Hold if mode is Mode.OBSERVE else Plan)
        assert played.cluster.calls == []


def test_missing_metrics_hold_and_name_what_is_missing() -> None:
    played = scene()
    played.observer.missing = True
    decision = played.run()
    assert isinstance(decision, Hold)
    assert decision.reason is HoldReason.METRICS_INCOMPLETE
    assert "agent s1 is silent" in decision.message
    assert not [call for call in played.cluster.calls if "plan" in call or "rebalance" in call]


def test_limits_of_one_that_is_not_measured_stay_and_those_of_the_others_follow() -> None:
    played = scene()
    while not played.loop.memory.records or last_state(played) is PlanState.SETTLING:
        played.run()
    played.cluster.limits["words"] = {}
    played.observer.missing = True
    played.run()
    assert played.cluster.limits["words"] == {}
    played.observer.missing = False
    played.run()
    assert played.cluster.limits["words"]


def test_unreachable_peer_holds_and_the_loop_goes_on() -> None:
    played = scene()
    played.observer.error = NimbusUnreachable("no Nimbus at 10.0.0.1:6627")
    decision = played.run()
    assert isinstance(decision, Hold)
    assert decision.reason is HoldReason.CLUSTER_UNREACHABLE
    assert "10.0.0.1:6627" in decision.message
    played.observer.error = None
    assert isinstance(played.run(), Plan)


def test_nothing_managed_is_said() -> None:
    decision = scene().run({})
    assert isinstance(decision, Hold)
    assert decision.reason is HoldReason.NOTHING_TO_MANAGE


def fail_one_rebalance(played: Scene) -> None:
    """Nimbus does not answer the next one."""
    original = played.cluster.rebalance

    def fail(topology_id: str) -> None:
        played.cluster.rebalance = original  # type: ignore[method-assign]
        raise NimbusUnreachable("gone")

    played.cluster.rebalance = fail  # type: ignore[method-assign]


def test_peer_that_fails_in_mid_apply_leaves_a_plan_that_the_next_pass_finishes() -> None:
    played = scene()
    fail_one_rebalance(played)
    first = played.run()
    assert isinstance(first, Hold)
    assert last_state(played) is PlanState.APPLYING
    played.run()
    assert last_state(played) is PlanState.SETTLING
    assert len({record.plan.id for record in played.audience.records}) == 1


def test_cpu_limits_that_cannot_be_read_keep_nobody_waiting() -> None:
    played = scene()
    played.cluster.limits["words"] = {}

    def refuse(topology_id: str) -> Mapping[Executor, float]:
        raise MalformedDocument(f"CPU limits of {topology_id}: not JSON")

    played.cluster.read_cpu_limits = refuse  # type: ignore[method-assign]
    assert played.loop.recover() is None
    assert isinstance(played.run(), Plan)


def interrupted_by_a_freeze() -> tuple[Scene, PlanRecord]:
    """An operator that was frozen in the midst of its plan, and the plan, while another managed the cluster."""
    played = scene()
    fail_one_rebalance(played)
    played.run()
    assert last_state(played) is PlanState.APPLYING
    assert played.journal.kept is not None
    return played, played.journal.kept


def test_plan_that_another_has_ended_meanwhile_is_not_gone_on_with() -> None:
    played, interrupted = interrupted_by_a_freeze()
    played.journal.clear()
    played.cluster.plans.clear()
    played.observer.error = ZooKeeperUnreachable("nothing is decided in this pass")
    played.run()
    (record,) = played.loop.memory.records
    assert (record.plan.id, record.state) == (interrupted.plan.id, PlanState.EXPIRED)
    assert "another storm-operator" in record.message
    assert not played.cluster.plans
    assert played.audience.records[-1] == record


def test_plan_that_another_died_over_meanwhile_is_finished_in_place_of_the_own() -> None:
    played, interrupted = interrupted_by_a_freeze()
    theirs = replace(interrupted, plan=replace(interrupted.plan, id="p-theirs"))
    played.journal.save(theirs)
    played.run()
    own, last = played.loop.memory.records
    assert (own.plan.id, own.state) == (interrupted.plan.id, PlanState.EXPIRED)
    assert (last.plan.id, last.state) == ("p-theirs", PlanState.SETTLING)


def test_plan_that_another_has_put_in_force_meanwhile_is_only_judged() -> None:
    played, interrupted = interrupted_by_a_freeze()
    now = played.cluster.clock.now()
    played.journal.save(replace(interrupted, state=PlanState.SETTLING, in_force_at_seconds=now))
    played.cluster.plans.clear()
    played.run()
    assert last_state(played) is PlanState.SETTLING
    assert not played.cluster.plans


def test_plan_that_another_died_over_meanwhile_is_finished_by_one_that_had_none_in_hand() -> None:
    theirs, played = interrupted_by_a_freeze()[1], scene()
    played.run(with_mode(Mode.RECOMMEND))
    (waiting,) = played.loop.memory.proposals.waiting
    drained = replace(theirs, plan=replace(theirs.plan, id=waiting.plan.id), method=ApplyMethod.DRAIN)
    played.journal.save(drained)
    played.cluster.inactive.add("words")
    played.run(with_mode(Mode.RECOMMEND))
    (last,) = played.loop.memory.records
    assert (last.plan.id, last.state) == (waiting.plan.id, PlanState.SETTLING)
    assert not played.loop.memory.proposals.waiting
    assert played.audience.records[-1].state is PlanState.SETTLING, "it waits no longer, but has not expired either"
    assert not played.cluster.inactive, "its spouts do not stay paused until somebody restarts the operator"


def lose_the_answer_to_one_save(played: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    save = played.journal.save

    def without_an_answer(record: PlanRecord) -> None:
        monkeypatch.undo()
        save(record)
        raise ZooKeeperUnreachable("did not answer within 10 s")

    monkeypatch.setattr(played.journal, "save", without_an_answer)


def test_plan_whose_first_save_was_not_answered_is_gone_on_with_at_once_and_not_by_a_later_life(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    played = scene()
    lose_the_answer_to_one_save(played, monkeypatch)
    played.run()
    assert not played.loop.memory.records
    played.observer.missing = True  # nothing else is planned
    played.run()
    assert last_state(played) is PlanState.SETTLING


def test_approved_plan_whose_first_save_was_not_answered_is_carried_out_and_told_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    played = scene()
    played.run(with_mode(Mode.RECOMMEND))
    (waiting,) = played.loop.memory.proposals.waiting
    assert played.loop.desk.approve(waiting.plan.id, "somebody")
    lose_the_answer_to_one_save(played, monkeypatch)
    played.run(with_mode(Mode.RECOMMEND))
    assert not played.loop.memory.records
    for _ in range(6):
        played.run(with_mode(Mode.RECOMMEND))
    assert played.journal.kept is None
    (record,) = played.loop.memory.records
    assert (record.plan.id, record.state, record.approved_by) == (waiting.plan.id, PlanState.VERIFIED, "somebody")
    assert played.audience.records[-1].state is PlanState.VERIFIED, "nor is it told later that its proposal expired"


def verified_but_not_cleared(monkeypatch: pytest.MonkeyPatch) -> Scene:
    """A plan that is verified while ZooKeeper does not answer, so that the journal still has it."""
    played = scene()
    played.run()

    def lost() -> None:
        monkeypatch.undo()
        raise ZooKeeperUnreachable("no answer")

    monkeypatch.setattr(played.journal, "clear", lost)
    while last_state(played) is not PlanState.VERIFIED:
        played.run()
    return played


def test_journal_that_could_not_be_cleared_is_cleared_later_and_its_plan_not_told_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    played = verified_but_not_cleared(monkeypatch)
    assert played.journal.kept is not None
    told = len(played.audience.records)
    played.run(with_mode(Mode.OBSERVE))
    assert played.journal.kept is None
    assert len(played.audience.records) == told


def test_what_is_measured_after_an_interrupted_plan_was_finished_is_of_that_time() -> None:
    played = scene()
    original, clock = played.cluster.rebalance, played.cluster.clock

    def slow(topology_id: str) -> None:
        clock.sleep(20.0)
        original(topology_id)

    def fail(topology_id: str) -> None:
        played.cluster.rebalance = slow  # type: ignore[method-assign]
        raise NimbusUnreachable("gone")

    played.cluster.rebalance = fail  # type: ignore[method-assign]
    played.run()
    begun_at_seconds = clock.now() + 10.0
    played.run()
    assert last_state(played) is PlanState.SETTLING
    report = played.audience.reports[-1]
    assert report.snapshot is not None
    assert report.at_seconds == report.snapshot.taken_at_seconds >= begun_at_seconds + 20.0


def test_plan_that_nimbus_refuses_again_is_abandoned_with_the_reason_and_the_loop_goes_on() -> None:
    played = scene()
    played.cluster.refuses = frozenset({"deactivate words"})
    drained = {"words": replace(SPECS["words"], scheduling=replace(SETTINGS, apply_method=ApplyMethod.DRAIN))}
    played.run(drained)
    assert last_state(played) is PlanState.APPLYING
    assert played.loop.being_moved == ("words",)
    decision = played.run(drained)
    refused, *_ = played.loop.memory.records
    assert refused.state is PlanState.FAILED
    assert refused.message == "abandoned: Nimbus failed in deactivate words"
    assert not isinstance(decision, Hold) or decision.reason is not HoldReason.CLUSTER_UNREACHABLE
    assert played.audience.reports[-1].snapshot is not None


def test_plan_that_fails_again_for_a_reason_that_nobody_foresaw_keeps_no_spouts_paused() -> None:
    played = scene()

    def fail(supervisor_ids: Collection[str]) -> bool:
        assert played.cluster.inactive == {"words"}
        raise TypeError("a bug")

    played.cluster.tell_supervisors = fail  # type: ignore[method-assign]
    drained = {"words": replace(SPECS["words"], scheduling=replace(SETTINGS, apply_method=ApplyMethod.DRAIN))}
    for _ in range(2):
        with pytest.raises(TypeError, match="a bug"):
            played.run(drained)
    assert played.cluster.inactive == set()
    assert played.loop.being_moved == ()
    plan, *_ = played.loop.memory.records
    assert plan.message == "in force all the same, and judged (abandoned: the operator failed, TypeError: a bug)"
    assert played.audience.records[-1].plan.id == plan.plan.id
    played.run(drained)
    assert played.audience.reports[-1].snapshot is not None


@pytest.mark.parametrize(("latency_ms", "ends"), [(2.0, PlanState.VERIFIED), (80.0, PlanState.ROLLED_BACK)])
def test_plan_that_is_refused_a_step_after_it_came_into_force_is_judged_all_the_same(
    latency_ms: float, ends: PlanState
) -> None:
    played = scene()
    original = played.cluster.tell_supervisors

    def refuse(supervisor_ids: Collection[str]) -> bool:
        raise NimbusError("Nimbus failed in getLeader")

    played.cluster.tell_supervisors = refuse  # type: ignore[method-assign]
    played.run()
    played.observer.latency_ms = latency_ms
    played.run()
    plan, *_ = played.loop.memory.records
    assert plan.state is PlanState.SETTLING
    assert plan.message == "in force all the same, and judged (abandoned: Nimbus failed in getLeader)"
    played.cluster.tell_supervisors = original  # type: ignore[method-assign]
    for _ in range(6):
        played.run()
    plan, *_ = played.loop.memory.records
    assert plan.state is ends
    assert (played.cluster.assignment.slot_of == SPREAD) is (ends is PlanState.ROLLED_BACK)


def test_way_back_that_is_refused_a_step_after_it_came_into_force_has_not_failed() -> None:
    played = scene()
    played.run()
    played.observer.latency_ms = 80.0
    played.run()

    def refuse(supervisor_ids: Collection[str]) -> bool:
        raise NimbusError("Nimbus failed in getLeader")

    played.cluster.tell_supervisors = refuse  # type: ignore[method-assign]
    for _ in range(6):
        played.run()
    assert played.cluster.assignment.slot_of == SPREAD
    worse, back = played.loop.memory.records[:2]
    assert (worse.state, back.state, back.rollback_of) == (PlanState.ROLLED_BACK, PlanState.VERIFIED, worse.plan.id)


def test_what_was_measured_while_spouts_were_deactivated_is_no_load_to_plan_for() -> None:
    played = scene()
    played.loop.measure_anew("words")
    played.observer.counted_seconds = PERIOD_SECONDS + 1.0
    held = played.run()
    assert isinstance(held, Hold)
    assert held.reason is HoldReason.WARMING_UP
    assert "suspension" in held.message
    played.observer.counted_seconds = PERIOD_SECONDS
    assert isinstance(played.run(), Plan)


def test_drained_topology_that_somebody_rebalances_is_resumed_once_that_is_over() -> None:
    played = scene()
    drained = {"words": replace(SPECS["words"], scheduling=replace(SETTINGS, apply_method=ApplyMethod.DRAIN))}

    def somebody_rebalances(supervisor_ids: Collection[str]) -> bool:
        played.cluster.rebalancing.add("words")
        return True

    played.cluster.tell_supervisors = somebody_rebalances  # type: ignore[method-assign]
    played.loop.period_seconds = 600.0
    for _ in range(3):  # as with the wait of half a minute that `storm rebalance` has where nothing is said
        decision = played.run(drained)
        assert last_state(played) is PlanState.APPLYING
        assert isinstance(decision, Hold)
        assert decision.reason is HoldReason.APPLYING
        assert "words is being rebalanced" in decision.message
        assert played.loop.seconds_to_next == LONGEST_PASS_RETRY_SECONDS, "however long the period: spouts are paused"
        assert played.audience.reports[-1].snapshot is not None, "the others' limits and figures go on"
    played.cluster.rebalancing.clear()
    played.cluster.tell_supervisors = lambda supervisor_ids: True  # type: ignore[method-assign]
    played.run(drained)
    assert last_state(played) is PlanState.SETTLING
    assert not played.cluster.inactive
    assert played.loop.seconds_to_next == 600.0


def test_plan_that_was_finished_after_an_interruption_teaches_nothing_about_restarts() -> None:
    """A Nimbus that fails over right after the plan got in force: once it is back, everything runs already."""
    played = scene()

    def fail(supervisor_ids: Collection[str]) -> bool:
        played.cluster.tell_supervisors = lambda supervisor_ids: True  # type: ignore[method-assign]
        raise NimbusUnreachable("no leader")

    played.cluster.tell_supervisors = fail  # type: ignore[method-assign]
    played.run()
    assert last_state(played) is PlanState.APPLYING
    while last_state(played) is not PlanState.VERIFIED:
        played.run()
    assert played.loop.memory.decisions.measured_restarts == ()


def test_plan_of_a_topology_that_somebody_rebalances_is_not_begun_before_that_is_over() -> None:
    played = scene()
    drained = {"words": replace(SPECS["words"], scheduling=replace(SETTINGS, apply_method=ApplyMethod.DRAIN))}
    played.cluster.rebalancing.add("words")
    for _ in range(3):
        held = played.run(drained)
        assert isinstance(held, Hold)
        assert held.reason is HoldReason.APPLYING
        assert "words is being rebalanced" in held.message
        assert played.audience.reports[-1].snapshot is not None
    assert (played.loop.memory.records, played.journal.kept) == ((), None)
    played.cluster.rebalancing.clear()
    assert isinstance(played.run(drained), Plan)


def test_next_life_goes_on_though_the_plan_that_it_finds_waits_for_a_rebalance() -> None:
    played = scene()
    drained = {"words": replace(SPECS["words"], scheduling=replace(SETTINGS, apply_method=ApplyMethod.DRAIN))}
    played.cluster.die_at = "activate words"
    with pytest.raises(Killed):
        played.run(drained)
    played.cluster.rebalancing.add("words")
    reborn = next_life_of(played, latency_ms=8.0)
    assert reborn.loop.recover() is not None
    held = reborn.run(drained)
    assert isinstance(held, Hold)
    plan_id = reborn.loop.memory.records[-1].plan.id
    assert held.message.startswith(f"plan {plan_id} is in force, but its spouts are still paused: words is being")
    played.cluster.rebalancing.clear()
    reborn.run(drained)
    assert last_state(reborn) is PlanState.SETTLING
    assert not played.cluster.inactive


@pytest.mark.parametrize("begins", [False, True], ids=["before it is begun", "while spouts are paused"])
def test_plan_that_made_things_worse_is_taken_back_once_a_rebalance_is_over(begins: bool) -> None:
    played = scene()
    drained = {"words": replace(SPECS["words"], scheduling=replace(SETTINGS, apply_method=ApplyMethod.DRAIN))}
    worse = played.run(drained)
    assert isinstance(worse, Plan)
    played.observer.latency_ms = 40.0
    if begins:
        refuse = played.cluster.deactivate

        def deactivate(topology_id: str) -> None:
            played.cluster.rebalancing.add(topology_id)
            refuse(topology_id)

        played.cluster.deactivate = deactivate  # type: ignore[method-assign]
    else:
        played.cluster.rebalancing.add("words")
    for _ in range(5):
        played.run(drained)
        assert played.audience.reports[-1].snapshot is not None
    assert played.cluster.assignment.slot_of == worse.target.slot_of
    assert last_state(played) is (PlanState.APPLYING if begins else PlanState.SETTLING)
    played.cluster.rebalancing.clear()
    if begins:
        played.cluster.deactivate = refuse  # type: ignore[method-assign]
    played.run(drained)
    assert played.cluster.assignment.slot_of == SPREAD
    assert [one.state for one in played.loop.memory.records] == [PlanState.ROLLED_BACK, PlanState.SETTLING]
    assert not played.cluster.inactive


def test_abandoned_plan_is_not_over_before_a_topology_that_is_rebalanced_is_resumed() -> None:
    played = scene()
    drained = {"words": replace(SPECS["words"], scheduling=replace(SETTINGS, apply_method=ApplyMethod.DRAIN))}
    played.cluster.refuses = frozenset({"write_plan words"})
    played.run(drained)
    played.cluster.rebalancing.add("words")
    played.run(drained)
    assert last_state(played) is PlanState.APPLYING
    played.cluster.rebalancing.clear()
    played.run(with_mode(Mode.OBSERVE))
    assert last_state(played) is PlanState.FAILED
    assert not played.cluster.inactive


def test_topology_that_ends_while_its_plan_is_put_in_force_is_told_as_that() -> None:
    """Nimbus answers: the cluster is in reach."""
    played = scene()

    def gone(topology_id: str) -> None:
        raise TopologyNotAlive(f"topology {topology_id} does not run")

    played.cluster.rebalance = gone  # type: ignore[method-assign]
    held = played.run()
    assert isinstance(held, Hold)
    assert held.reason is HoldReason.APPLYING
    assert "words does not run" in held.message
    assert last_state(played) is PlanState.APPLYING
    played.run()
    assert last_state(played) is PlanState.FAILED


def test_plan_that_can_be_neither_finished_nor_taken_back_ends_and_says_so() -> None:
    played = scene()
    played.cluster.refuses = frozenset({"write_plan words", "activate words"})
    drained = {"words": replace(SPECS["words"], scheduling=replace(SETTINGS, apply_method=ApplyMethod.DRAIN))}
    played.run(drained)
    played.run(with_mode(Mode.OBSERVE))
    assert last_state(played) is PlanState.FAILED
    assert played.loop.memory.records[-1].message == (
        "abandoned: Nimbus failed in write_plan words; spouts may still be paused: Nimbus failed in activate words"
    )
    assert played.loop.being_moved == ()
    assert played.journal.kept is None
    assert (played.loop.take_left_paused(), played.loop.take_left_paused()) == (("words",), ())


def next_life_of(played: Scene, latency_ms: float) -> Scene:
    """Another operator, with the same cluster and journal."""
    reborn = replace(scene(), cluster=played.cluster, journal=played.journal)
    reborn.loop.observer = FakeObserver(played.cluster, latency_ms)
    reborn.loop.applier = Applier(played.cluster, played.cluster, played.cluster, played.cluster.clock)
    reborn.loop.clock = played.cluster.clock
    reborn.loop.journal = played.journal
    return reborn


def test_plan_that_zookeeper_went_away_at_the_end_of_is_not_judged_again_by_the_next_life(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    played = verified_but_not_cleared(monkeypatch)
    gathered = played.cluster.assignment.slot_of
    reborn = next_life_of(played, latency_ms=40.0)  # some days later, for reasons of its own
    assert reborn.loop.recover() is None
    for _ in range(4):
        reborn.run()
    assert {record.state for record in reborn.audience.records} == {PlanState.VERIFIED}
    assert played.cluster.assignment.slot_of == gathered
    assert played.journal.kept is None


def test_plan_that_zookeeper_went_away_before_the_end_of_is_judged_anew() -> None:
    played = scene()
    played.run()
    played.journal.refuse_next(ZooKeeperUnreachable("no answer"), of=lambda record: record.state.is_final)
    while played.journal.refused == 0:
        played.run()
    assert last_state(played) is PlanState.SETTLING
    played.run()
    assert last_state(played) is PlanState.VERIFIED
    assert played.journal.kept is None


def test_new_life_of_the_operator_goes_on_with_the_plan_of_the_old_one() -> None:
    played = scene()
    played.run()
    reborn = next_life_of(played, latency_ms=2.0)
    assert reborn.loop.recover() is not None
    played.cluster.clock.seconds += 40.0
    reborn.loop.run_once(SPECS)
    assert reborn.loop.memory.records[-1].state is PlanState.VERIFIED


def test_plan_that_failed_as_the_operator_died_is_told_by_the_next_life() -> None:
    played = scene()
    played.run()
    reborn = scene()
    failed = replace(played.loop.memory.records[-1], state=PlanState.FAILED, message="not in force after 60 s")
    reborn.journal.save(failed)
    assert reborn.loop.recover() is None
    assert reborn.audience.records == [failed]
    assert reborn.journal.kept is None


def test_way_back_that_an_earlier_life_began_and_this_one_could_not_finish_is_tried_again() -> None:
    played = scene()
    played.run()
    played.observer.latency_ms = 40.0
    played.run()
    played.cluster.die_at = "rebalance words"
    with pytest.raises(Killed):
        played.run()
    assert played.journal.kept is not None
    assert played.journal.kept.rollback_of
    played.cluster.die_at = None
    played.cluster.rejects = True
    reborn = next_life_of(played, latency_ms=40.0)
    assert reborn.loop.recover() is None
    (failed,) = reborn.loop.memory.records
    assert failed.state is PlanState.FAILED
    played.cluster.rejects = False
    for _ in range(6):
        reborn.run()
    assert played.cluster.assignment.slot_of == SPREAD
    (back,) = reborn.loop.memory.records
    assert (back.state, back.rollback_of) == (PlanState.VERIFIED, failed.rollback_of)
    assert back.plan.id != failed.plan.id


def test_new_life_that_comes_late_waits_for_its_own_figures_before_it_gives_up() -> None:
    played = scene()
    played.run()
    reborn = scene()
    reborn.loop.observer = FakeObserver(played.cluster, missing=True)
    reborn.loop.applier = Applier(played.cluster, played.cluster, played.cluster, played.cluster.clock)
    reborn.loop.clock = played.cluster.clock
    reborn.loop.journal = played.journal
    played.cluster.clock.seconds += 3600.0
    assert reborn.loop.recover() is not None
    reborn.loop.run_once(SPECS)
    assert last_state(reborn) is PlanState.SETTLING
    played.cluster.clock.seconds += 100.0
    reborn.loop.run_once(SPECS)
    assert last_state(reborn) is PlanState.EXPIRED


def test_supervisor_that_dies_while_a_plan_settles_is_planned_around_at_once() -> None:
    played = scene()
    first = played.run()
    assert isinstance(first, Plan)
    (used,) = {slot.supervisor_id for slot in first.target.slot_of.values()}
    played.observer.gone = frozenset({used})
    second = played.run()
    assert isinstance(second, Plan)
    assert used not in {slot.supervisor_id for slot in second.target.slot_of.values()}
    closed = [record for record in played.audience.records if record.plan.id == first.id][-1]
    assert closed.state is PlanState.EXPIRED
    assert closed.message == f"in force, but cannot be judged: lost {used} meanwhile"
    assert played.loop.memory.records[-1].plan.id == second.id
    assert played.loop.memory.decisions.known_bad == (), "the plan was not to blame"


def test_plan_of_which_one_topology_ended_keeps_nobody_waiting() -> None:
    played = scene()
    first = played.run()
    assert isinstance(first, Plan)
    (settling,) = played.loop.memory.records
    of_both = replace(settling, plan=replace(first, topology_ids=("others", "words")))
    played.loop.memory.records = (of_both,)
    played.run()
    closed = played.loop.memory.records[-1]
    assert (closed.state, closed.message) == (
        PlanState.EXPIRED,
        "in force, but cannot be judged: others no longer runs",
    )
    assert not played.loop.has_pending_plan


def test_plan_whose_topology_was_killed_ends_for_that_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    played = scene()
    played.run()
    with_it = played.observer.observe({}, (), 0.0, 0.0, -math.inf)
    without_it = replace(with_it, topologies=(), assignment=Assignment({}))
    monkeypatch.setattr(played.observer, "observe", lambda *_: without_it)
    played.run()
    assert played.loop.memory.records[-1].message == "in force, but cannot be judged: words no longer runs"


def test_the_observer_is_told_when_a_plan_was_last_worked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured over that time is of no use, however long a pass may be otherwise."""
    told = []
    played = scene()
    observe, clock = played.observer.observe, played.cluster.clock

    def noted(*arguments: Any) -> ClusterSnapshot:
        told.append(arguments[-1])
        return observe(*arguments)

    monkeypatch.setattr(played.observer, "observe", noted)
    assert isinstance(played.run(), Plan)
    in_force_at = clock.now()
    for _ in range(4):
        played.run()
    assert last_state(played) is PlanState.VERIFIED
    assert told == [-math.inf, *[in_force_at] * 4]


def test_that_a_plan_was_refused_is_told_to_the_observer_too(monkeypatch: pytest.MonkeyPatch) -> None:
    played = scene()
    played.cluster.rejects = True
    played.run()
    assert last_state(played) is PlanState.FAILED
    assert played.loop.memory.steady_since_seconds == played.cluster.clock.now()


def test_that_nothing_was_measured_since_the_last_plan_is_no_never() -> None:
    played = scene()
    played.run()
    played.observer.counted_seconds = 60.0
    held = played.run()
    assert isinstance(held, Hold)
    assert held.reason is HoldReason.WARMING_UP
    assert "since the last plan" in held.message


def test_plan_whose_topology_has_other_executors_by_now_is_neither_judged_nor_taken_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    played = scene()
    first = played.run()
    assert isinstance(first, Plan)
    merged = Executor("words", 4, 5, "count")
    fewer = replace(WORDS, executors=(*WORDS.executors[:-2], merged))  # by somebody's `storm rebalance -e count=1`
    monkeypatch.setattr(loop_scene, "WORDS", fewer)
    places = {executor: played.cluster.assignment.slot_of[executor] for executor in fewer.executors[:-1]}
    places[merged] = played.cluster.assignment.slot_of[WORDS.executors[-1]]
    played.cluster.assignment, played.cluster.plans, played.observer.latency_ms = Assignment(places), {}, 40.0
    played.run(seconds=30.0)
    closed = [record for record in played.audience.records if record.plan.id == first.id][-1]
    assert (closed.state, closed.message) == (
        PlanState.EXPIRED,
        "in force, but cannot be judged: words has other executors by now",
    )
    assert all(record.rollback_of == "" for record in played.audience.records)


def test_plan_that_made_things_worse_is_left_where_it_is_once_the_mode_is_observe() -> None:
    played = scene()
    first = played.run()
    assert isinstance(first, Plan)
    played.observer.latency_ms = 40.0
    for _ in range(4):
        played.run(with_mode(Mode.OBSERVE))
    (closed,) = played.loop.memory.records
    assert closed.state is PlanState.EXPIRED
    assert closed.message.endswith("; it is not taken back: mode of words is Observe by now")
    assert played.cluster.assignment.slot_of == first.target.slot_of


def test_limit_of_an_executor_that_ended_waits_for_no_other_of_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Numbers that fall and rise again bring back the same tasks: they would start under a limit of long ago."""
    played = one_with_limits()
    ended = WORDS.executors[-2:]
    merged = Executor("words", 4, 5, "count")
    monkeypatch.setattr(loop_scene, "WORDS", replace(WORDS, executors=(*WORDS.executors[:-2], merged)))
    places = {e: place for e, place in played.cluster.assignment.slot_of.items() if e not in ended}
    places[merged] = played.cluster.assignment.slot_of[ended[0]]
    played.cluster.assignment, played.cluster.plans = Assignment(places), {}
    assert set(ended) <= played.cluster.limits["words"].keys()
    played.run()
    assert played.cluster.limits["words"].keys() == places.keys()


def test_plan_that_can_never_be_in_force_ends_with_the_reason() -> None:
    played = scene()
    schedule = played.cluster.schedule
    played.cluster.schedule = lambda: None  # type: ignore[method-assign]
    played.cluster.clock.on_sleep = lambda: None
    played.run()
    assert last_state(played) is PlanState.FAILED
    assert "not in force after 60 s" in played.loop.memory.records[-1].message
    assert played.journal.kept is None
    played.cluster.schedule = schedule  # type: ignore[method-assign]
    played.cluster.clock.on_sleep = schedule
    played.run(seconds=600.0)
    assert last_state(played) is PlanState.SETTLING


@pytest.mark.parametrize("gone", [frozenset[str](), frozenset({"s3"})], ids=["savings", "without place"])
def test_plans_that_can_never_be_in_force_are_tried_ever_more_slowly(gone: frozenset[str]) -> None:
    """Each trial pauses the spouts for a minute, and keeps all other topologies from their plans."""
    played = scene()
    played.observer.gone = gone
    played.cluster.schedule = lambda: None  # type: ignore[method-assign]
    played.cluster.clock.on_sleep = lambda: None
    drained = {"words": replace(SPECS["words"], scheduling=replace(SETTINGS, apply_method=ApplyMethod.DRAIN))}
    decisions = [played.run(drained, seconds=20.0) for _ in range(30)]
    failed = [record for record in played.loop.memory.records if record.state is PlanState.FAILED]
    assert len(failed) == 6, "after 10, 20, 40, 80 and 160 s"
    held = [decision for decision in decisions if isinstance(decision, Hold)]
    assert {hold.reason for hold in held} == {HoldReason.COOL_DOWN}
    assert f"plan {failed[-1].plan.id} failed, 6 plans in a row; the next may follow in" in held[-1].message


@pytest.mark.parametrize("settles", [True, False])
def test_clock_that_was_set_back_by_a_day_stops_nobody_for_that_day(settles: bool) -> None:
    played = scene()
    first = played.run()
    played.observer.latency_ms = 2.0
    while not settles and last_state(played) is PlanState.SETTLING:
        played.run()
    played.cluster.clock.seconds -= 86400.0
    played.cluster.assignment = Assignment(SPREAD)
    played.cluster.plans.clear()
    decisions = [played.run() for _ in range(3)]
    assert isinstance(first, Plan)
    assert any(isinstance(decision, Plan) for decision in decisions)
    told = [record for record in played.audience.records if record.plan.id == first.id][-1]
    assert ("the clock was set back" in told.message) is settles


def test_pass_tells_what_it_expects_and_how_long_its_steps_took() -> None:
    played = scene()
    played.run()
    report = played.audience.reports[-1]
    assert report.snapshot is not None
    components = {(t.id, component.name) for t in report.snapshot.topologies for component in t.components}
    assert set(report.forecasts) == components
    assert set(report.step_seconds) == {"observe", "forecast", "verify", "decide_and_apply", "cpu_limits"}


def test_too_little_cpu_is_said_once_plans_are_made_and_no_more_when_there_is_enough() -> None:
    played, said = scene(), list[str]()
    terminal = TerminalListener(said.append)
    observer = FakeObserver(played.cluster, capacity_millicores=90.0)
    played.loop.observer = observer
    for _ in range(12):
        played.run()
        terminal.on_pass(played.audience.reports[-1])
    last = played.audience.reports[-1].decisions[0][1]
    assert isinstance(last, Hold)
    assert last.reason is HoldReason.TOO_LITTLE_CAPACITY
    assert last.short_topologies == ("words",)
    assert played.loop.memory.decisions.short_topologies == {"words"}
    assert any("hold, TooLittleCapacity: 3 supervisors lack 57 millicores of CPU" in sentence for sentence in said)
    observer.capacity_millicores = 1000.0
    for _ in range(12):
        played.run()
    assert played.loop.memory.decisions.short_topologies == frozenset()
