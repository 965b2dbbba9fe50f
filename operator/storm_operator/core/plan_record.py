"""What became of a plan: its states, what was measured before and after, and how long everything took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from storm_operator.core.decision import Plan
from storm_operator.core.model import Executor, WorkerSlot, read_only
from storm_operator.core.settings import ApplyMethod
from storm_operator.core.snapshot import ClusterSnapshot

RUNNING_TIMEOUT_SECONDS = 90.0
"""So long executors are waited for, from in force on."""

AUTO = "auto"
"""Approves a plan that needs no person's word."""

ExecutorKey = tuple[str, int, int]
"""(topology id, first task, last task): an executor as agents and the scheduler name it."""


def executor_key(executor: Executor) -> ExecutorKey:
    return executor.topology_id, executor.task_start, executor.task_end


@dataclass(frozen=True, slots=True)
class WorkerSeen:
    """A worker process as its supervisor's agent sees it.

    `executors` are those that it hosts; `at_work` those whose own thread runs.
    """

    pid: int
    executors: frozenset[ExecutorKey]
    at_work: frozenset[ExecutorKey]


class PlanState(StrEnum):
    """Life of a plan, in order; the last five are final."""

    PROPOSED = "Proposed"
    APPLYING = "Applying"
    SETTLING = "Settling"
    VERIFIED = "Verified"
    ROLLED_BACK = "RolledBack"
    FAILED = "Failed"
    EXPIRED = "Expired"
    REJECTED = "Rejected"

    @property
    def is_final(self) -> bool:
        return self not in (PlanState.PROPOSED, PlanState.APPLYING, PlanState.SETTLING)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Measured figures of the topologies of one plan over one control period; None is unknown.

    Latencies are those of the slowest topology of the plan (one slow topology must not hide behind a fast one);
    rates are sums. `emitted_per_second` is of the spouts, and known of topologies that ack nothing, too.
    `waiting_ms` is of those that no complete latency tells of: how long tuples wait where they wait longest, in the
    queues of one component, by Little's law (what waits over what is executed).
    """

    inter_supervisor_tuples_per_second: float | None
    acked_per_second: float | None
    complete_latency_mean_ms: float | None
    complete_latency_p50_ms: float | None
    complete_latency_p99_ms: float | None
    emitted_per_second: float | None = None
    waiting_ms: float | None = None

    @property
    def has_load(self) -> bool:
        """Whether a load is known that another can be compared with."""
        return bool(self.acked_per_second or self.emitted_per_second)


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """One plan and all that is known of its life. Times are seconds; None: not (yet) known.

    `started_at_seconds` is when it was decided; of a plan that waited for approval, when its execution began.
    `seconds_to_in_force` runs from there until the scheduler acknowledged it and Nimbus shows it;
    `seconds_to_running` from in force until every moved executor was seen to run in its new worker, None also where
    nobody looked all the while; `settling_since_seconds` is when all was done, drained spouts resumed too;
    `workers_kept` counts the plan's kept workers whose process id did not change. `worker_pids_before` and
    `failures_before` (failed tuples by counter, None when an agent was silent) are the readings from before the move
    that these are told by; of a counter that appeared with the move, the first one after it;
    `busy_before` are the executors that had tuples to work on, and so will show when they run again; `timed_before` the
    topologies (ids) whose latency was known, None where nobody noted that; `inactive_before` those to be drained that
    were deactivated already, by their owner or as suspended, and so are not resumed. `rollback_of` is, of a rollback,
    the id of the plan that it undoes. `approved_by` is AUTO or who said yes; empty until somebody has.
    """

    plan: Plan
    method: ApplyMethod
    state: PlanState
    before: Outcome
    started_at_seconds: float
    message: str = ""
    seconds_to_in_force: float | None = None
    seconds_to_running: float | None = None
    workers_kept: int | None = None
    failed_tuples: float | None = None
    in_force_at_seconds: float | None = None
    settling_since_seconds: float | None = None
    measured: Outcome | None = None
    worker_pids_before: Mapping[WorkerSlot, int] = field(default_factory=dict)
    failures_before: Mapping[str, float] | None = field(default_factory=dict)
    busy_before: tuple[Executor, ...] = ()
    timed_before: tuple[str, ...] | None = None
    inactive_before: tuple[str, ...] = ()
    enforce_cpu: bool = True
    rollback_of: str = ""
    approved_by: str = ""
    approved_at_seconds: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "worker_pids_before", read_only(self.worker_pids_before))
        if self.failures_before is not None:
            object.__setattr__(self, "failures_before", read_only(self.failures_before))

    @property
    def running_at_seconds(self) -> float | None:
        """From when on what is measured is of executors that ran; None where the plan never was in force.

        Those that were not seen to run did not for all the time that they were given.
        """
        if self.in_force_at_seconds is None or self.settling_since_seconds is not None:
            return self.settling_since_seconds
        waited = RUNNING_TIMEOUT_SECONDS if self.seconds_to_running is None else self.seconds_to_running
        return self.in_force_at_seconds + waited

    @property
    def effect_is_unknown(self) -> bool:
        """Whether it stands since nothing speaks against it, and nothing for it: there was no load before it.

        A way back is not judged at all.
        """
        return self.state is PlanState.VERIFIED and not self.rollback_of and not self.before.has_load

    @property
    def remembered(self) -> PlanRecord:
        """What is kept of it: once it is over without the readings from before, by which nobody tells anything then."""
        return replace(self, worker_pids_before={}, failures_before=None) if self.state.is_final else self


def busy_executors(snapshot: ClusterSnapshot, topology_ids: tuple[str, ...]) -> tuple[Executor, ...]:
    """The executors that certainly handle a tuple every second or so, sorted."""
    return tuple(
        sorted(
            executor
            for executor, load in snapshot.loads.items()
            if executor.topology_id in topology_ids and (load.executed_per_second or 0.0) >= 1.0
        )
    )


def timed_topologies(snapshot: ClusterSnapshot, topology_ids: Iterable[str]) -> tuple[str, ...]:
    """Those of `topology_ids` whose complete latency is known: one that acks now and then has none in most periods."""
    return tuple(t for t in topology_ids if t in snapshot.rates and snapshot.rates[t].latency is not None)
