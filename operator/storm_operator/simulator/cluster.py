"""The simulated cluster's state: who lives where, which workers run since when, what is limited, paused or broken."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from storm_operator.core.model import Assignment, Executor, Supervisor, WorkerSlot
from storm_operator.core.placement.even import deal_out, interleaved_free_slots
from storm_operator.simulator.model import (
    AvailabilityDrops,
    ClusterModel,
    SimulatedSupervisor,
    SupervisorDies,
    SupervisorSlows,
)

FIRST_PID = 1000


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker process; it works from `runs_from_seconds` on. Infinite: its machine is dead and starts it later."""

    pid: int
    executors: tuple[Executor, ...]
    runs_from_seconds: float


@dataclass(slots=True)
class Outage:
    """Whether a supervisor that is not always available answers now, and until when that stays so."""

    answers: bool
    until_seconds: float
    availability: float
    """Under which that was drawn."""


@dataclass(slots=True)
class ClusterState:
    """Mutable. Times are seconds since the simulation began; `version` grows with every change of the assignment."""

    model: ClusterModel
    seed: int
    assignment: Assignment = field(default_factory=lambda: Assignment({}))
    workers: dict[WorkerSlot, Worker] = field(default_factory=dict)
    limits: dict[str, dict[Executor, float]] = field(default_factory=dict)
    inactive: set[str] = field(default_factory=set)
    paused_until: dict[str, float] = field(default_factory=dict)
    version: int = 0
    limits_version: int = 0
    restarts: int = 0
    _without_slot: dict[Executor, WorkerSlot] = field(default_factory=dict)
    """Executors that Nimbus has found no slot for, and where they were last."""
    _outages: dict[str, Outage] = field(default_factory=dict)
    _next_pid: int = FIRST_PID
    _random: np.random.Generator = field(init=False)
    _restore_seconds: Mapping[tuple[str, str], float] = field(init=False)
    """By topology id and component."""
    _next_scheduling_seconds: float = 0.0

    def __post_init__(self) -> None:
        self._random = np.random.default_rng((self.seed, 1))
        self._restore_seconds = {
            (topology.id, component.name): component.state_restore_seconds
            for topology in self.model.topologies
            for component in topology.components
            if component.stateful
        }

    def place(self, assignment: Assignment, now_seconds: float, immediately: bool = False) -> frozenset[Executor]:
        """Put `assignment` in force. Workers whose executors change are new processes; returns the executors of those
        that end, whose queues are lost. `immediately`: the workers run at once (the beginning of a simulation)."""
        before, after = self.workers, assignment.workers()
        ended = {slot: worker for slot, worker in before.items() if after.get(slot) != worker.executors}
        workers = {slot: worker for slot, worker in before.items() if slot not in ended}
        for slot, executors in after.items():
            if slot in workers:
                continue
            if immediately:
                workers[slot] = Worker(self._new_pid(), executors, now_seconds)
            elif self._is_dead(slot.supervisor_id, now_seconds):
                workers[slot] = Worker(self._new_pid(), executors, np.inf)
            else:
                workers[slot] = self._started(executors, now_seconds)
        if workers != before:
            self.assignment, self.workers = assignment, workers
            self.version += 1
        return frozenset(executor for worker in ended.values() for executor in worker.executors)

    def resize(self, model: ClusterModel, topology_id: str, now_seconds: float) -> frozenset[Executor]:
        """Go on with `model`, in which the topology has other executors, as Nimbus does at a rebalance with numbers.

        Executors that there still are keep their place; a new one goes to the topology's worker that has fewest.
        Returns the executors of workers that end, as `place` does.
        """
        self.model = model
        there = {e for t in model.topologies if t.id == topology_id for e in t.as_topology().executors}
        self.set_limits(topology_id, {e: own for e, own in self.limits.get(topology_id, {}).items() if e in there})
        kept, slots = _of_those_there(self.assignment.slot_of, topology_id, there)
        without, last_slots = _of_those_there(self._without_slot, topology_id, there)
        joined = kept if slots else without
        fullness = Counter(dict.fromkeys(slots or last_slots, 0))
        fullness.update(slot for executor, slot in joined.items() if executor.topology_id == topology_id)
        for executor in sorted(there - kept.keys() - without.keys()):
            joined[executor] = min(fullness, key=lambda slot: (fullness[slot], slot))
            fullness[joined[executor]] += 1
        self._without_slot = without
        return self.place(Assignment(kept), now_seconds)

    def running_workers(self, now_seconds: float) -> Mapping[WorkerSlot, Worker]:
        return {
            slot: worker
            for slot, worker in self.workers.items()
            if worker.runs_from_seconds <= now_seconds and not self._is_dead(slot.supervisor_id, now_seconds)
        }

    def live_supervisors(self, now_seconds: float) -> tuple[Supervisor, ...]:
        """Those that Nimbus and agents see: one that died disappears after the time that Nimbus waits for it."""
        timeout = self.model.timings.supervisor_timeout_seconds
        return tuple(
            supervisor.as_supervisor(
                self.availability_of(supervisor, now_seconds),
                supervisor.capacity_millicores * self.speed_of(supervisor, now_seconds),
            )
            for supervisor in sorted(self.model.supervisors, key=lambda s: s.id)
            if self._dead_since(supervisor.id, now_seconds) > now_seconds - timeout
        )

    def is_dead(self, supervisor_id: str, now_seconds: float) -> bool:
        return self._is_dead(supervisor_id, now_seconds)

    def unanswering(self, now_seconds: float) -> frozenset[str]:
        """Ids of the supervisors of which nobody hears anything: dead, or in an outage that was drawn in a step before
        and is not over. Draws nothing."""
        return frozenset(
            supervisor.id
            for supervisor in self.model.supervisors
            if self._is_dead(supervisor.id, now_seconds) or self._is_in_outage(supervisor, now_seconds)
        )

    def speed_of(self, supervisor: SimulatedSupervisor, now_seconds: float) -> float:
        """The share of its CPU that is left to Storm."""
        factors = [f.factor for f in self._active(supervisor.id, now_seconds) if isinstance(f, SupervisorSlows)]
        return min(factors, default=1.0)

    def availability_of(self, supervisor: SimulatedSupervisor, now_seconds: float) -> float:
        drops = [f.availability for f in self._active(supervisor.id, now_seconds) if isinstance(f, AvailabilityDrops)]
        return min([supervisor.availability, *drops])

    def availability_lasts_seconds(self, supervisor: SimulatedSupervisor, now_seconds: float) -> float:
        """How much longer its availability is lower than its own; infinite where that is its own, or stays so."""
        drops = [f for f in self._active(supervisor.id, now_seconds) if isinstance(f, AvailabilityDrops)]
        deepest = min(drops, key=lambda drop: drop.availability, default=None)
        if deepest is None or deepest.until_seconds is None or deepest.availability >= supervisor.availability:
            return math.inf
        return deepest.until_seconds - now_seconds

    def silent_for_seconds(self, supervisor: SimulatedSupervisor, now_seconds: float) -> float:
        """How much longer its outage lasts; 0 when it answers. Ask in the order of time."""
        availability = self.availability_of(supervisor, now_seconds)
        if availability >= 1.0:
            return 0.0
        outage = self._outages.setdefault(supervisor.id, Outage(False, now_seconds, availability))
        mean_answering = supervisor.outage_seconds * availability / (1.0 - availability)
        if outage.answers and outage.availability != availability:
            # The time until the next outage has no memory: under another availability it is drawn anew.
            outage.until_seconds = now_seconds + float(self._random.exponential(mean_answering))
        outage.availability = availability
        while outage.until_seconds <= now_seconds:
            outage.answers = not outage.answers
            mean = mean_answering if outage.answers else supervisor.outage_seconds
            outage.until_seconds += float(self._random.exponential(mean)) + 1e-6
        return 0.0 if outage.answers else outage.until_seconds - now_seconds

    def is_spout_paused(self, topology_id: str, now_seconds: float) -> bool:
        return topology_id in self.inactive or now_seconds < self.paused_until.get(topology_id, -1.0)

    def set_limits(self, topology_id: str, limits: Mapping[Executor, float]) -> None:
        self.limits[topology_id] = dict(limits)
        self.limits_version += 1

    def faults_begin(self, after_seconds: float, now_seconds: float) -> tuple[str, ...]:
        """Supervisors that died in (after_seconds, now_seconds]."""
        return tuple(
            fault.supervisor_id
            for fault in self.model.faults
            if isinstance(fault, SupervisorDies) and after_seconds < fault.at_seconds <= now_seconds
        )

    def kill_workers_of(self, supervisor_id: str) -> frozenset[Executor]:
        """The supervisor's processes are gone; its executors stay assigned to it. Returns those executors."""
        gone = {slot: worker for slot, worker in self.workers.items() if slot.supervisor_id == supervisor_id}
        for slot, worker in gone.items():
            self.workers[slot] = Worker(worker.pid, worker.executors, np.inf)
        self.version += 1
        return frozenset(executor for worker in gone.values() for executor in worker.executors)

    def reschedule_lost(self, now_seconds: float) -> frozenset[Executor]:
        """What Nimbus does every few seconds: executors of supervisors that it gave up go where there are free slots,
        dealt out as EvenScheduler does; those that find none wait for the first that is free again. Those of a
        supervisor that came back before it was given up start there again."""
        if now_seconds < self._next_scheduling_seconds:
            return frozenset()
        self._next_scheduling_seconds = now_seconds + self.model.timings.scheduling_seconds
        revived = [
            slot
            for slot, worker in self.workers.items()
            if worker.runs_from_seconds == np.inf and not self._is_dead(slot.supervisor_id, now_seconds)
        ]
        for slot in revived:
            self.workers[slot] = self._started(self.workers[slot].executors, now_seconds)
            self.version += 1
        live = self.live_supervisors(now_seconds)
        known = {supervisor.id for supervisor in live}
        placed = self.assignment.slot_of
        homeless = {executor: slot for executor, slot in self._without_slot.items() if executor not in placed}
        homeless |= {executor: slot for executor, slot in placed.items() if slot.supervisor_id not in known}
        if not homeless:
            return frozenset()
        slot_of = {executor: slot for executor, slot in placed.items() if executor not in homeless}
        for topology_id in sorted({executor.topology_id for executor in homeless}):
            last_slot_of = {
                executor: slot for executor, slot in homeless.items() if executor.topology_id == topology_id
            }
            free = interleaved_free_slots(live, slot_of.values())
            if free:
                slot_of.update(deal_out(last_slot_of, free[: len(set(last_slot_of.values()))]))
        self._without_slot = {executor: slot for executor, slot in homeless.items() if executor not in slot_of}
        return self.place(Assignment(slot_of), now_seconds)

    def _is_dead(self, supervisor_id: str, at_seconds: float) -> bool:
        return any(isinstance(fault, SupervisorDies) for fault in self._active(supervisor_id, at_seconds))

    def _is_in_outage(self, supervisor: SimulatedSupervisor, now_seconds: float) -> bool:
        outage = self._outages.get(supervisor.id)
        if outage is None or outage.answers or outage.until_seconds <= now_seconds:
            return False
        return self.availability_of(supervisor, now_seconds) < 1.0

    def _dead_since(self, supervisor_id: str, now_seconds: float) -> float:
        """When it was alive for the last time; infinite where it is alive now."""
        if not self._is_dead(supervisor_id, now_seconds):
            return math.inf
        since = now_seconds
        while earlier := [
            fault.at_seconds
            for fault in self.model.faults
            if isinstance(fault, SupervisorDies)
            and fault.supervisor_id == supervisor_id
            and fault.at_seconds < since
            and (fault.until_seconds is None or since <= fault.until_seconds)
        ]:
            since = min(earlier)
        return since

    def _active(self, supervisor_id: str, at_seconds: float) -> list[object]:
        return [
            fault
            for fault in self.model.faults
            if fault.supervisor_id == supervisor_id
            and fault.at_seconds <= at_seconds
            and (fault.until_seconds is None or at_seconds < fault.until_seconds)
        ]

    def _started(self, executors: tuple[Executor, ...], now_seconds: float) -> Worker:
        """A new process, once its supervisor has learned of it, it is up and the state of its executors is restored."""
        self.restarts += 1
        timings = self.model.timings
        restore = max(self._restore_seconds.get((e.topology_id, e.component), 0.0) for e in executors)
        delay = timings.notice_seconds + timings.worker_start_seconds + restore
        return Worker(self._new_pid(), executors, now_seconds + delay)

    def _new_pid(self) -> int:
        self._next_pid += 1
        return self._next_pid


def _of_those_there(
    slot_of: Mapping[Executor, WorkerSlot], topology_id: str, there: Collection[Executor]
) -> tuple[dict[Executor, WorkerSlot], frozenset[WorkerSlot]]:
    """`slot_of` without executors that the topology has no longer, and all slots that it had."""
    kept = {e: slot for e, slot in slot_of.items() if e.topology_id != topology_id or e in there}
    return kept, frozenset(slot for e, slot in slot_of.items() if e.topology_id == topology_id)
