"""Did a plan help? Measured against predicted and against what was measured before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from storm_operator.core.decision import Plan, PlanCause
from storm_operator.core.model import name_of_topology
from storm_operator.core.plan_record import Outcome, PlanRecord
from storm_operator.core.wording import figure, figure_beside, first_of

LATENCY_NOISE_MS = 2.0
"""Differences of median latency below this are noise of scheduling and sampling, never a reason to roll back."""

WAITING_NOISE_MS = 1000.0
"""Shorter waits in queues never are a reason to roll back: a queue's length is read once, at some moment."""

TRAFFIC_NOISE_TUPLES_PER_SECOND = 20.0
"""Differences of traffic below this never are a reason to roll back: one executor of a slow topology."""

LOAD_NOISE = 0.2
"""Where the load changes by more than this share, the other figures are not told as the plan's alone."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`worse` tells whether the plan is to be rolled back; `message` says by which figures."""

    worse: bool
    message: str


def why_no_verdict(record: PlanRecord, measured: Outcome) -> str:
    """Why `measured` cannot tell what the plan brought; empty when it can.

    A topology that no longer acks anything was stopped by the plan, or its sources are dry: its figures do not tell
    which, so that it is neither praised nor taken back. Likewise one that never acked and no longer emits anything.
    Nor do they tell where tuples now wait for nobody knows how long, in queues or on their way, which was known before.
    A figure that was unknown before is not waited for, unless the load was: without that none tells anything.
    The way back of another plan is not judged at all.
    """
    if record.rollback_of:
        return ""
    before = record.before
    load = _load(before, before)
    waited_for = (
        (before.inter_supervisor_tuples_per_second, measured.inter_supervisor_tuples_per_second),
        (before.acked_per_second, measured.acked_per_second),
    )
    if any(now is None and (load is None or known is not None) for known, now in waited_for):
        return "its figures are unknown"
    if not load:
        return ""
    still = _load(before, measured)
    if still is None:
        return "its figures are unknown"
    if still == 0.0:
        return f"no tuple is {_load_is(before)} any more, {figure(load)} a second were before"
    if relieves_overload(record.plan) or measured.complete_latency_p50_ms is not None:
        return ""
    if before.complete_latency_p50_ms is not None:
        return "its complete latency is unknown, and was known before"
    if before.waiting_ms is not None and measured.waiting_ms is None:
        return "how long its tuples wait in queues is unknown, and was known before"
    return ""


def why_not_verified(
    record: PlanRecord, measured: Outcome, no_longer_timed: Sequence[str], margin_percent: float
) -> str:
    """Why a plan of several topologies, nothing of which speaks against it, is not yet told to be good; empty if it is.

    The complete latency of those `no_longer_timed` (ids) was known before, and is not in `measured`: what they ack, and
    when, must not hide behind the others.
    """
    if not no_longer_timed or record.rollback_of or relieves_overload(record.plan):
        return ""
    if judge(record, measured, margin_percent).worse:
        return ""
    names = first_of([name_of_topology(topology_id) for topology_id in no_longer_timed])
    return f"the complete latency of {names} is unknown, and was known before"


def judge(record: PlanRecord, measured: Outcome, margin_percent: float) -> Verdict:
    """Compare `measured` with what was before and what was predicted. Of another load than before the message tells.

    A figure speaks against a plan when it is worse by more than `margin_percent` than it was before *and* than the
    plan said it would be: a plan that spreads an overloaded supervisor announces more traffic, and is not to be
    blamed for keeping its word. Traffic is compared per acked tuple, so that a load that rose meanwhile is not
    blamed on the plan; where nothing was acked before, per tuple that spouts emit. There is no complete latency then,
    but how long tuples wait in queues. The traffic of executors that had no place before is compared with nothing.

    A plan that relieves an overload is never taken back: its figures before are those of a supervisor that could not
    keep up, the ones after it those of a backlog being worked off, and the way back leads into the overload. Should it
    not have been enough, the next plan follows without a cool-down.
    """
    if relieves_overload(record.plan):
        return Verdict(
            False, _praise(record, measured, "; it relieves an overload, whose backlog is not held against it")
        )
    margin = 1.0 + margin_percent / 100.0
    complaints = [
        complaint
        for complain in (_traffic_complaint, _latency_complaint, _waiting_complaint)
        if (complaint := complain(record, measured, margin))
    ]
    if complaints:
        return Verdict(True, "; ".join(complaints))
    return Verdict(False, _praise(record, measured, _why_latency_passes(record, measured, margin_percent)))


def _traffic_complaint(record: PlanRecord, measured: Outcome, margin: float) -> str | None:
    before, after = record.before.inter_supervisor_tuples_per_second, measured.inter_supervisor_tuples_per_second
    load_growth = _load_growth(record.before, measured)
    if before is None or after is None or load_growth is None:
        return None
    if record.plan.cause is PlanCause.WITHOUT_PLACE:
        return None  # executors without a place send nothing: neither what was before nor what was predicted has theirs
    # Of several topologies some may ack, and more be emitted by the others alone.
    growth = max(load_growth, _growth(record.before.emitted_per_second, measured.emitted_per_second) or 1.0)
    expected = max(before, record.plan.after.inter_supervisor_tuples_per_second) * growth
    if after <= expected * margin + TRAFFIC_NOISE_TUPLES_PER_SECOND:
        return None
    return f"inter-supervisor traffic {figure(after)} tuples/s, at most {figure(expected)} expected"


def _latency_complaint(record: PlanRecord, measured: Outcome, margin: float) -> str | None:
    before, after = record.before.complete_latency_p50_ms, measured.complete_latency_p50_ms
    growth = _load_growth(record.before, measured)
    if before is None or after is None or growth is None:
        return None
    if growth > margin:
        return None  # more load explains more latency; nothing can be said about the plan
    expected = before + _predicted_rise_ms(record.plan)
    if after <= _most_latency_ms(record.plan, before, margin):
        return None
    return f"median complete latency {figure(after)} ms, at most {figure(expected)} ms expected"


def _why_latency_passes(record: PlanRecord, measured: Outcome, margin_percent: float) -> str:
    """Said of a median that is worse than before by more than the margin, and no complaint; empty of any other."""
    before, after = record.before.complete_latency_p50_ms, measured.complete_latency_p50_ms
    growth = _load_growth(record.before, measured)
    margin = 1.0 + margin_percent / 100.0
    if before is None or after is None or growth is None or after <= before * margin:
        return ""
    if growth > margin:
        return "; with more load that latency is not held against it"
    most = figure_beside(_most_latency_ms(record.plan, before, margin), after)
    rise = _predicted_rise_ms(record.plan)
    foreseen = f"{figure(rise)} ms more were predicted, and " if rise else ""
    beyond = f"{figure(margin_percent)}% and {figure(LATENCY_NOISE_MS)} ms beyond"
    return f"; up to {most} ms of that latency are let pass: {foreseen}{beyond}"


def _most_latency_ms(plan: Plan, before_ms: float, margin: float) -> float:
    """Up to which a median is no reason to roll back."""
    return (before_ms + _predicted_rise_ms(plan)) * margin + LATENCY_NOISE_MS


def _predicted_rise_ms(plan: Plan) -> float:
    """By how much the plan said that latency would rise. What it predicts are means, so that no median is held
    against them themselves."""
    before, after = plan.before.complete_latency_ms, plan.after.complete_latency_ms
    return 0.0 if before is None or after is None else max(after - before, 0.0)


def _waiting_complaint(record: PlanRecord, measured: Outcome, margin: float) -> str | None:
    """It is known where no complete latency is: of what is not acked, or acked as soon as it is emitted."""
    before, after = record.before.waiting_ms, measured.waiting_ms
    growth = _load_growth(record.before, measured)
    if before is None or after is None or growth is None:
        return None
    if growth > margin or after <= before * margin + WAITING_NOISE_MS:
        return None
    return f"tuples wait {after / 1000.0:.1f} s in queues, {before / 1000.0:.1f} s before"


def relieves_overload(plan: Plan) -> bool:
    """Whether the plan was made because need went, or surely goes, beyond a supervisor's CPU.

    To make room is no relief. Its cause says so. Where that is something else that went before, or nobody said it, the
    figures do.
    """
    if plan.cause in {PlanCause.UNSTATED, PlanCause.WITHOUT_PLACE}:
        return plan.before.overloaded_millicores > plan.after.overloaded_millicores
    return plan.cause in {PlanCause.OVERLOAD, PlanCause.LITTLE_HEADROOM, PlanCause.COMING_OVERLOAD}


def _load(before: Outcome, of: Outcome) -> float | None:
    """Acked tuples per second; where none were acked before, those that spouts emit."""
    return of.acked_per_second if before.acked_per_second else of.emitted_per_second


def _load_is(before: Outcome) -> str:
    return "acked" if before.acked_per_second else "emitted"


def _load_growth(before: Outcome, after: Outcome) -> float | None:
    return _growth(_load(before, before), _load(before, after))


def _growth(before: float | None, after: float | None) -> float | None:
    return None if not before or after is None else max(after / before, 1.0)


def _other_load(record: PlanRecord, after: Outcome) -> str:
    """What speaks against reading the figures as the plan's work; empty where nothing does.

    That more is acked may be what the relief of an overload has brought, or a place for executors that had none.
    """
    before, now = _load(record.before, record.before), _load(record.before, after)
    if not before or now is None:
        return ""
    change = now / before - 1.0
    may_bring_more = record.plan.cause is PlanCause.WITHOUT_PLACE or relieves_overload(record.plan)
    if abs(change) <= LOAD_NOISE or (change > 0.0 and may_bring_more):
        return ""
    tuples = f"{_load_is(record.before)} tuples"
    return f"; {tuples} changed by {change:+.0%} meanwhile, so that the other figures are not the plan's alone"


def _praise(record: PlanRecord, after: Outcome, excuse: str = "") -> str:
    """Where nothing tells what it brought, that comes first: the figures would be read as its work."""
    figures = _figures(record.before, after) + excuse
    if record.before.has_load:
        return figures + _other_load(record, after)
    load = _load(record.before, record.before)
    why = "what was acked before is unknown" if load is None else "nothing was acked or emitted before"
    return f"nothing tells what it brought, since {why}; {figures}"


def _figures(before: Outcome, after: Outcome) -> str:
    if before.acked_per_second or not before.emitted_per_second:
        others: tuple[tuple[str, float | None, float | None, str], ...] = (
            ("throughput", before.acked_per_second, after.acked_per_second, " tuples/s"),
            ("median complete latency", before.complete_latency_p50_ms, after.complete_latency_p50_ms, " ms"),
        )
    else:
        others = (
            ("nothing is acked, emitted", before.emitted_per_second, after.emitted_per_second, " tuples/s"),
            ("wait in queues", before.waiting_ms, after.waiting_ms, " ms"),
        )
    parts = [
        f"{name} {figure(old)} -> {figure(new)}{unit}"
        for name, old, new, unit in (
            (
                "inter-supervisor traffic",
                before.inter_supervisor_tuples_per_second,
                after.inter_supervisor_tuples_per_second,
                " tuples/s",
            ),
            *others,
        )
    ]
    return "; ".join(parts)
