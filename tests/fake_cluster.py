"""A Storm cluster in a few dictionaries, behind the ports of the applier; plans get in force a little later."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from storm_operator.adapters.errors import NimbusError, RebalanceInProgress
from storm_operator.adapters.plan_documents import Acknowledgement
from storm_operator.core.decision import Plan
from storm_operator.core.model import Assignment, Executor, WorkerSlot
from storm_operator.core.plan_progress import InFlight
from storm_operator.core.plan_record import WorkerSeen, executor_key


class Killed(Exception):
    """The operator dies here."""


@dataclass
class FakeClock:
    """`seconds` is what it shows; `slept_seconds` is what has passed, whatever it is set to."""

    seconds: float = 1000.0
    on_sleep: Callable[[], None] = lambda: None
    slept_seconds: float = 0.0

    def now(self) -> float:
        return self.seconds

    def monotonic(self) -> float:
        return self.slept_seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self.slept_seconds += seconds
        self.on_sleep()


@dataclass
class FakeCluster:
    """Implements StormCommands, PlanDocuments and WorkerProbe.

    `die_at` names the call at which the operator dies, `refuses` the calls that Nimbus answers with an error.
    """

    assignment: Assignment
    clock: FakeClock
    die_at: str | None = None
    refuses: frozenset[str] = frozenset()
    rejects: bool = False
    supervisors_are_deaf: bool = False
    told: set[str] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)
    plans: dict[str, Plan] = field(default_factory=dict)
    limits: dict[str, dict[Executor, float]] = field(default_factory=dict)
    pids: dict[WorkerSlot, int] = field(default_factory=dict)
    inactive: set[str] = field(default_factory=set)
    failed: Mapping[str, float] | None = field(default_factory=dict)
    """By counter, as agents show them."""
    in_flight: list[float] = field(default_factory=lambda: [0.0])
    busy_until_seconds: float = 0.0
    """A bolt works on one tuple until then."""
    age_seconds: Callable[[float], float] = lambda _: 0.5
    """How long ago the worker wrote that has been silent for longest, by the seconds that have passed."""
    ticks: bool = False
    """A bolt emits on each tick, once a second, and another executes that."""
    out_of_sight: set[Executor] = field(default_factory=set)
    """Those that Nimbus shows at no place, since their supervisor is away."""
    without_queue: set[Executor] = field(default_factory=set)
    """Those whose queues no agent shows."""
    hidden: bool = False
    """No agent sees an executor run."""
    finishing: set[str] = field(default_factory=set)
    """Topologies that were killed and have time to finish."""
    silent_supervisors: set[str] = field(default_factory=set)
    """Those whose agents do not answer."""
    killed: set[str] = field(default_factory=set)
    rebalancing: set[str] = field(default_factory=set)
    """Topologies that somebody rebalances: Nimbus pauses and resumes no spouts of theirs."""
    next_pid: int = 100

    def __post_init__(self) -> None:
        self.clock.on_sleep = self.schedule
        for slot in self.assignment.workers():
            self.pids[slot] = self._new_pid()

    def rebalance(self, topology_id: str) -> None:
        self._call(f"rebalance {topology_id}")
        self.schedule()

    def activate(self, topology_id: str) -> None:
        self._refuse_while_rebalancing(topology_id)
        self._call(f"activate {topology_id}")
        self.inactive.discard(topology_id)

    def deactivate(self, topology_id: str) -> None:
        self._refuse_while_rebalancing(topology_id)
        self._call(f"deactivate {topology_id}")
        self.inactive.add(topology_id)

    def deactivated(self, topology_ids: Collection[str]) -> Collection[str]:
        return self.inactive & set(topology_ids)

    def being_rebalanced(self, topology_ids: Collection[str]) -> Collection[str]:
        return self.rebalancing & set(topology_ids)

    def not_ended(self, topology_ids: Collection[str]) -> Collection[str]:
        running = {executor.topology_id for executor in self.assignment.slot_of}
        return (running | self.finishing) & set(topology_ids)

    def read_assignment(self, topology_ids: Collection[str]) -> Assignment:
        present = self.assignment.restricted_to(topology_ids).slot_of
        return Assignment({executor: slot for executor, slot in present.items() if executor not in self.out_of_sight})

    def tell_supervisors(self, supervisor_ids: Collection[str]) -> bool:
        self.told |= set(supervisor_ids)
        return not self.supervisors_are_deaf

    def connection_refresh_seconds(self) -> float:
        return 1.0

    def write_plan(self, topology_id: str, plan: Plan) -> None:
        self._call(f"write_plan {topology_id}")
        self.plans[topology_id] = plan

    def read_acknowledgement(self, topology_id: str) -> Acknowledgement | None:
        plan = self.plans.get(topology_id)
        if plan is None:
            return None
        if self.rejects:
            return Acknowledgement(plan.id, topology_id, "rejected", "executor [1, 1] is named twice", 0, (), 0)
        done = all(
            self.assignment.slot_of.get(executor) == slot
            for executor, slot in plan.target.slot_of.items()
            if executor.topology_id == topology_id
        )
        return Acknowledgement(plan.id, topology_id, "applied", "as planned", 1, (), 0) if done else None

    def write_cpu_limits(self, topology_id: str, plan_id: str, limits: Mapping[Executor, float]) -> None:
        self._call(f"write_cpu_limits {topology_id}")
        self.limits[topology_id] = dict(limits)

    def read_cpu_limits(self, topology_id: str) -> Mapping[Executor, float]:
        return dict(self.limits.get(topology_id, {}))

    def planned_topologies(self) -> Collection[str]:
        return {*self.plans, *self.limits}

    def delete_plan(self, topology_id: str) -> None:
        self._call(f"delete_plan {topology_id}")
        self.plans.pop(topology_id, None)
        self.limits.pop(topology_id, None)

    def workers(self, supervisor_ids: Collection[str]) -> Mapping[WorkerSlot, WorkerSeen]:
        seen = {}
        for slot, executors in self.assignment.workers().items():
            if slot.supervisor_id in self.silent_supervisors or slot.supervisor_id not in supervisor_ids:
                continue
            keys = frozenset(executor_key(executor) for executor in executors if not self.hidden)
            seen[slot] = WorkerSeen(self.pids[slot], keys, keys)
        return seen

    def sees_any(self, supervisor_ids: Collection[str]) -> bool:
        return not set(supervisor_ids) <= self.silent_supervisors

    def tuples_in_flight(self, topology_ids: Collection[str], supervisor_ids: Collection[str]) -> InFlight | None:
        if self.silent_supervisors & set(supervisor_ids):
            return None
        waiting = self.in_flight.pop(0) if len(self.in_flight) > 1 else self.in_flight[0]
        # One execution that began long ago: nothing waits and nothing is counted until it ends.
        at_work = min(self.clock.now(), self.busy_until_seconds)
        executed = {("words", "spout", "split"): 0.0 if waiting == 0 else self.clock.now()}
        if self.ticks:
            executed["words", "split", "count"] = float(int(self.clock.slept_seconds))
        shown = self.assignment.slot_of.keys() - self.without_queue
        return InFlight(
            waiting,
            executed,
            cpu_seconds={"bolt": at_work},
            age_seconds=self.age_seconds(self.clock.slept_seconds),
            queues_of=frozenset(map(executor_key, shown)),
        )

    def failures(self, topology_ids: Collection[str], supervisor_ids: Collection[str]) -> Mapping[str, float] | None:
        return None if self.silent_supervisors & set(supervisor_ids) else self.failed

    def schedule(self) -> None:
        """One scheduling round: workers whose executor set changes get a new process."""
        if self.rejects:
            return
        before = self.assignment.workers()
        wanted = [item for plan in self.plans.values() for item in plan.target.slot_of.items()]
        moves = {executor: slot for executor, slot in wanted if executor.topology_id not in self.killed}
        self.assignment = self.assignment.with_moves(moves)
        after = self.assignment.workers()
        for slot, executors in after.items():
            if before.get(slot) != executors:
                self.pids[slot] = self._new_pid()

    def kill(self, topology_id: str) -> None:
        """Somebody does, at once; what was planned for it stays in ZooKeeper."""
        self.killed.add(topology_id)
        left = {executor.topology_id for executor in self.assignment.slot_of} - self.killed
        self.assignment = self.assignment.restricted_to(left)

    def _refuse_while_rebalancing(self, topology_id: str) -> None:
        if topology_id in self.rebalancing:
            raise RebalanceInProgress(f"{topology_id} is being rebalanced already")

    def _new_pid(self) -> int:
        self.next_pid += 1
        return self.next_pid

    def _call(self, what: str) -> None:
        if self.die_at == what:
            self.die_at = None
            raise Killed(what)
        if what in self.refuses:
            raise NimbusError(f"Nimbus failed in {what}")
        self.calls.append(what)
