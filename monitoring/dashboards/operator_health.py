"""How storm-operator itself fares: its loop, what it calls, what it cannot see."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build

from dashboards.frame import CLUSTERS, Section, Uid, dashboard
from dashboards.limits import COMPLETE_SHARE
from dashboards.look import GREEN, ORANGE, RED, YELLOW, AnyPanel
from dashboards.panels import Query, buckets, counted, counts, figure, lines
from dashboards.table_panels import Column, rows


def operator_health() -> build.Dashboard:
    return dashboard(
        Uid.OPERATOR,
        "Storm / Operator",
        "storm-operator itself: passes of its loop, their steps, calls to others, what is missing.",
        (
            Section("In short", _figures()),
            Section("The loop", _loop()),
            Section("Calls to others", _calls()),
            Section("What it sees", _sight()),
            Section("What it takes", _process()),
        ),
    )


def _figures() -> tuple[AnyPanel, ...]:
    leaders = "sum by (cluster, job) (storm_operator_leader)"  # each operator is scraped by a job of its own
    return (
        figure(
            "Leading",
            "Replicas of an operator that act: one. None: nobody places executors. Two: ask for help. Of several "
            "operators the one with none, or with most.",
            "short",
            f"min({leaders}) == 0 or max({leaders}) or vector(0)",
            thresholds=((1, GREEN), (2, RED)),
            base=RED,
        ),
        figure(
            "Last pass ended",
            "Time since the loop last ended a pass, the slowest cluster. It should stay below two periods.",
            "s",
            f"max(storm_operator_last_pass_age_seconds{{{CLUSTERS}}})",
            thresholds=((60, YELLOW), (300, RED)),
        ),
        figure(
            "Periods behind",
            "The same in periods of the loop. Above 3 the loop does not keep up, or stands.",
            "short",
            f"max(storm_operator_last_pass_age_seconds{{{CLUSTERS}}} / storm_operator_period_seconds{{{CLUSTERS}}})",
            thresholds=((2, YELLOW), (3, RED)),
            decimals=1,
        ),
        figure(
            "Failed passes",
            "Share of passes that failed within the time looked at: a peer did not answer or refused, another operator "
            "manages the cluster, or this one itself failed.",
            "percentunit",
            f"sum(increase(storm_operator_failed_passes_total{{{CLUSTERS}}}[$__range]))"
            f" / (sum(increase(storm_operator_passes_total{{{CLUSTERS}}}[$__range])) > 0)",
            thresholds=((0.01, YELLOW), (0.1, RED)),
        ),
        figure(
            "Metrics complete",
            "Executors whose figures are complete, the worst cluster. Below 100% decisions wait for what is missing.",
            "percentunit",
            f"1 - max(1 - storm_operator_metrics_completeness_ratio{{{CLUSTERS}}})",
            thresholds=COMPLETE_SHARE,
            base=RED,
            decimals=0,
        ),
        figure(
            "Age of metrics",
            "Age of the oldest figures that the last pass used.",
            "s",
            f"max(storm_operator_metrics_age_seconds{{{CLUSTERS}}})",
            thresholds=((60, YELLOW), (300, RED)),
        ),
    )


def _loop() -> tuple[AnyPanel, ...]:
    step = "storm_operator_step_duration_seconds"
    return (
        lines(
            "Duration of passes",
            "How long a pass takes. Above the period (dashed) the loop falls behind; passes that apply a plan may.",
            "s",
            *(
                Query(
                    f"histogram_quantile({q}, sum by (le) "
                    f"(rate(storm_operator_pass_duration_seconds_bucket{{{CLUSTERS}}}[$__rate_interval])))",
                    name,
                )
                for q, name in ((0.5, "p50"), (0.99, "p99"))
            ),
            Query(f"max(storm_operator_last_pass_duration_seconds{{{CLUSTERS}}})", "last"),
            Query(f"min(storm_operator_period_seconds{{{CLUSTERS}}})", "period"),
            dashed="period",
        ),
        lines(
            "Where a pass spends its time",
            "Mean seconds of each step. observe waits for agents and Nimbus; decide_and_apply looks for placements.",
            "s",
            Query(
                f"sum by (step) (rate({step}_sum{{{CLUSTERS}}}[$__rate_interval]))"
                f" / sum by (step) (rate({step}_count{{{CLUSTERS}}}[$__rate_interval]))",
                "{{step}}",
            ),
            stacked=True,
        ),
        buckets(
            "Distribution of pass durations",
            "How many passes took how long.",
            "s",
            f"sum by (le) (increase(storm_operator_pass_duration_seconds_bucket{{{CLUSTERS}}}[$__rate_interval]))",
        ),
        counts(
            "Passes",
            "Passes by cluster, and those that failed; the operator's log says why.",
            Query(
                counted("nimbus", f"storm_operator_passes_total{{{CLUSTERS}}}")
                + " - "
                + counted("nimbus", f"storm_operator_failed_passes_total{{{CLUSTERS}}}"),
                "{{nimbus}} ended",
            ),
            Query(counted("nimbus", f"storm_operator_failed_passes_total{{{CLUSTERS}}}"), "{{nimbus}} failed"),
        ),
    )


def _calls() -> tuple[AnyPanel, ...]:
    calls = 'storm_operator_peer_calls_total{nimbus=~"$cluster|"}'
    times = "storm_operator_peer_call_duration_seconds"
    some = '{nimbus=~"$cluster|"}'
    return (
        lines(
            "Calls",
            "Calls per second to each peer.",
            "reqps",
            Query(f"sum by (peer) (rate({calls}[$__rate_interval]))", "{{peer}}"),
            width=8,
        ),
        lines(
            "Calls that did not go well",
            "refused: it answered, and would not. unreachable: it did not answer. Zero is well.",
            "reqps",
            Query(
                f'sum by (peer, outcome) (rate({calls.replace("}", "")},outcome!="ok"}}[$__rate_interval]))'
                f" or sum by (peer) (rate({calls}[$__rate_interval])) * 0",
                "{{peer}} {{outcome}}",
            ),
            thresholds=((0.1, ORANGE), (1, RED)),
            width=8,
        ),
        lines(
            "Duration of calls, p95",
            "95% of the calls to each peer end within this time.",
            "s",
            Query(
                f"histogram_quantile(0.95, sum by (peer, le) (rate({times}_bucket{some}[$__rate_interval])))",
                "{{peer}}",
            ),
            thresholds=((1, YELLOW), (5, RED)),
            width=8,
        ),
        rows(
            "Calls by what was asked",
            "Over the time looked at: how many, how long they took on average, how many did not go well.",
            (
                Column("peer", "Peer"),
                Column("verb", "Asked for"),
                Column("Value #A", "Calls", decimals=0),
                Column("Value #B", "Mean time", "s"),
                Column("Value #C", "Not well", thresholds=((1, ORANGE),), decimals=0),
            ),
            f"sum by (peer, verb) (increase({calls}[$__range]))",
            f"sum by (peer, verb) (increase({times}_sum{some}[$__range]))"
            f" / (sum by (peer, verb) (increase({times}_count{some}[$__range])) > 0)",
            f'sum by (peer, verb) (increase({calls.replace("}", "")},outcome!="ok"}}[$__range]))'
            f" or sum by (peer, verb) (increase({calls}[$__range])) * 0",
            sort_by="Calls",
        ),
    )


def _process() -> tuple[AnyPanel, ...]:
    own = "and on (cluster, job, instance) storm_operator_build_info"
    return (
        lines(
            "CPU of the operator",
            "Cores that each operator's process uses. It looks for placements, which may take a core for a while.",
            "suffix: cores",
            Query(f"rate(process_cpu_seconds_total[$__rate_interval]) {own}", "{{instance}}"),
        ),
        lines(
            "Memory of the operator",
            "Resident memory of each operator's process.",
            "bytes",
            Query(f"process_resident_memory_bytes {own}", "{{instance}}"),
        ),
    )


def _sight() -> tuple[AnyPanel, ...]:
    return (
        lines(
            "Completeness of metrics",
            "Share of placed executors whose figures are complete.",
            "percentunit",
            Query(f"storm_operator_metrics_completeness_ratio{{{CLUSTERS}}}", "{{nimbus}}"),
            thresholds=COMPLETE_SHARE,
            base=RED,
            maximum=1,
            width=8,
        ),
        lines(
            "Notes about missing or doubtful metrics",
            "How many things the last pass found missing; `storm-operator snapshot` lists them.",
            "short",
            Query(f"storm_operator_metrics_problems{{{CLUSTERS}}}", "{{nimbus}}"),
            thresholds=((1, YELLOW),),
            width=8,
        ),
        lines(
            "Age of watches",
            "Kubernetes only: time since each watch had delivered all there is. A rising line is a frozen watch.",
            "s",
            Query("max by (kind) (storm_operator_watch_age_seconds)", "{{kind}}"),
            thresholds=((90, RED),),
            width=8,
        ),
        rows(
            "Series kept from export",
            "Metrics with more series than their bound; the largest values are shown, the rest is left out.",
            (
                Column("nimbus", "Cluster"),
                Column("metric", "Metric"),
                Column("Value", "Left out", thresholds=((1, YELLOW),), decimals=0),
            ),
            f"max by (nimbus, metric) (storm_operator_omitted_series{{{CLUSTERS}}})",
            width=12,
            height=6,
        ),
        rows(
            "Which operators run",
            "Their version and mode.",
            (
                Column("instance", "Instance"),
                Column("version", "Version"),
                Column("mode", "Mode"),
            ),
            "max by (instance, version, mode) (storm_operator_build_info)",
            width=12,
            height=6,
        ),
    )
