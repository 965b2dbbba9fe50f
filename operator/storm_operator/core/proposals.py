"""Plans that wait for a person: which of them still stand after another look at the cluster. Pure.

A proposal is kept as it was shown for as long as it is worth it and nothing that is noticeably better is known, and
for a while after that: a person approves exactly the plan that was looked at, or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from storm_operator.core.clock_steps import is_younger
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.decision import NOTHING_BETTER, Decision, Hold, HoldReason, Plan, PlanCause
from storm_operator.core.decision_memory import assignment_hash
from storm_operator.core.groups import Group
from storm_operator.core.model import Assignment, read_only
from storm_operator.core.newcomers import why_storm_places_first
from storm_operator.core.plan_outcome import outcome_of
from storm_operator.core.plan_record import PlanRecord, PlanState, busy_executors, timed_topologies
from storm_operator.core.proposed_change import examine_proposal
from storm_operator.core.settings import ApprovalMode, AutoApproval, Mode, PlacementSettings, SchedulingSettings
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.wording import figure_beside

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

PASSING = NOTHING_BETTER | {HoldReason.TOO_LITTLE_CAPACITY}
"""Those of them that come and go with the load: a plan that had been carried out in time would not be taken back.

That CPU is short is what nothing better is called at a crest."""

AT_LEISURE = frozenset({PlanCause.SAVINGS, PlanCause.LITTLE_HEADROOM, PlanCause.POLICY})
"""Causes of plans that may wait. Others cannot be weighed by their gain: it may be below zero."""

STANDS_SECONDS = 300.0
"""So long a proposal waits on where its gain has gone: as long as `peak_seconds` usually has limits remember a peak. A
person needs minutes to say yes, and a load that comes in waves would take it away and bring it again meanwhile."""


@dataclass(frozen=True, slots=True)
class Proposals:
    """The plans that wait, as records in state Proposed; no two for the same topologies. One with `approved_by` is
    carried out in the next pass. `proposed_at_seconds`: by plan id, when it was last what would be proposed."""

    waiting: tuple[PlanRecord, ...] = ()
    proposed_at_seconds: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "proposed_at_seconds", read_only(self.proposed_at_seconds))

    def of(self, topology_ids: Iterable[str]) -> tuple[PlanRecord, ...]:
        """The proposals that concern any of these topologies: ways back first, then what else was approved."""
        wanted = set(topology_ids)
        found = (record for record in self.waiting if wanted & set(record.plan.topology_ids))
        return tuple(sorted(found, key=lambda record: (not record.approved_by, not record.rollback_of)))

    def named(self, plan_id: str) -> PlanRecord | None:
        return next((record for record in self.waiting if record.plan.id == plan_id), None)

    def proposed_again(self, plan_id: str, now_seconds: float) -> Proposals:
        ids = {record.plan.id for record in self.waiting}
        known = {one: at for one, at in self.proposed_at_seconds.items() if one in ids}
        return replace(self, proposed_at_seconds={**known, plan_id: now_seconds})

    def was_proposed_lately(self, plan_id: str, now_seconds: float) -> bool:
        at = self.proposed_at_seconds.get(plan_id)
        return at is not None and is_younger(at, STANDS_SECONDS, now_seconds)

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
        enforce_cpu=group.are_held,
    )


def as_of_now(plan: Plan, snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings) -> Plan:
    """The approved `plan` with limits and predictions by the figures of `snapshot`, as it is judged by those of now.

    It may have waited for days. What moves, its gain and its cause are what was approved. A way back that nobody
    predicted anything of stays as it is.
    """
    whole = snapshot.assignment.with_moves(plan.target.slot_of)
    change = examine_proposal(snapshot, demand, whole, settings) if plan.is_predicted else None
    if change is None:
        return plan
    return replace(
        plan,
        before=change.before,
        after=change.after,
        beyond_threads_millicores=change.beyond_threads_millicores,
        cpu_limits_millicores=change.limits_millicores,
        cpu_ceiling_millicores=settings.resources.ceiling_millicores,
    )


def is_same_proposal(known: PlanRecord, plan: Plan) -> bool:
    """Whether `plan` would do from the same start what `known` does."""
    return assignment_hash(known.plan.target) == assignment_hash(plan.target) and known.plan.base == plan.base


def kept_if_as_good(decision: Decision, again: Decision, scheduling: SchedulingSettings) -> Decision:
    """What is to be proposed where a proposal waits already: `again`, which is that one judged anew, or `decision`.

    From one period to the next a policy finds another assignment that is as good: nobody can approve what is replaced
    every ten seconds. So what waits stays until something gains `minimumGainPercent` more, as what is in force does, or
    something else cannot wait: a place for executors of another topology is not held up by what only saves something.
    Nor is a plan that needs no person's word held up by one that does.
    """
    if not isinstance(again, Plan):
        return decision
    if isinstance(decision, Hold):
        return again if decision.reason in NOTHING_BETTER else decision
    is_new = decision.cause is not again.cause or not set(decision.topology_ids) <= set(again.topology_ids)
    if is_new and decision.cause not in AT_LEISURE:
        return decision
    if why_a_person_must_approve(again, scheduling) and not why_a_person_must_approve(decision, scheduling):
        return decision
    more = (decision.gain_percent or 0.0) - (again.gain_percent or 0.0)
    return decision if more >= scheduling.minimum_gain_percent else again


def left_to_storm(decision: Decision, scheduling: SchedulingSettings, snapshot: ClusterSnapshot) -> Decision:
    """`decision`; a hold where that is a plan which Storm itself outdates before anybody can approve it."""
    if isinstance(decision, Hold) or not why_a_person_must_approve(decision, scheduling):
        return decision
    why = why_storm_places_first(decision, snapshot)
    return Hold(HoldReason.WARMING_UP, why, decision.gain_percent) if why else decision


def moved_away(known: PlanRecord, present: Assignment) -> str:
    """Why `known` cannot be carried out from where executors are; empty where it can."""
    if present.restricted_to(known.plan.topology_ids).slot_of == known.plan.base.slot_of:
        return ""
    return "executors are no longer where the plan would move them from"


def outdated(known: PlanRecord, decision: Decision, *, proposed_lately: bool = False) -> str | None:
    """Why `known` no longer stands, though it could be carried out; None while it does."""
    waits_on = isinstance(decision, Hold) and decision.reason in PASSING and proposed_lately
    if isinstance(decision, Hold) and decision.reason in OUTDATING and not waits_on:
        return f"it would not be proposed now: {decision.message}"
    if isinstance(decision, Plan) and not is_same_proposal(known, decision):
        return f"superseded by plan {decision.id}"
    return None


def why_a_person_must_approve(plan: Plan, scheduling: SchedulingSettings) -> str:
    """Why `plan` is not carried out by itself; empty when it is."""
    condition = scheduling.approval.auto_approve_when
    return why_all_plans_wait(scheduling) or (_missed_condition(plan, condition) if condition else "")


def why_all_plans_wait(scheduling: SchedulingSettings) -> str:
    """Why no plan is carried out by itself, whatever it is; empty when some are."""
    if scheduling.mode is Mode.RECOMMEND:
        return "mode is Recommend: plans are carried out when approved"
    if scheduling.approval.mode is ApprovalMode.MANUAL:
        return "approval is Manual: plans are carried out when approved"
    return ""


def _missed_condition(plan: Plan, condition: AutoApproval) -> str:
    gain, least = plan.gain_percent, condition.minimum_gain_percent
    if least is not None and (gain is None or gain < least):
        told = "unknown" if gain is None else figure_beside(gain, least)
        return f"its gain of {told}% is below the {least:g}% that need no approval"
    most = condition.maximum_restarted_workers
    if most is not None and len(plan.started_workers) > most:
        return f"workers restarted: {len(plan.started_workers)}; up to {most} need no approval"
    longest = condition.maximum_payback_seconds
    if longest is not None and (plan.payback_seconds is None or plan.payback_seconds > longest):
        seconds = plan.payback_seconds
        when = "never pays back" if seconds is None else f"pays back in {figure_beside(seconds, longest)} s"
        return f"it {when}; up to {longest:g} s need no approval"
    return ""
