"""Where traffic crosses machines, which executors send it, and what the last plans saved."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build

from dashboards.frame import AGENTS, CLUSTERS, TOPOLOGIES, Section, Uid, dashboard, last_known, to_topology
from dashboards.limits import CROSSING_SHARE
from dashboards.look import GREEN, ORANGE, AnyPanel
from dashboards.panels import Query, figure, lines, rows_over_time
from dashboards.table_panels import Column, matrix, rows

T = TOPOLOGIES
LEVELS = f"storm_operator_traffic_tuples_per_second{{{T}}}"
PAIRS = f"storm_operator_supervisor_traffic_tuples_per_second{{{CLUSTERS}}}"
SUPERVISORS = f"storm_operator_supervisor_executors{{{CLUSTERS}}}"


def with_itself(supervisors: str) -> str:
    """Each of the supervisors as source and target; of few series, unlike a sum over all pairs."""
    hosts = f"max by (nimbus, supervisor) ({supervisors})"
    source = f'label_replace({hosts}, "source", "$1", "supervisor", "(.*)")'
    return f'label_replace({source}, "target", "$1", "supervisor", "(.*)")'


DIAGONAL = with_itself(SUPERVISORS)
BETWEEN = f"({PAIRS} unless on (nimbus, source, target) {DIAGONAL})"
"""Traffic from each supervisor to each other one."""
RECORDED_PAIRS = f"supervisors:storm_traffic_tuples:current{{{CLUSTERS}}}"
"""As PAIRS, but a quarter of the samples: a heat map reads all pairs of a day, just to find those that it shows."""
DIAGONAL_OF_RANGE = with_itself(f"last_over_time({SUPERVISORS}[$__range] @ end())")
"""Whatever was a supervisor meanwhile: what is recorded outlasts what the operator tells by a minute, and the same rows
are to be there at every moment."""
PLAN_TRAFFIC = f"storm_operator_last_plan_inter_supervisor_tuples_per_second{{{T},stage="


def traffic() -> build.Dashboard:
    return dashboard(
        Uid.TRAFFIC,
        "Storm / Inter-node traffic",
        "Tuples between supervisors: how many, between which, from which executors, and what plans saved.",
        (
            Section("How much", _how_much()),
            Section("Between which supervisors", _between()),
            Section("From which executors", _executors()),
            Section("What plans saved", _saved()),
        ),
    )


def _how_much() -> tuple[AnyPanel, ...]:
    inter = f'storm_operator_traffic_tuples_per_second{{{T},level="inter_supervisor"}}'
    return (
        figure(
            "Between supervisors",
            "Tuples per second that cross machines, all chosen topologies together.",
            "suffix: tuples/s",
            f"sum({inter})",
            width=6,
        ),
        figure(
            "Share of all traffic",
            "How much of all traffic crosses machines.",
            "percentunit",
            f"sum({inter}) / sum({LEVELS})",
            thresholds=CROSSING_SHARE,
            width=6,
        ),
        figure(
            "Pairs of supervisors",
            "Ordered pairs of different supervisors that exchange tuples.",
            "short",
            f"count({BETWEEN} > 0) or count(max by (nimbus, supervisor) ({SUPERVISORS})) * 0",
            width=6,
        ),
        figure(
            "Folded pairs of tasks",
            "Pairs of tasks that agents do not export one by one, because there are more than their limit.",
            "short",
            f"sum(storm_traffic_folded_pairs{{{AGENTS}}})",
            width=6,
        ),
        lines(
            "Traffic by how far it goes",
            "Inside one worker (cheapest), between workers of one supervisor, between supervisors (dearest).",
            "suffix: tuples/s",
            Query(f"sum by (level) ({LEVELS})", "{{level}}"),
            stacked=True,
        ),
        lines(
            "Share that crosses machines",
            "By topology. A plan (purple mark) should lower it, unless it had to relieve an overloaded supervisor.",
            "percentunit",
            Query(f"storm_operator_inter_supervisor_traffic_ratio{{{T}}}", "{{topology}}"),
            thresholds=CROSSING_SHARE,
            maximum=1,
        ),
    )


def _between() -> tuple[AnyPanel, ...]:
    return (
        matrix(
            "From supervisor to supervisor",
            "Tuples per second now: rows send, columns receive; the diagonal stays on its machine. Dark cells off the "
            "diagonal are what placement can still save.",
            "short",
            f"sum by (source, target) (max by (nimbus, source, target) ({last_known(PAIRS)}))",
            row="source",
            column="target",
            decimals=0,
        ),
        matrix(
            "Round trip between supervisors",
            "Measured by the agents, smoothed; each probes 32 others at most. Traffic over slow pairs costs most.",
            "s",
            "max by (supervisor, peer) (storm_supervisor_round_trip_seconds * on (supervisor) group_left () "
            f"max by (supervisor) (storm_operator_supervisor_executors{{{CLUSTERS}}} * 0 + 1))",
            row="supervisor",
            column="peer",
        ),
        rows_over_time(
            "Traffic between supervisors over time",
            "The 20 pairs that exchanged most over the time looked at; the darker, the more tuples per second. Made by "
            "the recording rules, once a minute.",
            "suffix: tuples/s",
            Query(
                f"{RECORDED_PAIRS} and on (nimbus, source, target) topk(20, "
                f"sum_over_time({RECORDED_PAIRS}[$__range:$__interval] @ end())"
                f" unless on (nimbus, source, target) {DIAGONAL_OF_RANGE})",
                "{{source}} \u2192 {{target}}",
            ),
        ),
    )


def _component_of(task: str, component: str) -> str:
    """1 for each task that exchanges tuples, which is the label `task`; its component is the label `component` where it
    is the first task of its executor: of the others no series tells the component."""
    executors = (
        f'label_replace(storm_executor_executed_tuples_total{{{AGENTS}}}, "{task}", "$1", "executor", "(.*)-.*")'
    )
    named = f'label_replace({executors}, "{component}", "$1", "component", "(.*)")'
    nameless = f"max by (topology_id, {task}) (storm_traffic_tuples_total{{{AGENTS}}}) * 0 + 1"
    return f"(max by (topology_id, {task}, {component}) ({named}) * 0 + 1 or on (topology_id, {task}) {nameless})"


def _executors() -> tuple[AnyPanel, ...]:
    pairs = "topology_id, supervisor, source_task, target_task"
    rate = f"sum by ({pairs}) (rate(storm_traffic_tuples_total{{{AGENTS}}}[$__rate_interval]))"
    sender, receiver = _component_of("source_task", "sender"), _component_of("target_task", "receiver")
    return (
        rows(
            "Heaviest pairs of tasks",
            "The 20 pairs that exchange most, wherever they live. Heavy pairs belong into one worker. Of the tasks of "
            "one executor only the first is told with its component.",
            (
                Column("topology_id", "Topology's id"),
                Column("supervisor", "Sender on"),
                Column("sender", "From"),
                Column("source_task", "Task"),
                Column("receiver", "To"),
                Column("target_task", "Its task"),
                Column("Value", "Rate", "suffix: tuples/s", decimals=1),
            ),
            f"topk(20, {rate}) * on (topology_id, source_task) group_left (sender) {sender}"
            f" * on (topology_id, target_task) group_left (receiver) {receiver}",
            width=14,
            height=10,
            sort_by="Rate",
        ),
        lines(
            "Sent by each supervisor to others",
            "Tuples per second that leave each machine. One line far above the others is a badly placed sender.",
            "suffix: tuples/s",
            Query(f"sum by (source) ({BETWEEN}) or sum by (source) ({DIAGONAL}) * 0", "{{source}}"),
            width=10,
            height=10,
            points=60,
        ),
    )


def _saved() -> tuple[AnyPanel, ...]:
    by = "max by (nimbus, topology)"
    saved = f'{by} ({PLAN_TRAFFIC}"before"}}) - {by} ({PLAN_TRAFFIC}"measured"}})'
    return (
        rows(
            "Last plan of each topology",
            "Traffic between supervisors before the plan, as predicted, and as measured afterwards. A plan "
            "that relieves an overloaded supervisor may cost traffic: then saved is negative.",
            (
                Column("topology", "Topology", link=to_topology()),
                Column("nimbus", "Cluster"),
                Column("Value #A", "Made", "dateTimeFromNow"),
                Column("Value #B", "Before", "suffix: tuples/s", decimals=1),
                Column("Value #C", "Predicted", "suffix: tuples/s", decimals=1),
                Column("Value #D", "Measured", "suffix: tuples/s", decimals=1),
                Column("Value #E", "Saved", "suffix: tuples/s", ((0, GREEN),), ORANGE, decimals=1),
            ),
            f"{by} (storm_operator_last_plan_timestamp_seconds{{{T}}}) * 1000",
            f'{by} ({PLAN_TRAFFIC}"before"}})',
            f'{by} ({PLAN_TRAFFIC}"predicted"}})',
            f'{by} ({PLAN_TRAFFIC}"measured"}})',
            saved,
            width=24,
            height=7,
            sort_by="Made",
        ),
    )
