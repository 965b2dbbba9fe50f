"""What an explanation says of a topology's last plan, in sentences with their numbers. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from storm_operator.console.plan_view import PlanView
from storm_operator.core.wording import EFFECT_UNKNOWN, NO_PLAN_YET, figure, state_in_words

AS_SAID = "as said above"
"""In the place of what the headline of an explanation says."""


def last_plan(plans: Sequence[PlanView], told_id: str | None = None) -> tuple[str, ...]:
    """`plans` are those of the topology, newest first; the headline tells of the one of `told_id`."""
    if not plans:
        return (f"{NO_PLAN_YET.capitalize()}.",)
    plan = plans[0]
    state = state_in_words(plan.state, plan.approved_by)
    state = f"{state}, {EFFECT_UNKNOWN}" if plan.effect_is_unknown else state
    sentences = [f"{plan.id} ({state}): {AS_SAID if plan.id == told_id else plan.reason}."]
    if plan.message:
        sentences.append(f"{plan.message[:1].upper()}{plan.message[1:]}.")
    return (*sentences, *_traffic_of_plan(plan), *_latency_of_plan(plan))


def _traffic_of_plan(plan: PlanView) -> tuple[str, ...]:
    """Nothing of a plan of which no figure is known; what comes after it is told once it was measured."""
    before = plan.measured_before.inter_supervisor_tuples_per_second
    predicted = plan.predicted_after.inter_supervisor_tuples_per_second if plan.predicted_after else None
    after = plan.measured_after.inter_supervisor_tuples_per_second if plan.measured_after else None
    if before is predicted is after is None:
        return ()
    measured = f", {figure(after)} measured after" if plan.measured_after else ""
    return (f"Between supervisors: {figure(before)} tuples/s before, {figure(predicted)} predicted{measured}.",)


def _latency_of_plan(plan: PlanView) -> tuple[str, ...]:
    before, after = plan.measured_before, plan.measured_after
    if after is None or before.complete_latency_p50_ms is after.complete_latency_p50_ms is None:
        return ()
    return (
        f"Latency p50 {figure(before.complete_latency_p50_ms)} -> {figure(after.complete_latency_p50_ms)} ms, "
        f"p99 {figure(before.complete_latency_p99_ms)} -> {figure(after.complete_latency_p99_ms)} ms.",
    )
