"""What putting a plan in force needs of others: Nimbus, ZooKeeper, the agents, time, and pods where there are any."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from storm_operator.adapters.plan_documents import Acknowledgement
from storm_operator.core.decision import Plan
from storm_operator.core.model import Assignment, Executor, WorkerSlot
from storm_operator.core.plan_progress import InFlight
from storm_operator.core.plan_record import WorkerSeen


class Clock(Protocol):
    """Time from outside, so that tests need none."""

    def now(self) -> float:
        """Seconds since the epoch, for what is kept or told. Somebody may set the clock."""

    def monotonic(self) -> float:
        """Seconds since some moment, for waits and durations: whatever the clock is set to."""

    def sleep(self, seconds: float) -> None: ...


class StormCommands(Protocol):
    """What the applier asks of Nimbus; topologies by id."""

    def rebalance(self, topology_id: str) -> None: ...

    def activate(self, topology_id: str) -> None: ...

    def deactivate(self, topology_id: str) -> None: ...

    def deactivated(self, topology_ids: Collection[str]) -> Collection[str]:
        """Those of `topology_ids` whose spouts do not emit until somebody activates them."""

    def being_rebalanced(self, topology_ids: Collection[str]) -> Collection[str]:
        """Those of `topology_ids` whose spouts Nimbus neither pauses nor resumes, until their rebalance is over."""

    def not_ended(self, topology_ids: Collection[str]) -> Collection[str]:
        """Those of `topology_ids` that Nimbus still schedules: the ones that run, and killed ones that may finish."""

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

    def planned_topologies(self) -> Collection[str]:
        """Ids of the topologies that anything is kept for, also of those that have ended."""

    def delete_plan(self, topology_id: str) -> None:
        """Plan, acknowledgement and limits."""


class WorkerProbe(Protocol):
    """What the agents see right now."""

    def workers(self, supervisor_ids: Collection[str]) -> Mapping[WorkerSlot, WorkerSeen]:
        """The workers on these supervisors, of all topologies, as far as anybody can tell of them."""

    def sees_any(self, supervisor_ids: Collection[str]) -> bool:
        """Whether anybody can tell of any of these supervisors what runs there."""

    def tuples_in_flight(self, topology_ids: Collection[str], supervisor_ids: Collection[str]) -> InFlight | None:
        """What is under way in these topologies, which are on no other supervisors; None is unknown."""

    def failures(self, topology_ids: Collection[str], supervisor_ids: Collection[str]) -> Mapping[str, float] | None:
        """Failed tuples of these topologies so far, by counter, on these supervisors; None is unknown."""


class MachineLimits(Protocol):
    """CPU limits of whole supervisors, where there are any (pods)."""

    def open_up(self, supervisor_ids: Collection[str]) -> None:
        """Before a move: let these have all the CPU that they can. What cannot be done is said, not raised."""


class NoMachineLimits:
    """Supervisors whose CPU nobody limits, or somebody else does."""

    def open_up(self, supervisor_ids: Collection[str]) -> None:
        """Nothing to do."""
