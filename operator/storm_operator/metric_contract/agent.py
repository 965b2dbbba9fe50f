"""What an agent exports about its supervisor, the workers and executors there, and itself."""

from __future__ import annotations

from storm_operator.metric_contract.metric import (
    BYTES,
    CORES,
    DEFAULT_PAIR_LIMIT,
    NUMBER,
    ONE,
    OTHER,
    PER_SECOND,
    RATIO,
    SECONDS,
    TUPLES,
    Exporter,
    Kind,
    Metric,
)

EXECUTOR = ("supervisor", "topology_id", "component", "executor", "port")
WORKER = ("supervisor", "topology_id", "port")
SUPERVISOR = ("supervisor",)
_SEES_CGROUP = "agent that sees the machine's cgroup (in the storm chart with `agent.enforceExecutors`)"
_EXECUTOR, _WORKER, _HERE = "executor on the supervisor", "worker on the supervisor", "agent"


def _agent(name: str, labels: tuple[str, ...], unit: str, one_for_each: str, meaning: str) -> Metric:
    kind = Kind.COUNTER if name.endswith("_total") else Kind.GAUGE
    return Metric(Exporter.AGENT, name, kind, labels, unit, one_for_each, meaning)


AGENT_METRICS: tuple[Metric, ...] = (
    _agent("storm_executor_cpu_seconds_total", EXECUTOR, SECONDS, _EXECUTOR, "CPU time of the executor's thread."),
    _agent(
        "storm_executor_executed_tuples_total", EXECUTOR, TUPLES, _EXECUTOR, "Tuples taken from the executor's queue."
    ),
    _agent("storm_executor_emitted_tuples_total", EXECUTOR, TUPLES, _EXECUTOR, "Tuples that the executor emitted."),
    _agent("storm_executor_acked_tuples_total", EXECUTOR, TUPLES, _EXECUTOR, "Tuples (a spout: trees) it acked."),
    _agent("storm_executor_failed_tuples_total", EXECUTOR, TUPLES, _EXECUTOR, "Tuples (a spout: trees) it failed."),
    _agent(
        "storm_executor_throttled_seconds_total",
        EXECUTOR,
        SECONDS,
        "executor that is held to a limit",
        "Time for which the executor's limit kept its thread waiting.",
    ),
    _agent("storm_executor_queue_length", EXECUTOR, TUPLES, _EXECUTOR, "Tuples waiting for the executor."),
    _agent(
        "storm_executor_arrival_tuples_per_second", EXECUTOR, PER_SECOND, _EXECUTOR, "Tuples arriving at the executor."
    ),
    _agent(
        "storm_executor_cpu_limit_cores",
        EXECUTOR,
        CORES,
        "executor that is held to a limit",
        "CPU that the executor's thread may use.",
    ),
    _agent(
        "storm_task_executed_tuples_total",
        ("supervisor", "topology_id", "task", "source_component", "stream"),
        TUPLES,
        "task and stream that it receives",
        "Tuples that the task executed, by where they came from.",
    ),
    _agent(
        "storm_task_transferred_tuples_total",
        ("supervisor", "topology_id", "task", "stream"),
        TUPLES,
        "task and stream that it sends",
        "Tuples that the task sent on a stream, over all receivers.",
    ),
    _agent(
        "storm_traffic_tuples_total",
        ("supervisor", "topology_id", "source_task", "stream", "target_task"),
        TUPLES,
        f"pair of tasks and stream, {DEFAULT_PAIR_LIMIT:,} at most (`agent --pair-limit`), and one with target_task "
        f'"{OTHER}" for each task and stream of which pairs are folded',
        "Tuples that went from one task to another. Where there are more pairs than the limit, the smallest are folded "
        f'into target_task "{OTHER}" of their source task and stream; neither side ever falls or jumps.',
    ),
    _agent(
        "storm_traffic_folded_pairs",
        ("supervisor", "topology_id"),
        NUMBER,
        "topology on the supervisor",
        "Pairs of tasks that are not exported one by one.",
    ),
    _agent(
        "storm_traffic_folded_tuples_total",
        ("supervisor", "topology_id"),
        TUPLES,
        "topology on the supervisor",
        "Tuples that were counted for folded pairs.",
    ),
    Metric(
        Exporter.AGENT,
        "storm_complete_latency_seconds",
        Kind.HISTOGRAM,
        ("supervisor", "topology_id", "component", "executor"),
        SECONDS,
        "spout executor on the supervisor, times its buckets",
        "Storm's complete latency: from an acker's first message about a tuple tree to its last. The spout's way to "
        "the acker and the way back are no part of it. Buckets are those of the worker's reporter.",
    ),
    _agent("storm_worker_info", (*WORKER, "pid"), ONE, _WORKER, "A worker that runs here."),
    _agent("storm_worker_cpu_seconds_total", WORKER, SECONDS, _WORKER, "CPU time of the worker's process."),
    _agent("storm_worker_memory_bytes", WORKER, BYTES, _WORKER, "Resident memory of the worker's process."),
    _agent("storm_worker_snapshot_age_seconds", WORKER, SECONDS, _WORKER, "Age of what the worker last said."),
    _agent(
        "storm_supervisor_cpu_seconds_total",
        SUPERVISOR,
        SECONDS,
        _HERE,
        "CPU time of everything there; where the agent does not see the machine's cgroup, as in the storm chart "
        "without `agent.enforceExecutors`, of workers and their log writers alone.",
    ),
    _agent("storm_supervisor_cpu_capacity_cores", SUPERVISOR, CORES, _HERE, "CPU that all workers there may use."),
    _agent(
        "storm_supervisor_cpu_limit_cores",
        SUPERVISOR,
        CORES,
        _SEES_CGROUP + ", where that has a limit",
        "CPU limit in force of the machine's own cgroup; on Kubernetes the pod's, which follows what executors need.",
    ),
    _agent(
        "storm_supervisor_throttled_seconds_total",
        SUPERVISOR,
        SECONDS,
        _SEES_CGROUP,
        "Time for which the machine's own CPU limit kept CPUs waiting that had work, added up over them: two at once "
        "count twice.",
    ),
    _agent("storm_supervisor_memory_bytes", SUPERVISOR, BYTES, _HERE, "Resident memory of the processes there."),
    _agent(
        "storm_supervisor_round_trip_seconds",
        ("supervisor", "peer"),
        SECONDS,
        "probed supervisor",
        "Round trip to another supervisor, smoothed; an agent probes 32 at most.",
    ),
    _agent(
        "storm_supervisor_availability_ratio",
        ("supervisor", "peer"),
        RATIO,
        "probed supervisor",
        "Recent probes that the other supervisor answered, from its first answer on (0 until then), but for one "
        "silence of up to a minute that is over, as a restart is; of one without a name, such as a pod that is not "
        "there yet, nothing. One whose name cannot be looked up is not probed.",
    ),
    _agent(
        "storm_supervisor_coordinate_seconds",
        ("supervisor", "dimension"),
        SECONDS,
        "dimension (x, y, height)",
        "Network coordinate (Vivaldi); x and y may be negative.",
    ),
    _agent(
        "storm_supervisor_coordinate_error_ratio",
        SUPERVISOR,
        RATIO,
        _HERE,
        "The coordinate's own estimate of its relative error.",
    ),
    _agent(
        "storm_agent_enforcement",
        ("supervisor", "mode", "reason"),
        ONE,
        _HERE,
        "How executors are held to their CPU limits (cgroup-v1, cgroup-v2, observe-only), and why not.",
    ),
    _agent("storm_agent_build_info", ("supervisor", "version"), ONE, _HERE, "The version of the agent."),
    _agent("storm_agent_start_time_seconds", SUPERVISOR, SECONDS, _HERE, "When the agent started, since 1970."),
    _agent(
        "storm_agent_uptime_seconds",
        SUPERVISOR,
        SECONDS,
        _HERE,
        "How long the agent had run when it made this page. Between two pages of an agent that is slow to answer it "
        "was as long as this says, not as long as their scrapes' times do.",
    ),
)
