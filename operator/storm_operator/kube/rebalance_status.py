"""The status of a StormRebalance: how far its plan has come, who approved it, what it brought. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from storm_operator.core.plan_record import AUTO, Outcome, PlanRecord, PlanState
from storm_operator.kube.conditions import Condition, with_times
from storm_operator.kube.rebalances import known_figures, rounded, timestamp

GENERATION = 1
"""The spec of a StormRebalance never changes."""
EFFECT_UNKNOWN = "EffectUnknown"
"""Why a plan is Verified that nothing speaks against, and nothing for."""
OVER_WITHOUT_VERDICT = (PlanState.FAILED, PlanState.EXPIRED, PlanState.REJECTED)


def shown_state(record: PlanRecord) -> str:
    """The state in the words of the API, that tells two more than the loop needs."""
    if record.state is PlanState.PROPOSED and record.approved_by:
        return "Approved"
    if record.state is PlanState.APPLYING and record.in_force_at_seconds is not None:
        return "InForce"
    return record.state.value


def _reason(record: PlanRecord) -> str:
    return EFFECT_UNKNOWN if record.effect_is_unknown else shown_state(record)


def rebalance_status(record: PlanRecord, before: Mapping[str, Any], now_seconds: float) -> dict[str, Any]:
    """The status after a step of the plan's life; `before` is the status so far, whose times stay."""
    measured = {"before": _outcome(record.before)}
    if record.measured is not None:
        measured["after"] = _outcome(record.measured)
    status = {
        "observedGeneration": GENERATION,
        "state": shown_state(record),
        "reason": _reason(record),
        "message": record.message,
        "approvedBy": record.approved_by or None,
        "times": _times(record, before.get("times") or {}, now_seconds),
        "measured": measured,
        "workersKept": record.workers_kept,
        "secondsToInForce": rounded(record.seconds_to_in_force),
        "secondsToRunning": rounded(record.seconds_to_running),
        "failedTuples": record.failed_tuples,
        "rollbackOf": record.rollback_of or None,
        "conditions": with_times(_conditions(record), before, now_seconds, GENERATION),
    }
    return {key: value for key, value in status.items() if value is not None}


def rolled_back_status(undone_by: PlanRecord, before: Mapping[str, Any], now_seconds: float) -> dict[str, Any]:
    """What changes in the status of a plan once `undone_by` is verified."""
    state, words = PlanState.ROLLED_BACK.value, f"plan {undone_by.plan.id} took it back"
    undone = [Condition("Enforced", False, state, words), Condition("Verified", False, state, words)]
    others = [c for c in before.get("conditions") or () if c["type"] not in ("Enforced", "Verified")]
    return {
        "rolledBackBy": undone_by.plan.id,
        "state": state,
        "reason": state,
        "conditions": [*others, *with_times(undone, before, now_seconds, GENERATION)],
    }


def _times(record: PlanRecord, before: Mapping[str, str], now_seconds: float) -> dict[str, str]:
    times = dict(before)
    times.setdefault("proposed", timestamp(record.plan.created_at_seconds))
    if record.approved_at_seconds is not None:
        times.setdefault("approved", timestamp(record.approved_at_seconds))
    if record.state is PlanState.APPLYING:
        times.setdefault("applying", timestamp(now_seconds))
    if record.in_force_at_seconds is not None:
        times.setdefault("inForce", timestamp(record.in_force_at_seconds))
        if record.seconds_to_running is not None:
            times.setdefault("running", timestamp(record.in_force_at_seconds + record.seconds_to_running))
    if record.state.is_final:
        times.setdefault("finished", timestamp(now_seconds))
    return times


def _conditions(record: PlanRecord) -> list[Condition]:
    return [_approved(record), _enforced(record), _verified(record)]


def _approved(record: PlanRecord) -> Condition:
    if record.approved_by:
        reason = "Policy" if record.approved_by == AUTO else "Annotation"
        return Condition("Approved", True, reason, f"approved by {record.approved_by}")
    reason = record.state.value if record.state.is_final else "Waiting"
    return Condition("Approved", False, reason, record.message)


def _enforced(record: PlanRecord) -> Condition:
    if record.state is PlanState.FAILED or record.state is PlanState.ROLLED_BACK:
        return Condition("Enforced", False, record.state.value, record.message)
    if record.in_force_at_seconds is None:
        return Condition("Enforced", False, "NotInForce", "executors are not where the plan says")
    return Condition("Enforced", True, "InForce", "Nimbus shows the assignment of the plan")


def _verified(record: PlanRecord) -> Condition:
    if record.state is PlanState.VERIFIED:
        return Condition("Verified", True, _reason(record), record.message)
    if record.state is PlanState.ROLLED_BACK:
        return Condition("Verified", False, record.state.value, record.message)
    if record.state in OVER_WITHOUT_VERDICT:
        return Condition("Verified", None, record.state.value, record.message)
    return Condition("Verified", None, "NotYet", "it is judged when it is in force and has settled")


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return known_figures(
        interSupervisorTuplesPerSecond=outcome.inter_supervisor_tuples_per_second,
        ackedTuplesPerSecond=outcome.acked_per_second,
        completeLatencyMeanMilliseconds=outcome.complete_latency_mean_ms,
        completeLatencyP50Milliseconds=outcome.complete_latency_p50_ms,
        completeLatencyP99Milliseconds=outcome.complete_latency_p99_ms,
    )
