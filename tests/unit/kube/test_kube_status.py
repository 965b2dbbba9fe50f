"""A StormTopology's status: phases, conditions, figures, and when it is worth writing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jsonschema
import pytest
import yaml

from builders import even_traffic, snapshot, supervisors
from kube_builders import (
    GATHERED,
    NIMBUS,
    NOW,
    NOW_SECONDS,
    SPREAD,
    TOPOLOGY_ID,
    WORDS,
    managed,
    plan,
    plan_record,
    topology_body,
)
from storm_operator.adapters.resource_schema import crd_file
from storm_operator.core.agent_enforcement import AgentEnforcement
from storm_operator.core.decision import Hold, HoldReason
from storm_operator.core.model import Assignment, Executor
from storm_operator.core.parallelism import HeldResize
from storm_operator.core.plan_record import AUTO, PlanRecord, PlanState
from storm_operator.core.snapshot import ClusterSnapshot, Completeness, LatencySummary, TopologyRates
from storm_operator.kube.conditions import FINE_HOLDS, TopologyView
from storm_operator.kube.enforced import EnforcedPlace, LimitsInForce, limits_in_force
from storm_operator.kube.managed import Managed, managed_from
from storm_operator.kube.status import accepted_status, refused_status, status_of, unfinished_plan
from storm_operator.kube.status_news import is_due, is_news
from storm_operator.lifecycle_progress import BEING_WITHDRAWN, NOT_IN_STORM, Progress, Stage

RUNNING = Progress(Stage.RUNNING, "", TOPOLOGY_ID)
NO_CHANGE = Hold(HoldReason.NO_CHANGE, "adaptive proposes the assignment in force")
JAR = {"jar": {"path": "/opt/words.jar", "mainClass": "a.Words"}}
FAILED_ONCE = TopologyView(
    managed(spec=JAR),
    Progress(Stage.FAILED, "submission job words-submit-1 failed"),
    None,
    None,
    None,
    NOW_SECONDS,
    job=("words-submit-1", "abc"),
    retry_at_seconds=NOW_SECONDS + 60.0,
    failed_attempts=1,
)
HELD = (EnforcedPlace("s1.sup", "sup-0", True, "", AgentEnforcement("cgroup-v2")),)
ALL_LIMITED = LimitsInForce(3, 3)
PAUSED: dict[str, Any] = {"annotations": {"storm-operator.dev/paused": "true"}}
LATER_SECONDS = NOW_SECONDS + 60.0
LATER = "2027-01-15T08:01:00Z"


def picture(*, latency_ms: float = 8.0, acked: float = 300.0, missing: bool = False) -> ClusterSnapshot:
    taken = snapshot((WORDS,), supervisors(2), SPREAD.slot_of, rates=even_traffic(WORDS, 300.0))
    rates = {TOPOLOGY_ID: TopologyRates(acked, 0.0, LatencySummary(latency_ms, latency_ms, 3 * latency_ms, 1000.0))}
    taken = replace(taken, rates=rates)
    if missing:
        taken = replace(taken, completeness=Completeness(3, (WORDS.executors[0],), 0.0, ("agent s1 is silent",)))
    return taken


def view(**changes: Any) -> TopologyView:
    """Of a topology that runs, is measured, and needs nothing, unless `changes` say otherwise."""
    usual = TopologyView(managed(), RUNNING, picture(), NO_CHANGE, None, NOW_SECONDS, places=HELD, limits=ALL_LIMITED)
    return replace(usual, **changes)


def with_status(status: dict[str, Any], **metadata: Any) -> Managed:
    return managed_from(topology_body(status=status, **metadata), NIMBUS)


def condition(status: dict[str, Any], kind: str) -> dict[str, Any]:
    (found,) = [one for one in status["conditions"] if one["type"] == kind]
    return dict(found)


def judged(status: dict[str, Any], kind: str) -> tuple[str, str]:
    found = condition(status, kind)
    return found["status"], found["reason"]


class TestPhase:
    def test_follows_the_stage(self) -> None:
        wanted = {
            Stage.SUBMITTING: "Submitting",
            Stage.REPLACING: "Submitting",
            Stage.RUNNING: "Running",
            Stage.SUSPENDED: "Suspended",
            Stage.WAITING: "Pending",
            Stage.FAILED: "Failed",
        }
        assert {stage: status_of(view(progress=Progress(stage)))["phase"] for stage in Stage} == wanted

    def test_is_pending_before_anybody_looked(self) -> None:
        assert status_of(view(progress=None))["phase"] == "Pending"

    def test_is_rebalancing_while_a_plan_is_applied(self) -> None:
        assert status_of(view(record=plan_record(PlanState.APPLYING)))["phase"] == "Rebalancing"

    @pytest.mark.parametrize("progress", [RUNNING, None])
    def test_of_a_resource_being_deleted(self, progress: Progress | None) -> None:
        leaving = managed(deletionTimestamp=NOW, **PAUSED)
        assert status_of(view(managed=leaving, progress=progress))["phase"] == "Deleting"

    @pytest.mark.parametrize("progress", [RUNNING, None])
    def test_of_a_paused_resource(self, progress: Progress | None) -> None:
        # The loop leaves it alone, and so knows no progress of it.
        assert status_of(view(managed=managed(**PAUSED), progress=progress, decision=None))["phase"] == "Paused"


class TestConditions:
    def test_all_is_well(self) -> None:
        status = status_of(view())
        assert judged(status, "Ready") == ("True", "Running")
        assert judged(status, "Submitted") == ("True", "Running")
        assert judged(status, "MetricsReady") == ("True", "Complete")
        assert judged(status, "Planned") == ("True", "NoChange")
        assert judged(status, "Enforced") == ("True", "Executor")
        assert judged(status, "Degraded") == ("False", "AsExpected")

    @pytest.mark.parametrize("name", ["pause", "rebalance"])
    def test_annotation_of_ours_that_does_nothing_is_told_and_the_topology_is_no_less_ready(self, name: str) -> None:
        one = managed(annotations={f"storm-operator.dev/{name}": "true", "example.com/pause": "true"})
        told = f"unknown annotation storm-operator.dev/{name}; known is storm-operator.dev/paused"
        status = status_of(view(managed=one))
        assert judged(status, "Ready") == ("True", "Running")
        assert (
            condition(status, "Ready")["message"] == f"it runs, is measured and managed; metadata.annotations: {told}"
        )
        assert told in condition(accepted_status(one, NOW_SECONDS), "Ready")["message"]

    def test_value_that_pauses_nothing_is_told(self) -> None:
        status = status_of(view(managed=managed(annotations={"storm-operator.dev/paused": "yes"})))
        assert "metadata.annotations.storm-operator.dev/paused is 'yes'" in condition(status, "Ready")["message"]

    def test_unmeasured_executors_are_counted_and_the_problem_is_named(self) -> None:
        status = status_of(view(snapshot=picture(missing=True)))
        assert judged(status, "MetricsReady") == ("False", "Incomplete")
        assert condition(status, "MetricsReady")["message"] == "1 executor not measured: agent s1 is silent"
        assert judged(status, "Ready") == ("False", "Incomplete")

    def test_topology_that_no_pass_has_seen_yet_is_not_ready(self) -> None:
        earlier = replace(picture(), topologies=(), assignment=Assignment({}))
        status = status_of(view(snapshot=earlier))
        assert judged(status, "MetricsReady") == ("Unknown", "Unknown")
        assert judged(status, "Ready") == ("False", "Unknown")
        assert status["workersUsed"] is status["supervisorsUsed"] is None

    def test_topology_that_runs_and_that_a_pass_could_not_look_at_is_not_said_not_to_run(self) -> None:
        away = Hold(HoldReason.CLUSTER_UNREACHABLE, "Nimbus failed in getTopologyInfoWithOpts")
        status = status_of(view(snapshot=None, decision=away))
        assert judged(status, "MetricsReady") == ("Unknown", "Unknown")
        assert condition(status, "MetricsReady")["message"] == "Nimbus failed in getTopologyInfoWithOpts"
        before = status_of(view(snapshot=None, decision=None))
        assert condition(before, "MetricsReady")["message"] == "no pass has measured it yet"

    def test_topology_without_a_worker_is_not_ready(self) -> None:
        status = status_of(view(snapshot=replace(picture(), assignment=Assignment({}))))
        assert judged(status, "Ready") == ("False", "Unknown")
        assert condition(status, "Ready")["message"] == "none of its executors is placed yet"
        assert status["workersUsed"] == 0

    def test_another_topology_that_is_not_measured_is_no_matter(self) -> None:
        stranger = replace(WORDS.executors[0], topology_id="other-1-1")
        taken = replace(picture(), completeness=Completeness(4, (stranger,)))
        assert judged(status_of(view(snapshot=taken)), "MetricsReady") == ("True", "Complete")

    def test_unreachable_cluster_degrades_and_leaves_the_rest_unknown(self) -> None:
        status = status_of(view(progress=None, snapshot=None, decision=None, trouble="no Nimbus at 10.0.0.1:6627"))
        assert judged(status, "Degraded") == ("True", "ClusterUnreachable")
        assert judged(status, "Submitted") == ("Unknown", "Unknown")
        assert judged(status, "Ready") == ("False", "ClusterUnreachable")
        assert condition(status, "Ready")["message"] == status["message"] == "no Nimbus at 10.0.0.1:6627"

    def test_suspended_topology_is_submitted_only_if_it_ever_was(self) -> None:
        never = status_of(view(progress=NOT_IN_STORM, snapshot=None, decision=None))
        assert judged(never, "Submitted") == ("False", "Suspended")
        inactive = status_of(view(progress=Progress(Stage.SUSPENDED, "its spouts are deactivated", WORDS.id)))
        assert judged(inactive, "Submitted") == ("True", "Suspended")

    def test_suspended_topology_is_ready_and_said_to_be_suspended(self) -> None:
        never = status_of(view(progress=NOT_IN_STORM, snapshot=None, decision=None))
        assert judged(never, "Ready") == ("True", "Suspended")
        assert condition(never, "Ready")["message"] == NOT_IN_STORM.message
        inactive = Progress(Stage.SUSPENDED, "its spouts are deactivated", WORDS.id)
        suspended = status_of(view(progress=inactive))
        assert judged(suspended, "Ready") == ("True", "Suspended")
        assert condition(suspended, "Ready")["message"] == "it is suspended, is measured and managed"
        assert judged(status_of(view(progress=inactive, snapshot=picture(missing=True))), "Ready")[0] == "False"

    def test_suspended_topology_is_not_ready_while_its_submission_is_still_being_ended(self) -> None:
        status = status_of(view(progress=BEING_WITHDRAWN, snapshot=None, decision=None))
        assert judged(status, "Ready") == ("False", "Suspended")

    def test_failed_submission_degrades_with_its_message(self) -> None:
        """The end of its log stands in one place: in as many as tell of it `kubectl describe` would be nothing else."""
        told = "submission job x failed: no class a.B"
        failed = Progress(Stage.FAILED, f"{told}\njava.lang.Error")
        status = status_of(view(managed=managed(spec=JAR), progress=failed, job=("x", "f1")))
        assert status["message"] == told
        assert status["submission"]["message"] == failed.message
        assert str(status).count("java.lang.Error") == 1
        assert judged(status, "Degraded") == ("True", "SubmissionFailed")
        assert condition(status, "Degraded")["message"] == status["message"]
        assert judged(status, "Submitted") == ("False", "Failed")

    @pytest.mark.parametrize("reason", sorted(set(HoldReason) - FINE_HOLDS))
    def test_hold_that_somebody_must_see_to_degrades(self, reason: HoldReason) -> None:
        status = status_of(view(decision=Hold(reason, "why", short_topologies=(TOPOLOGY_ID,))))
        assert judged(status, "Degraded") == ("True", reason.value)
        assert judged(status, "Ready") == ("False", reason.value)

    def test_too_little_capacity_degrades_those_that_go_short_and_says_by_how_much(self) -> None:
        missing = "1 supervisor lacks 300 millicores of CPU"
        hold = Hold(HoldReason.TOO_LITTLE_CAPACITY, missing, 0.0, (TOPOLOGY_ID,))
        status = status_of(view(decision=hold))
        assert judged(status, "Degraded") == ("True", "TooLittleCapacity")
        assert condition(status, "Degraded")["message"] == status["message"] == missing
        served = status_of(view(decision=replace(hold, short_topologies=("another",))))
        assert judged(served, "Degraded") == ("False", "AsExpected")
        assert judged(served, "Ready") == ("True", "Running")

    @pytest.mark.parametrize("reason", sorted(FINE_HOLDS))
    def test_hold_that_is_nobodys_fault_does_not_degrade(self, reason: HoldReason) -> None:
        assert judged(status_of(view(decision=Hold(reason, "why"))), "Degraded") == ("False", "AsExpected")

    def test_only_suspended_topologies_on_a_cluster_degrade_none(self) -> None:
        idle = Hold(HoldReason.NOTHING_TO_MANAGE, "no managed topology runs on this cluster")
        status = status_of(view(progress=Progress(Stage.SUSPENDED, "", TOPOLOGY_ID), decision=idle))
        assert judged(status, "Degraded") == ("False", "AsExpected")
        assert judged(status, "Planned") == ("False", "NothingToManage")

    @pytest.mark.parametrize("state", [PlanState.FAILED, PlanState.ROLLED_BACK])
    def test_plan_that_went_wrong_degrades(self, state: PlanState) -> None:
        gone_wrong = plan_record(state, message="rejected by the scheduler")
        for since in (plan(), Hold(HoldReason.COOL_DOWN, "the next may follow in 9 s")):
            status = status_of(view(record=gone_wrong, decision=since))
            assert judged(status, "Degraded") == ("True", f"Plan{state.value}")
            assert condition(status, "Degraded")["message"] == "rejected by the scheduler"

    @pytest.mark.parametrize("reason", [HoldReason.NO_CHANGE, HoldReason.GAIN_TOO_SMALL, HoldReason.OBSERVE_ONLY])
    def test_plan_that_went_wrong_degrades_no_more_once_nothing_is_left_to_do(self, reason: HoldReason) -> None:
        """Else who waits for condition Ready would wait until the operator is started anew."""
        failed = plan_record(PlanState.FAILED, message="not in force after 60 s")
        status = status_of(view(record=failed, decision=Hold(reason, "as it is")))
        assert judged(status, "Degraded") == ("False", "AsExpected")
        assert judged(status, "Ready") == ("True", "Running")
        assert status["lastPlan"]["state"] == "Failed"

    def test_way_back_that_failed_and_is_tried_again_degrades_on(self) -> None:
        failed = plan_record(PlanState.FAILED, rollback_of="p-bad", approved_by=AUTO)
        assert judged(status_of(view(record=failed)), "Degraded") == ("True", "PlanFailed")
        asked_for = replace(failed, approved_by="annotation")
        assert judged(status_of(view(record=asked_for)), "Degraded") == ("False", "AsExpected")

    def test_measurements_that_cannot_be_trusted_make_no_plan(self) -> None:
        assert judged(status_of(view(decision=Hold(HoldReason.WARMING_UP, ""))), "Planned") == ("False", "WarmingUp")

    def test_recommendation_is_a_plan(self) -> None:
        status = status_of(view(decision=plan()))
        assert judged(status, "Planned") == ("True", "Plan")
        assert status["message"] == "closer"

    @pytest.mark.parametrize(
        ("spec", "reason"),
        [
            ({"resources": {"enforcement": "None"}}, "NotWanted"),
            ({"scheduling": {"mode": "Recommend"}}, "NotWanted"),
            ({"resources": {"enforcement": "Pod"}}, "Pod"),
        ],
    )
    def test_enforcement_is_for_what_the_spec_asks_for(self, spec: dict[str, Any], reason: str) -> None:
        status = status_of(view(managed=managed(spec={"adopt": {}, **spec})))
        assert judged(status, "Enforced") == ("True" if reason == "Pod" else "False", reason)

    def test_enforcement_is_judged_by_what_pods_and_agents_do(self) -> None:
        refused = replace(HELD[0], problem="Infeasible: node has 1 CPU")
        status = status_of(view(places=(refused,)))
        assert judged(status, "Enforced") == ("False", "ResizeRefused")
        assert condition(status, "Enforced")["message"] == "sup-0: Infeasible: node has 1 CPU"

    def test_executors_without_limits_are_held_to_nothing_whatever_agents_can_do(self) -> None:
        seen = picture()
        placed = sorted(seen.assignment.slot_of)
        of_another = {Executor("other-1-1", 1, 1, "spout"): 500.0}
        unlimited = limits_in_force(TOPOLOGY_ID, seen, of_another)
        assert unlimited == LimitsInForce(0, len(placed))
        assert judged(status_of(view(limits=unlimited)), "Enforced") == ("False", "NoLimits")
        some = limits_in_force(TOPOLOGY_ID, seen, dict.fromkeys(placed[1:], 500.0))
        status = status_of(view(limits=some))
        assert judged(status, "Enforced") == ("True", "Executor")
        assert "but for 1 executor without a limit" in condition(status, "Enforced")["message"]

    def test_unreachable_cluster_leaves_enforcement_unknown(self) -> None:
        status = status_of(view(progress=None, snapshot=None, decision=None, places=(), trouble="no Nimbus"))
        assert judged(status, "Enforced") == ("Unknown", "Unknown")

    def test_kubernetes_that_refuses_is_not_called_an_unreachable_cluster(self) -> None:
        trouble = view(
            progress=None, snapshot=None, decision=None, trouble="list: no", trouble_reason="KubernetesRefused"
        )
        assert judged(status_of(trouble), "Degraded") == ("True", "KubernetesRefused")

    def test_what_could_not_be_done_degrades_with_its_own_reason(self) -> None:
        obstacles = (("ScaleRefused", "scale StatefulSet storm/sup to 3: forbidden"), ("PodsNotListed", "no"))
        status = status_of(view(obstacles=obstacles))
        assert judged(status, "Degraded") == ("True", "ScaleRefused")
        assert condition(status, "Degraded")["message"] == "scale StatefulSet storm/sup to 3: forbidden; no"

    def test_paused_resource_is_neither_enforced_nor_ready_but_not_degraded(self) -> None:
        status = status_of(view(managed=managed(**PAUSED), progress=None, decision=None))
        assert judged(status, "Enforced") == ("False", "NotRunning")
        assert judged(status, "Ready") == ("False", "Paused")
        assert judged(status, "Degraded") == ("False", "AsExpected")
        assert status["message"] == condition(status, "Ready")["message"] == "paused by annotation: left as it is"

    def test_time_is_kept_while_the_status_of_a_condition_stays(self) -> None:
        before = with_status(status_of(view()))
        after = status_of(view(managed=before, now_seconds=LATER_SECONDS, snapshot=picture(missing=True)))
        assert condition(after, "Submitted")["lastTransitionTime"] == NOW
        assert condition(after, "MetricsReady")["lastTransitionTime"] == LATER
        assert condition(after, "Ready")["lastTransitionTime"] == LATER

    def test_time_is_kept_when_only_the_reason_changes(self) -> None:
        before = with_status(status_of(view(snapshot=picture(missing=True))))
        failed = view(managed=before, now_seconds=LATER_SECONDS, progress=Progress(Stage.FAILED, "no jar"))
        assert judged(status_of(failed), "Ready") == ("False", "SubmissionFailed")
        assert condition(status_of(failed), "Ready")["lastTransitionTime"] == NOW

    def test_conditions_carry_the_generation_that_they_are_about(self) -> None:
        status = status_of(view(managed=managed(generation=4)))
        assert {one["observedGeneration"] for one in status["conditions"]} == {4}
        assert status["observedGeneration"] == 4


class TestFigures:
    def test_are_those_of_the_topology(self) -> None:
        status = status_of(view())
        assert status["latency"] == {"p50Milliseconds": 8.0, "p99Milliseconds": 24.0}
        assert status["throughputTuplesPerSecond"] == 300.0
        assert status["supervisorsUsed"] == 2
        assert status["workersUsed"] == 3

    def test_count_only_traffic_between_supervisors(self) -> None:
        assert status_of(view())["interSupervisorTuplesPerSecond"] == 300.0
        gathered = replace(picture(), assignment=replace(GATHERED, slot_of=dict.fromkeys(WORDS.executors, slot_s1())))
        assert status_of(view(snapshot=gathered))["interSupervisorTuplesPerSecond"] == 0.0

    def test_traffic_is_absent_while_executors_are_not_measured(self) -> None:
        assert status_of(view(snapshot=picture(missing=True)))["interSupervisorTuplesPerSecond"] is None

    def test_traffic_is_absent_while_no_executor_has_a_place(self) -> None:
        nowhere = replace(picture(), assignment=Assignment({}))
        assert status_of(view(snapshot=nowhere))["interSupervisorTuplesPerSecond"] is None

    def test_are_absent_while_nothing_runs(self) -> None:
        status = status_of(view(progress=Progress(Stage.SUBMITTING)))
        assert status["latency"] is None
        assert status["workersUsed"] is None

    def test_percent_of_best_is_what_a_change_would_leave(self) -> None:
        assert status_of(view(decision=replace(NO_CHANGE, gain_percent=12.34)))["percentOfBest"] == 87.7
        assert status_of(view(decision=plan(gain_percent=12.34)))["percentOfBest"] == 87.7
        assert status_of(view(decision=NO_CHANGE))["percentOfBest"] is None

    def test_urgent_plan_that_costs_more_leaves_what_is_in_force_the_best(self) -> None:
        assert status_of(view(decision=plan(gain_percent=-20.0)))["percentOfBest"] == 100.0


class TestSuspension:
    def test_is_told_where_it_was_the_operators(self) -> None:
        inactive = Progress(Stage.SUSPENDED, "its spouts are deactivated", TOPOLOGY_ID)
        assert status_of(view(progress=inactive, suspended_by_operator=True))["suspendedByOperator"] is True
        assert status_of(view(progress=inactive, suspended_by_operator=False))["suspendedByOperator"] is None

    def test_is_kept_while_nobody_looks(self) -> None:
        paused = with_status({"suspendedByOperator": True}, **PAUSED)
        assert status_of(view(managed=paused, progress=None))["suspendedByOperator"] is True


def slot_s1() -> Any:
    return next(iter(GATHERED.slot_of.values()))


class TestTopologyId:
    def test_is_that_of_the_running_topology(self) -> None:
        assert status_of(view())["topologyId"] == TOPOLOGY_ID

    @pytest.mark.parametrize("stage", [Stage.SUBMITTING, Stage.FAILED])
    def test_goes_when_nothing_runs(self, stage: Stage) -> None:
        """Storm was asked, whatever could not be done then; and the CRD forbids another Nimbus while there is one."""
        ran = with_status({"topologyId": TOPOLOGY_ID})
        assert status_of(view(managed=ran, progress=Progress(stage)))["topologyId"] is None

    def test_is_that_of_what_runs_although_something_failed(self) -> None:
        ran = with_status({"topologyId": TOPOLOGY_ID})
        failed = Progress(Stage.FAILED, "there is no ConfigMap flux", TOPOLOGY_ID)
        assert status_of(view(managed=ran, progress=failed))["topologyId"] == TOPOLOGY_ID

    def test_is_kept_while_nobody_knows_whether_it_runs(self) -> None:
        ran = with_status({"topologyId": TOPOLOGY_ID})
        assert status_of(view(managed=ran, progress=None))["topologyId"] == TOPOLOGY_ID


class TestLastPlanAndHold:
    def test_plan_is_shown_with_its_state_and_the_time_it_came_into_it(self) -> None:
        shown = status_of(view(record=plan_record(PlanState.VERIFIED, message="less traffic")))["lastPlan"]
        name = plan().id
        assert shown == {"id": name, "rebalance": name, "state": "Verified", "message": "less traffic", "time": NOW}

    def test_plan_without_a_message_is_shown_with_its_reason(self) -> None:
        assert status_of(view(record=plan_record(PlanState.APPLYING)))["lastPlan"]["message"] == "closer"

    def test_time_of_a_plan_changes_with_its_state_only(self) -> None:
        def time_after(record: PlanRecord) -> Any:
            before = with_status(status_of(view(record=plan_record(PlanState.SETTLING))))
            return status_of(view(managed=before, record=record, now_seconds=LATER_SECONDS))["lastPlan"]["time"]

        assert time_after(plan_record(PlanState.SETTLING)) == NOW
        assert time_after(plan_record(PlanState.VERIFIED)) == LATER

    def test_plan_of_an_earlier_life_stays(self) -> None:
        assert status_of(view(managed=with_status({"lastPlan": {"id": "p-1"}})))["lastPlan"] == {"id": "p-1"}

    def test_plan_that_ended_with_its_topology_or_in_another_life_is_shown_as_its_resource_says(self) -> None:
        settling = with_status(status_of(view(record=plan_record(PlanState.SETTLING))))
        assert unfinished_plan(settling) == plan().id
        end = {"state": "Expired", "reason": "Expired", "message": "words-1 no longer runs", "workersKept": 2}
        after = status_of(view(managed=settling, plan_end=end, now_seconds=LATER_SECONDS))
        name, words = plan().id, "words-1 no longer runs"
        assert after["lastPlan"] == {"id": name, "rebalance": name, "state": "Expired", "message": words, "time": LATER}
        assert unfinished_plan(with_status(after)) == unfinished_plan(managed()) == ""

    def test_hold_is_told_since_when(self) -> None:
        before = with_status(status_of(view()))
        again = status_of(view(managed=before, now_seconds=LATER_SECONDS))
        assert again["lastHold"] == {"reason": "NoChange", "message": NO_CHANGE.message, "since": NOW}
        other = view(managed=before, now_seconds=LATER_SECONDS, decision=Hold(HoldReason.COOL_DOWN, "40 s old"))
        assert status_of(other)["lastHold"] == {"reason": "CoolDown", "message": "40 s old", "since": LATER}

    def test_hold_is_told_as_it_is_now_and_written_for_its_words_alone_once_a_minute(self) -> None:
        first = status_of(view(decision=Hold(HoldReason.GAIN_TOO_SMALL, "the proposal (count 3 to s1) saves 1%")))
        now = "the proposal (split 2 to s2) saves 9%"
        later = status_of(
            view(managed=with_status(first), now_seconds=LATER_SECONDS, decision=Hold(HoldReason.GAIN_TOO_SMALL, now))
        )
        assert later["lastHold"] == {"reason": "GainTooSmall", "message": now, "since": NOW}
        assert (is_due(first, later, 59.0), is_due(first, later, 60.0)) == (False, True)
        other = status_of(view(managed=with_status(first), decision=Hold(HoldReason.COOL_DOWN, now)))
        assert is_due(first, other, 0.0), "another reason is told at once"

    def test_hold_goes_when_something_is_done(self) -> None:
        assert status_of(view(managed=with_status(status_of(view())), decision=plan()))["lastHold"] is None

    def test_resize_that_is_held_is_told_since_when_and_goes(self) -> None:
        def held(count: int, minutes: int) -> HeldResize:
            hold = Hold(HoldReason.EXCLUDED_WINDOW, f"it ends in {minutes} minutes")
            return HeldResize({"count": count}, hold)

        first = status_of(view(held_resize=held(4, 9)))
        assert first["heldResize"] == {
            "executors": [{"component": "count", "executors": 4}],
            "reason": "ExcludedWindow",
            "message": "by load executors should be count 4; it ends in 9 minutes",
            "since": NOW,
        }
        before = with_status(first)
        later = {"managed": before, "now_seconds": LATER_SECONDS}
        fewer = status_of(view(**later, held_resize=held(4, 8)))
        assert (fewer["heldResize"]["message"][-12:], fewer["heldResize"]["since"]) == ("in 8 minutes", NOW)
        assert not is_due(first, fewer, 59.0), "only the minutes differ"
        assert status_of(view(**later, held_resize=held(5, 8)))["heldResize"]["since"] == LATER
        cooling = HeldResize({"count": 4}, Hold(HoldReason.COOL_DOWN, "the last change is 5 s old"))
        another = status_of(view(**later, held_resize=cooling))["heldResize"]
        assert (another["reason"], another["since"]) == ("CoolDown", LATER)
        assert status_of(view(**later))["heldResize"] is None


class TestSubmission:
    def test_failed_one_says_why_and_when_it_is_tried_again(self) -> None:
        assert status_of(FAILED_ONCE)["submission"] == {
            "job": "words-submit-1",
            "fingerprint": "abc",
            "message": "submission job words-submit-1 failed",
            "attempts": 1,
            "retryAt": LATER,
        }

    def test_what_there_is_nothing_to_say_of_is_left_out(self) -> None:
        once = {"job": "words-submit-1", "fingerprint": "abc"}
        assert status_of(view(managed=managed(spec=JAR), job=("words-submit-1", "abc")))["submission"] == {
            **once,
            "submittedAt": NOW,
        }
        for_good = replace(FAILED_ONCE, retry_at_seconds=None)
        assert "retryAt" not in status_of(for_good)["submission"]

    def test_that_succeeds_at_last_leaves_no_trouble_behind(self) -> None:
        failed = with_status(status_of(FAILED_ONCE), spec=JAR)
        done = status_of(view(managed=failed, job=("words-submit-1", "abc")))["submission"]
        assert (done["message"], done["retryAt"], done["attempts"]) == (None, None, 1)
        assert done["submittedAt"] == NOW

    def test_attempts_are_those_of_one_fingerprint(self) -> None:
        failed = with_status(status_of(FAILED_ONCE), spec=JAR)
        done = status_of(view(managed=failed, job=("words-submit-2", "def")))["submission"]
        assert done["attempts"] is None

    def test_time_is_that_of_the_submission_of_this_fingerprint(self) -> None:
        submitted = with_status(status_of(view(managed=managed(spec=JAR), job=("words-submit-1", "abc"))), spec=JAR)
        later = view(managed=submitted, job=("words-submit-1", "abc"), now_seconds=LATER_SECONDS)
        assert status_of(later)["submission"]["submittedAt"] == NOW
        assert status_of(replace(later, job=("words-submit-2", "def")))["submission"]["submittedAt"] == LATER

    def test_of_an_earlier_life_stays(self) -> None:
        before = {"job": "words-submit-1", "fingerprint": "abc", "submittedAt": NOW}
        assert status_of(view(managed=with_status({"submission": before}, spec=JAR)))["submission"] == before

    def test_that_failed_in_an_earlier_life_is_no_trouble_of_what_runs(self) -> None:
        before = {"job": "words-submit-1", "fingerprint": "abc", "message": "failed", "attempts": 1, "retryAt": NOW}
        known = with_status({"submission": before}, spec=JAR)
        assert status_of(view(managed=known))["submission"] == {**before, "message": None, "retryAt": None}
        no_map = Progress(Stage.FAILED, "spec.flux.configMap: there is no ConfigMap flux in streams")
        for progress in (None, no_map):
            assert status_of(view(managed=known, progress=progress))["submission"] == before

    def test_that_fails_before_there_is_a_job_says_why_and_when_it_is_tried_again(self) -> None:
        """Also in a life of the operator that has made none yet."""
        no_map = Progress(Stage.FAILED, "spec.flux.configMap: there is no ConfigMap flux in streams")
        trouble = {"message": no_map.message, "retryAt": LATER}
        failed = view(managed=managed(spec=JAR), progress=no_map, retry_at_seconds=LATER_SECONDS, failed_attempts=1)
        first = status_of(failed)["submission"]
        assert first == trouble
        before = {"job": "words-submit-1", "fingerprint": "abc", "message": "failed", "attempts": 1, "retryAt": NOW}
        again = replace(failed, managed=with_status({"submission": before}, spec=JAR))
        assert status_of(again)["submission"] == {**before, **trouble}
        mended = status_of(view(managed=with_status({"submission": first}, spec=JAR), progress=RUNNING))
        assert mended["submission"] == {"message": None, "retryAt": None}

    def test_of_the_same_once_more_is_told_with_its_own_time(self) -> None:
        job = ("words-submit-1", "abc")
        once = with_status({"submission": {"job": job[0], "fingerprint": job[1], "submittedAt": NOW}}, spec=JAR)
        again = view(managed=once, progress=Progress(Stage.SUBMITTING), job=job, now_seconds=LATER_SECONDS)
        assert status_of(again)["submission"]["submittedAt"] is None
        under_way = with_status({"submission": {"job": job[0], "fingerprint": job[1]}}, spec=JAR)
        assert status_of(replace(again, managed=under_way, progress=RUNNING))["submission"]["submittedAt"] == LATER

    def test_of_what_is_adopted_by_now_is_gone(self) -> None:
        before = with_status({"submission": {"job": "words-submit-1", "fingerprint": "abc"}})
        for job in (None, ("words-submit-1", "abc")):
            assert status_of(view(managed=before, job=job))["submission"] is None


class TestNews:
    def test_steady_topology_says_nothing_twice(self) -> None:
        first = status_of(view())
        later = view(
            managed=with_status(first), now_seconds=LATER_SECONDS, snapshot=picture(latency_ms=8.4, acked=310.0)
        )
        assert not is_news(first, status_of(later))

    def test_first_status_is_news(self) -> None:
        assert is_news({}, status_of(view()))

    @pytest.mark.parametrize(
        ("old", "new", "news"),
        [(100.0, 109.0, False), (100.0, 112.0, True), (100.0, 89.0, True), (0.0, 0.0, False), (0.0, 0.1, True)],
    )
    def test_figures_within_a_tenth_are_none(self, old: float, new: float, news: bool) -> None:
        assert is_news({"throughputTuplesPerSecond": old}, {"throughputTuplesPerSecond": new}) is news

    def test_figure_that_the_api_gave_back_as_an_int_is_still_a_figure(self) -> None:
        assert not is_news({"throughputTuplesPerSecond": 300}, {"throughputTuplesPerSecond": 301.5})

    @pytest.mark.parametrize("name", ["observedGeneration", "workersUsed"])
    def test_counts_are_told_exactly(self, name: str) -> None:
        assert is_news({name: 20}, {name: 21})
        assert not is_news({name: 20}, {name: 20})

    def test_changed_spec_is_news_however_often_it_was_changed_before(self) -> None:
        first = status_of(view(managed=managed(generation=30)))
        assert is_news(first, status_of(view(managed=with_status(first, generation=31))))

    def test_condition_that_changes_comes_or_goes_is_news(self) -> None:
        ready = {"type": "Ready", "status": "True", "message": ""}
        assert not is_news({"conditions": [ready]}, {"conditions": [dict(ready)]})
        assert is_news({"conditions": [ready]}, {"conditions": [{**ready, "status": "False"}]})
        assert is_news({"conditions": [ready]}, {"conditions": [ready, {**ready, "type": "Degraded"}]})
        assert is_news({"conditions": [ready]}, {"conditions": []})

    def test_figure_that_comes_or_goes_is_news(self) -> None:
        assert is_news({}, {"latency": {"p50Milliseconds": 8.0}})
        assert is_news({"latency": {"p50Milliseconds": 8.0}}, {"latency": None})
        assert not is_news({}, {"latency": None})

    def test_nested_figures_are_compared_one_by_one(self) -> None:
        old = {"latency": {"p50Milliseconds": 8.0, "p99Milliseconds": 30.0}}
        assert not is_news(old, {"latency": {"p50Milliseconds": 8.5, "p99Milliseconds": 29.0}})
        assert is_news(old, {"latency": {"p50Milliseconds": 8.5, "p99Milliseconds": 60.0}})

    @pytest.mark.parametrize(
        "reason",
        [
            HoldReason.GAIN_TOO_SMALL,
            HoldReason.PAYBACK_TOO_LONG,
            HoldReason.COOL_DOWN,
            HoldReason.NOT_DUE,
            HoldReason.EXCLUDED_WINDOW,
            HoldReason.APPLYING,
            HoldReason.METRICS_STALE,
        ],
    )
    def test_figures_in_the_words_of_a_hold_are_none(self, reason: HoldReason) -> None:
        first = status_of(view(decision=Hold(reason, "17 s old, cost 900 -> 880")))
        later = status_of(view(managed=with_status(first), decision=Hold(reason, "27 s old, cost 905 -> 883")))
        assert not is_news(first, {name: value for name, value in later.items() if name != "lastHold"})
        assert (is_due(first, later, 59.0), is_due(first, later, 60.0)) == (False, True)
        assert reason.value in later["message"]


class TestDue:
    @pytest.mark.parametrize(
        ("new", "age_seconds", "due"),
        [
            ({"percentOfBest": 50.0}, 59.0, False),
            ({"percentOfBest": 50.0}, 60.0, True),
            ({"percentOfBest": 50.0}, float("inf"), True),
            ({"percentOfBest": None}, 59.0, False),
            ({"percentOfBest": 96.0}, 3600.0, False),
            ({"percentOfBest": 50.0, "workersUsed": 3}, 0.0, True),
            ({"phase": "Rebalancing"}, 0.0, True),
            ({"message": "traffic 310 -> 95 tuples/s, pays back in 71.5 s"}, 59.0, False),
            ({"message": "traffic 310 -> 95 tuples/s, pays back in 71.5 s"}, 60.0, True),
            ({"message": "traffic 1,310 -> 1,095.5 tuples/s, pays back in 71.5 s"}, 59.0, False),
            ({"message": "supervisor s1 is overloaded"}, 0.0, True),
            (
                {"conditions": [{"type": "MetricsReady", "status": "False", "message": "no snapshot for 27.1 s"}]},
                59.0,
                False,
            ),
            (
                {"conditions": [{"type": "MetricsReady", "status": "True", "message": "no snapshot for 17.1 s"}]},
                0.0,
                True,
            ),
        ],
    )
    def test_figures_wait_and_nothing_else_does(self, new: dict[str, Any], age_seconds: float, due: bool) -> None:
        incomplete = {"type": "MetricsReady", "status": "False", "message": "no snapshot for 17.1 s"}
        said = "traffic 300 -> 100 tuples/s, pays back in 65 s"
        old = {
            "phase": "Running",
            "message": said,
            "percentOfBest": 100.0,
            "workersUsed": 2,
            "conditions": [incomplete],
        }
        assert is_due(old, new, age_seconds) is due


class TestRefusedAndAccepted:
    def test_invalid_resource_fails_with_the_field(self) -> None:
        bad = managed(spec={"adopt": {}, "scheduling": {"periodSeconds": "soon"}})
        status = refused_status(bad, "InvalidSpec", bad.problem, NOW_SECONDS)
        assert status["phase"] == "Failed"
        assert "spec.scheduling.periodSeconds" in status["message"]
        assert judged(status, "Degraded") == ("True", "InvalidSpec")
        assert judged(status, "Ready") == ("False", "InvalidSpec")

    def test_refused_resource_keeps_nothing_of_what_was_measured_and_decided_before(self) -> None:
        """As one that is paused: its topology may run on, and nobody looks at it."""
        last = {"latency": {"p50Milliseconds": 7.1}, "supervisorsUsed": 3, "percentOfBest": 99.0}
        before = {**status_of(view(held_resize=HeldResize({"count": 4}, NO_CHANGE))), **last}
        invalid = managed(spec={"adopt": {}, "scheduling": {"periodSeconds": "soon"}}, status=before)
        refused = refused_status(invalid, "InvalidSpec", invalid.problem, NOW_SECONDS)
        paused = status_of(view(managed=with_status(before, **PAUSED), progress=None, decision=None, held_resize=None))
        gone = {name for name, value in paused.items() if value is None and before[name] is not None}
        assert {"latency", "throughputTuplesPerSecond", "lastHold", "heldResize", "percentOfBest"} <= gone
        assert {name for name, value in refused.items() if value is None} >= gone
        assert refused.get("topologyId", before["topologyId"]) == TOPOLOGY_ID

    def test_accepted_resource_waits_for_the_next_pass(self) -> None:
        status = accepted_status(managed(), NOW_SECONDS)
        assert (status["phase"], status["nimbus"]) == ("Pending", NIMBUS)
        assert judged(status, "Ready") == ("False", "Accepted")
        assert condition(status, "Ready")["lastTransitionTime"] == NOW


@pytest.mark.parametrize(
    "status",
    [
        status_of(view(record=plan_record(PlanState.VERIFIED), job=("words-submit-1", "abc"))),
        status_of(view(progress=Progress(Stage.FAILED, "no jar"), job=("j", "f"), retry_at_seconds=LATER_SECONDS)),
        refused_status(managed(), "InvalidSpec", "spec.adopt", NOW_SECONDS),
        accepted_status(managed(), NOW_SECONDS),
    ],
    ids=["running", "failed", "refused", "accepted"],
)
def test_status_is_valid_by_the_crd(status: dict[str, Any]) -> None:
    crd = yaml.safe_load(crd_file("stormtopologies").read_text(encoding="utf-8"))
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    written = {name: value for name, value in status.items() if value is not None}  # None removes a field
    jsonschema.validate(written, schema)
    assert set(written) <= set(schema["properties"])
