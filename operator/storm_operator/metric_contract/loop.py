"""What the operator exports about itself: its loop, its calls, what it could measure."""

from __future__ import annotations

from storm_operator.metric_contract.metric import (
    BYTES,
    CLUSTER,
    NIMBUS,
    NUMBER,
    ONE,
    RATIO,
    SECONDS,
    Exporter,
    Kind,
    Metric,
    durations,
    operator_metric,
)

CALL_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
STEP_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)

LOOP_METRICS = (
    operator_metric(
        "build_info", ("version", "mode"), ONE, "process", "The operator that runs; mode is kubernetes or standalone."
    ),
    operator_metric("leader", (), NUMBER, "process", "1 while this process is the one that acts, else 0."),
    operator_metric("topologies", NIMBUS, NUMBER, CLUSTER, "Topologies that are managed."),
    operator_metric(
        "period_seconds", NIMBUS, SECONDS, CLUSTER, "Time from the beginning of a pass to that of the next."
    ),
    operator_metric("passes_total", NIMBUS, NUMBER, CLUSTER, "Passes of the loop, failed ones included."),
    operator_metric(
        "failed_passes_total",
        NIMBUS,
        NUMBER,
        CLUSTER,
        "Passes that failed: Nimbus, ZooKeeper or the API did not answer or refused, another operator manages the "
        "cluster, or the operator itself failed.",
    ),
    operator_metric("last_pass_age_seconds", NIMBUS, SECONDS, CLUSTER, "Time since the last pass of the loop ended."),
    operator_metric("last_pass_duration_seconds", NIMBUS, SECONDS, CLUSTER, "How long the last pass took."),
    durations("pass_duration_seconds", NIMBUS, CLUSTER, "How long passes take.", STEP_BUCKETS),
    durations(
        "step_duration_seconds",
        ("nimbus", "step"),
        "step (observe, forecast, verify, decide_and_apply, cpu_limits)",
        "How long the steps of a pass take.",
        STEP_BUCKETS,
    ),
    operator_metric(
        "peer_calls_total",
        ("nimbus", "peer", "verb", "outcome"),
        NUMBER,
        "peer, verb and outcome",
        "Calls to others. peer: nimbus, zookeeper, kubernetes (nimbus is empty then), agent, prometheus. outcome: ok, "
        "refused (it answered, and would not), unreachable (it did not answer).",
        1_000,
    ),
    durations(
        "peer_call_duration_seconds",
        ("nimbus", "peer", "verb"),
        "peer and verb",
        "How long calls to others take, whatever their outcome.",
        CALL_BUCKETS,
    ),
    operator_metric(
        "watch_age_seconds",
        ("kind",),
        SECONDS,
        "watched kind of resource",
        "Time since the watch was last seen to have delivered all that there is. Kubernetes only.",
    ),
    operator_metric(
        "omitted_series", ("nimbus", "metric"), NUMBER, "metric with a bound", "Series that a bound keeps from export."
    ),
    operator_metric(
        "metrics_completeness_ratio", NIMBUS, RATIO, CLUSTER, "Placed executors whose figures are complete."
    ),
    operator_metric(
        "metrics_age_seconds", NIMBUS, SECONDS, CLUSTER, "Age of the oldest figures used in the last pass."
    ),
    operator_metric(
        "metrics_problems", NIMBUS, NUMBER, CLUSTER, "What was missing or doubtful in the last pass, in notes."
    ),
)

PROCESS_METRICS = tuple(
    Metric(
        Exporter.OPERATOR, name, Kind.COUNTER if name.endswith("_total") else Kind.GAUGE, (), unit, "process", meaning
    )
    for name, unit, meaning in (
        ("process_cpu_seconds_total", SECONDS, "CPU time of the operator's process."),
        ("process_resident_memory_bytes", BYTES, "Its resident memory."),
        ("process_virtual_memory_bytes", BYTES, "Its virtual memory."),
        ("process_start_time_seconds", SECONDS, "When it started, since 1970."),
        ("process_open_fds", NUMBER, "Its open files."),
        ("process_max_fds", NUMBER, "How many files it may open."),
    )
)
"""Of the client library, by their usual names; Linux only."""
