"""What the operator exports about topologies, their components, and supervisors, as it saw them."""

from __future__ import annotations

from storm_operator.metric_contract.metric import (
    COMPONENT,
    CORES,
    NUMBER,
    OF_COMPONENT,
    OF_SUPERVISOR,
    OF_TOPOLOGY,
    ONE,
    OTHER,
    PER_SECOND,
    RATIO,
    SECONDS,
    SUPERVISOR_SEEN,
    TOPOLOGY,
    TUPLES,
    operator_metric,
)

TOPOLOGY_METRICS = (
    operator_metric(
        "topology_info",
        ("nimbus", "namespace", "topology", "topology_id"),
        ONE,
        OF_TOPOLOGY,
        "Joins agents' series (by topology_id) with the topology's name; namespace is empty in standalone mode.",
    ),
    operator_metric(
        "traffic_tuples_per_second",
        ("nimbus", "topology", "level"),
        PER_SECOND,
        f"{OF_TOPOLOGY} and level",
        "Tuples between executors. level: worker (inside one worker), supervisor (between two workers of one "
        "supervisor), inter_supervisor (between supervisors). The three add up to all traffic.",
        6_000,
    ),
    operator_metric(
        "inter_supervisor_traffic_ratio", TOPOLOGY, RATIO, OF_TOPOLOGY, "Share of all traffic that crosses supervisors."
    ),
    operator_metric("acked_tuples_per_second", TOPOLOGY, PER_SECOND, OF_TOPOLOGY, "Tuple trees completed."),
    operator_metric("failed_tuples_per_second", TOPOLOGY, PER_SECOND, OF_TOPOLOGY, "Tuple trees failed or timed out."),
    operator_metric(
        "complete_latency_seconds",
        ("nimbus", "topology", "statistic"),
        SECONDS,
        f"{OF_TOPOLOGY} and statistic",
        "Complete latency over the last period. statistic: mean, p50, p99.",
        6_000,
    ),
    operator_metric("topology_executors", TOPOLOGY, NUMBER, OF_TOPOLOGY, "Executors."),
    operator_metric("topology_workers", TOPOLOGY, NUMBER, OF_TOPOLOGY, "Workers that host its executors."),
    operator_metric("topology_supervisors", TOPOLOGY, NUMBER, OF_TOPOLOGY, "Supervisors that host its executors."),
    operator_metric(
        "component_arrival_tuples_per_second",
        COMPONENT,
        PER_SECOND,
        OF_COMPONENT,
        "Arrivals measured in the last period (a spout: what it emitted).",
    ),
    operator_metric(
        "component_forecast_arrival_tuples_per_second",
        COMPONENT,
        PER_SECOND,
        OF_COMPONENT,
        "What the pass before had forecast for that same period: less the measured ones it is the forecast's error.",
    ),
    operator_metric(
        "component_next_arrival_tuples_per_second",
        COMPONENT,
        PER_SECOND,
        OF_COMPONENT,
        "Arrivals forecast for the period that has begun.",
    ),
    operator_metric(
        "component_queue_tuples", COMPONENT, TUPLES, OF_COMPONENT, "Tuples waiting in its executors' queues."
    ),
    operator_metric(
        "component_queue_growth_tuples_per_second",
        COMPONENT,
        PER_SECOND,
        OF_COMPONENT,
        "Growth of those queues; negative while they shrink.",
    ),
    operator_metric("component_executors", COMPONENT, NUMBER, OF_COMPONENT, "Its executors."),
    operator_metric("component_cpu_used_cores", COMPONENT, CORES, OF_COMPONENT, "CPU that its executors used."),
    operator_metric(
        "component_cpu_demand_cores",
        COMPONENT,
        CORES,
        OF_COMPONENT,
        "CPU that its executors are to have next (rounded up).",
    ),
    operator_metric(
        "executor_cpu_demand_cores",
        (*COMPONENT, "executor"),
        CORES,
        "executor",
        "CPU that the executor is to have next (rounded up).",
        2_000,
    ),
)

SUPERVISOR_METRICS = (
    operator_metric(
        "supervisor_cpu_capacity_cores", SUPERVISOR_SEEN, CORES, OF_SUPERVISOR, "CPU that its workers may use."
    ),
    operator_metric(
        "supervisor_cpu_used_cores", SUPERVISOR_SEEN, CORES, OF_SUPERVISOR, "CPU that everything there used."
    ),
    operator_metric(
        "supervisor_cpu_demand_cores",
        SUPERVISOR_SEEN,
        CORES,
        OF_SUPERVISOR,
        "CPU that the executors there, of all topologies, are to have next (rounded up).",
    ),
    operator_metric(
        "supervisor_cpu_overload_cores",
        SUPERVISOR_SEEN,
        CORES,
        OF_SUPERVISOR,
        "What the executors there, of all topologies, need (not rounded) beyond its capacity; 0 while they fit.",
    ),
    operator_metric(
        "supervisor_measured",
        SUPERVISOR_SEEN,
        NUMBER,
        OF_SUPERVISOR,
        "1 when the last pass had an answer of its agent, 0 when it had none.",
    ),
    operator_metric(
        "supervisor_executors", SUPERVISOR_SEEN, NUMBER, OF_SUPERVISOR, "Executors there, of all topologies."
    ),
    operator_metric("supervisor_workers", SUPERVISOR_SEEN, NUMBER, OF_SUPERVISOR, "Workers there, of all topologies."),
    operator_metric(
        "supervisor_traffic_tuples_per_second",
        ("nimbus", "source", "target"),
        PER_SECOND,
        "ordered pair of supervisors that exchange tuples, own pair included",
        "Tuples from one supervisor (host) to another, over all topologies; none where one that runs on both is not "
        f'fully measured. Beyond the bound the smallest are folded into source and target "{OTHER}".',
        2_500,
    ),
)
