"""Waits until a plan is in force and its executors run, for as long as its topologies are there."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field

from storm_operator.adapters.errors import OUT_OF_REACH
from storm_operator.apply_ports import Clock, PlanDocuments, StormCommands, WorkerProbe
from storm_operator.core.decision import Plan
from storm_operator.core.model import Executor
from storm_operator.core.plan_progress import executors_not_running, supervisors_of
from storm_operator.core.plan_record import RUNNING_TIMEOUT_SECONDS, PlanRecord

IN_FORCE_TIMEOUT_SECONDS = 60.0
POLL_SECONDS = 0.3
ENDED_LOOK_SECONDS = 3.0
"""While a plan is waited for Nimbus is asked so often whether its topologies are still there."""


def wait_until(
    condition: Callable[[], bool], clock: Clock, timeout_seconds: float, poll_seconds: float = POLL_SECONDS
) -> bool:
    """Whether `condition` came true in time."""
    deadline = clock.monotonic() + timeout_seconds
    while not condition():
        if clock.monotonic() >= deadline:
            return False
        clock.sleep(poll_seconds)
    return True


@dataclass(slots=True)
class Ended:
    """Which topologies of a plan Nimbus has no longer, since somebody killed them. It is asked now and then."""

    plan: Plan
    storm: StormCommands
    clock: Clock
    found: frozenset[str] = frozenset()
    next_look_tick: float = field(init=False)

    def __post_init__(self) -> None:
        self.next_look_tick = self.clock.monotonic() + ENDED_LOOK_SECONDS

    def look(self) -> frozenset[str]:
        """Ids of those that are known to have ended."""
        if self.clock.monotonic() >= self.next_look_tick:
            with contextlib.suppress(*OUT_OF_REACH):  # who ended is unknown for a while
                there = self.storm.not_ended(self.plan.topology_ids)
                self.found = frozenset(self.plan.topology_ids).difference(there)
            self.next_look_tick = self.clock.monotonic() + ENDED_LOOK_SECONDS
        return self.found


@dataclass(frozen=True, slots=True)
class Comeback:
    """Whether all executors of restarted workers were seen to run, and those that were waited for in vain."""

    is_whole: bool
    late: tuple[Executor, ...]


@dataclass(frozen=True, slots=True)
class PlanWaits:
    """Looks at ZooKeeper, Nimbus and the agents again and again. Topologies that ended meanwhile are not waited for."""

    storm: StormCommands
    documents: PlanDocuments
    probe: WorkerProbe
    clock: Clock

    def why_not_in_force(self, plan: Plan) -> str:
        """Waits until `plan` is in force; the reason if it will not be."""
        ended = Ended(plan, self.storm, self.clock)
        refusal = ""

        def is_settled() -> bool:
            nonlocal refusal
            refusal = self._refusal(plan)
            return bool(refusal) or self.is_in_force(plan, ended.look())

        if wait_until(is_settled, self.clock, IN_FORCE_TIMEOUT_SECONDS):
            return refusal
        return f"not in force after {IN_FORCE_TIMEOUT_SECONDS:.0f} s: {self._last_words(plan)}"

    def is_in_force(self, plan: Plan, ended: frozenset[str] = frozenset()) -> bool:
        """Whether Nimbus has placed all as the plan says, but for topologies that have `ended`."""
        remaining = [topology_id for topology_id in plan.topology_ids if topology_id not in ended]
        for topology_id in remaining:
            acknowledgement = self.documents.read_acknowledgement(topology_id)
            if acknowledgement is None or acknowledgement.plan_id != plan.id or acknowledgement.outcome != "applied":
                return False
        present, wanted = self.storm.read_assignment(remaining), plan.target.restricted_to(remaining)
        return all(present.slot_of.get(executor) == slot for executor, slot in wanted.slot_of.items())

    def comeback(self, record: PlanRecord) -> Comeback:
        """Waits until restarted workers run."""
        ended, supervisors = Ended(record.plan, self.storm, self.clock), supervisors_of(record.plan)
        missing: tuple[Executor, ...] = ()

        def all_run() -> bool:
            nonlocal missing
            missing = executors_not_running(record, self.probe.workers(supervisors))
            return {executor.topology_id for executor in missing} <= ended.look()

        wait_until(all_run, self.clock, RUNNING_TIMEOUT_SECONDS)
        late = tuple(executor for executor in missing if executor.topology_id not in ended.found)
        return Comeback(is_whole=not missing, late=late)

    def _refusal(self, plan: Plan) -> str:
        for topology_id in plan.topology_ids:
            acknowledgement = self.documents.read_acknowledgement(topology_id)
            if acknowledgement and acknowledgement.plan_id == plan.id and acknowledgement.outcome == "rejected":
                return f"the plan scheduler rejected it: {acknowledgement.message}"
        return ""

    def _last_words(self, plan: Plan) -> str:
        acknowledgements = [self.documents.read_acknowledgement(topology_id) for topology_id in plan.topology_ids]
        words = [a.message for a in acknowledgements if a is not None and a.plan_id == plan.id]
        return "; ".join(words) or "the plan scheduler has not acknowledged it (is it Nimbus' storm.scheduler?)"
