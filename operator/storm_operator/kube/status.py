"""What a StormTopology's status says: from what the loop saw and decided to conditions and figures. Pure."""

from __future__ import annotations

from typing import Any

from storm_operator.core.decision import Hold
from storm_operator.core.plan_record import PlanState
from storm_operator.core.topology_spec import PAUSED, AdoptSource
from storm_operator.kube.conditions import (
    Condition,
    TopologyView,
    conditions_of,
    topology_id_of,
    with_idle_annotations,
    with_times,
    without_figures,
)
from storm_operator.kube.managed import Body, Managed, submitted_stages
from storm_operator.kube.rebalance_status import shown_state
from storm_operator.kube.rebalances import FINAL_STATES, timestamp
from storm_operator.lifecycle_progress import Stage

PHASES = {
    Stage.SUBMITTING: "Submitting",
    Stage.RUNNING: "Running",
    Stage.REPLACING: "Submitting",
    Stage.SUSPENDED: "Suspended",
    Stage.WAITING: "Pending",
    Stage.FAILED: "Failed",
}


def status_of(view: TopologyView) -> dict[str, Any]:
    """The whole status of a valid resource."""
    old = view.managed.body.get("status") or {}
    figures = _figures(view)
    status: dict[str, Any] = {
        "observedGeneration": view.managed.generation,
        "phase": _phase(view),
        "message": _message(view),
        "nimbus": view.managed.nimbus,
        "conditions": with_times(conditions_of(view), old, view.now_seconds, view.managed.generation),
        "suspendedByOperator": _suspended_by_operator(view, old),
        "topologyId": _shown_topology_id(view),
        "lastPlan": _last_plan(view, old),
        "lastHold": _last_hold(view, old),
        "heldResize": _held_resize(view, old),
        "percentOfBest": _percent_of_best(view),
        "forecasts": _forecasts(view, old),
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

OF_MANAGED_ALONE = (*FIGURES, "percentOfBest", "lastHold", "heldResize")
"""What is known only of a topology that somebody measures and plans for."""


def refused_status(managed: Managed, reason: str, message: str, now_seconds: float) -> dict[str, Any]:
    """The status of a resource that nothing can be done for, and why; nobody measures what may run for it."""
    conditions = [
        Condition("Submitted", False, reason, message),
        Condition("Ready", False, reason, message),
        Condition("Degraded", True, reason, message),
    ]
    return {
        "observedGeneration": managed.generation,
        "phase": "Failed",
        "message": message,
        "conditions": with_times(conditions, managed.body.get("status") or {}, now_seconds, managed.generation),
        **dict.fromkeys(OF_MANAGED_ALONE),
        **({} if _unseen_topology_id(managed) else {"topologyId": None}),
    }


def trouble_status(managed: Managed, reason: str, message: str, now_seconds: float) -> dict[str, Any]:
    """The status of a valid resource whose cluster could not be looked at, and why."""
    message = f"{message}; {managed.stays}" if managed.stays else message
    view = TopologyView(managed, None, None, None, None, now_seconds, trouble=message, trouble_reason=reason)
    return status_of(view)


def accepted_status(managed: Managed, now_seconds: float) -> dict[str, Any]:
    """The first status of a valid resource, before the loop has looked at it."""
    accepted = Condition("Ready", False, "Accepted", "the spec is valid; the next pass acts on it")
    conditions = [with_idle_annotations(accepted, managed)]
    return {
        "observedGeneration": managed.generation,
        "phase": "Pending",
        "message": "accepted",
        "nimbus": managed.nimbus,
        "conditions": with_times(conditions, managed.body.get("status") or {}, now_seconds, managed.generation),
    }


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
        return view.progress.sentence  # the log is told once, in submission.message
    if isinstance(view.decision, Hold):
        return without_figures(view.decision)
    if view.decision is not None:
        return view.decision.reason
    return ""


def _shown_topology_id(view: TopologyView) -> str | None:
    return (view.progress.topology_id if view.progress is not None else _unseen_topology_id(view.managed)) or None


def _unseen_topology_id(managed: Managed) -> str:
    """Where nobody looks whether the topology runs. Empty once it was killed to be replaced: else whoever looks again,
    and finds that it has ended, would take that for somebody else's doing."""
    return "" if submitted_stages(managed.body) & {Stage.REPLACING, Stage.WAITING} else managed.topology_id


def _suspended_by_operator(view: TopologyView, old: Body) -> bool | None:
    """Read again by the next life of the operator, and when a pause ends: None is not written at all."""
    if view.suspended_by_operator is None:
        return old.get("suspendedByOperator")
    return view.suspended_by_operator or None


def _figures(view: TopologyView) -> dict[str, Any]:
    topology_id, snapshot = topology_id_of(view), view.snapshot
    # A topology may be younger than the last pass, which then knows nothing of it.
    if snapshot is None or all(topology.id != topology_id for topology in snapshot.topologies):
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
    # Each status asks: `topologies_of_unknown_traffic` goes through the executors of all topologies.
    if slots and all(executor.topology_id != topology_id for executor in snapshot.completeness.missing_executors):
        crossing = snapshot.traffic.within(topology_id).inter_supervisor(snapshot.assignment)
        figures["interSupervisorTuplesPerSecond"] = round(crossing, 1)
    return figures


def _submission(view: TopologyView, old: Body) -> Any:
    spec, before = view.managed.spec, old.get("submission")
    if spec is not None and isinstance(spec.source, AdoptSource):
        return None
    if view.progress is None:
        return before
    failed = view.progress.stage is Stage.FAILED
    if view.job is None:  # nothing was submitted in this life of the operator
        return _with_trouble(view, before) if failed else _without_trouble(before)
    submission = {
        "job": view.job[0],
        "fingerprint": view.job[1],
        "message": view.progress.message if failed else None,
        "attempts": _failed_attempts(view, before),
        "retryAt": timestamp(view.retry_at_seconds) if failed and view.retry_at_seconds is not None else None,
    }
    if view.progress.stage is Stage.RUNNING:
        same = before and before.get("fingerprint") == view.job[1]
        submission["submittedAt"] = (before or {}).get("submittedAt") if same else None
        submission["submittedAt"] = submission["submittedAt"] or timestamp(view.now_seconds)
    elif view.progress.stage is Stage.SUBMITTING:  # once it runs, that is when; the same may have been submitted before
        submission["submittedAt"] = None
    # None removes what was written before; what was not is not written at all.
    return {name: value for name, value in submission.items() if value is not None or name in (before or {})}


def _with_trouble(view: TopologyView, submission: Body | None) -> Body | None:
    """Of what failed before there was a Job, as where a ConfigMap is missing."""
    if view.progress is None or view.retry_at_seconds is None:
        return submission
    return {**(submission or {}), "message": view.progress.message, "retryAt": timestamp(view.retry_at_seconds)}


def _without_trouble(submission: Body | None) -> Body | None:
    return submission and {**submission, **{name: None for name in ("message", "retryAt") if name in submission}}


def _failed_attempts(view: TopologyView, before: Body | None) -> int | None:
    if view.failed_attempts or view.job is None:
        return view.failed_attempts
    return (before or {}).get("attempts") if (before or {}).get("fingerprint") == view.job[1] else None


def _forecasts(view: TopologyView, old: Body) -> Any:
    topology_id = topology_id_of(view)
    own = sorted((name, found) for (owner, name), found in view.forecasts.items() if owner == topology_id)
    if not own:
        return old.get("forecasts")
    return [
        {"component": name, "forecaster": found.forecaster}
        | ({"whyNotLearned": found.why_not_learned} if found.why_not_learned else {})
        for name, found in own
    ]


def _percent_of_best(view: TopologyView) -> float | None:
    gain = view.decision.gain_percent if view.decision is not None else None
    return None if gain is None else round(100.0 - max(0.0, gain), 1)


def unfinished_plan(managed: Managed) -> str:
    """Id of the plan that the status names as the last one, under way or waiting; empty where that is over."""
    last = (managed.body.get("status") or {}).get("lastPlan") or {}
    return "" if last.get("state") in FINAL_STATES else str(last.get("id", ""))


def _last_plan(view: TopologyView, old: Body) -> Any:
    """A plan may end with its topology, or in another life: what is known of it then is what its resource says."""
    record = view.record
    before = old.get("lastPlan") or {}
    if record is None and view.plan_end is not None:
        told = {name: view.plan_end[name] for name in ("state", "message") if name in view.plan_end}
        return {**before, **told, "time": timestamp(view.now_seconds)}
    if record is None:
        return old.get("lastPlan")
    same = before.get("id") == record.plan.id and before.get("state") == shown_state(record)
    return {
        "id": record.plan.id,
        "rebalance": record.plan.id,
        "state": shown_state(record),
        "message": record.message or record.plan.reason,
        "time": before["time"] if same and "time" in before else timestamp(view.now_seconds),
    }


def _last_hold(view: TopologyView, old: Body) -> Any:
    if not isinstance(view.decision, Hold):
        return None
    before = old.get("lastHold") or {}
    reason = view.decision.reason.value
    since = before.get("since") if before.get("reason") == reason else None
    return {"reason": reason, "message": view.decision.message, "since": since or timestamp(view.now_seconds)}


def _held_resize(view: TopologyView, old: Body) -> Any:
    held = view.held_resize
    if held is None:
        return None
    before = old.get("heldResize") or {}
    executors = [{"component": name, "executors": count} for name, count in sorted(held.executors.items())]
    reason = held.hold.reason.value
    is_the_same = (before.get("reason"), before.get("executors")) == (reason, executors)
    since = before.get("since") if is_the_same else None
    return {
        "executors": executors,
        "reason": reason,
        "message": held.message,
        "since": since or timestamp(view.now_seconds),
    }
