"""Plans that nobody weighed: straight from one assignment to another. The way back of a rollback is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from storm_operator.core.decision import Plan, PlanCause, Prediction
from storm_operator.core.model import Assignment, Executor
from storm_operator.core.plan_diff import diff_assignments

NOTHING_PREDICTED = Prediction(0.0, 0.0, 0.0, 0, 0.0)


def direct_plan(
    base: Assignment,
    target: Assignment,
    plan_id: str,
    now_seconds: float,
    reason: str,
    cpu_limits_millicores: Mapping[Executor, float] | None = None,
    policy: str = "direct",
    cause: PlanCause = PlanCause.UNSTATED,
) -> Plan:
    """The plan that leads from `base` to `target`, of the topologies that `target` places."""
    diff = diff_assignments(base, target)
    return Plan(
        id=plan_id,
        created_at_seconds=now_seconds,
        policy=policy,
        reason=reason,
        topology_ids=tuple(sorted({executor.topology_id for executor in target.slot_of})),
        base=base,
        target=target,
        moves=diff.moves,
        restarted_workers=diff.restarted_workers,
        kept_workers=diff.kept_workers,
        cpu_limits_millicores=cpu_limits_millicores or {},
        before=NOTHING_PREDICTED,
        after=NOTHING_PREDICTED,
        cause=cause,
    )


def reverse_plan(plan: Plan, plan_id: str, now_seconds: float) -> Plan:
    """The plan that undoes `plan`."""
    reason = f"rolls back {plan.id}, which made things worse"
    back = direct_plan(
        plan.target,
        plan.base,
        plan_id,
        now_seconds,
        reason,
        plan.cpu_limits_millicores,
        policy=plan.policy,
        cause=PlanCause.ROLLBACK,
    )
    return replace(back, cpu_ceiling_millicores=plan.cpu_ceiling_millicores)
