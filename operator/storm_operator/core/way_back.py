"""The plan that undoes one that made things worse. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from storm_operator.core.decision import Plan
from storm_operator.core.direct_plan import reverse_plan
from storm_operator.core.groups import Group
from storm_operator.core.plan_progress import why_out_of_reach
from storm_operator.core.plan_record import AUTO, Outcome, PlanRecord, PlanState
from storm_operator.core.proposals import why_all_plans_wait
from storm_operator.core.settings import Mode
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.wording import first_of


def is_tried_again(record: PlanRecord) -> bool:
    """Whether it is a way back that failed, of a plan that did harm and is in force all the same: nobody else would
    propose to leave that. Not one that waited for a person, who may ask again."""
    return record.state is PlanState.FAILED and bool(record.rollback_of) and record.approved_by == AUTO


def why_not_to_be_moved(plan: Plan, groups: Sequence[Group]) -> str:
    """Why not all of the plan's topologies may be moved by now; empty where all of them may."""
    managed = {topology_id: group for group in groups for topology_id in group.topology_ids}
    strangers = sorted(set(plan.topology_ids).difference(managed))
    if strangers:
        return f"{first_of(strangers)} is managed by nobody by now"
    observed = sorted(t for t in plan.topology_ids if managed[t].scheduling.mode is Mode.OBSERVE)
    return f"mode of {first_of(observed)} is Observe by now" if observed else ""


def why_it_waits(plan: Plan, groups: Sequence[Group]) -> str:
    """Why a person must say yes to taking the plan back; empty where nobody need. A gain is none of its conditions."""
    concerned = (group for group in groups if not set(plan.topology_ids).isdisjoint(group.topology_ids))
    return next(filter(None, (why_all_plans_wait(group.scheduling) for group in concerned)), "")


def why_no_way_back(plan: Plan, snapshot: ClusterSnapshot) -> str:
    """Why executors cannot go back to where `plan` found them; empty when all of them can."""
    return why_out_of_reach(plan.target, plan.base, snapshot)


def way_back_from(record: PlanRecord, measured: Outcome, plan_id: str, now_seconds: float) -> PlanRecord:
    """The record of the plan `plan_id` that takes `record` back, approved; `measured` is what the latter brought."""
    begun = replace(record, before=measured, rollback_of=record.plan.id)
    return _approved(reverse_plan(record.plan, plan_id, now_seconds), begun, now_seconds)


def way_back_anew(failed: PlanRecord, plan_id: str, now_seconds: float) -> PlanRecord:
    """The record of the plan `plan_id` that does what the way back `failed` was to do, approved."""
    return _approved(replace(failed.plan, id=plan_id, created_at_seconds=now_seconds), failed, now_seconds)


def _approved(plan: Plan, like: PlanRecord, now_seconds: float) -> PlanRecord:
    """The first record of the way back `plan`, which has of `like` what was known before it began."""
    return PlanRecord(
        plan=plan,
        method=like.method,
        state=PlanState.PROPOSED,
        before=like.before,
        started_at_seconds=now_seconds,
        busy_before=like.busy_before,
        enforce_cpu=like.enforce_cpu,
        rollback_of=like.rollback_of,
        approved_by=AUTO,
        approved_at_seconds=now_seconds,
    )
