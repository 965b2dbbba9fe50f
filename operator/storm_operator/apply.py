"""Puts a plan in force and waits until it is: the one place where a decision becomes deeds.

Every step is idempotent and the record is saved before each, so that an operator that was killed at any point
continues from its journal: a plan document that is already there is written again with the same content, a
rebalance of a topology that already is where the plan says moves nothing, and spouts are only ever resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from storm_operator.adapters.errors import (
    OUT_OF_REACH,
    PASSING,
    AdapterError,
    RebalanceInProgress,
    TopologyNotAlive,
)
from storm_operator.apply_ports import Clock, MachineLimits, NoMachineLimits, PlanDocuments, StormCommands, WorkerProbe
from storm_operator.core.decision import Plan
from storm_operator.core.model import Assignment, Executor, WorkerSlot
from storm_operator.core.plan_progress import (
    Failures,
    count_kept,
    executors_not_running,
    kept_in_place,
    moved_topologies,
    supervisors_of,
    to_drain,
    with_first_failures,
)
from storm_operator.core.plan_record import RUNNING_TIMEOUT_SECONDS, PlanRecord, PlanState, WorkerSeen
from storm_operator.core.settings import ApplyMethod
from storm_operator.core.wording import first_of
from storm_operator.cpu_limits import CpuLimits
from storm_operator.draining import wait_until_drained
from storm_operator.plan_waits import Comeback, PlanWaits

CONNECTING_SECONDS = 1.0
SUPERVISOR_SYNC_SECONDS = 10.0
ALL_THE_SAME = "in force all the same, and judged ({})"
UNSEEN_START_SECONDS = 30.0
"""Where nobody sees workers start, paused spouts wait for so long: several that start at once take ten."""

Save = Callable[[PlanRecord], None]


@dataclass(frozen=True, slots=True)
class Applier:
    """Carries out plans."""

    storm: StormCommands
    documents: PlanDocuments
    probe: WorkerProbe
    clock: Clock
    machines: MachineLimits = NoMachineLimits()
    is_ending: Callable[[], bool] = lambda: False
    """Whether the operator was told to end: spouts stay paused no longer then for a move that has not begun."""

    @property
    def limits(self) -> CpuLimits:
        """The executors' CPU limits, where this puts its plans."""
        return CpuLimits(self.documents)

    @property
    def _waits(self) -> PlanWaits:
        return PlanWaits(self.storm, self.documents, self.probe, self.clock)

    def failures(self, plan: Plan) -> Failures | None:
        """Failed tuples of the plan's topologies so far; None is unknown."""
        return self.probe.failures(plan.topology_ids, supervisors_of(plan))

    def apply(self, record: PlanRecord, save: Save) -> PlanRecord:
        """Put `record.plan` in force; returns the record in state SETTLING or FAILED, saved at every step.

        RebalanceInProgress, before anything is saved or done, where spouts that are to be paused cannot be.
        """
        record = replace(
            record,
            state=PlanState.APPLYING,
            message="",
            worker_pids_before={slot: worker.pid for slot, worker in self._workers(record.plan).items()},
            failures_before=self.failures(record.plan),
            inactive_before=self._inactive_among(to_drain(record)),
        )
        self._refuse_what_is_rebalanced(record)
        save(record)
        return self._carry_out(record, save, is_watched=True)

    def resume(self, record: PlanRecord, save: Save) -> PlanRecord:
        """Continue a plan that another life of the operator, or an earlier try, began to apply.

        When it came into force while nobody looked, and since when its executors run, is unknown.
        """
        return self._carry_out(record, save, is_watched=not self._waits.is_in_force(record.plan))

    def abandon(self, record: PlanRecord, message: str, save: Save) -> PlanRecord:
        """Leave the topologies where they are now, and make that the plan in force. Spouts are resumed in any case.

        Where that is what `record.plan` wanted, the record returned is SETTLING: whether it did harm is judged.
        """
        try:
            present = self._keep_in_place(record.plan)
        finally:
            self.resume_spouts(record)
        left = replace(record, state=PlanState.FAILED, message=message)
        if present == record.plan.target:
            now = self.clock.now()
            left = replace(
                record,
                state=PlanState.SETTLING,
                message=ALL_THE_SAME.format(message),
                in_force_at_seconds=record.in_force_at_seconds or now,
                settling_since_seconds=now,
            )
        save(left)
        return left

    def _keep_in_place(self, plan: Plan) -> Assignment:
        """Where they are."""
        present = self.storm.read_assignment(plan.topology_ids)
        kept = kept_in_place(plan, present)
        for topology_id in plan.topology_ids:
            own = kept.restricted_to([topology_id])
            if own.slot_of:
                self.documents.write_plan(topology_id, replace(plan, target=own))
        return present

    def _carry_out(self, record: PlanRecord, save: Save, *, is_watched: bool) -> PlanRecord:
        """A plan that an earlier try has put in force already is not drained again, and is in force since then."""
        plan, was_in_force = record.plan, record.in_force_at_seconds is not None
        waited_before, begun_tick = self.clock.now() - record.started_at_seconds, self.clock.monotonic()
        self.machines.open_up(supervisors_of(plan))
        if record.enforce_cpu:
            self.limits.raise_for(plan)
        if record.method is ApplyMethod.DRAIN and not was_in_force:
            record = replace(record, message=self._drain(record))
            if self._gives_up(record):
                return self.abandon(record, "abandoned: storm-operator was ended before the move had begun", save)
        for topology_id in plan.topology_ids:
            self.documents.write_plan(topology_id, plan)
        if record.method is ApplyMethod.REBALANCE and not self._waits.is_in_force(plan):
            for topology_id in moved_topologies(plan):
                self.storm.rebalance(topology_id)
        refusal = self._waits.why_not_in_force(plan)
        if refusal:
            return self.abandon(record, refusal, save)
        if was_in_force:
            self._refuse_what_is_rebalanced(record)  # first: to look how workers come up would take each pass long
            return self._settle(record, save, seen_since_tick=None)
        in_force_tick = self.clock.monotonic()
        took = waited_before + in_force_tick - begun_tick  # below zero: the clock was set back before this life
        record = replace(
            record,
            in_force_at_seconds=self.clock.now(),
            seconds_to_in_force=took if is_watched and took >= 0.0 else None,
        )
        save(record)
        return self._settle(record, save, in_force_tick if is_watched else None)

    def _settle(self, record: PlanRecord, save: Save, seen_since_tick: float | None) -> PlanRecord:
        """What is left to do for a plan in force, watched since `seen_since_tick`; None: it was not, for a time."""
        plan, begun_tick = record.plan, self.clock.monotonic()
        told = self.storm.tell_supervisors(supervisors_of(plan))
        told_tick = self.clock.monotonic()
        is_seen = self.probe.sees_any(supervisors_of(plan))
        comeback = self._comeback(record, is_seen=is_seen)
        ran_tick = self.clock.monotonic()
        record = replace(
            record,
            seconds_to_running=None if seen_since_tick is None or not comeback.is_whole else ran_tick - seen_since_tick,
            failures_before=with_first_failures(record.failures_before, self.failures(plan)),
        )
        if record.method is ApplyMethod.DRAIN:
            self._wait_until_routes_are_known(told_tick if told else begun_tick + SUPERVISOR_SYNC_SECONDS)
        self.resume_spouts(record)
        if record.enforce_cpu:
            self.limits.settle_after(plan)
        record = replace(
            record,
            state=PlanState.SETTLING,
            settling_since_seconds=self.clock.now(),
            workers_kept=count_kept(record, self._workers(plan)),
            message="; ".join(filter(None, (record.message, _why_not_seen(comeback.late, is_seen=is_seen)))),
        )
        save(record)
        return record

    def _workers(self, plan: Plan) -> Mapping[WorkerSlot, WorkerSeen]:
        return self.probe.workers(supervisors_of(plan))

    def _inactive_among(self, topology_ids: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(sorted(self.storm.deactivated(topology_ids))) if topology_ids else ()

    def _refuse_what_is_rebalanced(self, record: PlanRecord) -> None:
        rebalanced = self.storm.being_rebalanced(to_drain(record))
        if rebalanced:
            raise RebalanceInProgress(
                f"{first_of(sorted(rebalanced))} is being rebalanced, and Nimbus neither pauses nor resumes its spouts"
                " before that is over"
            )

    def _pause_spouts(self, record: PlanRecord) -> None:
        """Of each topology to be drained, or of none: a rebalance may wait for minutes before it is carried out."""
        try:
            self._refuse_what_is_rebalanced(record)
            for topology_id in to_drain(record):
                self.storm.deactivate(topology_id)
        except RebalanceInProgress:
            self.resume_spouts(record)
            raise

    def _drain(self, record: PlanRecord) -> str:
        """Pause the spouts and wait until no tuple is in flight; why some may fail where that is unsure in time."""
        self._pause_spouts(record)
        return wait_until_drained(record.plan, self.storm, self.probe, self.clock, lambda: self._gives_up(record))

    def _gives_up(self, record: PlanRecord) -> bool:
        """A way back undoes harm, and is seen through; so is what an earlier try has handed to Nimbus."""
        return self.is_ending() and not record.rollback_of and not self._is_acknowledged(record.plan)

    def _is_acknowledged(self, plan: Plan) -> bool:
        read = map(self.documents.read_acknowledgement, plan.topology_ids)
        return any(one is not None and one.plan_id == plan.id for one in read)

    def _wait_until_routes_are_known(self, supervisors_know_tick: float) -> None:
        """Until workers that were kept have learnt where moved executors are now: what they send before is lost.

        They ask their supervisors every task.refresh.poll.secs. A supervisor that could not be told asks Nimbus every
        ten seconds.
        """
        known_tick = supervisors_know_tick + self.storm.connection_refresh_seconds() + CONNECTING_SECONDS
        self.clock.sleep(max(0.0, known_tick - self.clock.monotonic()))

    def resume_spouts(self, record: PlanRecord) -> None:
        """Of each drained topology, whatever becomes of the others; then raises what was refused first.

        What passes by itself goes before that: a plan is not over as long as somebody can yet be resumed.
        """
        refused: list[AdapterError] = []
        for topology_id in to_drain(record):
            try:
                self.storm.activate(topology_id)
            except TopologyNotAlive:
                continue  # it has no spouts any more
            except OUT_OF_REACH:
                raise
            except AdapterError as error:
                refused.append(error)
        if refused:
            raise next((error for error in refused if isinstance(error, PASSING)), refused[0])

    def _comeback(self, record: PlanRecord, *, is_seen: bool) -> Comeback:
        if is_seen:
            return self._waits.comeback(record)
        if record.method is ApplyMethod.DRAIN:
            self.clock.sleep(UNSEEN_START_SECONDS)
        late = executors_not_running(record, {})
        return Comeback(is_whole=not late, late=late)


def _why_not_seen(missing: tuple[Executor, ...], *, is_seen: bool) -> str:
    if not missing:
        return ""
    if not is_seen:
        return "in force, but not seen to run: no agent answers"
    names = first_of([executor.name for executor in missing])
    return f"in force, but after {RUNNING_TIMEOUT_SECONDS:.0f} s not seen to run: {names}"
