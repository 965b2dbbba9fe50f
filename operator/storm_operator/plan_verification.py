"""What a plan that is in force brought: verified, taken back when it did harm, again where that failed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from storm_operator.adapters.errors import OUT_OF_REACH, AdapterError, MalformedDocument, RebalanceInProgress
from storm_operator.approval_desk import ApprovalDesk, was_asked_for
from storm_operator.core.clock_steps import was_set_back
from storm_operator.core.groups import Group
from storm_operator.core.load_history import was_counted_since
from storm_operator.core.plan_outcome import no_longer_timed, outcome_of
from storm_operator.core.plan_progress import failed_since, resized_topologies, supervisors_gone, why_out_of_reach
from storm_operator.core.plan_record import Outcome, PlanRecord, PlanState
from storm_operator.core.proposals import moved_away
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.verify import judge, why_no_verdict, why_not_verified
from storm_operator.core.way_back import (
    is_tried_again,
    way_back_anew,
    way_back_from,
    why_it_waits,
    why_no_way_back,
    why_not_to_be_moved,
)
from storm_operator.core.wording import first_of
from storm_operator.plan_in_hand import HARM, STANDS, TAKEN_BACK_BY, PlanInHand

PATIENCE_SETTLINGS = 5
"""A plan that cannot be verified within so many settling times is no longer waited for."""
NOT_TRIED_AGAIN = HARM + "its way back, plan {}, failed, which is not tried again: {}"
STANDS_UNTIL_APPROVED = HARM + "its way back, plan {}, failed; plan {} is another, once somebody approves it: {}"


@dataclass(frozen=True, slots=True)
class PlanVerification:
    """The verdict on the plan in hand, and its way back. Keeps nothing itself."""

    plans: PlanInHand
    desk: ApprovalDesk
    new_plan_id: Callable[[float], str]
    period_seconds: float

    def verify_if_settled(self, snapshot: ClusterSnapshot, groups: tuple[Group, ...], now: float) -> bool:
        """Close the plan once its figures tell what it brought, or once it is clear that they never will.

        Whether it was taken back: `snapshot` shows the cluster as it was before that.
        """
        record = self.plans.pending if self.plans.interrupted is None else None
        if record is None or record.in_force_at_seconds is None or record.running_at_seconds is None:
            return False
        ended = sorted(set(record.plan.topology_ids).difference(topology.id for topology in snapshot.topologies))
        if ended:  # of the others alone nothing was measured before
            words = f"in force, but cannot be judged: {', '.join(ended)} no longer runs"
            self.plans.close(record, PlanState.EXPIRED, words)
            return False
        group = next((g for g in groups if set(record.plan.topology_ids) & set(g.topology_ids)), None)
        if group is None:
            self.plans.close(record, PlanState.EXPIRED, "its topologies are no longer managed")
            return False
        gone = supervisors_gone(record.plan, snapshot)
        if gone:  # what is measured now says nothing about the plan, and what it leaves must be planned for at once
            self.plans.close(
                record, PlanState.EXPIRED, f"in force, but cannot be judged: lost {', '.join(gone)} meanwhile"
            )
            return False
        resized = resized_topologies(record.plan, snapshot)
        if resized:  # neither is the plan in force any more, nor can those that it moved go back
            words = f"in force, but cannot be judged: {', '.join(resized)} has other executors by now"
            self.plans.close(record, PlanState.EXPIRED, words)
            return False
        # Whoever was not seen to run may never: what that does to a topology is taken back no later for it.
        settles_from = record.in_force_at_seconds + (record.seconds_to_running or 0.0)
        if was_set_back(settles_from, now):  # nobody knows for how long it has run
            self.plans.close(
                record, PlanState.EXPIRED, "in force, but cannot be judged: the clock was set back meanwhile"
            )
            return False
        if now < settles_from + group.scheduling.settling_seconds:
            return False
        measured = outcome_of(snapshot, record.plan.topology_ids, record.timed_before)
        running_at, margin_percent = record.running_at_seconds, group.scheduling.rollback_margin_percent
        unclear = (
            why_no_verdict(record, measured)
            or self._why_too_early(record, running_at, snapshot)
            or why_not_verified(record, measured, no_longer_timed(snapshot, record.timed_before), margin_percent)
        )
        if not unclear:
            return self._conclude(record, measured, margin_percent, groups, snapshot)
        if now >= self._patience_ends(running_at, now, group.scheduling.settling_seconds):
            problems = first_of(snapshot.completeness.problems, "; ")
            why = "; ".join(filter(None, (problems, unclear)))
            self.plans.close(record, PlanState.EXPIRED, f"in force, but could not be verified: {why}")
        return False  # unknown is not a verdict yet: ask again next period

    @staticmethod
    def _why_too_early(record: PlanRecord, running_at: float, snapshot: ClusterSnapshot) -> str:
        """What is counted while workers start is not what the plan brought. The way back of another is not judged."""
        if record.rollback_of or was_counted_since(snapshot, running_at):
            return ""
        return "what was measured reaches back to before its workers ran"

    def _patience_ends(self, running_at: float, now: float, settling_seconds: float) -> float:
        watched_since = self.plans.memory.watched_since_seconds
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
            self.plans.correct(record.rollback_of, PlanState.EXPIRED, PlanState.ROLLED_BACK, words)
            if was_asked_for(record):  # of a plan that did no harm, too
                self.plans.correct(record.rollback_of, PlanState.VERIFIED, PlanState.ROLLED_BACK, words)
            self.plans.close(record, PlanState.VERIFIED, f"rolled back {record.rollback_of}")
            return False
        if not verdict.worse:
            self.plans.close(record, PlanState.VERIFIED, verdict.message)
            return False
        held_back = why_not_to_be_moved(record.plan, groups)
        if held_back:
            self.plans.close(record, PlanState.EXPIRED, f"{verdict.message}; it is not taken back: {held_back}")
            return False
        obstacle = why_no_way_back(record.plan, snapshot)
        if obstacle:
            self.plans.close(record, PlanState.EXPIRED, f"{verdict.message}; it cannot be taken back: {obstacle}")
            return False
        waits_for = why_it_waits(record.plan, groups)
        if waits_for:
            way_back = self._open_way_back(record, measured)
            words = f"{verdict.message}; plan {way_back.plan.id} takes it back once somebody approves it: {waits_for}"
            self.plans.close(record, PlanState.EXPIRED, words)
            self.desk.propose_first(way_back, waits_for)  # last: of a topology's plans it is the one that matters now
            return False
        undone = replace(record, state=PlanState.ROLLED_BACK, message=verdict.message)
        return self._roll_back(undone.remembered, measured)

    def _open_way_back(self, record: PlanRecord, measured: Outcome) -> PlanRecord:
        now = self.plans.now()
        return _unapproved(way_back_from(record, measured, self.new_plan_id(now), now))

    def _roll_back(self, record: PlanRecord, measured: Outcome) -> bool:
        """Apply the way back; whether that was begun. It settles as any plan does, and is not judged then.

        It takes the plan's place in the journal with its first save: there is no moment without either. Before that the
        plan is not over: where it cannot be saved, the next pass judges anew.
        """
        now = self.plans.now()

        def save(step: PlanRecord) -> None:
            def end_the_others() -> None:
                self.desk.release(step.plan)
                if record not in self.plans.memory.records:
                    self.plans.tell(record)

            self.plans.save(step, end_the_others)

        way_back = way_back_from(record, measured, self.new_plan_id(now), now)
        try:
            self.plans.settle(self.plans.applier.apply(way_back, save))
        except OUT_OF_REACH:
            raise
        except RebalanceInProgress:
            return record in self.plans.memory.records  # else it was not begun, and the next pass judges anew
        except AdapterError as error:
            if record in self.plans.memory.records:
                raise  # it was begun, and the next pass goes on with it
            self._leave_harm(record, way_back, error)
            return False
        return True

    def _leave_harm(self, record: PlanRecord, way_back: PlanRecord, error: AdapterError) -> None:
        """`way_back` could not be begun. It is tried again, but where it can never be kept."""
        if isinstance(error, MalformedDocument):
            self.plans.close(record, PlanState.EXPIRED, f"{record.message}; it cannot be taken back: {error}")
            return
        self.plans.close(record, PlanState.EXPIRED, f"{record.message}; {STANDS.format(way_back.plan.id)}")
        self.plans.tell(replace(way_back, state=PlanState.FAILED, message=f"cannot be begun: {error}"))

    def go_back_again(self, snapshot: ClusterSnapshot, groups: tuple[Group, ...], now: float) -> bool:
        """Try once more, after its pause, the way back that failed last; whether that was begun.

        The plan that it was to take back did harm, and is in force: nobody else would propose to leave it.
        """
        failed = None if self.plans.pending is not None else self._way_back_that_failed()
        if failed is None:
            return False
        why_never = (
            why_not_to_be_moved(failed.plan, groups)
            or moved_away(failed, snapshot.assignment)
            or why_out_of_reach(failed.plan.base, failed.plan.target, snapshot)
        )
        if why_never:
            self._tell_of_harm(failed, NOT_TRIED_AGAIN.format(failed.plan.id, why_never))
            return False
        waits_for = why_it_waits(failed.plan, groups)
        if waits_for:
            self._ask_for(failed, waits_for, now)
            return False
        self._tell_of_harm(failed, STANDS.format(failed.plan.id))
        if self.plans.memory.decisions.setback_of(failed.plan.topology_ids, now) is not None:
            return False
        again = way_back_anew(failed, self.new_plan_id(now), now)

        def save(step: PlanRecord) -> None:
            self.plans.save(step, lambda: self.desk.release(step.plan))

        try:
            self.plans.settle(self.plans.applier.apply(again, save))
        except OUT_OF_REACH:
            raise
        except RebalanceInProgress:
            return self.plans.pending is not None
        except AdapterError:
            if self.plans.pending is not None:
                raise  # it was begun, and the next pass goes on with it
            self.plans.memory.decisions = self.plans.memory.decisions.with_failure(again.plan, now)
            return False
        return True

    def _ask_for(self, failed: PlanRecord, waits_for: str, now: float) -> None:
        """Have a person asked, once, whether what the way back `failed` was to do shall be done."""
        memory = self.plans.memory
        if memory.asked_for == failed.plan.id or self.desk.way_back_for(failed.plan.topology_ids) is not None:
            return
        memory.asked_for = failed.plan.id
        again = _unapproved(way_back_anew(failed, self.new_plan_id(now), now))
        self._tell_of_harm(failed, STANDS_UNTIL_APPROVED.format(failed.plan.id, again.plan.id, waits_for))
        self.desk.propose_first(again, waits_for)

    def _tell_of_harm(self, failed: PlanRecord, words: str) -> None:
        """Let the plan that the way back `failed` was to take back say what becomes of that now."""
        harmful = self.plans.known(failed.rollback_of)
        if harmful is None:
            return
        verdict, _, _ = harmful.message.partition(HARM)
        if harmful.message != verdict + words:
            self.plans.correct(failed.rollback_of, PlanState.EXPIRED, PlanState.EXPIRED, verdict + words)

    def _way_back_that_failed(self) -> PlanRecord | None:
        """That of a plan which did harm, and stands since; None where others came since."""
        later: set[str] = set()
        for record in reversed(self.plans.memory.records):
            if is_tried_again(record) and later.isdisjoint(record.plan.topology_ids):
                return record
            later.update(record.plan.topology_ids)
        return None

    def _failed_in(self, record: PlanRecord) -> float | None:
        return failed_since(record.failures_before, self.plans.applier.failures(record.plan))


def _unapproved(record: PlanRecord) -> PlanRecord:
    return replace(record, approved_by="", approved_at_seconds=None)
