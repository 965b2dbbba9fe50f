"""Plans as StormRebalance resources: what is written of a plan's life, and what a person has asked for. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from storm_operator.adapters.kube.resources import API_VERSION
from storm_operator.core.decision_memory import assignment_hash
from storm_operator.core.model import Plan, Prediction, WorkerSlot
from storm_operator.core.plan_json import plan_from_json, plan_to_json
from storm_operator.core.plan_record import Outcome, PlanRecord, PlanState
from storm_operator.core.proposals import plan_gain_percent
from storm_operator.core.settings import ApplyMethod
from storm_operator.kube.managed import Body, Managed, annotations_of
from storm_operator.kube.submission import label_value, owner_reference

KIND = "StormRebalance"
ASK_ANNOTATION = "storm-operator.dev/rebalance"
TOPOLOGY_LABEL = "storm-operator.dev/topology"
FINAL_STATES = frozenset(state.value for state in PlanState if state.is_final)


class Ask(StrEnum):
    """What a person may ask of a StormRebalance, by annotation."""

    APPROVE = "approve"
    REJECT = "reject"
    REFRESH = "refresh"
    ROLLBACK = "rollback"


def asked(body: Body) -> Ask | str | None:
    """What the annotation asks for; a str when it is none of the words that are understood."""
    text = annotations_of(body).get(ASK_ANNOTATION)
    if text is None:
        return None
    return Ask(text) if text in tuple(Ask) else text


def state_of(body: Body) -> str:
    return str((body.get("status") or {}).get("state") or PlanState.PROPOSED.value)


def plan_of(body: Body) -> Plan | None:
    """The plan as it was shown; None when another version of the operator wrote it in a form that is not understood."""
    try:
        return plan_from_json(json.loads(body["spec"]["plan"]))
    except (KeyError, TypeError, ValueError):
        return None


def rebalance_body(record: PlanRecord, owner: Managed, hosts: Mapping[str, str]) -> dict[str, Any]:
    """The resource for a plan, owned by the StormTopology of the first of its topologies. `hosts` by supervisor id."""
    plan = record.plan

    def place(slot: WorkerSlot | None) -> str | None:
        return None if slot is None else f"{hosts.get(slot.supervisor_id, slot.supervisor_id)}:{slot.port}"

    moves = [
        {
            "topology": move.executor.topology_id,
            "component": move.executor.component,
            "executor": f"{move.executor.task_start}-{move.executor.task_end}",
            **({"from": place(move.source)} if move.source else {}),
            "to": place(move.target),
        }
        for move in plan.moves
    ]
    spec = {
        "clusterNimbus": owner.nimbus,
        "topologies": list(plan.topology_ids),
        "planId": plan.id,
        "planHash": assignment_hash(plan.target),
        "baseHash": assignment_hash(plan.base),
        "policy": plan.policy,
        "reason": plan.reason,
        "gainPercent": _rounded(plan_gain_percent(plan)),
        "paybackSeconds": _rounded(plan.payback_seconds),
        "moveCount": len(plan.moves),
        "restartCount": len(plan.started_workers),
        "moves": moves,
        "restartedWorkers": [place(slot) for slot in plan.restarted_workers],
        "keptWorkers": [place(slot) for slot in plan.kept_workers],
        "cpuLimitsMillicores": {
            f"{e.topology_id}/{e.task_start}-{e.task_end}": limit for e, limit in plan.cpu_limits_millicores.items()
        },
        "prediction": {"before": _prediction(plan.before), "after": _prediction(plan.after)},
        "plan": json.dumps(plan_to_json(plan)),  # one line of `kubectl describe` instead of hundreds
    }
    namespace, topology = owner.key
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            "name": plan.id,
            "namespace": namespace,
            "labels": {TOPOLOGY_LABEL: label_value(topology)},
            "ownerReferences": [owner_reference(owner.body)],
        },
        "spec": {key: value for key, value in spec.items() if value is not None},
    }


def rebalance_status(record: PlanRecord, before: Mapping[str, Any], now_seconds: float) -> dict[str, Any]:
    """The status after a step of the plan's life; `before` is the status so far, whose times stay."""
    state = record.state.value
    times = dict(before.get("times") or {})
    times.setdefault("proposed", timestamp(record.plan.created_at_seconds))
    if record.state is PlanState.APPLYING:
        times.setdefault("applying", timestamp(now_seconds))
    if record.in_force_at_seconds is not None:
        times.setdefault("inForce", timestamp(record.in_force_at_seconds))
        if record.seconds_to_running is not None:
            times.setdefault("running", timestamp(record.in_force_at_seconds + record.seconds_to_running))
    if record.state.is_final:
        times.setdefault("finished", timestamp(now_seconds))
    measured = {"before": _outcome(record.before)}
    if record.measured is not None:
        measured["after"] = _outcome(record.measured)
    status = {
        "observedGeneration": 1,
        "state": state,
        "reason": state,
        "message": record.message,
        "times": times,
        "measured": measured,
        "workersKept": record.workers_kept,
        "secondsToInForce": _rounded(record.seconds_to_in_force),
        "secondsToRunning": _rounded(record.seconds_to_running),
        "failedTuples": record.failed_tuples,
        "rollbackOf": record.rollback_of or None,
    }
    return {key: value for key, value in status.items() if value is not None}


def proposal_record(body: Body) -> PlanRecord | None:
    """A proposal of an earlier life of the operator, as the loop kept it; None when it waits no more."""
    plan = plan_of(body)
    if plan is None or state_of(body) not in (PlanState.PROPOSED.value, "Approved"):
        return None
    status = body.get("status") or {}
    rollback_of = str(status.get("rollbackOf", ""))
    return PlanRecord(
        plan=plan,
        method=ApplyMethod.REBALANCE,
        state=PlanState.PROPOSED,
        before=Outcome(None, None, None, None, None),
        started_at_seconds=plan.created_at_seconds,
        message=str(status.get("message", "")),
        known_bad=assignment_hash(plan.base) if rollback_of else "",
        rollback_of=rollback_of,
    )


def surplus(bodies: tuple[Body, ...], owner: Managed, limit: int) -> tuple[Body, ...]:
    """The oldest finished StormRebalances of one StormTopology beyond `limit`; `bodies` are oldest first."""
    own = [
        body
        for body in bodies
        if state_of(body) in FINAL_STATES
        and any(ref.get("uid") == owner.uid for ref in body["metadata"].get("ownerReferences", ()))
    ]
    return tuple(own[: max(0, len(own) - limit)])


def timestamp(seconds: float) -> str:
    """As Kubernetes writes times."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _prediction(prediction: Prediction) -> dict[str, Any]:
    return _known(
        interSupervisorTuplesPerSecond=prediction.inter_supervisor_tuples_per_second,
        interWorkerTuplesPerSecond=prediction.inter_worker_tuples_per_second,
        networkUsage=prediction.network_usage,
        supervisorsUsed=prediction.supervisors_used,
        overloadedMillicores=prediction.overloaded_millicores,
        completeLatencyMilliseconds=prediction.complete_latency_ms,
    )


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return _known(
        interSupervisorTuplesPerSecond=outcome.inter_supervisor_tuples_per_second,
        ackedTuplesPerSecond=outcome.acked_per_second,
        completeLatencyMeanMilliseconds=outcome.complete_latency_mean_ms,
        completeLatencyP50Milliseconds=outcome.complete_latency_p50_ms,
        completeLatencyP99Milliseconds=outcome.complete_latency_p99_ms,
    )


def _known(**values: float | None) -> dict[str, Any]:
    return {name: _rounded(value) for name, value in values.items() if value is not None}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
