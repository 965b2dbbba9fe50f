"""Proposal -> Plan or Hold: whether what a policy proposes is worth its disruption, and why.

The rules are asked in order; the first that objects holds. After a plan that could not be put in force none is tried
before its time, each time later: every trial may pause spouts and keeps all other topologies waiting. Urgent proposals
(executors without a place, or an overloaded supervisor that they relieve) need not wait for the cool-down, show a gain
or pay back. Under trigger Policy no proposal need show a gain or pay back: the policy's own trigger has decided that.
"""

from __future__ import annotations

import math
from dataclasses import replace

from storm_operator.core.clock_steps import age_seconds, is_younger
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.decision import NOTHING_BETTER, Decision, Hold, HoldReason, Plan, PlanCause
from storm_operator.core.decision_memory import DecisionMemory, assignment_hash
from storm_operator.core.excluded_windows import window_over
from storm_operator.core.load_history import periods_seen
from storm_operator.core.measurement_check import check_measurements
from storm_operator.core.model import Assignment, Infeasible
from storm_operator.core.newcomers import why_newcomers_come_first
from storm_operator.core.proposed_change import ProposedChange, examine_proposal
from storm_operator.core.settings import Mode, PlacementSettings, SchedulingSettings, Trigger
from storm_operator.core.shortage import Shortage, find_shortage
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.wording import counted, figure, figure_beside

__all__ = ["DecisionMemory", "assignment_hash", "decide", "in_excluded_window"]


def decide(
    snapshot: ClusterSnapshot,
    demand: Demand,
    proposal: Assignment | Infeasible,
    settings: PlacementSettings,
    memory: DecisionMemory,
    *,
    now_seconds: float,
    plan_id: str,
    looks_in_seconds: float | None = None,
) -> Decision:
    """The plan that carries out `proposal`, or why it is not to be carried out.

    The plan covers the movable topologies that change; its CPU limits are their demand. `now_seconds` is of the same
    clock as the times in `memory`. `looks_in_seconds` is when a policy whose time has not come looks for something
    better: until then the assignment in force is no answer of it.
    """
    untrusted = check_measurements(snapshot, demand, settings)
    if untrusted is not None:
        return untrusted
    scheduling = settings.scheduling
    if scheduling.mode is Mode.OBSERVE:
        return Hold(HoldReason.OBSERVE_ONLY, "mode is Observe: measured, not planned")
    if isinstance(proposal, Infeasible):
        return Hold(HoldReason.INFEASIBLE, proposal.reason)
    change = examine_proposal(snapshot, demand, proposal, settings)
    if change is None and looks_in_seconds is not None:
        return _not_due(looks_in_seconds, snapshot, demand, settings, memory)
    if change is None:
        hold = Hold(HoldReason.NO_CHANGE, f"{scheduling.policy} proposes the assignment in force", gain_percent=0.0)
        return _or_what_is_short(hold, snapshot, demand, settings, memory)
    objection = (
        _known_bad(change, memory, now_seconds)
        or in_excluded_window(scheduling, now_seconds)
        or _failed_lately(change, memory, now_seconds)
        or _not_worth_it(change, snapshot, scheduling, memory, now_seconds)
    )
    if objection is not None:
        hold = replace(objection, gain_percent=max(0.0, change.gain_percent))
        return _or_what_is_short(hold, snapshot, demand, settings, memory)
    return _plan(change, settings, now_seconds, plan_id)


def _not_due(
    looks_in_seconds: float,
    snapshot: ClusterSnapshot,
    demand: Demand,
    settings: PlacementSettings,
    memory: DecisionMemory,
) -> Hold:
    """Where supervisors are too small, that nothing better is known is said by a policy that has looked alone."""
    policy = settings.scheduling.policy
    waits = f"{policy} looks for something better in {looks_in_seconds:.0f} s"
    shortage = _shortage(snapshot, demand, settings, memory)
    if shortage is None:
        return Hold(HoldReason.NOT_DUE, waits)
    missing, lacking = shortage.in_words(snapshot), tuple(shortage.lacking)
    if memory.unhelped_topologies & settings.movable:
        words = f"{missing}; {policy} proposed nothing better when it last looked"
        return Hold(HoldReason.TOO_LITTLE_CAPACITY, words, short_topologies=lacking)
    return Hold(HoldReason.NOT_DUE, f"{missing}; {waits}", short_topologies=lacking)


def _or_what_is_short(
    hold: Hold, snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings, memory: DecisionMemory
) -> Hold:
    """`hold`; where supervisors are too small for what they run and nothing better is known, that is the reason."""
    if hold.reason not in NOTHING_BETTER:
        return hold
    shortage = _shortage(snapshot, demand, settings, memory)
    if shortage is None:
        return hold
    words = f"{shortage.in_words(snapshot)}; {settings.scheduling.policy} proposes nothing better"
    return Hold(HoldReason.TOO_LITTLE_CAPACITY, words, hold.gain_percent, tuple(shortage.lacking))


def _shortage(
    snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings, memory: DecisionMemory
) -> Shortage | None:
    return find_shortage(snapshot, demand, settings, was_short=bool(memory.short_topologies & settings.movable))


def in_excluded_window(scheduling: SchedulingSettings, now_seconds: float) -> Hold | None:
    """Not even an urgent plan is applied then: that is what the user asked for. A way back undoes harm, and may be."""
    found = window_over(scheduling.excluded_windows, now_seconds)
    if found is None:
        return None
    window, free_at = found
    until = f"the next may be in {(free_at - now_seconds) / 60.0:.0f} minutes"
    if math.isinf(free_at):
        until = "nor in those that follow it without a gap"
    return Hold(
        HoldReason.EXCLUDED_WINDOW,
        f"no plan is applied in the window that begins at {window.cron!r} ({window.time_zone}); {until}",
    )


def _not_worth_it(
    change: ProposedChange,
    snapshot: ClusterSnapshot,
    scheduling: SchedulingSettings,
    memory: DecisionMemory,
    now_seconds: float,
) -> Hold | None:
    """The rules that an urgent change is excepted from."""
    if change.is_urgent:
        return None
    seen = periods_seen(snapshot.history, change.topology_ids)
    if scheduling.trigger is Trigger.GAIN and seen < scheduling.minimum_periods:
        return _too_little_seen(change, seen, scheduling.minimum_periods)
    cooling_down = _cooling_down(change, scheduling.cool_down_seconds, memory, now_seconds)
    if cooling_down is not None or scheduling.trigger is Trigger.POLICY:
        return cooling_down
    return (
        _gain_too_small(change, scheduling.minimum_gain_percent)
        or _payback_too_long(change, scheduling.maximum_payback_seconds)
        or _newcomers_first(change, snapshot, scheduling.minimum_periods)
    )


def _too_little_seen(change: ProposedChange, periods: int, least_periods: int) -> Hold:
    """A plan is made for the load to come: whether that rises takes some periods to tell."""
    return Hold(
        HoldReason.WARMING_UP,
        f"load was seen for {periods} of {least_periods} periods; whether it rises is not known yet "
        f"(proposed: {change.what_moves})",
    )


def _newcomers_first(change: ProposedChange, snapshot: ClusterSnapshot, least_periods: int) -> Hold | None:
    """What a move saves is known once that is which it brings executors beside. What mends something does not wait."""
    if change.trouble is not None:
        return None
    why = why_newcomers_come_first(change, snapshot, least_periods)
    return Hold(HoldReason.WARMING_UP, f"{why} (proposed: {change.what_moves})") if why else None


def _known_bad(change: ProposedChange, memory: DecisionMemory, now_seconds: float) -> Hold | None:
    """An urgent change may bring a bad arrangement to other slots: what made it bad may be where it was."""
    known = memory.known_bad_like(change.target, now_seconds, exactly=change.is_urgent)
    if known is None:
        return None
    return Hold(
        HoldReason.KNOWN_BAD,
        f"the proposal ({change.what_moves}; target {assignment_hash(change.target)}) or its like in other slots "
        f"{known.in_words(now_seconds)}",
    )


def _failed_lately(change: ProposedChange, memory: DecisionMemory, now_seconds: float) -> Hold | None:
    setback = memory.setback_of(change.topology_ids, now_seconds)
    if setback is None:
        return None
    return Hold(
        HoldReason.COOL_DOWN,
        f"plan {setback.plan_id} failed, {counted(setback.retry.failures, 'plan')} in a row; the next may follow in "
        f"{setback.retry.not_before_seconds - now_seconds:.0f} s (proposed: {change.what_moves})",
    )


def _cooling_down(
    change: ProposedChange, cool_down_seconds: float, memory: DecisionMemory, now_seconds: float
) -> Hold | None:
    """Twice as long for each plan that was rolled back: a target as good as a bad one is as bad, and there are many."""
    rolled_back = memory.rolled_back_lately(change.topology_ids, now_seconds)
    pause_seconds = cool_down_seconds * 2.0**rolled_back
    known = [memory.changed_at_seconds[t] for t in change.topology_ids if t in memory.changed_at_seconds]
    lately = [at for at in known if is_younger(at, pause_seconds, now_seconds)]
    if not lately:
        return None
    why = f", since {counted(rolled_back, 'plan')} made things worse within a day" if rolled_back else ""
    return Hold(
        HoldReason.COOL_DOWN,
        f"the last change is {age_seconds(max(lately), now_seconds):.0f} s old, the next may follow after "
        f"{pause_seconds:.0f} s{why} (proposed: {change.what_moves})",
    )


def _gain_too_small(change: ProposedChange, minimum_percent: float) -> Hold | None:
    if change.saved_cost > 0.0 and change.gain_percent >= minimum_percent:
        return None
    return Hold(
        HoldReason.GAIN_TOO_SMALL,
        f"the proposal ({change.what_moves}) changes the cost {_cost_change(change, minimum_percent)}; "
        f"a fall of {minimum_percent:g}% or more is asked for",
    )


def _payback_too_long(change: ProposedChange, maximum_seconds: float) -> Hold | None:
    if change.payback_seconds is None or change.payback_seconds <= maximum_seconds:
        return None
    return Hold(
        HoldReason.PAYBACK_TOO_LONG,
        f"the proposal ({change.what_moves}) pays its restarts back in "
        f"{figure_beside(change.payback_seconds, maximum_seconds)} s, at most {figure(maximum_seconds)} s are allowed",
    )


def _plan(change: ProposedChange, settings: PlacementSettings, now_seconds: float, plan_id: str) -> Plan:
    return Plan(
        id=plan_id,
        created_at_seconds=now_seconds,
        policy=settings.scheduling.policy,
        reason=_reason(change),
        topology_ids=change.topology_ids,
        base=change.base,
        target=change.target,
        moves=change.diff.moves,
        restarted_workers=change.diff.restarted_workers,
        kept_workers=change.diff.kept_workers,
        cpu_limits_millicores=change.limits_millicores,
        before=change.before,
        after=change.after,
        payback_seconds=change.payback_seconds,
        gain_percent=change.gain_percent,
        cause=_cause(change),
        cpu_ceiling_millicores=settings.resources.ceiling_millicores,
        beyond_threads_millicores=change.beyond_threads_millicores,
    )


def _cause(change: ProposedChange) -> PlanCause:
    """What saves nothing and mends nothing is done since the policy says so (`scheduling.trigger: Policy`)."""
    if change.trouble is not None:
        return change.trouble.cause
    return PlanCause.SAVINGS if change.saved_cost > 0.0 else PlanCause.POLICY


def _reason(change: ProposedChange) -> str:
    """One sentence: why, what moves, what it brings, when it has paid."""
    before, after = change.before, change.after
    parts = [
        change.trouble.what if change.trouble else f"cost {_cost_change(change)}",
        change.what_moves,
        f"inter-supervisor traffic {figure(before.inter_supervisor_tuples_per_second)} -> "
        f"{figure(after.inter_supervisor_tuples_per_second)} tuples/s",
    ]
    if before.supervisors_used != after.supervisors_used:
        parts.append(f"supervisors in use {before.supervisors_used} -> {after.supervisors_used}")
    beyond_threads = change.beyond_threads_millicores
    if change.overloaded_millicores > beyond_threads:
        without_room = change.overloaded_millicores - beyond_threads
        parts.append(f"{without_room:,.0f} millicores of CPU find no room on any supervisor")
    if beyond_threads > 0.0:
        parts.append(f"{beyond_threads:,.0f} millicores of CPU are more than executors' threads can use")
    if change.overfull_megabytes > 0.0:
        parts.append(f"{change.overfull_megabytes:,.0f} MB of declared memory find no room on any supervisor")
    if change.payback_seconds is not None:
        parts.append(f"pays back in {change.payback_seconds:.0f} s")
    return "; ".join(parts)


def _cost_change(change: ProposedChange, asked_for_percent: float = 0.0) -> str:
    """E.g. `900 -> 300 tuple-ms/s (-66.7%)`; a fall that is less than is asked for reads as less."""
    cost, gain = change.running_cost, change.gain_percent
    percent = f"-{figure_beside(gain, asked_for_percent)}%" if gain >= 0.0 else f"+{figure(-gain)}%"
    return f"{figure(cost)} -> {figure(cost - change.saved_cost)} tuple-ms/s ({percent})"
