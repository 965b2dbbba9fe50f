"""Jobs over the recorded history: do they run, what do they read and write, how old is what they made."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build

from dashboards.frame import Section, Uid, dashboard
from dashboards.look import ORANGE, RED, YELLOW, AnyPanel
from dashboards.panels import Query, bars, figure, lines
from dashboards.table_panels import Column, rows

DAY_SECONDS = 86_400
CHOSEN = 'topology=~"$topology"'
"""Jobs know topologies by name, and by their cluster's in the history; the tables that they read and write are of all
Storm clusters together."""


def pipeline() -> build.Dashboard:
    return dashboard(
        Uid.PIPELINE,
        "Storm / Pipeline",
        "Jobs over the recorded history: runs, rows, quarantine, freshness of tables and profiles.",
        (
            Section("In short", _figures()),
            Section("Jobs", _jobs()),
            Section("Rows", _rows()),
            Section("Tables, profiles and models", _products()),
        ),
        since="now-24h",
    )


def _figures() -> tuple[AnyPanel, ...]:
    return (
        figure(
            "Jobs",
            "Jobs that have told of a run.",
            "short",
            "count(storm_pipeline_job_last_run_timestamp_seconds)",
            width=6,
        ),
        figure(
            "Jobs whose last run failed",
            "Jobs that did not end well when they last ran.",
            "short",
            "sum(storm_pipeline_job_succeeded == bool 0)",
            thresholds=((1, RED),),
            width=6,
        ),
        figure(
            "Longest without success",
            "Time since the job that has waited longest last ended well. Jobs run daily: two days are too long.",
            "s",
            "max(time() - storm_pipeline_job_last_success_timestamp_seconds)",
            thresholds=((1.5 * DAY_SECONDS, YELLOW), (2 * DAY_SECONDS, RED)),
            width=6,
        ),
        figure(
            "Share of rows in quarantine",
            "Rows that ingest last set aside, of those that it read. A jump means that a writer has changed.",
            "percentunit",
            f"sum({_of_ingest('quarantined')}) / sum({_of_ingest('read')})",
            thresholds=((0.001, YELLOW), (0.01, RED)),
            width=6,
            decimals=3,
        ),
    )


def _of_ingest(kind: str) -> str:
    """Other jobs read what is clean, and read it again and again: they set nothing aside."""
    return f'storm_pipeline_job_rows{{name="ingest",kind="{kind}"}}'


def _jobs() -> tuple[AnyPanel, ...]:
    return (
        rows(
            "Last run of each job",
            "When it ran, when it last ended well, how long it took, how many rows it read, wrote and set aside.",
            (
                Column("name", "Job"),
                Column("Value #A", "Ran", "dateTimeFromNow"),
                Column("Value #B", "Ended well", "dateTimeFromNow"),
                Column("Value #C", "Took", "s"),
                Column("Value #D", "Read", "suffix: rows", decimals=0),
                Column("Value #E", "Written", "suffix: rows", decimals=0),
                Column("Value #F", "Quarantined", "suffix: rows", ((1, ORANGE),), decimals=0),
            ),
            "max by (name) (storm_pipeline_job_last_run_timestamp_seconds) * 1000",
            "max by (name) (storm_pipeline_job_last_success_timestamp_seconds) * 1000",
            "max by (name) (storm_pipeline_job_duration_seconds)",
            *(
                f'sum by (name) (storm_pipeline_job_rows{{kind="{kind}"}})'
                for kind in ("read", "written", "quarantined")
            ),
            width=14,
        ),
        lines(
            "Duration of jobs",
            "How long the last run of each job took. A steady rise means that it reads more than it should.",
            "s",
            Query("max by (name) (storm_pipeline_job_duration_seconds)", "{{name}}"),
            width=10,
        ),
    )


def _rows() -> tuple[AnyPanel, ...]:
    return (
        lines(
            "Rows written",
            "Rows that the last run of each job wrote, by table.",
            "suffix: rows",
            Query('sum by (table) (storm_pipeline_job_rows{kind="written"})', "{{table}}"),
            width=8,
        ),
        bars(
            "Rows in quarantine by reason",
            "Rows of the last runs that broke a rule of their table. They are kept apart, with the rule's name.",
            "suffix: rows",
            Query("sum by (table, reason) (storm_pipeline_quarantined_rows)", "{{table}}: {{reason}}"),
            thresholds=((1, ORANGE),),
            width=8,
        ),
        lines(
            "Duplicates removed",
            "Rows that came twice, as they may after a crash: each is kept once.",
            "suffix: rows",
            Query('sum by (table) (storm_pipeline_job_rows{kind="duplicate"})', "{{table}}"),
            width=8,
        ),
    )


def _products() -> tuple[AnyPanel, ...]:
    return (
        bars(
            "Age of the newest row",
            "How far each table lags behind now.",
            "s",
            Query("max by (table) (time() - storm_pipeline_table_newest_row_timestamp_seconds)", "{{table}}"),
            thresholds=((DAY_SECONDS, YELLOW), (2 * DAY_SECONDS, RED)),
            width=6,
        ),
        lines(
            "Size of tables",
            "Bytes of the files that each table's newest version consists of.",
            "bytes",
            Query("max by (table) (storm_pipeline_table_bytes)", "{{table}}"),
            width=6,
        ),
        rows(
            "Profiles",
            "The end of the history that each topology's profile was learned from. Placement starts from the profile: "
            "an old one is still better than none.",
            (
                Column("storm_cluster", "Cluster"),
                Column("topology", "Topology"),
                Column("Value", "Learned up to", "dateTimeFromNow"),
            ),
            f"max by (storm_cluster, topology) (storm_pipeline_profile_timestamp_seconds{{{CHOSEN}}}) * 1000",
            width=6,
        ),
        bars(
            "Error of forecasts",
            "Mean error of each model's backtest as a share of the load. The operator takes the model with the least.",
            "percentunit",
            Query(
                f"max by (storm_cluster, topology, model) (storm_pipeline_forecast_error_ratio{{{CHOSEN}}})",
                "{{topology}} ({{storm_cluster}}): {{model}}",
            ),
            thresholds=((0.2, YELLOW), (0.5, ORANGE)),
            width=6,
        ),
    )
