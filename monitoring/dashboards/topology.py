"""One topology: how fast, how well, and which component or executor holds it back."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build

from dashboards.frame import AGENTS, TOPOLOGIES, Section, Uid, dashboard
from dashboards.limits import (
    CROSSING_SHARE,
    FAILED_PER_SECOND,
    LATENCY_SECONDS,
    QUEUE_GROWTH_PER_SECOND,
    WAITING_TUPLES,
)
from dashboards.look import ORANGE, RED, AnyPanel
from dashboards.panels import Query, buckets, figure, lines, rows_over_time
from dashboards.table_panels import Column, rows

T = TOPOLOGIES
LATENCY = f"sum by (le) (rate(storm_complete_latency_seconds_bucket{{{AGENTS}}}[$__rate_interval]))"


def topology() -> build.Dashboard:
    return dashboard(
        Uid.TOPOLOGY,
        "Storm / Topology",
        "One topology: latency, throughput, failures; CPU, capacity and queues by component and executor.",
        (
            Section("Now", _figures()),
            Section("Latency and throughput", _service()),
            Section("Components", _components()),
            Section("Executors", _executors()),
        ),
        one_topology=True,
    )


def per_second(metric: str, *by: str) -> str:
    """The rate of an agents' counter of executors, summed by labels."""
    return f"sum by ({', '.join(by)}) (rate({metric}{{{AGENTS}}}[$__rate_interval]))"


def per_second_now(metric: str, *by: str) -> str:
    """The same, but only where executors are now.

    One that was moved has a rate at its old place, too, until that is out of the window; and windows grow with the time
    that is looked at.
    """
    counter = f"{metric}{{{AGENTS}}}"
    return f"sum by ({', '.join(by)}) (rate({counter}[$__rate_interval]) and {counter})"


def _figures() -> tuple[AnyPanel, ...]:
    def latency(quantile: float, name: str) -> AnyPanel:
        return figure(
            f"Latency {name}",
            f"{quantile:.0%} of the tuple trees end within this time.",
            "s",
            f"histogram_quantile({quantile}, {LATENCY})",
            thresholds=LATENCY_SECONDS,
            width=3,
        )

    return (
        latency(0.5, "p50"),
        latency(0.95, "p95"),
        latency(0.99, "p99"),
        figure(
            "Completed",
            "Tuple trees completed per second, in the last period.",
            "suffix: tuples/s",
            f"sum(storm_operator_acked_tuples_per_second{{{T}}})",
            width=3,
        ),
        figure(
            "Failed",
            "Tuple trees that failed or timed out per second.",
            "suffix: tuples/s",
            f"sum(storm_operator_failed_tuples_per_second{{{T}}})",
            thresholds=FAILED_PER_SECOND,
            width=3,
        ),
        figure(
            "Between supervisors",
            "Share of its tuples that cross machines.",
            "percentunit",
            f"max(storm_operator_inter_supervisor_traffic_ratio{{{T}}})",
            thresholds=CROSSING_SHARE,
            width=3,
        ),
        figure(
            "Executors",
            "Its executors, ackers included.",
            "short",
            f"sum(storm_operator_topology_executors{{{T}}})",
            width=3,
        ),
        figure(
            "Supervisors",
            "Machines that host its executors. Fewer means less traffic between them, as long as CPU suffices.",
            "short",
            f"sum(storm_operator_topology_supervisors{{{T}}})",
            width=3,
        ),
    )


def _service() -> tuple[AnyPanel, ...]:
    return (
        lines(
            "Complete latency",
            "From a spout's emit to the end of the tuple tree. Purple marks are plans: the lines should fall there.",
            "s",
            *(
                Query(f"histogram_quantile({q}, {LATENCY})", name)
                for q, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))
            ),
            thresholds=LATENCY_SECONDS,
        ),
        buckets(
            "Distribution of complete latency",
            "How many tuple trees ended within which time. Two dark bands mean two ways through the topology.",
            "s",
            f"sum by (le) (increase(storm_complete_latency_seconds_bucket{{{AGENTS}}}[$__rate_interval]))",
        ),
        lines(
            "Throughput",
            "Tuple trees completed and failed per second.",
            "suffix: tuples/s",
            Query(f"sum(storm_operator_acked_tuples_per_second{{{T}}})", "completed"),
            Query(f"sum(storm_operator_failed_tuples_per_second{{{T}}})", "failed"),
        ),
        lines(
            "Traffic by how far it goes",
            "Inside one worker (cheapest), between workers of one supervisor, between supervisors (dearest).",
            "suffix: tuples/s",
            Query(f"sum by (level) (storm_operator_traffic_tuples_per_second{{{T}}})", "{{level}}"),
            stacked=True,
        ),
    )


def _components() -> tuple[AnyPanel, ...]:
    return (
        lines(
            "Tuples executed",
            "Tuples that the executors of each component took from their queues, per second.",
            "suffix: tuples/s",
            Query(per_second("storm_executor_executed_tuples_total", "component"), "{{component}}"),
        ),
        lines(
            "CPU used and given",
            "Cores that each component used (drawn) and is to have next (dashed). Used close to given will be raised.",
            "suffix: cores",
            Query(f"sum by (component) (storm_operator_component_cpu_used_cores{{{T}}})", "{{component}} used"),
            Query(f"sum by (component) (storm_operator_component_cpu_demand_cores{{{T}}})", "{{component}} given"),
            dashed=".* given",
        ),
        lines(
            "Threads' time on a CPU",
            "Share of time for which a component's threads compute; at 100% one more tuple has to wait. It is not what "
            "Storm calls capacity: a bolt that waits, say for a database, shows little here while its queue grows.",
            "percentunit",
            Query(
                f"{per_second('storm_executor_cpu_seconds_total', 'component')}"
                f" / sum by (component) (storm_operator_component_executors{{{T}}})",
                "{{component}}",
            ),
            thresholds=((0.8, ORANGE), (1, RED)),
        ),
        lines(
            "Queues",
            "Tuples that wait in the queues of each component's executors. A queue that only grows is a bottleneck.",
            "suffix: tuples",
            Query(f"sum by (component) (storm_executor_queue_length{{{AGENTS}}})", "{{component}}"),
            thresholds=WAITING_TUPLES,
        ),
        lines(
            "Arrivals",
            "Tuples that arrive at each component per second (a spout: what it emitted).",
            "suffix: tuples/s",
            Query(f"sum by (component) (storm_operator_component_arrival_tuples_per_second{{{T}}})", "{{component}}"),
        ),
        lines(
            "Growth of queues",
            "Above zero, more arrives than is worked off.",
            "suffix: tuples/s",
            Query(
                f"sum by (component) (storm_operator_component_queue_growth_tuples_per_second{{{T}}})", "{{component}}"
            ),
            thresholds=QUEUE_GROWTH_PER_SECOND,
            signed=True,
        ),
    )


def _executors() -> tuple[AnyPanel, ...]:
    by = ("component", "executor", "supervisor", "port")
    return (
        rows_over_time(
            "CPU of the busiest executors",
            "The 25 executors that used most CPU over the time looked at; a thread can use one core at most.",
            "percentunit",
            Query(
                heaviest(f"storm_executor_cpu_seconds_total{{{AGENTS}}}", 25, "component", "executor", "supervisor"),
                "{{component}} {{executor}} on {{supervisor}}",
            ),
            maximum=1,
        ),
        rows(
            "Executors now",
            "Where each executor lives and how it fares. Limit is empty where no limit is enforced.",
            (
                Column("component", "Component"),
                Column("executor", "Executor"),
                Column("supervisor", "Supervisor"),
                Column("port", "Port"),
                Column("Value #A", "CPU", "suffix: cores", decimals=3),
                Column("Value #B", "Limit", "suffix: cores", decimals=3),
                Column("Value #C", "Executed", "suffix: tuples/s", decimals=1),
                Column("Value #D", "Waiting", "suffix: tuples", WAITING_TUPLES),
                Column("Value #E", "Failed", "suffix: tuples/s", FAILED_PER_SECOND, decimals=1),
            ),
            per_second_now("storm_executor_cpu_seconds_total", *by),
            f"max by ({', '.join(by)}) (storm_executor_cpu_limit_cores{{{AGENTS}}})",
            per_second_now("storm_executor_executed_tuples_total", *by),
            f"max by ({', '.join(by)}) (storm_executor_queue_length{{{AGENTS}}})",
            per_second_now("storm_executor_failed_tuples_total", *by),
            height=10,
            sort_by="CPU",
        ),
        lines(
            "Memory of workers",
            "Resident memory of each worker's process.",
            "bytes",
            Query(f"max by (supervisor, port) (storm_worker_memory_bytes{{{AGENTS}}})", "{{supervisor}}:{{port}}"),
        ),
        lines(
            "Age of what workers say",
            "Workers write their figures once a second. Older than some seconds: the worker hangs or its disk is slow.",
            "s",
            Query(
                f"max by (supervisor, port) (storm_worker_snapshot_age_seconds{{{AGENTS}}})", "{{supervisor}}:{{port}}"
            ),
            thresholds=((10, ORANGE),),
        ),
    )


def heaviest(counter: str, many: int, *by: str) -> str:
    """Rates of the `many` series that grew most over the time looked at: the same rows at every moment of it."""
    labels = ", ".join(by)
    return (
        f"sum by ({labels}) (rate({counter}[$__rate_interval]))"
        f" and topk({many}, sum by ({labels}) (increase({counter}[$__range] @ end())))"
    )
