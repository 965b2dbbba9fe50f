"""The plan in hand: saved before each deed, finished by the next life, closed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from storm_operator.adapters.errors import OUT_OF_REACH, PASSING, AdapterError, MalformedDocument, RebalanceInProgress
from storm_operator.apply import Applier
from storm_operator.core.plan_progress import to_drain
from storm_operator.core.plan_record import PlanRecord, PlanState
from storm_operator.core.way_back import is_tried_again
from storm_operator.loop_ports import Journal, Listener, LoopMemory

KEPT_RECORDS = 50
ENDED_BY_ANOTHER = "no longer in the journal: another storm-operator managed the cluster meanwhile, and ended it"
TAKEN_BACK_BY = "plan {} takes it back"
WORKED_AT = (PlanState.APPLYING, PlanState.SETTLING, PlanState.FAILED)
"""Told of a plan whose way into force has gone on, or just ended."""
HARM = "it did harm, and "
STANDS = HARM + "is in force all the same: its way back, plan {}, failed, which is tried again after a pause"


@dataclass(frozen=True, slots=True)
class PlanInHand:
    """What becomes of a plan from its first save to its last word. All memory is in `memory` and `journal`."""

    memory: LoopMemory
    journal: Journal
    applier: Applier
    listener: Listener
    now: Callable[[], float]

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
            self.tell(_as_ended_meanwhile(record, kept))
        if kept is not None:
            self.take_up(kept)

    def _take_up_if_unknown(self, kept: PlanRecord | None) -> None:
        """Here no plan is in hand: one that is known here has ended, and the journal was not cleared of it."""
        if kept is None:
            return
        if any(known.plan.id == kept.plan.id for known in self.memory.records):
            self._leave(kept)
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
        everybody else without a plan. So does one that fails again for a reason that nobody foresaw, which is told all
        the same.
        """
        try:
            self.settle(self.applier.resume(record, self.save))
        except PASSING:
            raise
        except AdapterError as error:
            self._abandon(self.pending or record, f"abandoned: {error}")
        except Exception as error:
            words = f"the operator failed, {type(error).__name__}: {error}"
            self._abandon(self.pending or record, f"abandoned: {words}")
            raise

    def _abandon(self, record: PlanRecord, message: str) -> None:
        try:
            self.settle(self.applier.abandon(record, message, self.save))
        except PASSING:
            raise
        except AdapterError as error:
            self.memory.left_paused = (*self.memory.left_paused, *to_drain(record))
            self.close(record, PlanState.FAILED, f"{message}; spouts may still be paused: {error}")

    def known(self, plan_id: str) -> PlanRecord | None:
        """What is remembered of that plan."""
        return next((record for record in self.memory.records if record.plan.id == plan_id), None)

    def correct(self, plan_id: str, was: PlanState, state: PlanState, message: str) -> None:
        """Tell of a plan that was over what is so since its way back has come to an end."""
        known = self.known(plan_id)
        if known is None or known.state is not was:
            return
        told = replace(known, state=state, message=message)
        self.memory.records = tuple(told if record is known else record for record in self.memory.records)
        self.listener.on_record(told)

    def save(self, record: PlanRecord, before_it_is_told: Callable[[], None] = lambda: None) -> None:
        """Before and after each deed of the applier. What the plan supersedes is told before it: of a topology's plans
        the last that is told of is in hand. Not before it is saved, lest an approval be lost."""
        self.journal.save(record)
        before_it_is_told()
        self.tell(record)

    def close(self, record: PlanRecord, state: PlanState, message: str) -> None:
        """A journal that could not be cleared would else have the next life judge the plan again, by figures of then.

        Where its end cannot be saved for want of an answer the plan is not over: the next pass closes it.
        """
        closed = replace(record, state=state, message=message).remembered
        try:
            self.journal.save(closed)
        except OUT_OF_REACH:
            raise
        except AdapterError:
            pass  # refused, as one that is too large: all that is left is to clear it
        self.tell(closed)
        self._leave(closed)

    def tell(self, record: PlanRecord) -> None:
        """Remember it, and let others know."""
        self._remember(record)
        self.listener.on_record(record.remembered)

    def _remember(self, record: PlanRecord) -> None:
        others = tuple(known for known in self.memory.records if known.plan.id != record.plan.id)
        if record.rollback_of:  # of all tries one is remembered, beside the plan: however many they are, it goes on
            stands = self.known(record.rollback_of)
            others = tuple(one for one in others if one is not stands and one.rollback_of != record.rollback_of)
            others = others if stands is None else (*others, stands)
        self.memory.records = (*others, record.remembered)[-KEPT_RECORDS:]
        if record.state in WORKED_AT:
            self.memory.steady_since_seconds = self.now()
        self.memory.decisions = self.memory.decisions.with_record(record)
        if record.state is PlanState.FAILED:
            self.memory.decisions = self.memory.decisions.with_failure(record.plan, self.now())
            words = STANDS.format(record.plan.id)
            self.correct(record.rollback_of, PlanState.ROLLED_BACK, PlanState.EXPIRED, words)

    def settle(self, record: PlanRecord) -> None:
        """Remember what the applier made of a plan; one that failed is no longer in progress."""
        self._remember(record)
        if record.state.is_final:
            self._leave(record)

    def _leave(self, record: PlanRecord) -> None:
        """It is over. Of a way back that failed the next life hears, unless another plan takes its place here: it tries
        that again, too."""
        if not is_tried_again(record):
            self.journal.clear()


def _as_ended_meanwhile(record: PlanRecord, kept: PlanRecord | None) -> PlanRecord:
    """`record`, in whose place the journal has `kept`."""
    if kept is not None and kept.rollback_of == record.plan.id:
        return replace(record, state=PlanState.ROLLED_BACK, message=TAKEN_BACK_BY.format(kept.plan.id))
    return replace(record, state=PlanState.EXPIRED, message=ENDED_BY_ANOTHER)
