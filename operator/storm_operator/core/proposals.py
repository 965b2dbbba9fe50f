"""Plans that wait for a person: which of them still stand after another look at the cluster. Pure.

A proposal is kept as it was shown for as long as it is what would be proposed again: a person approves exactly the
plan that was looked at, or none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from storm_operator.core.decision import Decision, Hold, HoldReason, Plan
from storm_operator.core.decision_memory import assignment_hash
from storm_operator.core.groups import Group
from storm_operator.core.model import Assignment
from storm_operator.core.plan_outcome import outcome_of
from storm_operator.core.plan_record import PlanRecord, PlanState, busy_executors, timed_topologies
from storm_operator.core.settings import ApprovalMode, AutoApproval, Enforcement, Mode, SchedulingSettings
from storm_operator.core.snapshot import ClusterSnapshot

OUTDATING = frozenset(
    {
        HoldReason.NO_CHANGE,
        HoldReason.GAIN_TOO_SMALL,
        HoldReason.PAYBACK_TOO_LONG,
        HoldReason.TOO_LITTLE_CAPACITY,
        HoldReason.INFEASIBLE,
        HoldReason.KNOWN_BAD,
        HoldReason.OBSERVE_ONLY,
    }
)
"""Reasons by which what was proposed before would not be proposed now; the others only say that now is not the time."""


@dataclass(frozen=True, slots=True)
class Proposals:
    """The plans that wait, as records in state Proposed; no two for the same topologies. One with `approved_by` is
    carried out in the next pass."""

    waiting: tuple[PlanRecord, ...] = ()

    def of(self, topology_ids: Iterable[str]) -> tuple[PlanRecord, ...]:
        """The proposals that concern any of these topologies: ways back first, then what else was approved."""
        wanted = set(topology_ids)
        found = (record for record in self.waiting if wanted & set(record.plan.topology_ids))
        return tuple(sorted(found, key=lambda record: (not record.approved_by, not record.rollback_of)))

    def named(self, plan_id: str) -> PlanRecord | None:
        return next((record for record in self.waiting if record.plan.id == plan_id), None)

    def having(self, record: PlanRecord) -> Proposals:
        """With `record`, in place of what concerned its topologies before."""
        concerned = set(record.plan.topology_ids)
        others = tuple(known for known in self.waiting if not concerned & set(known.plan.topology_ids))
        return replace(self, waiting=(*others, record))

    def without(self, plan_id: str) -> Proposals:
        return replace(self, waiting=tuple(record for record in self.waiting if record.plan.id != plan_id))


def proposed_record(plan: Plan, group: Group, snapshot: ClusterSnapshot) -> PlanRecord:
    """The record that the plan's life begins with."""
    return PlanRecord(
        plan=plan,
        method=group.scheduling.apply_method,
        state=PlanState.PROPOSED,
        before=outcome_of(snapshot, plan.topology_ids),
        started_at_seconds=plan.created_at_seconds,
        busy_before=busy_executors(snapshot, plan.topology_ids),
        timed_before=timed_topologies(snapshot, plan.topology_ids),
        enforce_cpu=group.resources.enforcement is Enforcement.EXECUTOR,
    )


def is_same_proposal(known: PlanRecord, plan: Plan) -> bool:
    """Whether `plan` would do from the same start what `known` does."""
    return assignment_hash(known.plan.target) == assignment_hash(plan.target) and known.plan.base == plan.base


def outdated(known: PlanRecord, decision: Decision, present: Assignment) -> str | None:
    """Why `known` no longer stands; None while it does."""
    if present.restricted_to(known.plan.topology_ids).slot_of != known.plan.base.slot_of:
        return "executors are no longer where the plan would move them from"
    if isinstance(decision, Hold) and decision.reason in OUTDATING:
        return f"it would not be proposed now: {decision.message}"
    if isinstance(decision, Plan) and not is_same_proposal(known, decision):
        return f"superseded by plan {decision.id}"
    return None


def why_a_person_must_approve(plan: Plan, scheduling: SchedulingSettings) -> str:
    """Why `plan` is not carried out by itself; empty when it is."""
    approval = scheduling.approval
    if scheduling.mode is Mode.RECOMMEND:
        return "mode is Recommend: plans are carried out when approved"
    if approval.mode is ApprovalMode.MANUAL:
        return "approval is Manual: plans are carried out when approved"
    return _missed_condition(plan, approval.auto_approve_when) if approval.auto_approve_when else ""


def _missed_condition(plan: Plan, condition: AutoApproval) -> str:
    gain, least = plan.gain_percent, condition.minimum_gain_percent
    if least is not None and (gain is None or gain < least):
        return f"its gain of {_shown(gain)}% is below the {least:g}% that need no approval"
    most = condition.maximum_restarted_workers
    if most is not None and len(plan.started_workers) > most:
        return f"workers restarted: {len(plan.started_workers)}; up to {most} need no approval"
    longest = condition.maximum_payback_seconds
    if longest is not None and (plan.payback_seconds is None or plan.payback_seconds > longest):
        when = "never pays back" if plan.payback_seconds is None else f"pays back in {plan.payback_seconds:.0f} s"
        return f"it {when}; up to {longest:g} s need no approval"
    return ""


def _shown(percent: float | None) -> str:
    return "unknown" if percent is None else f"{percent:.0f}"
