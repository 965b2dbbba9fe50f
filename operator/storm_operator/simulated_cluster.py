"""A simulated Storm cluster behind the very ports that the control loop and the applier use for a real one."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from storm_operator.adapters.observer import least_shares
from storm_operator.adapters.plan_documents import Acknowledgement
from storm_operator.core.arrays import Flags
from storm_operator.core.decision import Plan
from storm_operator.core.learned_profile import LearnedProfile, ProfileReading
from storm_operator.core.model import Assignment, Executor, WorkerSlot
from storm_operator.core.plan_progress import InFlight
from storm_operator.core.plan_record import PlanRecord, WorkerSeen, executor_key
from storm_operator.core.snapshot import ClusterSnapshot, LoadPeriod
from storm_operator.core.topology_spec import TopologySpec
from storm_operator.simulator.engine import Engine
from storm_operator.simulator.measure import Meter
from storm_operator.simulator.milestones import Milestones
from storm_operator.simulator.model import Timings

EPOCH_SECONDS = 1_767_225_600.0
"""When simulations begin: the first second of 2026, UTC. Rules that go by the calendar need some date."""

CONNECTION_REFRESH_SECONDS = 1.0
REBALANCE_SECONDS = 1.0
LEAST_TUPLE = 1e-6
ANY_WAY = "", "", ""
"""No simulated bolt emits on ticks: who sent what was executed does not matter."""


class SimulatedClock:
    """Time that passes only while somebody sleeps; the cluster is simulated up to it."""

    def __init__(self, advance_to: Callable[[float], None]) -> None:
        self._advance_to = advance_to
        self._seconds = EPOCH_SECONDS

    def now(self) -> float:
        return self._seconds

    def monotonic(self) -> float:
        return self._seconds

    def sleep(self, seconds: float) -> None:
        self.sleep_until(self._seconds + seconds)

    def sleep_until(self, seconds: float) -> None:
        """A time that is over already passes at once."""
        self._seconds = max(self._seconds, seconds)
        self._advance_to(self._seconds)


class SimulatedCluster:
    """Implements Observer, StormCommands, PlanDocuments and WorkerProbe on one `Engine`, which its `clock` advances.

    Nimbus looks for plans every `Timings.scheduling_seconds`; a rebalance makes it look a second later, and pauses the
    topology's spouts. A plan is never refused; what it says of supervisors that are gone is left to Nimbus' fallback.
    `milestones` of the same engine are kept on the way.
    """

    def __init__(self, engine: Engine, milestones: Milestones | None = None) -> None:
        self.engine = engine
        self._milestones = milestones or Milestones(engine, ())
        self.clock = SimulatedClock(self._advance_to)
        self.meter = Meter(engine, EPOCH_SECONDS)
        self._plans: dict[str, Plan] = {}
        self._rounds: list[float] = []
        self._resizes: list[tuple[float, str, Mapping[str, int]]] = []
        self._next_round = self._timings.scheduling_seconds

    @property
    def _timings(self) -> Timings:
        return self.engine.model.timings

    def observe(
        self,
        specs: Mapping[str, TopologySpec],
        history: tuple[LoadPeriod, ...],
        now_seconds: float,
        period_seconds: float,
        steady_since_seconds: float,
    ) -> ClusterSnapshot:
        return self.meter.read(history, least_shares(self.engine.wiring.topologies, specs))

    def rebalance(self, topology_id: str) -> None:
        now = self.clock.now() - EPOCH_SECONDS
        self.engine.cluster.paused_until[topology_id] = now + REBALANCE_SECONDS + self._timings.spout_pause_seconds
        self._rounds.append(now + REBALANCE_SECONDS)

    def change_counts(self, topology: str, executors: Mapping[str, int]) -> None:
        """See `executor_counts.ChangeCounts`: a rebalance that also says how many executors components are to have."""
        topology_id = next(one.id for one in self.engine.topologies if one.name == topology)
        self.rebalance(topology_id)
        self._resizes.append((self._rounds[-1], topology_id, executors))

    def activate(self, topology_id: str) -> None:
        self.engine.cluster.inactive.discard(topology_id)

    def deactivate(self, topology_id: str) -> None:
        self.engine.cluster.inactive.add(topology_id)

    def deactivated(self, topology_ids: Collection[str]) -> Collection[str]:
        return self.engine.cluster.inactive & set(topology_ids)

    def being_rebalanced(self, topology_ids: Collection[str]) -> Collection[str]:
        return ()

    def not_ended(self, topology_ids: Collection[str]) -> Collection[str]:
        return {topology.id for topology in self.engine.topologies} & set(topology_ids)

    def read_assignment(self, topology_ids: Collection[str]) -> Assignment:
        return self.engine.cluster.assignment.restricted_to(topology_ids)

    def tell_supervisors(self, supervisor_ids: Collection[str]) -> bool:
        return True

    def connection_refresh_seconds(self) -> float:
        return CONNECTION_REFRESH_SECONDS

    def write_plan(self, topology_id: str, plan: Plan) -> None:
        self._plans[topology_id] = plan

    def read_acknowledgement(self, topology_id: str) -> Acknowledgement | None:
        plan = self._plans.get(topology_id)
        if plan is None or not self._is_in_force(topology_id, plan):
            return None
        placed = len(plan.target.restricted_to((topology_id,)).slot_of)
        return Acknowledgement(plan.id, topology_id, "applied", "as planned", placed, (), int(1000 * self.clock.now()))

    def write_cpu_limits(self, topology_id: str, plan_id: str, limits: Mapping[Executor, float]) -> None:
        self.engine.cluster.set_limits(topology_id, limits)

    def read_cpu_limits(self, topology_id: str) -> Mapping[Executor, float]:
        return dict(self.engine.cluster.limits.get(topology_id, {}))

    def planned_topologies(self) -> Collection[str]:
        return {*self._plans, *self.engine.cluster.limits}

    def delete_plan(self, topology_id: str) -> None:
        self._plans.pop(topology_id, None)
        self.engine.cluster.set_limits(topology_id, {})

    def workers(self, supervisor_ids: Collection[str]) -> Mapping[WorkerSlot, WorkerSeen]:
        seen = {}
        for slot, worker in self.engine.cluster.running_workers(self.engine.now).items():
            if slot.supervisor_id in supervisor_ids:
                keys = frozenset(executor_key(executor) for executor in worker.executors)
                seen[slot] = WorkerSeen(worker.pid, keys, keys)
        return seen

    def sees_any(self, supervisor_ids: Collection[str]) -> bool:
        return True

    def tuples_in_flight(self, topology_ids: Collection[str], supervisor_ids: Collection[str]) -> InFlight:
        rows = self._rows_of(topology_ids)
        waiting = float(self.engine.queue[rows].sum())
        executed = float(self.engine.totals.executed[rows].sum())
        return InFlight(
            0.0 if waiting < LEAST_TUPLE else waiting,
            {ANY_WAY: executed},
            queues_of=frozenset(map(executor_key, self.engine.wiring.executors)),
        )

    def failures(self, topology_ids: Collection[str], supervisor_ids: Collection[str]) -> Mapping[str, float]:
        return {
            topology.id: float(self.engine.totals.failed[number])
            for number, topology in enumerate(self.engine.topologies)
            if topology.id in topology_ids
        }

    def _rows_of(self, topology_ids: Collection[str]) -> Flags:
        wanted = [n for n, topology in enumerate(self.engine.topologies) if topology.id in topology_ids]
        return np.isin(self.engine.wiring.topology_of, wanted)

    def _advance_to(self, seconds: float) -> None:
        """Simulate up to a time of the clock, with the scheduling rounds that fall before it."""
        until = seconds - EPOCH_SECONDS
        while True:
            due = min([self._next_round, *self._rounds])
            if due > until:
                break
            self._milestones.advance_to(due)
            self._rounds = [at for at in self._rounds if at > due]
            if due >= self._next_round:
                self._next_round += self._timings.scheduling_seconds
            self._change_due_counts(due)
            self._put_plans_in_force()
        self._milestones.advance_to(until)

    def _change_due_counts(self, due: float) -> None:
        for at, topology_id, executors in self._resizes:
            if at <= due:
                self.engine.resize(topology_id, executors)
                self._forget_former_executors(topology_id)
        self._resizes = [resize for resize in self._resizes if resize[0] > due]

    def _forget_former_executors(self, topology_id: str) -> None:
        """The plan in force says nothing of executors that come to have the same tasks again."""
        plan = self._plans.get(topology_id)
        if plan is not None:
            there = {e: slot for e, slot in plan.target.slot_of.items() if e in self.engine.row_of}
            self._plans[topology_id] = replace(plan, target=Assignment(there))

    def _put_plans_in_force(self) -> None:
        live = {supervisor.id for supervisor in self.engine.cluster.live_supervisors(self.engine.now)}
        moves = {
            executor: slot
            for topology_id, plan in self._plans.items()
            for executor, slot in plan.target.slot_of.items()
            if executor.topology_id == topology_id and slot.supervisor_id in live
        }
        present = self.engine.cluster.assignment
        if any(present.slot_of.get(executor) != slot for executor, slot in moves.items()):
            self.engine.place(present.with_moves(moves))

    def _is_in_force(self, topology_id: str, plan: Plan) -> bool:
        present = self.engine.cluster.assignment.slot_of
        return all(
            present.get(executor) == slot
            for executor, slot in plan.target.slot_of.items()
            if executor.topology_id == topology_id
        )


class MemoryJournal:
    """The plan in progress, in memory: a simulated operator does not die."""

    def __init__(self) -> None:
        self.kept: PlanRecord | None = None

    def save(self, record: PlanRecord) -> None:
        self.kept = record

    def load(self) -> PlanRecord | None:
        return self.kept

    def clear(self) -> None:
        self.kept = None


@dataclass(frozen=True, slots=True)
class AgelessProfile:
    """One learned profile for all topologies. Implements `loop_ports.ProfileSource`.

    A simulation has a time and a name of its own: when the profile was made and of which cluster says nothing there.
    """

    profile: LearnedProfile

    @property
    def cluster(self) -> str:
        return self.profile.cluster

    @property
    def ageless(self) -> LearnedProfile:
        return replace(self.profile, made_at_seconds=EPOCH_SECONDS, valid_until_seconds=math.inf)

    def read(self, specs: Mapping[str, TopologySpec]) -> Mapping[str, ProfileReading]:
        return dict.fromkeys(specs, self.ageless)
