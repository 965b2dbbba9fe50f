"""The conditions of a StormTopology: what is so, what is not, and why. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from storm_operator.core.decision import NOTHING_BETTER, Decision, Hold, HoldReason
from storm_operator.core.forecast import ComponentKey, LoadForecast
from storm_operator.core.parallelism import HeldResize
from storm_operator.core.plan_record import AUTO, PlanRecord, PlanState
from storm_operator.core.settings import Enforcement, Mode
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.topology_spec import PAUSED
from storm_operator.core.wording import counted, first_of
from storm_operator.kube.enforced import NO_LIMITS, EnforcedPlace, LimitsInForce, verdict
from storm_operator.kube.managed import Body, Managed
from storm_operator.kube.rebalances import timestamp
from storm_operator.lifecycle_progress import NOT_IN_STORM, Progress, Stage

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
        HoldReason.NOT_DUE,
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

NOTHING_LEFT_TO_DO = frozenset(
    {*NOTHING_BETTER, HoldReason.TOO_LITTLE_CAPACITY, HoldReason.KNOWN_BAD, HoldReason.OBSERVE_ONLY}
)
"""Reasons not to act that are given once it was looked what else could be done, and nothing is put off."""


def is_fine(hold: Hold, topology_id: str) -> bool:
    """Whether the topology is as ready as without `hold`; where CPU is short, those are that get what they need."""
    if hold.reason is HoldReason.TOO_LITTLE_CAPACITY:
        return topology_id not in hold.short_topologies
    return hold.reason in FINE_HOLDS


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
    suspended_by_operator: bool | None = None
    failed_attempts: int | None = None
    """How often the submission was tried in vain so far, if that is so."""
    forecasts: Mapping[ComponentKey, LoadForecast] = field(default_factory=dict)
    places: tuple[EnforcedPlace, ...] = ()
    """The supervisors that its executors run on, and whether CPU limits are in force there."""
    limits: LimitsInForce = NO_LIMITS
    obstacles: tuple[tuple[str, str], ...] = ()
    """Reason and message of what else could not be done for it."""
    trouble_reason: str = "ClusterUnreachable"
    held_resize: HeldResize | None = None
    plan_end: Body | None = None
    """The status of the StormRebalance of the plan that the status named last as under way, if that is over by now."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition; `status` None is Unknown."""

    type: str
    status: bool | None
    reason: str
    message: str


def without_figures(hold: Hold) -> str:
    """Some holds tell figures that differ every period; the reason alone is the steady part of them."""
    volatile = (
        HoldReason.GAIN_TOO_SMALL,
        HoldReason.PAYBACK_TOO_LONG,
        HoldReason.COOL_DOWN,
        HoldReason.NOT_DUE,
        HoldReason.EXCLUDED_WINDOW,
        HoldReason.APPLYING,
        HoldReason.METRICS_STALE,
    )
    return f"nothing is done: {hold.reason.value}" if hold.reason in volatile else hold.message


def conditions_of(view: TopologyView) -> list[Condition]:
    submitted = _submitted(view)
    measured = _measured(view)
    planned = _planned(view)
    degraded = _degraded(view)
    ready = with_idle_annotations(_ready(view, submitted, measured, degraded), view.managed)
    return [submitted, measured, planned, _enforced(view), ready, degraded]


def _ready(view: TopologyView, submitted: Condition, measured: Condition, degraded: Condition) -> Condition:
    """One that is suspended is ready: all is as its owner wants it, and nobody is to wait for more."""
    if degraded.status:
        return Condition("Ready", False, degraded.reason, degraded.message)
    if view.progress == NOT_IN_STORM:
        return Condition("Ready", True, view.progress.stage.value, view.progress.message)
    if submitted.status is True and measured.status is True:
        words = "it is suspended" if submitted.reason == Stage.SUSPENDED else "it runs"
        return Condition("Ready", True, submitted.reason, f"{words}, is measured and managed")
    return Condition("Ready", False, _first_failing(submitted, measured), measured.message)


def with_idle_annotations(ready: Condition, managed: Managed) -> Condition:
    """They keep nothing from being as ready as without, and whoever set them is to read that they do nothing."""
    return replace(ready, message="; ".join(filter(None, (ready.message, *managed.idle_annotations))))


def _first_failing(*conditions: Condition) -> str:
    return next((condition.reason for condition in conditions if condition.status is not True), "NotReady")


def _submitted(view: TopologyView) -> Condition:
    progress = view.progress
    if progress is None:
        return _unknown("Submitted", view, "not looked at yet")
    # One that is suspended may be so from the beginning, and then runs nowhere.
    done = progress.stage is Stage.RUNNING or (progress.stage is Stage.SUSPENDED and bool(progress.topology_id))
    return Condition("Submitted", done, progress.stage.value, progress.sentence)


def _measured(view: TopologyView) -> Condition:
    if not topology_id_of(view):
        return _unknown("MetricsReady", view, "it does not run yet")
    if view.snapshot is None:
        why = view.decision.message if isinstance(view.decision, Hold) else "no pass has measured it yet"
        return _unknown("MetricsReady", view, why)
    if not is_placed(view):
        return _unknown("MetricsReady", view, "none of its executors is placed yet")
    own = [e for e in view.snapshot.completeness.missing_executors if e.topology_id == topology_id_of(view)]
    if own:
        problems = first_of(view.snapshot.completeness.problems, "; ")
        return Condition(
            "MetricsReady", False, "Incomplete", f"{counted(len(own), 'executor')} not measured: {problems}"
        )
    return Condition("MetricsReady", True, "Complete", "all its executors are measured")


def _unknown(kind: str, view: TopologyView, otherwise: str) -> Condition:
    if view.managed.is_paused and not view.trouble:
        return Condition(kind, None, "Paused", PAUSED)
    return Condition(kind, None, "Unknown", view.trouble or otherwise)


def _planned(view: TopologyView) -> Condition:
    if view.decision is None:
        return Condition("Planned", None, "Unknown", "no decision yet")
    if isinstance(view.decision, Hold):
        good = is_fine(view.decision, topology_id_of(view)) and view.decision.reason not in UNMEASURED
        return Condition("Planned", good, view.decision.reason.value, without_figures(view.decision))
    return Condition("Planned", True, "Plan", view.decision.reason)


def _enforced(view: TopologyView) -> Condition:
    spec = view.managed.spec
    if spec is None or spec.resources.enforcement is Enforcement.NONE:
        return Condition("Enforced", False, "NotWanted", "spec.resources.enforcement is None")
    if spec.scheduling.mode is not Mode.ENFORCE:
        return Condition("Enforced", False, "NotWanted", f"spec.scheduling.mode is {spec.scheduling.mode.value}")
    if view.trouble:
        return Condition("Enforced", None, "Unknown", view.trouble)
    if view.managed.is_paused or not topology_id_of(view):
        return Condition("Enforced", False, "NotRunning", "it does not run, or is paused")
    return Condition("Enforced", *verdict(spec.resources.enforcement, view.places, view.limits))


def _degraded(view: TopologyView) -> Condition:
    if view.trouble:
        return Condition("Degraded", True, view.trouble_reason, view.trouble)
    if view.progress is not None and view.progress.stage is Stage.FAILED:
        return Condition("Degraded", True, "SubmissionFailed", view.progress.sentence)
    if isinstance(view.decision, Hold) and not is_fine(view.decision, topology_id_of(view)):
        return Condition("Degraded", True, view.decision.reason.value, without_figures(view.decision))
    if view.record is not None and _still_degrades(view.record, view.decision):
        return Condition("Degraded", True, f"Plan{view.record.state.value}", view.record.message)
    if view.obstacles:
        return Condition("Degraded", True, view.obstacles[0][0], "; ".join(words for _, words in view.obstacles))
    return Condition("Degraded", False, "AsExpected", "")


def _still_degrades(record: PlanRecord, since: Decision | None) -> bool:
    """Whether a plan that went wrong keeps its topology from being well; `since` is the decision after it.

    Once nothing is left to do the topology is as well as any that nothing is done for: `lastPlan` tells of the plan.
    Not of a way back that failed: what did harm is in force, and the way back is tried again.
    """
    if record.state not in (PlanState.FAILED, PlanState.ROLLED_BACK):
        return False
    is_tried_again = bool(record.rollback_of) and record.approved_by == AUTO
    return is_tried_again or not (isinstance(since, Hold) and since.reason in NOTHING_LEFT_TO_DO)


def with_times(conditions: list[Condition], old: Body, now_seconds: float, generation: int) -> list[dict[str, Any]]:
    """In the API's form; the time of a condition is that of the last change of its status (`old` has the former)."""
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
                "lastTransitionTime": timestamp(now_seconds) if changed else before["lastTransitionTime"],
                "observedGeneration": generation,
            }
        )
    return written


def is_placed(view: TopologyView) -> bool:
    """Whether the last pass saw executors of it anywhere; a topology may be younger than that pass."""
    topology_id = topology_id_of(view)
    placed = view.snapshot.assignment.slot_of if view.snapshot is not None else ()
    return any(executor.topology_id == topology_id for executor in placed)


def topology_id_of(view: TopologyView) -> str:
    return view.progress.topology_id if view.progress is not None else ""
