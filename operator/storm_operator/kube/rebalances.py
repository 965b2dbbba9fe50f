"""Plans as StormRebalance resources: what is written of a plan's life, and what a person has asked for. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from typing import Any

from storm_operator.adapters.kube.resources import API_VERSION
from storm_operator.core import packed_json
from storm_operator.core.clock_steps import was_set_back
from storm_operator.core.decision import Plan, Prediction
from storm_operator.core.decision_memory import assignment_hash
from storm_operator.core.model import WorkerSlot
from storm_operator.core.nimbus_name import nimbus_name
from storm_operator.core.plan_json import plan_from_json, plan_to_json
from storm_operator.core.plan_record import Outcome, PlanRecord, PlanState
from storm_operator.core.settings import ApplyMethod
from storm_operator.kube.managed import Body, Managed, annotations_of, key_of
from storm_operator.kube.submission import label_value, owner_reference

KIND = "StormRebalance"
ASK_ANNOTATION = "storm-operator.dev/rebalance"
TOPOLOGY_LABEL = "storm-operator.dev/topology"
APPROVED = "Approved"
UNNAMED = "annotation"
MOST_SHOWN = 1_000
"""Of moves and limits: nobody reads more, and all of them would be more than Kubernetes stores of one resource."""
LONGEST_COMPONENT = 253
"""Characters that are shown of a component's name, by the CRD. Storm takes more, and the API server would refuse the
plan of all topologies that it is for."""
PACKED = "gzip+base64:"
"""What the text of a plan begins with that would be too long as plain JSON."""
LONGEST_UNPACKED_BYTES = 10_000_000
"""10,000 executors that all move take 2.5 million, 100,000 take 25; of 40,000 Kubernetes would not store the plan.

To read this much takes 250 MB of memory at most, whoever wrote it."""
WAITING_STATES = frozenset({PlanState.PROPOSED.value, APPROVED})
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


def annotated_by(body: Body) -> str:
    """Who set the annotation, as far as Kubernetes tells: the field manager, e.g. `annotation (kubectl-annotate)`.

    Which user that was only the API server's audit log knows.
    """
    path = ("f:metadata", "f:annotations", f"f:{ASK_ANNOTATION}")
    for entry in body["metadata"].get("managedFields") or ():
        fields: Any = entry.get("fieldsV1") or {}
        for step in path:
            fields = fields.get(step) if isinstance(fields, Mapping) else None
        if fields is not None and entry.get("manager"):
            return f"{UNNAMED} ({entry['manager']})"
    return UNNAMED


def cluster_of(body: Body) -> str:
    """The `nimbus_name` of the Storm cluster that it is a plan for, however it was written; empty where it was not."""
    written = body["spec"].get("clusterNimbus")
    return nimbus_name(written, body["metadata"]["namespace"]) if written else ""


def state_of(body: Body) -> str:
    return str((body.get("status") or {}).get("state") or PlanState.PROPOSED.value)


def is_way_back(body: Body) -> bool:
    return bool((body.get("status") or {}).get("rollbackOf"))


def plan_of(body: Body) -> Plan | None:
    """The plan as it was shown; None where it is not understood, or is not what the rest of the resource says.

    Another version of the operator may have written it, or somebody else.
    """
    try:
        plan = plan_from_json(_plan_of_text(body["spec"]["plan"]))
        timestamp(plan.created_at_seconds)  # of a time that is none it could never be shown
        return plan if is_of(body, plan) and _names_all_that_moves(body, plan) else None
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError):
        return None


def is_of(body: Body, plan: Plan) -> bool:
    """Whether it says that it is `plan`, and no other: by name, and by where executors are before and after it."""
    spec = body["spec"]
    hashes = (assignment_hash(plan.base), assignment_hash(plan.target))
    told = (spec.get("baseHash"), spec.get("planHash"))
    return key_of(body)[1] == plan.id == spec.get("planId") and told == hashes


def _names_all_that_moves(body: Body, plan: Plan) -> bool:
    moved = {executor.topology_id for executor in plan.target.slot_of}
    return list(plan.topology_ids) == body["spec"]["topologies"] and moved <= set(plan.topology_ids)


def rebalance_body(record: PlanRecord, owner: Managed, hosts: Mapping[str, str]) -> dict[str, Any]:
    """The resource for a plan, owned by the StormTopology of the first of its topologies. `hosts` by supervisor id."""
    plan = record.plan

    def place(slot: WorkerSlot | None) -> str | None:
        return None if slot is None else f"{hosts.get(slot.supervisor_id, slot.supervisor_id)}:{slot.port}"

    moves = [
        {
            "topology": move.executor.topology_id,
            "component": move.executor.component[:LONGEST_COMPONENT],
            "executor": f"{move.executor.task_start}-{move.executor.task_end}",
            **({"from": place(move.source)} if move.source else {}),
            "to": place(move.target),
        }
        for move in plan.moves[:MOST_SHOWN]
    ]
    spec = {
        "clusterNimbus": owner.nimbus,
        "topologies": list(plan.topology_ids),
        "planId": plan.id,
        "planHash": assignment_hash(plan.target),
        "baseHash": assignment_hash(plan.base),
        "policy": plan.policy,
        "reason": plan.reason,
        "gainPercent": rounded(plan.gain_percent),
        "paybackSeconds": rounded(plan.payback_seconds),
        "moveCount": len(plan.moves),
        "restartCount": len(plan.started_workers),
        "moves": moves,
        "restartedWorkers": [place(slot) for slot in plan.restarted_workers],
        "keptWorkers": [place(slot) for slot in plan.kept_workers],
        "cpuLimitsMillicores": {
            f"{e.topology_id}/{e.task_start}-{e.task_end}": limit
            for e, limit in islice(plan.cpu_limits_millicores.items(), MOST_SHOWN)
        },
        "prediction": (
            {"before": _prediction(plan.before), "after": _prediction(plan.after)} if plan.is_predicted else None
        ),
        "plan": _plan_text(plan),  # one line of `kubectl describe` instead of hundreds
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


def _plan_text(plan: Plan) -> str:
    content = packed_json.encode(plan_to_json(plan))
    if content.startswith(packed_json.GZIP_MAGIC):
        return PACKED + base64.b64encode(content).decode("ascii")
    return content.decode("utf-8")


def _plan_of_text(text: str) -> Any:
    if text.startswith(PACKED):
        return packed_json.decode(base64.b64decode(text.removeprefix(PACKED)), LONGEST_UNPACKED_BYTES)
    return packed_json.decode(text.encode("utf-8"))


def proposal_record(body: Body) -> PlanRecord | None:
    """A proposal of an earlier life of the operator, as the loop kept it; None when it waits no more."""
    if state_of(body) not in WAITING_STATES:
        return None  # to unpack it takes long
    plan = plan_of(body)
    if plan is None:
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
        rollback_of=rollback_of,
        approved_by=str(status.get("approvedBy") or UNNAMED) if state_of(body) == APPROVED else "",
        approved_at_seconds=_seconds((status.get("times") or {}).get("approved")),
    )


def surplus(bodies: tuple[Body, ...], owner: Managed, limit: int, now_seconds: float) -> tuple[Body, ...]:
    """The oldest finished StormRebalances of one StormTopology beyond `limit`; `bodies` are oldest first, but for those
    from before the clock was set back, which may come last."""
    own = [
        body
        for body in bodies
        if state_of(body) in FINAL_STATES
        and any(ref.get("uid") == owner.uid for ref in body["metadata"].get("ownerReferences", ()))
    ]
    own.sort(key=lambda body: not _lies_ahead(body, now_seconds))
    return tuple(own[: max(0, len(own) - limit)])


def _lies_ahead(body: Body, now_seconds: float) -> bool:
    proposed_at = _seconds(((body.get("status") or {}).get("times") or {}).get("proposed"))
    return proposed_at is not None and was_set_back(proposed_at, now_seconds)


def timestamp(seconds: float) -> str:
    """As Kubernetes writes times."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _seconds(time: str | None) -> float | None:
    return None if time is None else datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()


def _prediction(prediction: Prediction) -> dict[str, Any]:
    return known_figures(
        interSupervisorTuplesPerSecond=prediction.inter_supervisor_tuples_per_second,
        interWorkerTuplesPerSecond=prediction.inter_worker_tuples_per_second,
        networkUsage=prediction.network_usage,
        supervisorsUsed=prediction.supervisors_used,
        overloadedMillicores=prediction.overloaded_millicores,
        completeLatencyMilliseconds=prediction.complete_latency_ms,
    )


def known_figures(**values: float | None) -> dict[str, Any]:
    """Those that are not None, rounded for people."""
    return {name: rounded(value) for name, value in values.items() if value is not None}


def rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
