"""Why the last decision about a topology was what it was, in sentences with their numbers. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from storm_operator.console.cpu_sentences import cpu_sentences
from storm_operator.console.hold_rules import HOLD_RULES
from storm_operator.console.last_plan import AS_SAID, last_plan
from storm_operator.console.load_view import LoadView
from storm_operator.console.plan_view import PlanView
from storm_operator.console.views import DecisionView, ExecutorView, PassView, TopologyView
from storm_operator.core.decision import HoldReason
from storm_operator.core.parallelism import HeldResize
from storm_operator.core.refusal import Refusal
from storm_operator.core.wording import counted, figure, first_of, whole_percent

MOST_NAMED = 3
LEAST_PER_SECOND = 1e-6


@dataclass(frozen=True, slots=True)
class Part:
    """Sentences under a title."""

    title: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HeldResizeView:
    """Numbers of executors by component that the load asks for and that are not given, and why: a word, a sentence."""

    executors: Mapping[str, int]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """`topology` is an id; `headline` is the decision in one sentence.

    `held_resize` None: the load asks for no other number of executors, or gets it.
    """

    topology: str
    name: str
    at_seconds: float
    headline: str
    parts: tuple[Part, ...]
    held_resize: HeldResizeView | None = None


def explain_topology(
    topology: str,
    view: PassView,
    loads: Sequence[LoadView],
    plans: Sequence[PlanView],
    held_resizes: Mapping[str, HeldResize] | None = None,
    refused: Sequence[Refusal] = (),
) -> Explanation | None:
    """`topology` is an id or a name; `plans` are newest first, `held_resizes` by id, `refused` those of all topologies.

    None where no such topology is known.
    """
    found = next((one for one in view.topologies if topology in (one.id, one.name)), None)
    if found is None:
        return None
    decision = decision_about(found.id, view)
    own_plans = [plan for plan in plans if found.id in plan.topologies]
    own_loads = [load for load in loads if load.topology == found.id]
    held = (held_resizes or {}).get(found.id)
    parts = (
        Part("Measured", _measured(found, view)),
        Part("Forecast", _forecast(own_loads)),
        Part("Proposed", _proposed(decision)),
        Part("Rule that decided", _rule(decision, own_plans)),
        Part("What would change it", _change(found.id, decision, refused)),
        Part("What is not carried out", _refused(found.id, decision, refused)),
        Part("Number of executors", _number_of_executors(found, held)),
        Part("Last plan", last_plan(own_plans, decision.plan_id if decision is not None else None)),
    )
    filled = tuple(part for part in parts if part.sentences)
    headline = _headline(found.id, decision, refused)
    return Explanation(found.id, found.name, view.at_seconds, headline, filled, held_view(held) if held else None)


def decision_about(topology_id: str, view: PassView) -> DecisionView | None:
    """The decision about the group that the topology is in, or the one about everything.

    That nothing is managed is none about it: it is told what any other is told that is not.
    """
    own = [one for one in view.decisions if topology_id in one.topologies]
    of_all = (one for one in view.decisions if not one.topologies and one.reason != HoldReason.NOTHING_TO_MANAGE)
    return next(iter(own), next(of_all, None))


def _headline(topology_id: str, decision: DecisionView | None, refused: Sequence[Refusal]) -> str:
    """Where nothing is decided about it, why: by what is known of its StormTopology now, else as the pass found it."""
    if decision is None:
        is_any_unread = any(not one.topology for one in refused)
        nobodys = f"no StormTopology{' that can be read' if is_any_unread else ''} names it"
        known = _why_nobody_manages(topology_id, refused)
        return f"Not managed, so nothing is decided about it: {nobodys if known is None else known.sentence}."
    if decision.kind == "hold":
        return f"Hold ({decision.reason}): {decision.message}."
    return f"Plan {decision.plan_id}: {decision.message}."


def _measured(topology: TopologyView, view: PassView) -> tuple[str, ...]:
    own = [executor for executor in view.executors if executor.topology == topology.id]
    sentences = [*_figures(topology, own), *cpu_sentences(topology, view, own)]
    if view.completeness < 1.0:
        sentences.append(f"Only {whole_percent(view.completeness)}% of all executors of the cluster have measurements.")
    sentences += [f"{problem[:1].upper()}{problem[1:]}." for problem in view.problems[:MOST_NAMED]]
    if len(view.problems) > MOST_NAMED:
        sentences.append(f"{counted(len(view.problems) - MOST_NAMED, 'more problem')}.")
    if view.measured_at_seconds is not None and view.measured_at_seconds < view.at_seconds - view.period_seconds:
        old = view.at_seconds - view.measured_at_seconds
        sentences.append(f"These figures are {old:.0f} s old: the cluster could not be seen since.")
    return tuple(sentences)


def _figures(topology: TopologyView, own: Sequence[ExecutorView]) -> tuple[str, ...]:
    """What it does and where it runs; of one of which nothing is known, that instead of a list of what."""
    executors = counted(topology.executors, "executor")
    places = f"{executors} in {counted(topology.workers, 'worker')} on {counted(topology.supervisors, 'supervisor')}"
    if not topology.workers:
        return (f"None of its {executors} has a place yet: there is nothing to measure.",)
    if _is_unmeasured(topology, own):
        return (f"Nothing of it was measured in this period; {places}.",)
    latency = "unknown"
    if topology.latency_p50_ms is not None or topology.latency_p99_ms is not None:
        latency = f"p50 {figure(topology.latency_p50_ms)} ms, p99 {figure(topology.latency_p99_ms)} ms"
    return (
        f"{figure(topology.acked_per_second)} tuples/s acked, {figure(topology.failed_per_second)} failed; complete "
        f"latency {latency}.",
        f"{_traffic(topology)}; {places}.",
    )


def _is_unmeasured(topology: TopologyView, own: Sequence[ExecutorView]) -> bool:
    figures = (
        topology.acked_per_second,
        topology.failed_per_second,
        topology.latency_p50_ms,
        topology.tuples_per_second,
        *(one.cpu_used_millicores for one in own),
    )
    return all(value is None for value in figures)


def _traffic(topology: TopologyView) -> str:
    crossing, whole = topology.inter_supervisor_tuples_per_second, topology.tuples_per_second
    if crossing is None or whole is None:
        return "How many tuples/s cross supervisors is unknown: not all of its executors are measured"
    share = f" ({100 * crossing / whole:.0f}%)" if whole > LEAST_PER_SECOND else ""
    return f"{figure(crossing)} of {figure(whole)} tuples/s between executors cross supervisors{share}"


def _forecast(loads: Sequence[LoadView]) -> tuple[str, ...]:
    coming = [
        (abs(load.next_per_second - load.arrived_per_second), load)
        for load in loads
        if load.next_per_second is not None and load.arrived_per_second is not None
    ]
    if not coming:
        return ("Nothing is forecast yet: no period without a change has been measured.",) if loads else ()
    coming.sort(key=lambda item: (-item[0], item[1].component))
    moves = [
        f"{load.component} {figure(load.arrived_per_second)} -> {figure(load.next_per_second)} tuples/s"
        for _, load in coming
    ]
    return (f"Next period: {first_of(moves, most=MOST_NAMED)}.", *_misses(loads))


def _misses(loads: Sequence[LoadView]) -> tuple[str, ...]:
    misses = [
        100 * abs(load.forecast_per_second - load.arrived_per_second) / load.arrived_per_second
        for load in loads
        if load.forecast_per_second is not None
        and load.arrived_per_second is not None
        and load.arrived_per_second > LEAST_PER_SECOND
    ]
    if not misses:
        return ()
    return (f"The last forecast missed by {statistics.fmean(misses):.0f}% in the mean over components.",)


def _proposed(decision: DecisionView | None) -> tuple[str, ...]:
    """What the headline does not say."""
    if decision is None:
        return ()
    if decision.kind == "plan":
        gain = "" if decision.gain_percent is None else f" It {_change_of_cost(decision.gain_percent, 0)}."
        return (f"{AS_SAID.capitalize()}.{gain}",)
    if decision.gain_percent is None and not HOLD_RULES[HoldReason(decision.reason)].looked:
        return ("The policy was not asked: the rule below comes first.",)
    if decision.reason == HoldReason.NO_CHANGE:
        return ("The assignment in force.",)
    percent = round(decision.gain_percent or 0.0, 1)  # 0 also where it would cost more
    gain = f" It {_change_of_cost(percent, 1, 'would ')}." if percent else ""
    return (f"{AS_SAID.capitalize()}.{gain}",)


def _change_of_cost(gain_percent: float, digits: int, would: str = "") -> str:
    """What relieves an overload, or has to leave a supervisor, may cost more than what is in force."""
    verb = "lower" if gain_percent >= 0.0 else "raise"
    return f"{would}{verb}{'' if would else 's'} the cost by {abs(gain_percent):.{digits}f}%"


def _rule(decision: DecisionView | None, plans: Sequence[PlanView]) -> tuple[str, ...]:
    if decision is None:
        return (
            "Only topologies that a StormTopology describes or adopts are managed, and those not while it is suspended"
            " or paused.",
        )
    if decision.kind == "plan":
        takes_back = next((plan.rollback_of for plan in plans if plan.id == decision.plan_id), "")
        return (f"{takes_back} is taken back." if takes_back else "No rule objected: it is worth its restarts.",)
    return (HOLD_RULES[HoldReason(decision.reason)].rule,)


def _change(topology_id: str, decision: DecisionView | None, refused: Sequence[Refusal]) -> tuple[str, ...]:
    if decision is None:
        known = _why_nobody_manages(topology_id, refused)
        if known is not None and known.is_pause:
            return (HOLD_RULES[HoldReason.PAUSED].change,)
        return (
            "A StormTopology with spec.adopt for it; where there is one, spec.suspend false and no annotation"
            " storm-operator.dev/paused.",
        )
    return () if decision.kind == "plan" else (HOLD_RULES[HoldReason(decision.reason)].change,)


def _refused(topology_id: str, decision: DecisionView | None, refused: Sequence[Refusal]) -> tuple[str, ...]:
    """Of what may be of any topology only where nothing else describes this one; not what the headline says."""
    own = [one for one in refused if one.concerns(topology_id) and (one.topology or decision is None)]
    told = None if decision is not None else _why_nobody_manages(topology_id, own)
    return tuple(f"{one.sentence}." for one in own if one is not told)


def _why_nobody_manages(topology_id: str, refused: Sequence[Refusal]) -> Refusal | None:
    return next((one for one in refused if one.topology and one.concerns(topology_id)), None)


def _number_of_executors(topology: TopologyView, held: HeldResize | None) -> tuple[str, ...]:
    """Only what the load asks for and does not get: what it gets is seen, and what the spec says is known."""
    if held is None:
        return ()
    present = {component.name: component.executors for component in topology.components}
    wanted = [
        f"{name} {number}{f' instead of {present[name]}' if name in present else ''}"
        for name, number in sorted(held.executors.items())
    ]
    return (f"The load asks for {', '.join(wanted)}.", f"It waits ({held.hold.reason}): {held.hold.message}.")


def held_view(held: HeldResize) -> HeldResizeView:
    return HeldResizeView(dict(sorted(held.executors.items())), held.hold.reason.value, held.message)
