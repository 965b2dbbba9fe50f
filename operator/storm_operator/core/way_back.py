"""The plan that undoes one that made things worse. Pure."""

from __future__ import annotations

from storm_operator.core.decision import Plan
from storm_operator.core.direct_plan import reverse_plan
from storm_operator.core.plan_progress import why_out_of_reach
from storm_operator.core.plan_record import AUTO, Outcome, PlanRecord, PlanState
from storm_operator.core.snapshot import ClusterSnapshot


def why_no_way_back(plan: Plan, snapshot: ClusterSnapshot) -> str:
    """Why executors cannot go back to where `plan` found them; empty when all of them can."""
    return why_out_of_reach(plan.target, plan.base, snapshot)


def way_back_from(record: PlanRecord, measured: Outcome, plan_id: str, now_seconds: float) -> PlanRecord:
    """The record of the plan `plan_id` that takes `record` back, approved; `measured` is what the latter brought."""
    return PlanRecord(
        plan=reverse_plan(record.plan, plan_id, now_seconds),
        method=record.method,
        state=PlanState.PROPOSED,
        before=measured,
        started_at_seconds=now_seconds,
        busy_before=record.busy_before,
        enforce_cpu=record.enforce_cpu,
        rollback_of=record.plan.id,
        approved_by=AUTO,
        approved_at_seconds=now_seconds,
    )
