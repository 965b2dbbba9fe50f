"""Where plans wait for a person: shown, kept while they stand, approved, rejected, withdrawn, taken back."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from storm_operator.apply_ports import Clock
from storm_operator.core.decision import Decision, Plan, PlanCause
from storm_operator.core.direct_plan import reverse_plan
from storm_operator.core.plan_progress import why_out_of_reach
from storm_operator.core.plan_record import AUTO, Outcome, PlanRecord, PlanState
from storm_operator.core.proposals import is_same_proposal, moved_away, outdated
from storm_operator.core.settings import ApplyMethod
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.loop_ports import Listener, LoopMemory

OTHERS_MOVE = "plan {} moves others on its supervisors: it is proposed anew while it is worth it"


@dataclass(frozen=True, slots=True)
class ApprovalDesk:
    """A view of the loop's memory: it keeps nothing itself. Every change of a proposal is told to `listener`."""

    memory: LoopMemory
    listener: Listener
    clock: Clock
    new_plan_id: Callable[[float], str]

    def waiting_for(self, topology_ids: tuple[str, ...], snapshot: ClusterSnapshot) -> Plan | None:
        """The plan for these topologies that waits for a person and can still be carried out as it was shown."""
        for known in self.memory.proposals.of(topology_ids):
            is_open = not known.approved_by and not known.rollback_of
            if is_open and not self._obstacle(known, topology_ids, snapshot):
                return known.plan
        return None

    def review(self, topology_ids: tuple[str, ...], decision: Decision, snapshot: ClusterSnapshot) -> PlanRecord | None:
        """The first proposal for these topologies that was approved and still stands; outdated ones are told so."""
        for known in self.memory.proposals.of(topology_ids):
            approved = bool(known.approved_by)
            # An approved plan is carried out even if another would be proposed by now, but never from another start. A
            # way back no policy would propose.
            proposed_now = known.plan if approved or known.rollback_of else decision
            lately = self.memory.proposals.was_proposed_lately(known.plan.id, self.clock.now())
            expired = self._obstacle(known, topology_ids, snapshot) or outdated(
                known, proposed_now, proposed_lately=lately
            )
            if expired is not None:
                self._drop(known, PlanState.EXPIRED, expired)
            elif approved:
                return known
        return None

    @staticmethod
    def _obstacle(known: PlanRecord, topology_ids: tuple[str, ...], snapshot: ClusterSnapshot) -> str | None:
        out_of_reach = why_out_of_reach(known.plan.base, known.plan.target, snapshot)
        return out_of_reach or _strangers(known, topology_ids) or moved_away(known, snapshot.assignment)

    def propose(self, record: PlanRecord, waits_for: str) -> Plan:
        """Let the plan wait for a person, unless one that does the same waits already; the one that waits."""
        for known in self.memory.proposals.of(record.plan.topology_ids):
            if is_same_proposal(known, record.plan):
                self.memory.proposals = self.memory.proposals.proposed_again(known.plan.id, self.clock.now())
                return known.plan
        self.propose_first(record, waits_for)
        return record.plan

    def propose_first(self, record: PlanRecord, waits_for: str) -> None:
        """Let the plan wait for a person, in place of whatever waits for its topologies."""
        self._keep(replace(record, message=waits_for))

    def way_back_for(self, topology_ids: tuple[str, ...]) -> PlanRecord | None:
        """The way back that waits for a person to say yes."""
        found = self.memory.proposals.of(topology_ids)
        return next((known for known in found if known.rollback_of and not known.approved_by), None)

    def with_approval(self, record: PlanRecord) -> PlanRecord:
        """`record` with what is known of its proposal: who said yes, and when. One that waited begins only now."""
        known = self.memory.proposals.named(record.plan.id)
        if known is None or not known.approved_by:
            return replace(record, approved_by=AUTO, approved_at_seconds=self.clock.now())
        return replace(
            record,
            started_at_seconds=self.clock.now(),
            rollback_of=known.rollback_of,
            approved_by=known.approved_by,
            approved_at_seconds=known.approved_at_seconds,
        )

    def release(self, plan: Plan) -> None:
        """The plan is being carried out: it waits no longer, nor does what its topologies were shown before it, perhaps
        the same. Not before it is saved, lest the approval be lost."""
        self.memory.proposals = self.memory.proposals.without(plan.id)
        self._supersede(plan)
        self._outdate_beside(plan)

    def _outdate_beside(self, plan: Plan) -> None:
        """What nobody has approved yet, and would use the same supervisors, was reckoned with others there: two plans
        that each gather topologies where the other's were change places. What is still worth it is proposed anew.

        A way back was not reckoned.
        """
        touched = _supervisors_of(plan)
        for known in self.memory.proposals.waiting:
            is_open = not known.approved_by and not known.rollback_of
            if is_open and touched & _supervisors_of(known.plan):
                self._drop(known, PlanState.EXPIRED, OTHERS_MOVE.format(plan.id))

    def _keep(self, record: PlanRecord) -> None:
        self.take_up(record)
        self.listener.on_record(record)

    def take_up(self, record: PlanRecord) -> None:
        """Let it wait; whatever waited for its topologies before is told that it is superseded.

        It is itself not told of: an earlier life of the operator has done so.
        """
        self._supersede(record.plan)
        proposals = self.memory.proposals.having(record)
        self.memory.proposals = proposals.proposed_again(record.plan.id, self.clock.now())

    def _supersede(self, plan: Plan) -> None:
        for known in self.memory.proposals.of(plan.topology_ids):
            self._drop(known, PlanState.EXPIRED, f"superseded by plan {plan.id}")

    def drop_those_of_gone(self, running: AbstractSet[str]) -> None:
        """No group will ever look at these again: a topology that is submitted anew has another id."""
        for known in self.memory.proposals.waiting:
            gone = sorted(set(known.plan.topology_ids) - running)
            if gone:
                self._drop(known, PlanState.EXPIRED, f"{', '.join(gone)} no longer runs")

    def drop_those_of_unmanaged(self, managed: AbstractSet[str]) -> None:
        """No group looks at these for now, perhaps for weeks: who approves one would wait, and then be surprised."""
        for known in self.memory.proposals.waiting:
            if managed.isdisjoint(known.plan.topology_ids):
                self._drop(known, PlanState.EXPIRED, "its topologies are no longer managed")

    def approve(self, plan_id: str, by: str) -> bool:
        """Carry out the proposal in the next pass; False when there is none of that id. `by`: who says so."""
        known = self.memory.proposals.named(plan_id)
        if known is None:
            return False
        words = f"approved by {by}; it begins with the next pass"
        approved = replace(known, approved_by=by, approved_at_seconds=self.clock.now(), message=words)
        self.memory.proposals = self.memory.proposals.having(approved)
        self.listener.on_record(approved)
        return True

    def reject(self, plan: Plan, message: str) -> None:
        """Its target is not proposed again, also where `plan` itself no longer waits; forget it where it does."""
        self.memory.decisions = self.memory.decisions.with_known_bad(plan.target)
        known = self.memory.proposals.named(plan.id)
        if known is not None:
            self._drop(known, PlanState.REJECTED, message)

    def withdraw(self, plan_id: str, message: str) -> None:
        """Forget a proposal; the next pass makes another if one is due."""
        known = self.memory.proposals.named(plan_id)
        if known is not None:
            self._drop(known, PlanState.EXPIRED, message)

    def have_made_anew(self, plan_id: str, message: str) -> PlanRecord | None:
        """As `withdraw`; but a way back from what did harm no pass would make: the one that waits in its place."""
        known = self.memory.proposals.named(plan_id)
        self.withdraw(plan_id, message)
        if known is None or not known.rollback_of or was_asked_for(known):
            return None
        now = self.clock.now()
        plan = replace(known.plan, id=self.new_plan_id(now), created_at_seconds=now)
        again = replace(known, plan=plan, started_at_seconds=now, approved_by="", approved_at_seconds=None)
        words = f"in the place of {plan_id}: takes {known.rollback_of} back once somebody approves it"
        self.propose_first(again, words)
        return again

    def propose_way_back(self, plan: Plan, by: str) -> Plan:
        """The way back from `plan`, approved by whoever has asked for it."""
        now = self.clock.now()
        back = replace(
            reverse_plan(plan, self.new_plan_id(now), now),
            reason=f"takes {plan.id} back: asked for",
            cause=PlanCause.TAKEN_BACK,
        )
        unknown = Outcome(None, None, None, None, None)
        record = PlanRecord(
            back,
            ApplyMethod.REBALANCE,
            PlanState.PROPOSED,
            unknown,
            now,
            "asked for",
            rollback_of=plan.id,
            approved_by=by,
            approved_at_seconds=now,
        )
        self._keep(record)
        self.memory.decisions = self.memory.decisions.with_way_back(back, now)
        return back

    def _drop(self, known: PlanRecord, state: PlanState, message: str) -> None:
        self.memory.proposals = self.memory.proposals.without(known.plan.id)
        self.listener.on_record(replace(known, state=state, message=message))


def _supervisors_of(plan: Plan) -> set[str]:
    """Those that its executors leave, or come to."""
    return {slot.supervisor_id for place in (plan.base, plan.target) for slot in place.slot_of.values()}


def was_asked_for(record: PlanRecord) -> bool:
    """Whether the plan is a way back that nobody but a person wanted."""
    return record.plan.cause is PlanCause.TAKEN_BACK


def _strangers(known: PlanRecord, topology_ids: tuple[str, ...]) -> str:
    """Why the plan would move what is no longer decided for together; empty where all its topologies still are.

    Not of a way back that a person asked for: whoever does names the plan, and so all that it moved.
    """
    others = sorted(set(known.plan.topology_ids).difference(topology_ids))
    if not others or was_asked_for(known):
        return ""
    return f"{', '.join(others)} is managed by other settings by now, or by nobody"
