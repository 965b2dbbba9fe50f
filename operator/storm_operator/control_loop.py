"""One pass over one Storm cluster: observe -> verify -> decide -> apply. All topologies share one loop.

The loop owns what must be remembered between passes (history, last demand, what was tried) and nothing else; every
step is a call to a pure function of the core or to a port. One plan at a time: a plan is applied and verified before
the next is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from storm_operator.adapters.errors import OUT_OF_REACH, AdapterError, RebalanceInProgress, TopologyNotAlive
from storm_operator.apply import Applier
from storm_operator.apply_ports import Clock
from storm_operator.approval_desk import ApprovalDesk, was_asked_for
from storm_operator.core.agent_enforcement import AgentEnforcement
from storm_operator.core.assumed_needs import with_assumed_needs
from storm_operator.core.clock_steps import was_set_back
from storm_operator.core.decide import decide, in_excluded_window
from storm_operator.core.decision import Decision, Hold, HoldReason, Plan
from storm_operator.core.groups import (
    Group,
    estimate_group_demand,
    forecast_groups,
    group_by_settings,
    priority_of_topologies,
)
from storm_operator.core.learned_profile import accept_profiles
from storm_operator.core.load_history import undisturbed
from storm_operator.core.measurement_check import UNTRUSTED, unmeasured_topologies
from storm_operator.core.missed_turns import MissedTurns
from storm_operator.core.model import Assignment, Demand, Infeasible
from storm_operator.core.placement.registry import proposed, seconds_until_it_looks
from storm_operator.core.plan_progress import to_drain
from storm_operator.core.plan_record import PlanRecord
from storm_operator.core.proposals import AT_LEISURE, kept_if_as_good, proposed_record, why_a_person_must_approve
from storm_operator.core.served_first import hidden_needs, serve_by_priority
from storm_operator.core.settings import Mode, PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.topology_spec import TopologySpec
from storm_operator.limit_keeper import LimitKeeper
from storm_operator.loop_ports import (
    Journal,
    Listener,
    LoopMemory,
    NoProfiles,
    Observer,
    PassReport,
    ProfileSource,
    report_of_unseen,
)
from storm_operator.plan_in_hand import PlanInHand
from storm_operator.plan_verification import PlanVerification
from storm_operator.step_times import StepTimes

__all__ = ["ControlLoop", "Journal", "Listener", "LoopMemory", "Observer", "PassReport"]

MEASURED_ANEW = "another plan was applied in this period; measuring anew first"
SAYS_MORE = UNTRUSTED | {HoldReason.TOO_LITTLE_CAPACITY, HoldReason.INFEASIBLE}
"""What is wrong with a topology is told, and acted on, also while an approved plan for it has to wait."""

Decisions = tuple[tuple[tuple[str, ...], Decision], ...]
"""(topology ids, decision) for each group, in order."""


def _as_planned(snapshot: ClusterSnapshot, pending: PlanRecord | None) -> ClusterSnapshot:
    """Executors of the plan in hand are where it brings them: who is beside whom then says who is held."""
    if pending is None:
        return snapshot
    return replace(snapshot, assignment=snapshot.assignment.with_moves(pending.plan.target.slot_of))


@dataclass(slots=True)
class ControlLoop:
    """The loop for one Storm cluster. `new_plan_id` makes an id from the time in seconds."""

    observer: Observer
    applier: Applier
    journal: Journal
    clock: Clock
    listener: Listener
    new_plan_id: Callable[[float], str]
    period_seconds: float = 10.0
    profiles: ProfileSource = field(default_factory=NoProfiles)
    agents: Callable[[], Mapping[str, AgentEnforcement] | None] = lambda: None
    """See `PassReport.agents`."""
    memory: LoopMemory = field(default_factory=LoopMemory)
    times: StepTimes = field(default_factory=StepTimes)

    @property
    def desk(self) -> ApprovalDesk:
        """Where people say yes or no to plans."""
        return ApprovalDesk(self.memory, self.listener, self.clock, self.new_plan_id)

    @property
    def plans(self) -> PlanInHand:
        """What becomes of the plan that was decided for."""
        return PlanInHand(self.memory, self.journal, self.applier, self.listener, self.clock.now)

    @property
    def verification(self) -> PlanVerification:
        """Whether the plan in force stays so."""
        return PlanVerification(self.plans, self.desk, self.new_plan_id, self.period_seconds)

    @property
    def limits(self) -> LimitKeeper:
        """Who holds executors to their CPU limits."""
        return LimitKeeper(self.memory, self.applier.limits, self.applier.documents)

    def recover(self) -> PlanRecord | None:
        """Finish or abandon the plan that an earlier life of the operator left behind; call once, at the start.

        The CPU limits that it left are ours from now on, to follow or to lift.
        """
        self.memory.watched_since_seconds = self.clock.now()
        self.limits.take_over()
        record = self.journal.load()
        if record is not None:
            self.plans.take_up(record)
            self.plans.finish_interrupted()
        return self.plans.pending

    def run_once(self, specs: Mapping[str, TopologySpec]) -> PassReport:
        """One pass for the topologies in `specs` (by name). Never raises for what a peer does wrong: it holds."""
        now = self.clock.now()
        try:
            report = self._pass(specs)
        except AdapterError as error:
            return self.tell_out_of_reach(error, now)
        return self._told(report)

    def tell_out_of_reach(self, error: AdapterError, at_seconds: float | None = None) -> PassReport:
        """The report of a pass that a peer was in the way of: what was decided before is of the past."""
        if at_seconds is None:
            self.times.clear()  # those of the last pass that was made
        began = self.clock.now() if at_seconds is None else at_seconds
        return self._told(report_of_unseen(began, str(error)))

    def _told(self, report: PassReport) -> PassReport:
        pending = self.plans.pending
        open_plans = self.memory.proposals.waiting if pending is None else (*self.memory.proposals.waiting, pending)
        report = replace(report, step_seconds=self.times.seconds(), open_plans=open_plans, agents=self.agents())
        self.listener.on_pass(report)
        return report

    def _pass(self, specs: Mapping[str, TopologySpec]) -> PassReport:
        self.times.clear()
        self.plans.agree_with_journal()
        unfinished = self.plans.finish_interrupted()
        with self.times.step("observe"):
            snapshot = self._observe(specs, self.clock.now())
        now = snapshot.taken_at_seconds
        groups = group_by_settings(snapshot, specs)
        managed = frozenset(topology_id for group in groups for topology_id in group.topology_ids)
        self.desk.drop_those_of_unmanaged(managed)
        if not groups:
            self.verification.verify_if_settled(snapshot, groups, now)
            self.limits.lift_others(managed)
            hold = Hold(HoldReason.NOTHING_TO_MANAGE, "no managed topology runs on this cluster")
            return PassReport(now, snapshot, None, (((), hold),))
        with self.times.step("forecast"):
            learned = accept_profiles(self.profiles.read(specs), snapshot.topologies, self.profiles.cluster, now)
            forecasts = forecast_groups(snapshot, groups, learned)
            priority = priority_of_topologies(snapshot, specs)
            hidden = hidden_needs(self.memory.served, snapshot, groups)
            demand = estimate_group_demand(snapshot, groups, forecasts, self.memory.demand, priority, hidden)
        self.memory.demand = demand
        with self.times.step("verify"):
            is_taken_back = self.verification.verify_if_settled(snapshot, groups, now)
            is_taken_back = is_taken_back or self.verification.go_back_again(snapshot, groups, now)
        with self.times.step("decide_and_apply"):
            waits_for = MEASURED_ANEW if is_taken_back else unfinished
            decisions = self._decide_for_all(groups, snapshot, demand, priority, waits_for)
        with self.times.step("cpu_limits"):
            pending = self.plans.pending
            served = serve_by_priority(_as_planned(snapshot, pending), demand, groups, priority)
            self.memory.served = served.remembering(self.memory.served, snapshot)
            unmeasured = unmeasured_topologies(snapshot, demand, groups)
            in_force = self.limits.follow(snapshot, groups, served, unmeasured, pending)
            self.limits.lift_others(managed)
        limited = self.memory.limited
        return PassReport(now, snapshot, demand, decisions, forecasts, limited=limited, limits_millicores=in_force)

    def _observe(self, specs: Mapping[str, TopologySpec], now: float) -> ClusterSnapshot:
        memory = self.memory
        snapshot = self.observer.observe(specs, memory.history, now, self.period_seconds, memory.steady_since_seconds)
        since = self._running_since(snapshot.taken_at_seconds)
        steady = replace(snapshot, history=undisturbed(snapshot.history, since))
        self.memory.history = steady.history
        running = frozenset(topology.id for topology in snapshot.topologies)
        self.desk.drop_those_of_gone(running)
        self._forget_ended(running)
        return steady

    def _forget_ended(self, running: frozenset[str]) -> None:
        """Delete what is kept for topologies that have ended, once two passes in a row agree that they have.

        One that is submitted anew has another id, and would never find it. A killed one that has time to finish does so
        where its plan holds it: without that, Nimbus' other scheduler would move its workers meanwhile.
        """
        documents = self.applier.documents
        ended = frozenset(documents.planned_topologies()) - running
        gone_twice = ended & self.memory.ended
        if gone_twice:
            for topology_id in sorted(gone_twice.difference(self.applier.storm.not_ended(gone_twice))):
                documents.delete_plan(topology_id)
        self.memory.ended = ended

    def _running_since(self, now: float) -> float | None:
        """When the workers of the last plan were up; None when no plan was put in force yet, or nobody knows when."""
        last = self.memory.records[-1] if self.memory.records else None
        if last is None or last.in_force_at_seconds is None or was_set_back(last.in_force_at_seconds, now):
            return None
        return last.running_at_seconds

    def _decide_for_all(
        self,
        groups: tuple[Group, ...],
        snapshot: ClusterSnapshot,
        demand: Demand,
        priority: Mapping[str, int],
        waits_for: str,
    ) -> Decisions:
        """Group after group; once one has changed the cluster, the snapshot is of the past and the others wait.

        All wait where there is something that the next plan `waits_for`.
        """
        decisions: list[tuple[tuple[str, ...], Decision]] = []
        heard: dict[str, float] = {}
        records_before = self.memory.records
        for group in groups:
            decision: Decision
            if waits_for:
                decision = Hold(HoldReason.APPLYING, waits_for)
            else:
                decision = self._decide_and_apply(group, snapshot, demand, priority)
                waits_for = "" if self.memory.records == records_before else MEASURED_ANEW
            pending = self.plans.pending
            in_hand = pending.plan.topology_ids if pending is not None else ()
            heard |= self.memory.missed_turns.after(group.topology_ids, snapshot, decision, in_hand)
            decisions.append((group.topology_ids, decision))
        self.memory.missed_turns = MissedTurns(heard)
        return tuple(decisions)

    def _decide_and_apply(
        self, group: Group, snapshot: ClusterSnapshot, demand: Demand, priority: Mapping[str, int]
    ) -> Decision:
        decision = self._decide(group, snapshot, demand, priority)
        self.memory.decisions = self.memory.decisions.with_decision(group.topology_ids, decision)
        made = decision
        approved = self.desk.review(group.topology_ids, made, snapshot)
        if approved is not None:
            if group.scheduling.mode is Mode.OBSERVE and not was_asked_for(approved):
                self.desk.withdraw(approved.plan.id, "mode is Observe by now: nothing is carried out")
                return decision
            decision = approved.plan
            excluded = in_excluded_window(group.scheduling, self.clock.now())
            if excluded is not None and not approved.rollback_of:
                return _waiting(excluded.reason, f"plan {decision.id} is approved; {excluded.message}", made)
        elif isinstance(decision, Hold):
            return decision
        else:
            waits_for = why_a_person_must_approve(decision, group.scheduling)
            way_back = self.desk.way_back_for(group.topology_ids)
            if waits_for and way_back is not None and decision.cause in AT_LEISURE:
                words = f"plan {way_back.plan.id}, which takes {way_back.rollback_of} back, waits for a person first"
                return Hold(HoldReason.AWAITING_APPROVAL, f"{words}; {decision.reason}", decision.gain_percent)
            if waits_for:
                return self.desk.propose(proposed_record(decision, group, snapshot), waits_for)
        pending = self.plans.pending
        if pending is not None:
            words = f"plan {pending.plan.id} settles and is verified first; {decision.reason}"
            return _waiting(HoldReason.APPLYING, words, made)
        return self._apply(decision, group, snapshot)

    def _decide(self, group: Group, snapshot: ClusterSnapshot, demand: Demand, priority: Mapping[str, int]) -> Decision:
        settings = PlacementSettings(
            scheduling=group.scheduling,
            movable=frozenset(group.topology_ids),
            restart_seconds=self.memory.decisions.restart_seconds,
            priority=priority,
            resources=group.resources,
        )
        demand = with_assumed_needs(snapshot, demand, settings)
        asked = self.memory.missed_turns.made_up_for(group.topology_ids, snapshot)
        proposal = proposed(asked, demand, settings)
        now = self.clock.now()

        def judged(proposal: Assignment | Infeasible) -> Decision:
            return decide(
                snapshot,
                demand,
                proposal,
                settings,
                self.memory.decisions,
                now_seconds=now,
                plan_id=self.new_plan_id(now),
                looks_in_seconds=seconds_until_it_looks(asked, settings),
            )

        decision, waiting = judged(proposal), self.desk.waiting_for(group.topology_ids, snapshot)
        if waiting is None:
            return decision
        again = judged(snapshot.assignment.with_moves(waiting.target.slot_of))
        return kept_if_as_good(decision, again, group.scheduling)

    @property
    def has_pending_plan(self) -> bool:
        """Whether a plan is being applied, or waits to be verified."""
        return self.plans.pending is not None

    @property
    def being_moved(self) -> tuple[str, ...]:
        """Ids of the topologies of a plan whose way into force was cut short: their spouts may be paused."""
        record = self.plans.interrupted
        return record.plan.topology_ids if record is not None else ()

    @property
    def paused(self) -> tuple[str, ...]:
        """Ids of those of them whose spouts the plan pauses, and resumes when it is in force."""
        record = self.plans.interrupted
        return to_drain(record) if record is not None else ()

    def resume_paused(self) -> None:
        """In the midst of a plan, before an end that does not wait for it. Raises `AdapterError`."""
        record = self.plans.interrupted
        if record is not None:
            self.applier.resume_spouts(record)

    def _apply(self, plan: Plan, group: Group, snapshot: ClusterSnapshot) -> Decision:
        """The plan; a hold where it was refused before anything was done: other groups need not wait for it."""
        record = self.desk.with_approval(proposed_record(plan, group, snapshot))
        try:
            self.plans.settle(self.applier.apply(record, self._save))
        except OUT_OF_REACH:
            raise
        except (TopologyNotAlive, RebalanceInProgress) as error:
            refused = f"plan {plan.id} cannot be put in force: {error}"
            return Hold(HoldReason.APPLYING, self.plans.why_unfinished(error) or refused)
        except AdapterError as error:
            if self.plans.pending is not None:
                raise
            return Hold(HoldReason.CLUSTER_UNREACHABLE, f"plan {plan.id} cannot be begun: {error}")
        return plan

    def _save(self, record: PlanRecord) -> None:
        self.plans.save(record)
        self.desk.release(record.plan.id)

    def release(self) -> None:
        """Nobody watches from now on: executors are no longer held to what they were last found to need."""
        self.limits.lift_others(frozenset())


def _waiting(reason: HoldReason, words: str, made: Decision) -> Hold:
    """The hold of a plan that has to wait, where `made` is what was decided in this pass about its topologies."""
    if isinstance(made, Hold) and (made.reason in SAYS_MORE or made.short_topologies):
        return replace(made, message=f"{made.message}; {words}")
    return Hold(reason, words)
