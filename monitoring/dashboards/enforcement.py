"""Whether executors get the CPU that they were promised, and keep to it."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build

from dashboards.frame import AGENTS, CLUSTERS, TOPOLOGIES, Section, Uid, dashboard
from dashboards.limits import THROTTLED_SHARE, USED_OF_LIMIT
from dashboards.look import ORANGE, RED, YELLOW, AnyPanel
from dashboards.panels import Query, bars, counted, counts, figure, lines, rows_over_time
from dashboards.table_panels import Column, rows

USE = f"rate(storm_executor_cpu_seconds_total{{{AGENTS}}}[$__rate_interval])"
LIMIT = f"storm_executor_cpu_limit_cores{{{AGENTS}}}"
NONE_LIMITED = f"count(storm_executor_cpu_seconds_total{{{AGENTS}}}) * 0"
"""Zero where executors are measured; where no agent tells of any, nothing is known."""
THROTTLED = f"rate(storm_executor_throttled_seconds_total{{{AGENTS}}}[$__rate_interval])"
RECORDED_USED = f"executor:storm_cpu_used:limit_ratio2m{{{AGENTS}}}"
RECORDED_THROTTLED = f"executor:storm_throttled:ratio2m{{{AGENTS}}}"
"""For one figure over all executors: to work out their rates anew over a day takes a second."""
HERE = f"storm_operator_supervisor_executors{{{CLUSTERS}}}"
"""Supervisors of the chosen clusters; agents do not know their Nimbus."""
EXECUTOR = ("topology_id", "component", "executor", "supervisor")


def enforcement() -> build.Dashboard:
    return dashboard(
        Uid.ENFORCEMENT,
        "Storm / Enforcement",
        "CPU limits of executors and pods: what they are, what is used of them, who is held back.",
        (
            Section("In short", _figures()),
            Section("Executors", _executors()),
            Section("Supervisors and their pods", _supervisors()),
        ),
    )


def _figures() -> tuple[AnyPanel, ...]:
    return (
        figure(
            "Executors held to a limit",
            "Executors whose CPU the agents limit now.",
            "short",
            f"count({LIMIT}) or {NONE_LIMITED}",
            width=6,
        ),
        figure(
            "Limits together",
            "Cores that all limits allow together.",
            "suffix: cores",
            f"sum({LIMIT}) or {NONE_LIMITED}",
            width=6,
            decimals=2,
        ),
        figure(
            "Used of the limits",
            "What an executor with a limit uses of it, on average. Near 100% they have no room left until limits rise.",
            "percentunit",
            f"avg({RECORDED_USED})",
            thresholds=USED_OF_LIMIT,
            width=6,
        ),
        figure(
            "Most throttled executor",
            "Share of time for which the executor that is held back most had to wait for its limit.",
            "percentunit",
            f"max({RECORDED_THROTTLED})",
            thresholds=THROTTLED_SHARE,
            width=6,
        ),
    )


def _executors() -> tuple[AnyPanel, ...]:
    by = ", ".join(EXECUTOR)
    return (
        rows(
            "Limit, use and waiting",
            "One row for each executor that is held to a limit. Used near 100% and throttled: its limit is too low.",
            (
                Column("topology_id", "Topology's id"),
                Column("component", "Component"),
                Column("executor", "Executor"),
                Column("supervisor", "Supervisor"),
                Column("Value #A", "Limit", "suffix: cores", decimals=3),
                Column("Value #B", "Use", "suffix: cores", decimals=3),
                Column("Value #C", "Used", "percentunit", USED_OF_LIMIT, decimals=0),
                Column("Value #D", "Throttled", "percentunit", THROTTLED_SHARE, decimals=1),
            ),
            f"max by ({by}) ({LIMIT})",
            f"sum by ({by}) ({USE} and {LIMIT})",
            f"sum by ({by}) ({USE} and {LIMIT}) / max by ({by}) ({LIMIT})",
            f"max by ({by}) ({THROTTLED} and {LIMIT})",
            height=10,
            sort_by="Used",
        ),
        rows_over_time(
            "Throttling over time",
            "The 25 executors that waited most for their limits: share of time spent waiting. Pale rows are good. Made "
            "by the recording rules, once a minute.",
            "percentunit",
            Query(
                f"{RECORDED_THROTTLED} and topk(25, sum_over_time({RECORDED_THROTTLED}[$__range:$__interval] @ end()))",
                "{{component}} {{executor}} on {{supervisor}}",
            ),
            maximum=1,
        ),
        lines(
            "Limits and use by component",
            "Cores: limits dashed, use drawn. Where no limit is enforced there is no dashed line.",
            "suffix: cores",
            Query(f"sum by (component) ({USE})", "{{component}} use"),
            Query(f"sum by (component) ({LIMIT})", "{{component}} limit"),
            dashed=".* limit",
        ),
        lines(
            "Demand of components",
            "Cores that each component's executors are to have in the next period (rounded up). Limits follow it.",
            "suffix: cores",
            Query(f"sum by (component) (storm_operator_component_cpu_demand_cores{{{TOPOLOGIES}}})", "{{component}}"),
            stacked=True,
        ),
    )


def _supervisors() -> tuple[AnyPanel, ...]:
    by = "max by (supervisor)"
    return (
        bars(
            "Demand against capacity",
            "Share of each supervisor's CPU that its executors need next. Above 100% it is overloaded.",
            "percentunit",
            Query(
                f"{by} (storm_operator_supervisor_cpu_demand_cores{{{CLUSTERS}}}"
                f" / (storm_operator_supervisor_cpu_capacity_cores{{{CLUSTERS}}} > 0))",
                "{{supervisor}}",
            ),
            thresholds=((0.8, YELLOW), (1, RED)),
            maximum=1.2,
            width=8,
        ),
        lines(
            "Use of each supervisor",
            "Share of its CPU that everything there used.",
            "percentunit",
            Query(
                f"{by} (storm_operator_supervisor_cpu_used_cores{{{CLUSTERS}}}"
                f" / (storm_operator_supervisor_cpu_capacity_cores{{{CLUSTERS}}} > 0))",
                "{{supervisor}}",
            ),
            thresholds=((0.9, ORANGE),),
            width=8,
        ),
        lines(
            "Machines held back",
            "CPUs that had work and that a machine's (pod's) own limit kept waiting, on average; of several it may be "
            "more than 1. Executors' limits should act first.",
            "suffix: CPUs",
            Query(
                f"{by} (rate(storm_supervisor_throttled_seconds_total[$__rate_interval]) and on (supervisor) {HERE})",
                "{{supervisor}}",
            ),
            thresholds=((0.1, YELLOW), (0.5, RED)),
            width=8,
        ),
        lines(
            "CPU limits of pods and their use",
            "Cores: the limit in force, dashed, and what everything there used, drawn. On Kubernetes a pod's limit "
            "follows what its executors need; elsewhere it is the machine's, where it has one.",
            "suffix: cores",
            Query(
                f"{by} (rate(storm_supervisor_cpu_seconds_total[$__rate_interval]) and on (supervisor) {HERE})",
                "{{supervisor}} use",
            ),
            Query(
                f"{by} (storm_supervisor_cpu_limit_cores and on (supervisor) {HERE})",
                "{{supervisor}} limit",
            ),
            dashed=".* limit",
            width=16,
        ),
        rows(
            "How agents enforce",
            "cgroup-v1 and cgroup-v2 hold executors to their limits; observe-only cannot, and says why.",
            (Column("supervisor", "Supervisor"), Column("mode", "Mode"), Column("reason", "Why not")),
            f"max by (supervisor, mode, reason) (storm_agent_enforcement and on (supervisor) {HERE})",
            width=8,
        ),
        counts(
            "CPU of pods changed in place",
            "Kubernetes only: changes of supervisor pods' CPU. Refused ones have a runbook.",
            Query(counted("outcome", f"storm_operator_pod_resizes_total{{{CLUSTERS}}}"), "{{outcome}}"),
            width=12,
        ),
        lines(
            "Pods whose CPU is not what was asked",
            "Kubernetes only, by reason: Deferred waits for room on the node, Infeasible will never fit it.",
            "short",
            Query(f"sum by (reason) (storm_operator_pod_resize_problems{{{CLUSTERS}}})", "{{reason}}"),
            thresholds=((1, ORANGE),),
            width=12,
        ),
    )
