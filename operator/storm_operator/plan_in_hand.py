"""The plan in hand: saved before each deed, finished by the next life, verified, taken back when it did harm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from storm_operator.adapters.errors import OUT_OF_REACH, PASSING, AdapterError, MalformedDocument, RebalanceInProgress
from storm_operator.apply import Applier
from storm_operator.approval_desk import ApprovalDesk
from storm_operator.core.clock_steps import was_set_back
from storm_operator.core.groups import Group
from storm_operator.core.load_history import was_counted_since
from storm_operator.core.plan_outcome import outcome_of
from storm_operator.core.plan_progress import failed_since, resized_topologies, supervisors_gone
from storm_operator.core.plan_record import AUTO, Outcome, PlanRecord, PlanState
from storm_operator.core.proposals import moved_away
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.verify import judge, why_no_verdict
from storm_operator.core.way_back import way_back_from, why_it_waits, why_no_way_back, why_not_to_be_moved
from storm_operator.core.wording import first_of
from storm_operator.loop_ports import Journal, Listener, LoopMemory

KEPT_RECORDS = 50
PATIENCE_SETTLINGS = 5
"""A plan that cannot be verified within so many settling times is no longer waited for."""
ENDED_BY_ANOTHER = "no longer in the journal: another storm-operator managed the cluster meanwhile, and ended it"
TAKEN_BACK_BY = "plan {} takes it back"
STANDS = (
    "it did harm, and is in force all the same: its way back, plan {}, failed, which is tried again after a pause,"
    " unless the operator is started anew"
)
"""What failed is remembered by this life alone."""


@dataclass(frozen=True, slots=True)
class PlanInHand:
    """What becomes of a plan from its first save to its last word. All memory is in `memory` and `journal`."""

    memory: LoopMemory
    journal: Journal
    applier: Applier
    desk: ApprovalDesk
    listener: Listener
    new_plan_id: Callable[[float], str]
    now: Callable[[], float]
    period_seconds: float

    @property
    def pending(self) -> PlanRecord | None:
        """The plan that is being applied or waits to be verified; there is one at most."""
        last = self.memory.records[-1] if self.memory.records else None
        return last if last is not None and not last.state.is_final else None

    @property
    def interrupted(self) -> PlanRecord | None:
        """The plan that was begun, and whose way into force was cut short."""
        record = self.pending
        return record if record is not None and record.state is PlanState.APPLYING else None

    def take_up(self, kept: PlanRecord) -> None:
        """What the journal has of an earlier life of the operator, or of another's."""
        if kept.state.is_final:
            self.listener.on_record(kept)  # that life ended before it told of it, or cleared the journal
        self.memory.proposals = self.memory.proposals.without(kept.plan.id)
        self.settle(kept)

    def agree_with_journal(self) -> None:
        """Go by the journal where it has another plan in hand than is known here, or the same at another step.

        Another managed the cluster then, while this one was frozen, or cut off, beyond its session: to go on from
        memory would put in force what that one has finished, taken back, or replaced, or leave its spouts paused. Or a
        write of this one took place whose answer was lost: the next life, perhaps after days, would go on with it.
        """
        try:
            kept = self.journal.load()
        except MalformedDocument:
            return  # the next step writes it anew
        record = self.pending
        if record is None:
            self._take_up_if_unknown(kept)
            return
        if kept is not None and (kept.plan.id, kept.state) == (record.plan.id, record.state):
            return
        if kept is None or kept.plan.id != record.plan.id:
            self._tell(_as_ended_meanwhile(record, kept))
        if kept is not None:
            self.take_up(kept)

    def _take_up_if_unknown(self, kept: PlanRecord | None) -> None:
        """Here no plan is in hand: one that is known here has ended, and the journal was not cleared of it."""
        if kept is None:
            return
        if any(known.plan.id == kept.plan.id for known in self.memory.records):
            self.journal.clear()
        else:
            self.take_up(kept)

    def finish_interrupted(self) -> str:
        """Go on with a plan whose way into force was cut short by a dead operator, or by a peer.

        Why it is not done yet, where that is a rebalance that somebody else asked for, which may wait for minutes:
        Nimbus would leave spouts that are paused for the plan as they are. Empty where it has gone on.
        """
        record = self.interrupted
        if record is None:
            return ""
        try:
            self._go_on_with(record)
        except RebalanceInProgress as error:
            return self.why_unfinished(error)
        return ""

    def why_unfinished(self, obstacle: AdapterError) -> str:
        """Of the plan that was begun and goes on when `obstacle` is over; empty where none was begun."""
        record = self.interrupted
        if record is None:
            return ""
        is_in_force = record.in_force_at_seconds is not None
        how_far = "is in force, but its spouts are still paused" if is_in_force else "is not in force yet"
        return f"plan {record.plan.id} {how_far}: {obstacle}"

    def _go_on_with(self, record: PlanRecord) -> None:
        """A peer that was out of reach is waited for.

        One that refuses otherwise is taken at its word: a plan that is tried for ever keeps its topologies paused, and
        everybody else without a plan.
        """
        try:
            self.settle(self.applier.resume(record, self.save))
        except PASSING:
            raise
        except AdapterError as error:
            self._abandon(self.pending or record, f"abandoned: {error}")

    def _abandon(self, record: PlanRecord, message: str) -> None:
        try:
            self.settle(self.applier.abandon(record, message, self.save))
        except PASSING:
            raise
        except AdapterError as error:
            self._close(record, PlanState.FAILED, f"{message}; spouts may still be paused: {error}")

    def verify_if_settled(self, snapshot: ClusterSnapshot, groups: tuple[Group, ...], now: float) -> bool:
        """Close the plan once its figures tell what it brought, or once it is clear that they never will.

        Whether it was taken back: `snapshot` shows the cluster as it was before that.
        """
        record = self.pending if self.interrupted is None else None
        if record is None or record.in_force_at_seconds is None or record.running_at_seconds is None:
            return False
        ended = sorted(set(record.plan.topology_ids).difference(topology.id for topology in snapshot.topologies))
        if ended:  # of the others alone nothing was measured before
            words = f"in force, but cannot be judged: {', '.join(ended)} no longer runs"
            self._close(record, PlanState.EXPIRED, words)
            return False
        group = next((g for g in groups if set(record.plan.topology_ids) & set(g.topology_ids)), None)
        if group is None:
            self._close(record, PlanState.EXPIRED, "its topologies are no longer managed")
            return False
        gone = supervisors_gone(record.plan, snapshot)
        if gone:  # what is measured now says nothing about the plan, and what it leaves must be planned for at once
            self._close(record, PlanState.EXPIRED, f"in force, but cannot be judged: lost {', '.join(gone)} meanwhile")
            return False
        resized = resized_topologies(record.plan, snapshot)
        if resized:  # neither is the plan in force any more, nor can those that it moved go back
            words = f"in force, but cannot be judged: {', '.join(resized)} has other executors by now"
            self._close(record, PlanState.EXPIRED, words)
            return False
        # Whoever was not seen to run may never: what that does to a topology is taken back no later for it.
        settles_from = record.in_force_at_seconds + (record.seconds_to_running or 0.0)
        if was_set_back(settles_from, now):  # nobody knows for how long it has run
            self._close(record, PlanState.EXPIRED, "in force, but cannot be judged: the clock was set back meanwhile")
            return False
        if now < settles_from + group.scheduling.settling_seconds:
            return False
        measured = outcome_of(snapshot, record.plan.topology_ids, record.timed_before)
        running_at = record.running_at_seconds
        unclear = why_no_verdict(record, measured) or self._why_too_early(record, running_at, snapshot)
        if not unclear:
            margin_percent = group.scheduling.rollback_margin_percent
            return self._conclude(record, measured, margin_percent, groups, snapshot)
        if now >= self._patience_ends(running_at, now, group.scheduling.settling_seconds):
            problems = first_of(snapshot.completeness.problems, "; ")
            why = "; ".join(filter(None, (problems, unclear)))
            self._close(record, PlanState.EXPIRED, f"in force, but could not be verified: {why}")
        return False  # unknown is not a verdict yet: ask again next period

    @staticmethod
    def _why_too_early(record: PlanRecord, running_at: float, snapshot: ClusterSnapshot) -> str:
        """What is counted while workers start is not what the plan brought. The way back of another is not judged."""
        if record.rollback_of or was_counted_since(snapshot, running_at):
            return ""
        return "what was measured reaches back to before its workers ran"

    def _patience_ends(self, running_at: float, now: float, settling_seconds: float) -> float:
        watched_since = self.memory.watched_since_seconds
        since = running_at if was_set_back(watched_since, now) else max(running_at, watched_since)
        return since + PATIENCE_SETTLINGS * max(settling_seconds, self.period_seconds)

    def _conclude(
        self,
        record: PlanRecord,
        measured: Outcome,
        margin_percent: float,
        groups: tuple[Group, ...],
        snapshot: ClusterSnapshot,
    ) -> bool:
        """Whether the plan was taken back."""
        verdict = judge(record, measured, margin_percent)
        record = replace(record, measured=measured, failed_tuples=self._failed_in(record))
        if record.rollback_of:  # it would only be compared with what it leaves
            words = TAKEN_BACK_BY.format(record.plan.id)
            self._correct(record.rollback_of, PlanState.EXPIRED, PlanState.ROLLED_BACK, words)
            self._close(record, PlanState.VERIFIED, f"rolled back {record.rollback_of}")
            return False
        if not verdict.worse:
            self._close(record, PlanState.VERIFIED, verdict.message)
            return False
        held_back = why_not_to_be_moved(record.plan, groups)
        if held_back:
            self._close(record, PlanState.EXPIRED, f"{verdict.message}; it is not taken back: {held_back}")
            return False
        obstacle = why_no_way_back(record.plan, snapshot)
        if obstacle:
            self._close(record, PlanState.EXPIRED, f"{verdict.message}; it cannot be taken back: {obstacle}")
            return False
        waits_for = why_it_waits(record.plan, groups)
        if waits_for:
            way_back = self._open_way_back(record, measured)
            words = f"{verdict.message}; plan {way_back.plan.id} takes it back once somebody approves it: {waits_for}"
            self._close(record, PlanState.EXPIRED, words)
            self.desk.propose_first(way_back, waits_for)  # last: of a topology's plans it is the one that matters now
            return False
        return self._roll_back(replace(record, state=PlanState.ROLLED_BACK, message=verdict.message), measured)

    def _open_way_back(self, record: PlanRecord, measured: Outcome) -> PlanRecord:
        now = self.now()
        way_back = way_back_from(record, measured, self.new_plan_id(now), now)
        return replace(way_back, approved_by="", approved_at_seconds=None)

    def _roll_back(self, record: PlanRecord, measured: Outcome) -> bool:
        """Apply the way back; whether that was begun. It settles as any plan does, and is not judged then.

        It takes the plan's place in the journal with its first save: there is no moment without either. Before that the
        plan is not over: where it cannot be saved, the next pass judges anew.
        """
        now = self.now()

        def save(step: PlanRecord) -> None:
            self.journal.save(step)
            if record not in self.memory.records:
                self._tell(record)
            self._tell(step)

        try:
            way_back = self.applier.apply(way_back_from(record, measured, self.new_plan_id(now), now), save)
        except OUT_OF_REACH:
            raise
        except RebalanceInProgress:
            return record in self.memory.records  # else it was not begun, and the next pass judges anew
        except AdapterError as error:
            if record in self.memory.records:
                raise  # it was begun, and the next pass goes on with it
            self._close(record, PlanState.EXPIRED, f"{record.message}; it cannot be taken back: {error}")
            return False
        self.settle(way_back)
        return True

    def go_back_again(self, snapshot: ClusterSnapshot, groups: tuple[Group, ...], now: float) -> bool:
        """Try once more, after its pause, the way back that failed last; whether that was begun.

        The plan that it was to take back did harm, and is in force: nobody else would propose to leave it.
        """
        found = None if self.pending is not None else self._way_back_that_failed()
        if found is None:
            return False
        stands, failed = found
        is_left = why_not_to_be_moved(failed.plan, groups) or why_it_waits(failed.plan, groups)
        waits = self.memory.decisions.setback_of(failed.plan.topology_ids, now) is not None
        if is_left or waits or moved_away(failed, snapshot.assignment) or why_no_way_back(stands.plan, snapshot):
            return False
        again = way_back_from(stands, failed.before, self.new_plan_id(now), now)
        try:
            self.settle(self.applier.apply(again, self.save))
        except OUT_OF_REACH:
            raise
        except RebalanceInProgress:
            return self.pending is not None
        except AdapterError:
            if self.pending is not None:
                raise  # it was begun, and the next pass goes on with it
            self.memory.decisions = self.memory.decisions.with_failure(again.plan, now)
            return False
        return True

    def _way_back_that_failed(self) -> tuple[PlanRecord, PlanRecord] | None:
        """The plan that stands although it did harm, and its way back; None where others came since."""
        later: set[str] = set()
        for record in reversed(self.memory.records):
            is_way_back = record.state is PlanState.FAILED and record.rollback_of and record.approved_by == AUTO
            stands = self._known(record.rollback_of)
            if is_way_back and stands is not None and later.isdisjoint(record.plan.topology_ids):
                return stands, record
            later.update(record.plan.topology_ids)
        return None

    def _known(self, plan_id: str) -> PlanRecord | None:
        return next((record for record in self.memory.records if record.plan.id == plan_id), None)

    def _correct(self, plan_id: str, was: PlanState, state: PlanState, message: str) -> None:
        """Tell of a plan that was over what is so since its way back has come to an end."""
        known = self._known(plan_id)
        if known is None or known.state is not was:
            return
        told = replace(known, state=state, message=message)
        self.memory.records = tuple(told if record is known else record for record in self.memory.records)
        self.listener.on_record(told)

    def _failed_in(self, record: PlanRecord) -> float | None:
        return failed_since(record.failures_before, self.applier.failures(record.plan))

    def save(self, record: PlanRecord) -> None:
        """Before and after each deed of the applier."""
        self.journal.save(record)
        self._tell(record)

    def _close(self, record: PlanRecord, state: PlanState, message: str) -> None:
        """A journal that could not be cleared would else have the next life judge the plan again, by figures of then.

        Where its end cannot be saved for want of an answer the plan is not over: the next pass closes it.
        """
        closed = replace(record, state=state, message=message)
        try:
            self.journal.save(closed)
        except OUT_OF_REACH:
            raise
        except AdapterError:
            pass  # refused, as one that is too large: all that is left is to clear it
        self._tell(closed)
        self.journal.clear()

    def _tell(self, record: PlanRecord) -> None:
        self._remember(record)
        self.listener.on_record(record)

    def _remember(self, record: PlanRecord) -> None:
        others = tuple(known for known in self.memory.records if known.plan.id != record.plan.id)
        if record.rollback_of:  # of all tries one is remembered, beside the plan: however many they are, it goes on
            stands = self._known(record.rollback_of)
            others = tuple(one for one in others if one is not stands and one.rollback_of != record.rollback_of)
            others = others if stands is None else (*others, stands)
        self.memory.records = (*others, record)[-KEPT_RECORDS:]
        self.memory.decisions = self.memory.decisions.with_record(record)
        if record.state is PlanState.FAILED:
            self.memory.decisions = self.memory.decisions.with_failure(record.plan, self.now())
            words = STANDS.format(record.plan.id)
            self._correct(record.rollback_of, PlanState.ROLLED_BACK, PlanState.EXPIRED, words)

    def settle(self, record: PlanRecord) -> None:
        """Remember what the applier made of a plan; one that failed is no longer in progress."""
        self._remember(record)
        if record.state.is_final:
            self.journal.clear()


def _as_ended_meanwhile(record: PlanRecord, kept: PlanRecord | None) -> PlanRecord:
    """`record`, in whose place the journal has `kept`."""
    if kept is not None and kept.rollback_of == record.plan.id:
        return replace(record, state=PlanState.ROLLED_BACK, message=TAKEN_BACK_BY.format(kept.plan.id))
    return replace(record, state=PlanState.EXPIRED, message=ENDED_BY_ANOTHER)
