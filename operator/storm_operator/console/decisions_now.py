"""What is decided about each topology now: by the last pass, unless a plan has followed it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from storm_operator.console.views import DecisionView
from storm_operator.core.decision import HoldReason, Plan
from storm_operator.core.plan_record import PlanRecord, PlanState

SAYS_MORE = (HoldReason.APPLYING, HoldReason.CLUSTER_UNREACHABLE)
"""Holds that say more of a plan than that it is being applied, if told since it began: it was cut short, or a peer is
in its way. Those of before are about another plan."""


def decisions_now(
    told: tuple[DecisionView, ...], told_at_seconds: float, records: Iterable[PlanRecord]
) -> tuple[DecisionView, ...]:
    """`told` by the last pass, with those of `records` that are being applied before them: the first one counts.

    A pass is told when it ends, which is when its plan is in force: until then what the pass before decided about the
    plan's topologies is over, and would be taken for what is done now.
    """
    applied = [
        record.plan
        for record in records
        if record.state is PlanState.APPLYING
        and not (told_at_seconds >= record.started_at_seconds and any(_says_more(one, record.plan) for one in told))
    ]
    still_so = (one for one in told if not applied or one.reason != HoldReason.NOTHING_TO_MANAGE)
    return (*map(_of_applied, applied), *still_so)


def _says_more(decision: DecisionView, plan: Plan) -> bool:
    concerns_it = not decision.topologies or not set(decision.topologies).isdisjoint(plan.topology_ids)
    return decision.reason in SAYS_MORE and concerns_it


def _of_applied(plan: Plan) -> DecisionView:
    return DecisionView(plan.topology_ids, "plan", "", f"is being applied: {plan.reason}", plan.id, plan.gain_percent)
