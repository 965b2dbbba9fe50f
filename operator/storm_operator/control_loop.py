"""One pass over one Storm cluster: observe -> verify -> decide -> apply. All topologies share one loop.

The loop owns what must be remembered between passes (history, last demand, what was tried) and nothing else; every
step is a call to a pure function of the core or to a port. One plan at a time: a plan is applied and verified before
the next is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from storm_operator.adapters.errors import AdapterError
from storm_operator.apply import Applier
from storm_operator.apply_ports import Clock
from storm_operator.approval_desk import ApprovalDesk
from storm_operator.core.agent_enforcement import AgentEnforcement
from storm_operator.core.backoff import LONGEST_PASS_RETRY_SECONDS
from storm_operator.core.clock_steps import was_set_back
from storm_operator.core.decision import Hold, HoldReason
from storm_operator.core.groups import (
    estimate_group_demand,
    forecast_groups,
    group_by_settings,
    priority_of_topologies,
)
from storm_operator.core.learned_profile import accept_profiles
from storm_operator.core.load_history import each_since, undisturbed
from storm_operator.core.measurement_check import unmeasured_topologies
from storm_operator.core.model import Assignment
from storm_operator.core.plan_progress import to_drain
from storm_operator.core.plan_record import PlanRecord
from storm_operator.core.served_first import hidden_needs, serve_by_priority
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.topology_spec import TopologySpec
from storm_operator.group_turns import MEASURED_ANEW, GroupTurns
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


def _as_planned(assignment: Assignment, pending: PlanRecord | None) -> Assignment:
    """Executors of the plan in hand are where it brings them: who is beside whom then says who is held."""
    return assignment if pending is None else assignment.with_moves(pending.plan.target.slot_of)


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
    def turns(self) -> GroupTurns:
        """What is decided about each group, and done."""
        return GroupTurns(self.memory, self.desk, self.plans, self.clock, self.new_plan_id)

    @property
    def limits(self) -> LimitKeeper:
        """Who holds executors to their CPU limits."""
        return LimitKeeper(self.memory, self.applier.limits, self.applier.documents)

    def recover(self) -> PlanRecord | None:
        """Finish or abandon the plan that an earlier life of the operator left behind; call once, at the start."""
        self.take_over()
        self.plans.finish_interrupted()
        return self.plans.pending

    def take_over(self) -> None:
        """As `recover`, but the plan stays as it is: it is known from now on which spouts it has paused.

        The CPU limits that an earlier life of the operator left are ours from now on, to follow or to lift.
        """
        self.memory.watched_since_seconds = self.clock.now()
        self.limits.take_over()
        record = self.journal.load()
        if record is not None:
            self.plans.take_up(record)

    def carry_on(self) -> None:
        """Go on with a plan whose way into force was cut short, before what may take long: its spouts may be paused.
        `run_once` begins with that, too. Raises `AdapterError`.
        """
        if self.being_moved:
            self.plans.agree_with_journal()
            self.plans.finish_interrupted()

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
            decisions = self.turns.decide_for_all(groups, snapshot, demand, priority, waits_for)
        with self.times.step("cpu_limits"):
            pending = self.plans.pending
            planned = _as_planned(snapshot.assignment, pending)
            served = serve_by_priority(snapshot, demand, groups, priority, planned)
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
        running = frozenset(topology.id for topology in snapshot.topologies)
        anew = {one: at for one, at in memory.measured_anew_since.items() if one in running and at <= now}
        steady = replace(snapshot, history=each_since(undisturbed(snapshot.history, since), anew))
        memory.history, memory.measured_anew_since = steady.history, anew
        self.desk.drop_those_of_gone(running)
        self._forget_ended(running)
        return steady

    def measure_anew(self, topology_id: str) -> None:
        """Its spouts begin again: that nothing was to be done until now is no load to plan for."""
        since = {**self.memory.measured_anew_since, topology_id: self.clock.now()}
        self.memory.measured_anew_since = since

    def _forget_ended(self, running: frozenset[str]) -> None:
        """Delete what is kept for topologies that have ended, once two passes in a row agree that they have.

        One that is submitted anew has another id, and would never find it. A killed one that has time to finish does so
        where its plan holds it: without that, Nimbus' other scheduler would move its workers meanwhile.
        """
        documents, decisions = self.applier.documents, self.memory.decisions
        planned = frozenset(documents.planned_topologies())
        ended = (planned | decisions.topology_ids) - running
        gone_twice = ended & self.memory.ended
        self.memory.decisions = decisions.without(gone_twice)
        still_planned = gone_twice & planned
        if still_planned:
            for topology_id in sorted(still_planned.difference(self.applier.storm.not_ended(still_planned))):
                documents.delete_plan(topology_id)
        self.memory.ended = ended

    def _running_since(self, now: float) -> float | None:
        """When the workers of the last plan were up; None when no plan was put in force yet, or nobody knows when."""
        last = self.memory.records[-1] if self.memory.records else None
        if last is None or last.in_force_at_seconds is None or was_set_back(last.in_force_at_seconds, now):
            return None
        return last.running_at_seconds

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
    def seconds_to_next(self) -> float:
        """From the beginning of a pass that came through to that of the next: a period. Spouts that are paused for a
        plan whose way into force was cut short, as by somebody's rebalance, wait no longer than after a failure."""
        return min(self.period_seconds, LONGEST_PASS_RETRY_SECONDS) if self.being_moved else self.period_seconds

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

    def take_left_paused(self) -> tuple[str, ...]:
        """Ids of topologies whose spouts a plan that is over could not resume, for who goes on trying: told once."""
        taken, self.memory.left_paused = self.memory.left_paused, ()
        return taken

    def release(self) -> None:
        """Nobody watches from now on: executors are no longer held to what they were last found to need."""
        self.limits.lift_others(frozenset())
