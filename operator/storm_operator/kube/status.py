"""What a StormTopology's status says: from what the loop saw and decided to conditions and figures. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from storm_operator.core.model import Decision, Hold, HoldReason
from storm_operator.core.plan_record import PlanRecord, PlanState
from storm_operator.core.proposals import plan_gain_percent
from storm_operator.core.settings import Enforcement, Mode
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.kube.managed import Body, Managed
from storm_operator.kube.rebalances import timestamp
from storm_operator.lifecycle_manager import Progress, Stage

NEWS_FRACTION = 0.1
"""Figures that changed by less than this share of themselves are no news: a steady topology is not written again."""

PAUSED = "paused by annotation: left as it is"
UNMEASURED = frozenset(
    {
        HoldReason.METRICS_INCOMPLETE,
        HoldReason.METRICS_STALE,
        HoldReason.WARMING_UP,
        HoldReason.NOTHING_TO_MANAGE,
    }
)
FINE_HOLDS = frozenset(
    {
        HoldReason.NO_CHANGE,
        HoldReason.GAIN_TOO_SMALL,
        HoldReason.PAYBACK_TOO_LONG,
        HoldReason.COOL_DOWN,
        HoldReason.KNOWN_BAD,
        HoldReason.OBSERVE_ONLY,
        HoldReason.APPLYING,
        HoldReason.PAUSED,
        HoldReason.AWAITING_APPROVAL,
        HoldReason.EXCLUDED_WINDOW,
        HoldReason.WARMING_UP,
        HoldReason.NOTHING_TO_MANAGE,
    }
)
"""Reasons not to act that are nobody's fault: the topology is as ready as without them."""

PHASES = {
    Stage.SUBMITTING: "Submitting",
    Stage.RUNNING: "Running",
    Stage.REPLACING: "Submitting",
    Stage.SUSPENDED: "Suspended",
    Stage.WAITING: "Pending",
    Stage.FAILED: "Failed",
}


@dataclass(frozen=True, slots=True)
class TopologyView:
    """All that is known of one topology after a pass. None: not known (yet)."""

    managed: Managed
    progress: Progress | None
    snapshot: ClusterSnapshot | None
    decision: Decision | None
    record: PlanRecord | None
    now_seconds: float
    trouble: str = ""
    """Why the cluster could not be looked at, if it could not."""
    job: tuple[str, str] | None = None
    """Name of the last submission Job, and the fingerprint of what it submits."""
    retry_at_seconds: float | None = None
    """When a submission that failed is tried again."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition; `status` None is Unknown."""

    type: str
    status: bool | None
    reason: str
    message: str


def status_of(view: TopologyView) -> dict[str, Any]:
    """The whole status of a valid resource."""
    old = view.managed.body.get("status") or {}
    figures = _figures(view)
    status: dict[str, Any] = {
        "observedGeneration": view.managed.generation,
        "phase": _phase(view),
        "message": _message(view),
        "nimbus": view.managed.nimbus,
        "conditions": _with_times(_conditions(view), old, view),
        "suspendedByOperator": bool(view.progress and view.progress.stage is Stage.SUSPENDED) or None,
        "topologyId": _shown_topology_id(view, old),
        "lastPlan": _last_plan(view, old),
        "lastHold": _last_hold(view, old),
        "percentOfBest": _percent_of_best(view),
        "submission": _submission(view, old),
        **{name: figures.get(name) for name in FIGURES},
    }
    return status


FIGURES = (
    "latency",
    "throughputTuplesPerSecond",
    "interSupervisorTuplesPerSecond",
    "supervisorsUsed",
    "workersUsed",
)


def refused_status(managed: Managed, reason: str, message: str, now_seconds: float) -> dict[str, Any]:
    """The status of a resource that nothing can be done for, and why."""
    view = TopologyView(managed, Progress(Stage.FAILED, message), None, None, None, now_seconds)
    conditions = [
        Condition("Submitted", False, reason, message),
        Condition("Ready", False, reason, message),
        Condition("Degraded", True, reason, message),
    ]
    return {
        "observedGeneration": managed.generation,
        "phase": "Failed",
        "message": message,
        "conditions": _with_times(conditions, managed.body.get("status") or {}, view),
    }


def accepted_status(managed: Managed, now_seconds: float) -> dict[str, Any]:
    """The first status of a valid resource, before the loop has looked at it."""
    view = TopologyView(managed, None, None, None, None, now_seconds)
    conditions = [Condition("Ready", False, "Accepted", "the spec is valid; the next pass acts on it")]
    return {
        "observedGeneration": managed.generation,
        "phase": "Pending",
        "message": "accepted",
        "nimbus": managed.nimbus,
        "conditions": _with_times(conditions, managed.body.get("status") or {}, view),
    }


def is_news(old: Body, new: Mapping[str, Any]) -> bool:
    """Whether `new` says anything that `old` does not, small changes of figures apart."""
    return any(_differs(old.get(key), value) for key, value in new.items())


def _differs(old: Any, new: Any) -> bool:
    # What is counted is an int, and news; what is measured is a float (that the API may give back as an int).
    if isinstance(new, float) and isinstance(old, int | float) and not isinstance(old, bool):
        return abs(new - old) > NEWS_FRACTION * max(abs(new), abs(old))
    if isinstance(new, Mapping) and isinstance(old, Mapping):
        return set(old) != set(new) or any(_differs(old[key], new[key]) for key in new)
    if isinstance(new, list) and isinstance(old, list):
        return len(old) != len(new) or any(_differs(a, b) for a, b in zip(old, new, strict=True))
    return bool(old != new)


def _phase(view: TopologyView) -> str:
    if view.managed.is_being_deleted:
        return "Deleting"
    if view.managed.is_paused:
        return "Paused"
    if view.progress is None:
        return "Pending"
    if view.progress.stage is Stage.RUNNING and view.record is not None and view.record.state is PlanState.APPLYING:
        return "Rebalancing"
    return PHASES[view.progress.stage]


def _message(view: TopologyView) -> str:
    if view.trouble:
        return view.trouble
    if view.managed.is_paused:
        return PAUSED
    if view.progress is not None and view.progress.message:
        return view.progress.message
    if isinstance(view.decision, Hold):
        return _without_figures(view.decision)
    if view.decision is not None:
        return view.decision.reason
    return ""


def _without_figures(hold: Hold) -> str:
    """Some holds tell figures that differ every period; the reason alone is the steady part of them."""
    volatile = (
        HoldReason.GAIN_TOO_SMALL,
        HoldReason.PAYBACK_TOO_LONG,
        HoldReason.COOL_DOWN,
        HoldReason.EXCLUDED_WINDOW,
        HoldReason.APPLYING,
        HoldReason.METRICS_STALE,
    )
    return f"nothing to do: {hold.reason.value}" if hold.reason in volatile else hold.message


def _conditions(view: TopologyView) -> list[Condition]:
    submitted = _submitted(view)
    measured = _measured(view)
    planned = _planned(view)
    degraded = _degraded(view)
    ready_status = submitted.status is True and degraded.status is False and measured.status is True
    ready = Condition(
        "Ready",
        ready_status,
        "Running" if ready_status else (degraded.reason if degraded.status else _first_failing(submitted, measured)),
        "it runs, is measured and managed" if ready_status else degraded.message or measured.message,
    )
    return [submitted, measured, planned, _enforced(view), ready, degraded]


def _first_failing(*conditions: Condition) -> str:
    return next((condition.reason for condition in conditions if condition.status is not True), "NotReady")


def _submitted(view: TopologyView) -> Condition:
    progress = view.progress
    if progress is None:
        return _unknown("Submitted", view, "not looked at yet")
    done = progress.stage in (Stage.RUNNING, Stage.SUSPENDED)
    return Condition("Submitted", done, progress.stage.value, progress.message)


def _measured(view: TopologyView) -> Condition:
    if view.snapshot is None or not _topology_id(view):
        return _unknown("MetricsReady", view, "it does not run yet")
    own = [e for e in view.snapshot.completeness.missing_executors if e.topology_id == _topology_id(view)]
    if own:
        problems = "; ".join(view.snapshot.completeness.problems[:3])
        return Condition("MetricsReady", False, "Incomplete", f"{len(own)} executors are not measured: {problems}")
    return Condition("MetricsReady", True, "Complete", "all its executors are measured")


def _unknown(kind: str, view: TopologyView, otherwise: str) -> Condition:
    if view.managed.is_paused and not view.trouble:
        return Condition(kind, None, "Paused", PAUSED)
    return Condition(kind, None, "Unknown", view.trouble or otherwise)


def _planned(view: TopologyView) -> Condition:
    if view.decision is None:
        return Condition("Planned", None, "Unknown", "no decision yet")
    if isinstance(view.decision, Hold):
        good = view.decision.reason in FINE_HOLDS and view.decision.reason not in UNMEASURED
        return Condition("Planned", good, view.decision.reason.value, _without_figures(view.decision))
    return Condition("Planned", True, "Plan", view.decision.reason)


def _enforced(view: TopologyView) -> Condition:
    spec = view.managed.spec
    if spec is None or spec.resources.enforcement is Enforcement.NONE:
        return Condition("Enforced", False, "NotWanted", "spec.resources.enforcement is None")
    if spec.scheduling.mode is not Mode.ENFORCE:
        return Condition("Enforced", False, "NotWanted", f"spec.scheduling.mode is {spec.scheduling.mode.value}")
    if view.managed.is_paused or not _topology_id(view):
        return Condition("Enforced", False, "NotRunning", "it does not run, or is paused")
    return Condition("Enforced", True, spec.resources.enforcement.value, "CPU limits follow demand")


def _degraded(view: TopologyView) -> Condition:
    if view.trouble:
        return Condition("Degraded", True, "ClusterUnreachable", view.trouble)
    if view.progress is not None and view.progress.stage is Stage.FAILED:
        return Condition("Degraded", True, "SubmissionFailed", view.progress.message)
    if isinstance(view.decision, Hold) and view.decision.reason not in FINE_HOLDS:
        return Condition("Degraded", True, view.decision.reason.value, _without_figures(view.decision))
    if view.record is not None and view.record.state in (PlanState.FAILED, PlanState.ROLLED_BACK):
        return Condition("Degraded", True, f"Plan{view.record.state.value}", view.record.message)
    return Condition("Degraded", False, "AsExpected", "")


def _with_times(conditions: list[Condition], old: Body, view: TopologyView) -> list[dict[str, Any]]:
    """In the API's form; the time of a condition is that of the last change of its status."""
    known = {condition.get("type"): condition for condition in old.get("conditions") or ()}
    written = []
    for condition in conditions:
        status = "Unknown" if condition.status is None else str(condition.status)
        before = known.get(condition.type) or {}
        changed = before.get("status") != status
        written.append(
            {
                "type": condition.type,
                "status": status,
                "reason": condition.reason,
                "message": condition.message,
                "lastTransitionTime": timestamp(view.now_seconds) if changed else before["lastTransitionTime"],
                "observedGeneration": view.managed.generation,
            }
        )
    return written


def _topology_id(view: TopologyView) -> str:
    return view.progress.topology_id if view.progress is not None else ""


def _shown_topology_id(view: TopologyView, old: Body) -> str | None:
    # Whether a topology runs is not known while nobody looked, or while what it is made from cannot be read.
    if view.progress is None or (view.progress.stage is Stage.FAILED and not view.progress.topology_id):
        return old.get("topologyId")
    return view.progress.topology_id or None


def _figures(view: TopologyView) -> dict[str, Any]:
    topology_id, snapshot = _topology_id(view), view.snapshot
    if snapshot is None or not topology_id:
        return {}
    slots = set(snapshot.assignment.restricted_to([topology_id]).slot_of.values())
    figures: dict[str, Any] = {
        "supervisorsUsed": len({slot.supervisor_id for slot in slots}),
        "workersUsed": len(slots),
    }
    rates = snapshot.rates.get(topology_id)
    if rates is not None and rates.acked_per_second is not None:
        figures["throughputTuplesPerSecond"] = round(rates.acked_per_second, 1)
    if rates is not None and rates.latency is not None:
        latency = {"p50Milliseconds": rates.latency.p50_ms, "p99Milliseconds": rates.latency.p99_ms}
        figures["latency"] = {name: round(value, 2) for name, value in latency.items()}
    if all(e.topology_id != topology_id for e in snapshot.completeness.missing_executors):
        figures["interSupervisorTuplesPerSecond"] = round(_crossing(snapshot, topology_id), 1)
    return figures


def _crossing(snapshot: ClusterSnapshot, topology_id: str) -> float:
    slot_of = snapshot.assignment.slot_of
    return sum(
        rate
        for source, target, rate in snapshot.traffic.pairs()
        if source.topology_id == topology_id
        and source in slot_of
        and target in slot_of
        and slot_of[source].supervisor_id != slot_of[target].supervisor_id
    )


def _submission(view: TopologyView, old: Body) -> Any:
    before = old.get("submission")
    if view.job is None or view.progress is None:
        return before
    failed = view.progress.stage is Stage.FAILED
    submission = {
        "job": view.job[0],
        "fingerprint": view.job[1],
        "message": view.progress.message if failed else None,
        "retryAt": timestamp(view.retry_at_seconds) if failed and view.retry_at_seconds is not None else None,
    }
    if view.progress.stage is Stage.RUNNING:
        same = before and before.get("fingerprint") == view.job[1]
        submission["submittedAt"] = (before or {}).get("submittedAt") if same else None
        submission["submittedAt"] = submission["submittedAt"] or timestamp(view.now_seconds)
    return {name: value for name, value in submission.items() if value is not None}


def _percent_of_best(view: TopologyView) -> float | None:
    if isinstance(view.decision, Hold):
        return None if view.decision.gain_percent is None else round(100.0 - view.decision.gain_percent, 1)
    gain = plan_gain_percent(view.decision) if view.decision is not None else None
    return None if gain is None else round(100.0 - gain, 1)


def _last_plan(view: TopologyView, old: Body) -> Any:
    record = view.record
    if record is None:
        return old.get("lastPlan")
    before = old.get("lastPlan") or {}
    same = before.get("id") == record.plan.id and before.get("state") == record.state.value
    return {
        "id": record.plan.id,
        "rebalance": record.plan.id,
        "state": record.state.value,
        "message": record.message or record.plan.reason,
        "time": before["time"] if same and "time" in before else timestamp(view.now_seconds),
    }


def _last_hold(view: TopologyView, old: Body) -> Any:
    if not isinstance(view.decision, Hold):
        return None
    before = old.get("lastHold") or {}
    reason = view.decision.reason.value
    if before.get("reason") == reason and "since" in before:
        return {"reason": reason, "message": before.get("message", view.decision.message), "since": before["since"]}
    return {"reason": reason, "message": view.decision.message, "since": timestamp(view.now_seconds)}
