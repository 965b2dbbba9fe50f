"""Why the operator moved executors or left them, and whether it was right."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build

from dashboards.frame import CLUSTERS, TOPOLOGIES, Section, Uid, dashboard, to_topology
from dashboards.limits import ABOVE_BEST_KNOWN, FORECAST_ERROR, LATENCY_SECONDS
from dashboards.look import ORANGE, RED, YELLOW, AnyPanel
from dashboards.panels import Query, counted, counts, figure, lines
from dashboards.plan_panels import plans_by_end
from dashboards.table_panels import Column, rows

T = TOPOLOGIES
BY = "max by (nimbus, topology)"


def decisions() -> build.Dashboard:
    return dashboard(
        Uid.DECISIONS,
        "Storm / Placement decisions",
        "Plans and holds with their reasons; what was predicted and what came; forecast and actual load.",
        (
            Section("In short", _figures()),
            Section("Plans", _plans()),
            Section("Holds", _holds()),
            Section("Predicted against measured", _predictions()),
            Section("Forecast against actual", _forecasts()),
        ),
    )


def _figures() -> tuple[AnyPanel, ...]:
    def plans_in(states: str) -> str:
        return f'sum(increase(storm_operator_topology_plans_total{{{T},state=~"{states}"}}[$__range]))'

    return (
        figure(
            "Plans in force",
            "Plans that came into force within the time looked at; one for several topologies counts for each of them.",
            "short",
            plans_in("Settling"),
            decimals=0,
        ),
        figure(
            "Verified",
            "Plans that helped, or had nothing before them to compare with, within the time looked at.",
            "short",
            plans_in("Verified"),
            decimals=0,
        ),
        figure(
            "Failed or rolled back",
            "Plans that did not come into force, or made things worse and were undone. Should be rare.",
            "short",
            plans_in("Failed|RolledBack"),
            thresholds=((1, ORANGE), (3, RED)),
            decimals=0,
        ),
        figure(
            "Executors moved",
            "Executors that plans moved within the time looked at.",
            "short",
            f"sum(increase(storm_operator_plan_moves_total{{{CLUSTERS}}}[$__range]))",
            decimals=0,
        ),
        figure(
            "Workers restarted",
            "What moving costs: workers that plans restarted within the time looked at.",
            "short",
            f"sum(increase(storm_operator_plan_restarted_workers_total{{{CLUSTERS}}}[$__range]))",
            decimals=0,
        ),
        figure(
            "Above the best known",
            "Cost of the placement in force beyond the best one found, the worst topology. 0% is as good as known.",
            "percentunit",
            f"max(storm_operator_gap_to_best_known_ratio{{{T}}})",
            thresholds=ABOVE_BEST_KNOWN,
        ),
    )


def _plans() -> tuple[AnyPanel, ...]:
    last = "storm_operator_last_plan_"
    return (
        rows(
            "Last plan of each topology",
            "Why it was made, what it was to bring, what it cost, how far it came. Payback: when the pause was "
            "to be earned. `storm-operator explain TOPOLOGY` has the reason as a sentence.",
            (
                Column("topology", "Topology", link=to_topology()),
                Column("plan", "Plan"),
                Column("policy", "Policy"),
                Column("reason", "Reason"),
                Column("state", "State"),
                Column("Value #B", "Made", "dateTimeFromNow"),
                Column("Value #C", "Moved"),
                Column("Value #D", "Workers restarted"),
                Column("Value #E", "Gain", "percentunit"),
                Column("Value #F", "Payback", "s"),
                Column("Value #G", "To in force", "s"),
                Column("Value #H", "To running", "s"),
                Column("Value #I", "Failed tuples", "short", ((1, ORANGE),)),
                Column("nimbus", "Cluster"),
            ),
            f"max by (nimbus, topology, plan, policy, reason, state) ({last}info{{{T}}})",
            f"{BY} ({last}timestamp_seconds{{{T}}}) * 1000",
            f"{BY} ({last}moves{{{T}}})",
            f"{BY} ({last}restarted_workers{{{T}}})",
            f"{BY} ({last}gain_ratio{{{T}}})",
            f"{BY} ({last}payback_seconds{{{T}}})",
            f"{BY} ({last}in_force_seconds{{{T}}})",
            f"{BY} ({last}running_seconds{{{T}}})",
            f"{BY} ({last}failed_tuples{{{T}}})",
            height=7,
            sort_by="Made",
        ),
        plans_by_end(),
        counts(
            "Executors moved and workers restarted",
            "The price of plans. Many moves with little gain point at a cool-down that is too short.",
            Query(counted("", f"storm_operator_plan_moves_total{{{CLUSTERS}}}"), "executors moved"),
            Query(counted("", f"storm_operator_plan_restarted_workers_total{{{CLUSTERS}}}"), "workers restarted"),
        ),
    )


def _holds() -> tuple[AnyPanel, ...]:
    return (
        rows(
            "Why each topology is left as it is",
            "The reason of the last decision. `storm-operator explain TOPOLOGY` says it in a sentence.",
            (
                Column("topology", "Topology", link=to_topology()),
                Column("reason", "Reason"),
                Column("nimbus", "Cluster"),
            ),
            f"max by (nimbus, topology, reason) (storm_operator_topology_hold{{{T}}})",
            width=12,
        ),
        counts(
            "Holds by reason",
            "NoChange and GainTooSmall: all is well. MetricsIncomplete, ClusterUnreachable: something is missing.",
            Query(counted("reason", f"storm_operator_holds_total{{{CLUSTERS}}}"), "{{reason}}"),
        ),
    )


def _predictions() -> tuple[AnyPanel, ...]:
    by_stage = "max by (nimbus, topology, stage)"
    return (
        lines(
            "Traffic between supervisors: predicted and measured",
            "Of each topology's last plan. Measured comes with verification; far off means that the load changed.",
            "suffix: tuples/s",
            Query(
                f"{by_stage} (storm_operator_last_plan_inter_supervisor_tuples_per_second{{{T}}})",
                "{{topology}} {{stage}}",
            ),
            dashed=".* predicted",
        ),
        lines(
            "Complete latency: predicted and measured",
            "Mean of the slowest topology of the last plan. Measured above before is what plans are rolled back for.",
            "s",
            Query(
                f"{by_stage} (storm_operator_last_plan_complete_latency_seconds{{{T}}})",
                "{{topology}} {{stage}}",
            ),
            thresholds=LATENCY_SECONDS,
            dashed=".* predicted",
        ),
        lines(
            "Above the best known placement",
            "Cost of the placement in force beyond the best one found. It stays up while holds keep a plan back.",
            "percentunit",
            Query(f"{BY} (storm_operator_gap_to_best_known_ratio{{{T}}})", "{{topology}}"),
            thresholds=ABOVE_BEST_KNOWN,
        ),
        lines(
            "Time until plans work",
            "From decision to in force (60 s at most, and 30 s more with Drain), and then until every moved executor "
            "ran again (90 s at most).",
            "s",
            Query(f"{BY} (storm_operator_last_plan_in_force_seconds{{{T}}})", "{{topology}} in force"),
            Query(f"{BY} (storm_operator_last_plan_running_seconds{{{T}}})", "{{topology}} running"),
            thresholds=((30, YELLOW), (60, RED)),
        ),
    )


def _forecasts() -> tuple[AnyPanel, ...]:
    by = "sum by (nimbus, topology, component)"
    actual = f"{by} (storm_operator_component_arrival_tuples_per_second{{{T}}})"
    forecast = f"{by} (storm_operator_component_forecast_arrival_tuples_per_second{{{T}}})"
    return (
        lines(
            "Load of components: forecast and actual",
            "Tuples per second that arrived (drawn) and what had been forecast for that same time (dashed).",
            "suffix: tuples/s",
            Query(actual, "{{topology}} {{component}}"),
            Query(forecast, "{{topology}} {{component}} forecast"),
            dashed=".* forecast",
            height=9,
        ),
        lines(
            "Error of the forecast",
            "How far the forecast was off, as a share of what arrived. Above zero: too much was expected.",
            "percentunit",
            Query(f"({forecast} - {actual}) / ({actual} > 0)", "{{topology}} {{component}}"),
            thresholds=FORECAST_ERROR,
            base=ORANGE,
            height=9,
            signed=True,
        ),
    )
