"""All topologies at a glance: is all well, and if not, where."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build

from dashboards.frame import CLUSTERS, TOPOLOGIES, Section, Uid, dashboard, last_known, to_topology
from dashboards.limits import CROSSING_SHARE, FAILED_PER_SECOND, LATENCY_SECONDS, QUEUE_GROWTH_PER_SECOND
from dashboards.look import RED, AnyPanel
from dashboards.panels import Query, counted, counts, figure, lines
from dashboards.plan_panels import plans_by_end
from dashboards.table_panels import Column, rows

T = TOPOLOGIES
INTER = f'storm_operator_traffic_tuples_per_second{{{T},level="inter_supervisor"}}'


def overview() -> build.Dashboard:
    return dashboard(
        Uid.OVERVIEW,
        "Storm / Overview",
        "All managed topologies: health, traffic between machines, what the operator did about it.",
        (
            Section("At a glance", _figures()),
            Section("Topologies", (_topologies(),)),
            Section("Over time", _courses()),
            Section("What the operator does", _deeds()),
        ),
    )


def _figures() -> tuple[AnyPanel, ...]:
    return (
        figure(
            "Topologies",
            "Topologies that the operator manages on the chosen clusters.",
            "short",
            f"sum(storm_operator_topologies{{{CLUSTERS}}})",
            width=3,
        ),
        figure(
            "Completed",
            "Tuple trees completed per second, all chosen topologies together.",
            "suffix: tuples/s",
            f"sum(storm_operator_acked_tuples_per_second{{{T}}})",
            width=3,
        ),
        figure(
            "Failed",
            "Tuple trees that failed or timed out per second. Anything above zero for long deserves a look.",
            "suffix: tuples/s",
            f"sum(storm_operator_failed_tuples_per_second{{{T}}})",
            thresholds=FAILED_PER_SECOND,
            width=3,
        ),
        figure(
            "Slowest p99",
            "The highest 99th percentile of complete latency among the chosen topologies, over the last period.",
            "s",
            f'max(storm_operator_complete_latency_seconds{{{T},statistic="p99"}})',
            thresholds=LATENCY_SECONDS,
            width=3,
        ),
        figure(
            "Between supervisors",
            "Share of all tuples that cross from one supervisor to another. Less is better: they pay for the network.",
            "percentunit",
            f"sum({INTER}) / sum(storm_operator_traffic_tuples_per_second{{{T}}})",
            thresholds=CROSSING_SHARE,
            width=3,
        ),
        figure(
            "Overloaded supervisors",
            "Supervisors whose executors need more CPU than it has. The operator moves some away where there is room.",
            "short",
            f"sum(storm_operator_supervisor_cpu_overload_cores{{{CLUSTERS}}} > bool 0)",
            thresholds=((1, RED),),
            width=3,
        ),
        figure(
            "Plans applied",
            "Plans that came into force within the time looked at; one for several topologies counts for each of them.",
            "short",
            f'sum(increase(storm_operator_topology_plans_total{{{T},state="Settling"}}[$__range]))',
            width=3,
            decimals=0,
        ),
        figure(
            "Firing alerts",
            "Alerts of storm-operator's rules that fire now, each with a runbook; those that name no cluster count for "
            "every one. Without the rules in Prometheus nothing can fire.",
            "short",
            'count(ALERTS{alertname=~"Storm.*",alertstate="firing",nimbus=~"$cluster|"})'
            f" or max(cluster:storm_rules:loaded{{{CLUSTERS}}}) * 0",
            thresholds=((1, RED),),
            without="no rules or operator",
            width=3,
        ),
    )


def _topologies() -> AnyPanel:
    def last(metric: str, more: str = "") -> str:
        return f"max by (nimbus, topology) ({last_known(f'storm_operator_{metric}{{{T}{more}}}')})"

    growth = last_known(f"storm_operator_component_queue_growth_tuples_per_second{{{T}}}")
    return rows(
        "Each topology",
        "One row each; a click on the name opens the topology. Latency and rates: the last period that was measured.",
        (
            Column("topology", "Topology", link=to_topology()),
            Column("Value #A", "Completed", "suffix: tuples/s", decimals=1),
            Column("Value #B", "Failed", "suffix: tuples/s", FAILED_PER_SECOND, decimals=1),
            Column("Value #C", "Median", "s", LATENCY_SECONDS),
            Column("Value #D", "p99", "s", LATENCY_SECONDS),
            Column("Value #E", "Between supervisors", "percentunit", CROSSING_SHARE),
            Column("Value #F", "Queue growth", "suffix: tuples/s", QUEUE_GROWTH_PER_SECOND, decimals=1),
            Column("Value #G", "Executors"),
            Column("Value #H", "Workers"),
            Column("Value #I", "Supervisors"),
            Column("nimbus", "Cluster"),
        ),
        last("acked_tuples_per_second"),
        last("failed_tuples_per_second"),
        last("complete_latency_seconds", ',statistic="p50"'),
        last("complete_latency_seconds", ',statistic="p99"'),
        last("inter_supervisor_traffic_ratio"),
        f"sum by (nimbus, topology) (max by (nimbus, topology, component) ({growth}))",
        last("topology_executors"),
        last("topology_workers"),
        last("topology_supervisors"),
        height=7,
        sort_by="Completed",
    )


def _courses() -> tuple[AnyPanel, ...]:
    return (
        lines(
            "Completed tuples",
            "Tuple trees completed per second. A fall without a fall of the input is a bottleneck.",
            "suffix: tuples/s",
            Query(f"storm_operator_acked_tuples_per_second{{{T}}}", "{{topology}}"),
        ),
        lines(
            "p99 of complete latency",
            "Time within which 99% of the tuple trees of a topology end.",
            "s",
            Query(f'storm_operator_complete_latency_seconds{{{T},statistic="p99"}}', "{{topology}}"),
            thresholds=LATENCY_SECONDS,
        ),
        lines(
            "Traffic between supervisors",
            "Tuples per second that cross machines, by topology: what placement is there to lower.",
            "suffix: tuples/s",
            Query(f"sum by (nimbus, topology) ({INTER})", "{{topology}}"),
        ),
        lines(
            "CPU of supervisors",
            "Used, needed next, and there, all supervisors together. Needed above there cannot be placed well.",
            "suffix: cores",
            Query(f"sum(storm_operator_supervisor_cpu_used_cores{{{CLUSTERS}}})", "used"),
            Query(f"sum(storm_operator_supervisor_cpu_demand_cores{{{CLUSTERS}}})", "needed"),
            Query(f"sum(storm_operator_supervisor_cpu_capacity_cores{{{CLUSTERS}}})", "there"),
            dashed="there|needed",
        ),
    )


def _deeds() -> tuple[AnyPanel, ...]:
    return (
        plans_by_end(),
        counts(
            "Decisions to leave things as they are",
            "Why nothing was moved. NoChange and GainTooSmall are the quiet normal state.",
            Query(counted("reason", f"storm_operator_holds_total{{{CLUSTERS}}}"), "{{reason}}"),
        ),
    )
