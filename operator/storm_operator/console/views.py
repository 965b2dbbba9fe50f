"""What the page and `status` show of one pass, as frozen values without anything that only the loop needs. Pure.

Executors, workers and supervisors refer to each other by position in the view's tuples: at 2,000 executors names in
each flow would be most of the document. None is unknown, never zero.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SupervisorView:
    """One machine. `slots` is how many workers it has room for, `workers` and `executors` what it runs.

    `is_leaving`: it is being emptied, or Storm no longer sees it (its `host` is its id where that was never seen).
    Nothing is placed there.
    """

    id: str
    host: str
    slots: int
    workers: int
    executors: int
    cpu_used_millicores: float | None
    cpu_capacity_millicores: float | None
    availability: float
    is_leaving: bool


@dataclass(frozen=True, slots=True)
class WorkerView:
    """One worker process: a used slot. `supervisor` is a position."""

    supervisor: int
    port: int
    topology: str
    executors: int
    cpu_used_millicores: float | None


@dataclass(frozen=True, slots=True)
class ExecutorView:
    """One executor. `worker` is a position, None where Storm has not placed it.

    `demand_millicores` is what it is expected to need in the period that begins, `limit_millicores` what it is held
    to; None where nobody holds it.
    """

    topology: str
    component: str
    tasks: str
    worker: int | None
    cpu_used_millicores: float | None
    demand_millicores: float | None
    limit_millicores: float | None
    executed_per_second: float | None
    queue_length: float | None


@dataclass(frozen=True, slots=True)
class ComponentView:
    """One component; `parents` are those whose streams it subscribes to."""

    name: str
    kind: str
    stateful: bool
    executors: int
    parents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TopologyView:
    """One running topology: where it is and how it fares. Latencies are complete latencies over the period.

    Tuples are those between its executors, and those of them that leave their supervisor; None where not all of its
    placed executors are measured, or none has a place. Its spec may ask for CPU limits; it is held to them where limits
    are in force and all agents beside its executors say that they hold those to them.
    """

    id: str
    name: str
    is_managed: bool
    is_held_to_limits: bool
    asks_for_limits: bool
    components: tuple[ComponentView, ...]
    executors: int
    workers: int
    supervisors: int
    acked_per_second: float | None
    failed_per_second: float | None
    latency_mean_ms: float | None
    latency_p50_ms: float | None
    latency_p99_ms: float | None
    tuples_per_second: float | None
    inter_supervisor_tuples_per_second: float | None


@dataclass(frozen=True, slots=True)
class FlowView:
    """Tuples from one place to another; `source` and `target` are positions."""

    source: int
    target: int
    tuples_per_second: float


@dataclass(frozen=True, slots=True)
class SupervisorFlowView:
    """Tuples from one supervisor to another, and the round trip between them, as the planner takes it.

    Tuples are None where a topology that runs on both is not all measured; the round trip where nobody measured any in
    the cluster (the planner then takes 1 ms).
    """

    source: int
    target: int
    tuples_per_second: float | None
    round_trip_ms: float | None


@dataclass(frozen=True, slots=True)
class TrafficView:
    """All tuples per second by level (between workers: of one supervisor), and the heaviest flows; how many lighter
    ones are left out is said.

    The levels are None where not all placed executors are measured, or none has a place; flows of executors and of
    workers are those that were measured.
    """

    in_worker_tuples_per_second: float | None
    between_workers_tuples_per_second: float | None
    between_supervisors_tuples_per_second: float | None
    executor_flows: tuple[FlowView, ...]
    worker_flows: tuple[FlowView, ...]
    supervisor_flows: tuple[SupervisorFlowView, ...]
    left_out_executor_flows: int
    left_out_worker_flows: int


@dataclass(frozen=True, slots=True)
class DecisionView:
    """What was decided about some topologies (ids; none: about all). `kind` is `plan` or `hold`; `reason` is the
    hold's one word, empty for a plan; `message` the sentence of either."""

    topologies: tuple[str, ...]
    kind: str
    reason: str
    message: str
    plan_id: str | None
    gain_percent: float | None


@dataclass(frozen=True, slots=True)
class PassView:
    """One pass. `measured_at_seconds` is older than `at_seconds` where the cluster could not be seen in this pass.

    `age_seconds` is that of the oldest reading; None where nothing was read. `refused` says, each in a sentence, which
    StormTopologies are not carried out as they stand, not yet, or not at all while paused or suspended, and why;
    `paused` has the names of the topologies that are left as they are by annotation.
    """

    at_seconds: float
    measured_at_seconds: float | None
    period_seconds: float
    completeness: float
    age_seconds: float | None
    problems: tuple[str, ...]
    supervisors: tuple[SupervisorView, ...]
    workers: tuple[WorkerView, ...]
    executors: tuple[ExecutorView, ...]
    topologies: tuple[TopologyView, ...]
    traffic: TrafficView
    decisions: tuple[DecisionView, ...]
    refused: tuple[str, ...] = ()
    paused: tuple[str, ...] = ()

    @property
    def supervisors_used(self) -> int:
        return sum(1 for supervisor in self.supervisors if supervisor.workers)
