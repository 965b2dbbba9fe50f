"""Puts a plan in force and waits until it is: the one place where a decision becomes deeds.

Every step is idempotent and the record is saved before each, so that an operator that was killed at any point
continues from its journal: a plan document that is already there is written again with the same content, a
rebalance of a topology that already is where the plan says moves nothing, and spouts are only ever resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from storm_operator.adapters.plan_documents import Acknowledgement
from storm_operator.core.model import Assignment, Executor, Plan, WorkerSlot
from storm_operator.core.plan_record import PlanRecord, PlanState, WorkerSeen, executor_key
from storm_operator.core.settings import ApplyMethod

IN_FORCE_TIMEOUT_SECONDS = 60.0
RUNNING_TIMEOUT_SECONDS = 90.0
DRAIN_TIMEOUT_SECONDS = 30.0
POLL_SECONDS = 0.3
DRAIN_POLL_SECONDS = 1.2  # longer than the workers' snapshot period: two readings are two different snapshots
WARM_UP_FACTOR = 2.0
CONNECTING_SECONDS = 1.0
SUPERVISOR_SYNC_SECONDS = 10.0

BETWEEN_PLANS = ""
"""Stands for the plan id in CPU limits that follow demand while no plan is applied."""

Save = Callable[[PlanRecord], None]


class Clock(Protocol):
    """Time from outside, so that tests need none."""

    def now(self) -> float:
        """Seconds since the epoch."""

    def sleep(self, seconds: float) -> None: ...


class StormCommands(Protocol):
    """What the applier asks of Nimbus; topologies by id."""

    def rebalance(self, topology_id: str) -> None: ...

    def activate(self, topology_id: str) -> None: ...

    def deactivate(self, topology_id: str) -> None: ...

    def read_assignment(self, topology_ids: Collection[str]) -> Assignment: ...

    def tell_supervisors(self, supervisor_ids: Collection[str]) -> bool:
        """Let these supervisors know their assignments now; whether all of them do."""

    def connection_refresh_seconds(self) -> float:
        """How often workers look for where to connect to (task.refresh.poll.secs)."""


class PlanDocuments(Protocol):
    """Where plans and limits are put for the scheduler and the agents to find."""

    def write_plan(self, topology_id: str, plan: Plan) -> None: ...

    def read_acknowledgement(self, topology_id: str) -> Acknowledgement | None: ...

    def write_cpu_limits(self, topology_id: str, plan_id: str, limits: Mapping[Executor, float]) -> None: ...

    def read_cpu_limits(self, topology_id: str) -> Mapping[Executor, float]: ...


class WorkerProbe(Protocol):
    """What the agents see right now."""

    def workers(self) -> Mapping[WorkerSlot, WorkerSeen]: ...

    def tuples_in_flight(self, topology_ids: Collection[str]) -> tuple[float, float] | None:
        """Tuples waiting in queues, and tuples executed so far; None is unknown."""

    def failures(self, topology_ids: Collection[str]) -> Mapping[str, float]:
        """Failed tuples so far, by counter."""


class MachineLimits(Protocol):
    """CPU limits of whole supervisors, where there are any (pods)."""

    def open_up(self, supervisor_ids: Collection[str]) -> None:
        """Before a move: let these have all the CPU that they can. What cannot be done is said, not raised."""


class NoMachineLimits:
    """Supervisors whose CPU nobody limits, or somebody else does."""

    def open_up(self, supervisor_ids: Collection[str]) -> None:
        """Nothing to do."""


@dataclass(frozen=True, slots=True)
class Applier:
    """Carries out plans, and keeps CPU limits."""

    storm: StormCommands
    documents: PlanDocuments
    probe: WorkerProbe
    clock: Clock
    machines: MachineLimits = NoMachineLimits()

    def apply(self, record: PlanRecord, save: Save) -> PlanRecord:
        """Put `record.plan` in force; returns the record in state SETTLING or FAILED, saved at every step."""
        record = replace(
            record,
            state=PlanState.APPLYING,
            worker_pids_before={slot: worker.pid for slot, worker in self.probe.workers().items()},
            failures_before=self.probe.failures(record.plan.topology_ids),
        )
        save(record)
        return self._carry_out(record, save)

    def resume(self, record: PlanRecord, save: Save) -> PlanRecord:
        """Continue a plan that another life of the operator began to apply."""
        return self._carry_out(record, save)

    def abandon(self, record: PlanRecord, message: str, save: Save) -> PlanRecord:
        """Leave the topologies where they are now, and make that the plan in force."""
        present = self.storm.read_assignment(record.plan.topology_ids)
        for topology_id in record.plan.topology_ids:
            own = present.restricted_to([topology_id])
            if own.slot_of:
                self.documents.write_plan(topology_id, replace(record.plan, target=own))
        self._resume_spouts(record)
        failed = replace(record, state=PlanState.FAILED, message=message)
        save(failed)
        return failed

    def follow_cpu_limits(self, topology_id: str, limits: Mapping[Executor, float]) -> bool:
        """Between plans: write `limits` where they differ from those in force; whether anything was written.

        An executor that `limits` does not name (its demand is unknown) keeps the limit that it has.
        """
        in_force = self.documents.read_cpu_limits(topology_id)
        own = {executor: limit for executor, limit in limits.items() if executor.topology_id == topology_id}
        wanted = {**in_force, **own}
        if wanted == dict(in_force):
            return False
        self.documents.write_cpu_limits(topology_id, BETWEEN_PLANS, wanted)
        return True

    def lift_cpu_limits(self, topology_id: str) -> None:
        """Nobody is to be held to a limit any more."""
        if self.documents.read_cpu_limits(topology_id):
            self.documents.write_cpu_limits(topology_id, BETWEEN_PLANS, {})

    def _carry_out(self, record: PlanRecord, save: Save) -> PlanRecord:
        plan = record.plan
        self.machines.open_up(supervisors_of(plan))
        if record.enforce_cpu:
            self._raise_cpu_limits(plan)
        drained = record.method is not ApplyMethod.DRAIN or self._drain(plan)
        for topology_id in plan.topology_ids:
            self.documents.write_plan(topology_id, plan)
        if record.method is ApplyMethod.REBALANCE and not self._is_in_force(plan):
            for topology_id in moved_topologies(plan):
                self.storm.rebalance(topology_id)
        refusal = self._wait_until_in_force(plan)
        if refusal is not None:
            return self.abandon(record, refusal, save)
        in_force_at = self.clock.now()
        record = replace(
            record, in_force_at_seconds=in_force_at, seconds_to_in_force=in_force_at - record.started_at_seconds
        )
        save(record)
        told = self.storm.tell_supervisors(supervisors_of(plan))
        told_at = self.clock.now()
        missing = self._wait_until_running(record)
        record = replace(record, seconds_to_running=None if missing else self.clock.now() - in_force_at)
        if record.method is ApplyMethod.DRAIN:
            self._wait_until_routes_are_known(told_at if told else in_force_at + SUPERVISOR_SYNC_SECONDS)
        self._resume_spouts(record)
        if record.enforce_cpu:
            self._settle_cpu_limits(plan)
        record = replace(
            record,
            state=PlanState.SETTLING,
            workers_kept=self._count_kept(record),
            message=_caveats(missing, drained),
        )
        save(record)
        return record

    def _drain(self, plan: Plan) -> bool:
        """Pause the spouts and wait until no tuple is in flight; False when some still were after a while."""
        for topology_id in moved_topologies(plan):
            self.storm.deactivate(topology_id)
        executed_before = -1.0

        def is_quiet() -> bool:
            nonlocal executed_before
            in_flight = self.probe.tuples_in_flight(moved_topologies(plan))
            if in_flight is None:
                return False
            waiting, executed = in_flight
            quiet = waiting == 0 and executed == executed_before  # nothing waits, and nothing happened since
            executed_before = executed
            return quiet

        return self._wait(is_quiet, DRAIN_TIMEOUT_SECONDS, poll_seconds=DRAIN_POLL_SECONDS)

    def _wait_until_routes_are_known(self, supervisors_know_at: float) -> None:
        """Until workers that were kept have learnt where moved executors are now: what they send before is lost.

        They ask their supervisors every task.refresh.poll.secs. A supervisor that could not be told asks Nimbus every
        ten seconds.
        """
        known_at = supervisors_know_at + self.storm.connection_refresh_seconds() + CONNECTING_SECONDS
        self.clock.sleep(max(0.0, known_at - self.clock.now()))

    def _resume_spouts(self, record: PlanRecord) -> None:
        if record.method is ApplyMethod.DRAIN:
            for topology_id in moved_topologies(record.plan):
                self.storm.activate(topology_id)

    def _is_in_force(self, plan: Plan) -> bool:
        for topology_id in plan.topology_ids:
            acknowledgement = self.documents.read_acknowledgement(topology_id)
            if acknowledgement is None or acknowledgement.plan_id != plan.id or acknowledgement.outcome != "applied":
                return False
        present = self.storm.read_assignment(plan.topology_ids).slot_of
        return all(present.get(executor) == slot for executor, slot in plan.target.slot_of.items())

    def _wait_until_in_force(self, plan: Plan) -> str | None:
        """None once the plan is in force, else the reason why it will not be."""
        refusal: str | None = None

        def is_settled() -> bool:
            nonlocal refusal
            refusal = self._refusal(plan)
            return refusal is not None or self._is_in_force(plan)

        if self._wait(is_settled, IN_FORCE_TIMEOUT_SECONDS):
            return refusal
        return f"not in force after {IN_FORCE_TIMEOUT_SECONDS:.0f} s: {self._last_words(plan)}"

    def _refusal(self, plan: Plan) -> str | None:
        for topology_id in plan.topology_ids:
            acknowledgement = self.documents.read_acknowledgement(topology_id)
            if acknowledgement and acknowledgement.plan_id == plan.id and acknowledgement.outcome == "rejected":
                return f"the plan scheduler rejected it: {acknowledgement.message}"
        return None

    def _last_words(self, plan: Plan) -> str:
        acknowledgements = [self.documents.read_acknowledgement(topology_id) for topology_id in plan.topology_ids]
        words = [a.message for a in acknowledgements if a is not None and a.plan_id == plan.id]
        return "; ".join(words) or "the plan scheduler has not acknowledged it (is it Nimbus' storm.scheduler?)"

    def _wait_until_running(self, record: PlanRecord) -> tuple[Executor, ...]:
        """Executors of restarted workers that did not come up in time; empty when all run."""
        missing: tuple[Executor, ...] = ()

        def all_run() -> bool:
            nonlocal missing
            missing = executors_not_running(record, self.probe.workers())
            return not missing

        self._wait(all_run, RUNNING_TIMEOUT_SECONDS)
        return missing

    def _count_kept(self, record: PlanRecord) -> int:
        now = self.probe.workers()
        before = record.worker_pids_before
        return sum(
            1 for slot in record.plan.kept_workers if slot in now and slot in before and now[slot].pid == before[slot]
        )

    def _raise_cpu_limits(self, plan: Plan) -> None:
        """Limits rise before a move: nobody may starve while both old and new place need CPU."""
        for topology_id in plan.topology_ids:
            old = self.documents.read_cpu_limits(topology_id)
            new = _limits_of(plan, topology_id)
            # An executor without a limit so far is not given one by a move that is not finished.
            raised = {executor: max(millicores, new.get(executor, 0.0)) for executor, millicores in old.items()}
            self.documents.write_cpu_limits(topology_id, plan.id, raised)

    def _settle_cpu_limits(self, plan: Plan) -> None:
        """Limits fall after a move; in restarted workers not yet to the plan's: code that is not compiled costs more.

        Once the plan is verified the limits follow demand (`follow_cpu_limits`).
        """
        restarted = frozenset(plan.restarted_workers)
        for topology_id in plan.topology_ids:
            limits = {
                executor: limit * (WARM_UP_FACTOR if plan.target.slot_of.get(executor) in restarted else 1.0)
                for executor, limit in _limits_of(plan, topology_id).items()
            }
            self.documents.write_cpu_limits(topology_id, plan.id, limits)

    def _wait(self, condition: Callable[[], bool], timeout_seconds: float, poll_seconds: float = POLL_SECONDS) -> bool:
        deadline = self.clock.now() + timeout_seconds
        while not condition():
            if self.clock.now() >= deadline:
                return False
            self.clock.sleep(poll_seconds)
        return True


def moved_topologies(plan: Plan) -> tuple[str, ...]:
    """The topologies that the plan touches: only these are paused."""
    return tuple(sorted({move.executor.topology_id for move in plan.moves}))


def supervisors_of(plan: Plan) -> frozenset[str]:
    """The supervisors that host, or hosted, anything of the topologies that the plan touches."""
    slots = {*plan.base.workers(), *plan.target.workers()}
    return frozenset(slot.supervisor_id for slot in slots)


def executors_not_running(record: PlanRecord, workers: Mapping[WorkerSlot, WorkerSeen]) -> tuple[Executor, ...]:
    """Executors of the plan's restarted workers that do not run in a new process of their slot, sorted."""
    restarted = frozenset(record.plan.restarted_workers)
    # Spouts of a drained topology must not be resumed before the threads of every moved executor are there.
    everyone = record.method is ApplyMethod.DRAIN
    must_work = frozenset(record.plan.target.slot_of if everyone else record.busy_before)
    missing = []
    for executor, slot in sorted(record.plan.target.slot_of.items()):
        if slot not in restarted:
            continue
        worker = workers.get(slot)
        if worker is None or _is_left_over(worker, slot, record):
            missing.append(executor)
            continue
        seen = worker.at_work if executor in must_work else worker.executors
        if executor_key(executor) not in seen:
            missing.append(executor)
    return tuple(missing)


def _is_left_over(worker: WorkerSeen, slot: WorkerSlot, record: PlanRecord) -> bool:
    """Whether it is the slot's worker of before the plan, which still has to end.

    One that hosts exactly what the plan wants there never ends: its supervisor has not heard of the plan between,
    such as one that was taken back within seconds.
    """
    if worker.pid != record.worker_pids_before.get(slot):
        return False
    wanted = frozenset(executor_key(executor) for executor in record.plan.target.workers()[slot])
    return worker.executors != wanted


def _limits_of(plan: Plan, topology_id: str) -> dict[Executor, float]:
    return {e: limit for e, limit in plan.cpu_limits_millicores.items() if e.topology_id == topology_id}


def _caveats(missing: tuple[Executor, ...], drained: bool) -> str:
    caveats = []
    if not drained:
        caveats.append(f"tuples were still in flight after {DRAIN_TIMEOUT_SECONDS:.0f} s of draining and may fail")
    if missing:
        names = ", ".join(f"{executor.component}[{executor.label}]" for executor in missing)
        caveats.append(f"in force, but after {RUNNING_TIMEOUT_SECONDS:.0f} s not seen to run: {names}")
    return "; ".join(caveats)
