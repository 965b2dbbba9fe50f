"""What a person with access to Storm can see and do past the operator; also where its journal and plans are."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from eventually import eventually

from storm_operator.adapters.submission import JarSubmission, submit_jar
from storm_operator.assembly import Assembly, assemble
from storm_operator.connection_options import connection_of
from storm_operator.control_loop import PassReport
from storm_operator.core.direct_plan import direct_plan
from storm_operator.core.lifecycle import RunningTopology, by_name
from storm_operator.core.model import Assignment, Executor, WorkerSlot
from storm_operator.core.plan_record import Outcome, PlanRecord, PlanState
from storm_operator.core.settings import ApplyMethod
from storm_operator.local.cluster import LocalCluster

UNKNOWN = Outcome(None, None, None, None, None)


class _Nobody:
    def on_pass(self, report: PassReport) -> None: ...

    def on_record(self, record: PlanRecord) -> None: ...


class StormByHand:
    """Topologies by name."""

    def __init__(self, storm: LocalCluster) -> None:
        self._parts: Assembly = assemble(connection_of(storm), _Nobody())
        self._numbers = itertools.count(1)

    def __enter__(self) -> StormByHand:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._parts.close()

    @property
    def journal(self) -> PlanRecord | None:
        """The plan in progress."""
        return self._parts.loop.journal.load()

    def clear_journal(self) -> None:
        self._parts.loop.journal.clear()

    def running(self, name: str) -> RunningTopology | None:
        return by_name(self._parts.storm.running()).get(name)

    def status(self, name: str) -> str | None:
        """ACTIVE, INACTIVE, KILLED or REBALANCING; None when there is none."""
        running = self.running(name)
        return running.status if running else None

    def id_of(self, name: str) -> str:
        running = self.running(name)
        assert running is not None, f"{name} does not run"
        return running.id

    def is_another(self, name: str, known_id: str) -> bool:
        """Whether a topology of that name runs, and not the one that was known."""
        running = self.running(name)  # asked once: the old one may go between two questions
        return running is not None and running.id != known_id

    def assignment(self, name: str) -> Assignment:
        return self._parts.storm.read_assignment([self.id_of(name)])

    def whole_assignment(self, name: str) -> Assignment | None:
        """None while there is no place for some executor: just submitted, or its supervisor is away for a moment."""
        view = self._parts.storm.read_view({})
        topology = next((one for one in view.topologies if one.name == name), None)
        if topology is None:
            return None
        placed = view.assignment.restricted_to([topology.id])
        return placed if placed.slot_of.keys() >= set(topology.executors) else None

    def host_of(self, supervisor_id: str) -> str:
        """While it lives."""
        return next(host for host, known in self._parts.storm.supervisor_ids().items() if known == supervisor_id)

    def supervisor_on(self, host: str) -> str:
        """Its id, while it lives."""
        return self._parts.storm.supervisor_ids()[host]

    def processes(self, name: str) -> Mapping[WorkerSlot, int]:
        """Process id of each worker that the topology is assigned to, as far as its agent sees it."""
        own = set(self.assignment(name).slot_of.values())
        seen = self._parts.loop.applier.probe.workers({slot.supervisor_id for slot in own})
        return {slot: worker.pid for slot, worker in seen.items() if slot in own}

    def executor_counts(self, name: str) -> Mapping[str, int]:
        """By component."""
        counts: dict[str, int] = {}
        for executor in self._parts.client.topology_info(self.id_of(name)).executors:
            counts[executor.component] = counts.get(executor.component, 0) + 1
        return counts

    def scatter(self, name: str) -> Assignment:
        """Put the topology's executors in turn on two supervisors, and wait until they run there."""
        places = itertools.cycle((0, 1))
        return self.arrange(name, lambda _: next(places))

    def arrange(self, name: str, machine_of: Callable[[Executor], int]) -> Assignment:
        """Put each executor, in order, on the supervisor of the number told for it (by host); one worker on each.

        Waits until they run there.
        """
        base = eventually(lambda: self.whole_assignment(name), f"all executors of {name} are placed")
        view = self._parts.storm.read_view({})
        machines = sorted(view.supervisors, key=lambda supervisor: supervisor.host)
        taken = frozenset(
            self._parts.storm.read_assignment([one.id for one in self._parts.storm.running()]).slot_of.values()
        )
        free = [next(slot for slot in machine.slots if slot not in taken) for machine in machines]
        target = Assignment({executor: free[machine_of(executor)] for executor in sorted(base.slot_of)})
        plan = direct_plan(base, target, f"by-hand-{next(self._numbers)}", 0.0, "arranged by hand")
        record = PlanRecord(plan, ApplyMethod.REBALANCE, PlanState.PROPOSED, UNKNOWN, 0.0, enforce_cpu=False)
        done = self._parts.loop.applier.apply(record, lambda _: None)
        assert done.state is PlanState.SETTLING, done.message
        assert not done.message, done.message
        return target

    def submit(self, jar: Path, main_class: str, args: Sequence[str]) -> None:
        """As `storm jar`."""
        assert self._parts.home is not None
        submit_jar(JarSubmission(jar, main_class, tuple(args), {}), self._parts.home)

    def rebalance(self, name: str, executors: Mapping[str, int]) -> None:
        """As `storm rebalance NAME -w 0 -e COMPONENT=COUNT`."""
        self._parts.client.rebalance(name, executors=executors)

    def activate(self, name: str) -> None:
        self._parts.client.activate(name)

    def deactivate(self, name: str) -> None:
        self._parts.client.deactivate(name)

    def kill(self, name: str) -> None:
        self._parts.storm.kill(name, 0)

    def kill_all(self) -> None:
        """And wait until all are gone."""
        for left in self._parts.storm.running():
            self.kill(left.name)
        eventually(lambda: not self._parts.storm.running(), "no topology is left")


@contextmanager
def nothing_left_on(storm: LocalCluster) -> Iterator[None]:
    """Kills whatever runs there when the block ends: who comes next may count on free slots."""
    try:
        yield
    finally:
        with StormByHand(storm) as hands:
            hands.kill_all()
