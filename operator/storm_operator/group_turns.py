"""One group of topologies after the other: what is decided about each in a pass, and put in force."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from storm_operator.adapters.errors import OUT_OF_REACH, AdapterError, RebalanceInProgress, TopologyNotAlive
from storm_operator.apply_ports import Clock
from storm_operator.approval_desk import ApprovalDesk, was_asked_for
from storm_operator.core.assumed_needs import with_assumed_needs
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.decide import decide, in_excluded_window
from storm_operator.core.decision import Decision, Hold, HoldReason, Plan
from storm_operator.core.groups import Group
from storm_operator.core.measurement_check import UNTRUSTED
from storm_operator.core.missed_turns import MissedTurns
from storm_operator.core.model import Assignment, Infeasible
from storm_operator.core.placement.registry import proposed, seconds_until_it_looks
from storm_operator.core.plan_record import PlanRecord
from storm_operator.core.proposals import (
    AT_LEISURE,
    as_of_now,
    kept_if_as_good,
    left_to_storm,
    proposed_record,
    why_a_person_must_approve,
)
from storm_operator.core.settings import Mode, PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.loop_ports import LoopMemory
from storm_operator.plan_in_hand import PlanInHand

MEASURED_ANEW = "another plan was applied in this period; measuring anew first"
SAYS_MORE = UNTRUSTED | {HoldReason.TOO_LITTLE_CAPACITY, HoldReason.INFEASIBLE}
"""What is wrong with a topology is told, and acted on, also while an approved plan for it has to wait."""

Decisions = tuple[tuple[tuple[str, ...], Decision], ...]
"""(topology ids, decision) for each group, in order."""


@dataclass(frozen=True, slots=True)
class GroupTurns:
    """All memory is in `memory`. `new_plan_id` makes an id from the time in seconds."""

    memory: LoopMemory
    desk: ApprovalDesk
    plans: PlanInHand
    clock: Clock
    new_plan_id: Callable[[float], str]

    def decide_for_all(
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
        return tuple((topology_ids, self._as_it_stands(decision)) for topology_ids, decision in decisions)

    def _as_it_stands(self, decision: Decision) -> Decision:
        """A plan that was to wait for a person, and that another's of this pass has outdated, is none."""
        if isinstance(decision, Hold):
            return decision
        waits = self.memory.proposals.named(decision.id) is not None
        is_known = waits or self.plans.known(decision.id) is not None
        return decision if is_known else Hold(HoldReason.APPLYING, MEASURED_ANEW, decision.gain_percent)

    def _decide_and_apply(
        self, group: Group, snapshot: ClusterSnapshot, demand: Demand, priority: Mapping[str, int]
    ) -> Decision:
        settings = PlacementSettings(
            scheduling=group.scheduling,
            movable=frozenset(group.topology_ids),
            restart_seconds=self.memory.decisions.restart_seconds,
            priority=priority,
            resources=group.resources,
        )
        demand = with_assumed_needs(snapshot, demand, settings)
        decision = self._decide(group, snapshot, demand, settings)
        self.memory.decisions = self.memory.decisions.with_decision(group.topology_ids, decision)
        made = decision
        approved = self.desk.review(group.topology_ids, made, snapshot)
        if approved is not None:
            if group.scheduling.mode is Mode.OBSERVE and not was_asked_for(approved):
                self.desk.withdraw(approved.plan.id, "mode is Observe by now: nothing is carried out")
                return decision
            is_told_anew = not isinstance(made, Hold) or made.reason not in UNTRUSTED
            decision = as_of_now(approved.plan, snapshot, demand, settings) if is_told_anew else approved.plan
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

    def _decide(self, group: Group, snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings) -> Decision:
        asked = self.memory.missed_turns.made_up_for(group.topology_ids, snapshot)
        proposal = proposed(asked, demand, settings)
        now = self.clock.now()

        def judged(proposal: Assignment | Infeasible) -> Decision:
            decided = decide(
                snapshot,
                demand,
                proposal,
                settings,
                self.memory.decisions,
                now_seconds=now,
                plan_id=self.new_plan_id(now),
                looks_in_seconds=seconds_until_it_looks(asked, settings),
            )
            return left_to_storm(decided, group.scheduling, snapshot)

        decision, waiting = judged(proposal), self.desk.waiting_for(group.topology_ids, snapshot)
        if waiting is None:
            return decision
        again = judged(snapshot.assignment.with_moves(waiting.target.slot_of))
        return kept_if_as_good(decision, again, group.scheduling)

    def _apply(self, plan: Plan, group: Group, snapshot: ClusterSnapshot) -> Decision:
        """The plan; a hold where it was refused before anything was done: other groups need not wait for it."""
        record = self.desk.with_approval(proposed_record(plan, group, snapshot))
        try:
            self.plans.settle(self.plans.applier.apply(record, self._save))
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
        self.plans.save(record, lambda: self.desk.release(record.plan))


def _waiting(reason: HoldReason, words: str, made: Decision) -> Hold:
    """The hold of a plan that has to wait, where `made` is what was decided in this pass about its topologies."""
    if isinstance(made, Hold) and (made.reason in SAYS_MORE or made.short_topologies):
        return replace(made, message=f"{made.message}; {words}")
    return Hold(reason, words)
