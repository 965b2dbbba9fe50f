"""`storm-pipeline evaluate`: what each plan brought, which policies do well, how good predictions are."""

from __future__ import annotations

from datetime import date
from typing import Annotated

import typer
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from rich.table import Table

from storm_pipeline.dates import Bounds, days_before
from storm_pipeline.gold import LEAGUE, PLAN_EFFECTS, PREDICTION_ERRORS, RESTART_COSTS
from storm_pipeline.job_console import job_console
from storm_pipeline.jobs.learning import bounds_of, show, silver, sources
from storm_pipeline.lake import Lake, read, replace_cluster
from storm_pipeline.options import (
    MOST_SECONDS,
    Cluster,
    Conf,
    First,
    Heap,
    LakeRoot,
    Last,
    LastDays,
    Master,
    OffHeap,
    cleaned_lake,
    parse_dates,
    settings_of,
    spark_job,
)
from storm_pipeline.schemas import DATE
from storm_pipeline.transforms.effects import Around, expected_load, plan_effects
from storm_pipeline.transforms.policies import league, prediction_errors
from storm_pipeline.transforms.profiles import newest_states
from storm_pipeline.transforms.restart_costs import restart_costs

SOURCES = ("plans", "topologies", "forecasts", "executors")
MEANING = (
    "Mean latency and traffic between supervisors: the change from before a plan to when it was verified, median over "
    "plans; less is better. What came before may have been the worst moment, of an overload or a supervisor that died: "
    "that is no comparison with Storm alone. Restarts and failed tuples: what those that came into force cost "
    "together; plans counts those that did not as well."
)
"""What the table for a person shows."""


def evaluate(
    lake: LakeRoot,
    cluster: Cluster = None,
    first: First = None,
    last: Last = None,
    days: LastDays = None,
    around: Annotated[
        float, typer.Option(min=1.0, max=MOST_SECONDS, help="Seconds before and after a plan that are compared.")
    ] = 300.0,
    master: Master = "local[*]",
    heap: Heap = "2g",
    off_heap: OffHeap = "2g",
    conf: Conf = None,
) -> None:
    """Each plan's effect against what was to be expected, with an interval; policies; predictions; cost of restarts.

    Reads the cleaned history, writes plan_effects, policy_league, prediction_errors and restart_costs anew.
    """
    console = job_console()
    dates = parse_dates(first, last, days)
    tables = cleaned_lake(lake)
    bounds: dict[str, Bounds] = {}
    read_rows = sources(tables, SOURCES, bounds)
    with spark_job("evaluate", settings_of(master, heap, off_heap, conf), console, tables, sources=read_rows) as spark:
        bounds |= bounds_of(spark, tables, cluster, dates)
        for name, of_cluster in bounds.items():
            with console.status(f"plans of {name}"):
                run(spark, tables, name, Around(around), *of_cluster)
            show(console, summary(spark, tables, name), MEANING, no_plan_in(name, *of_cluster))


def no_plan_in(cluster: str, first: date | None, last: date | None) -> str:
    """Instead of a table of policies, which has a row for each whose plans were recorded."""
    since, until = f" from {first}" if first else "", f" up to {last}" if last else ""
    return f"policies of {cluster}: no plan was recorded{since}{until}, so what plans bring is unknown"


USUAL_AROUND = Around()
LEAST_LEFT = -99.9


def run(
    spark: SparkSession,
    lake: Lake,
    cluster: str,
    around: Around = USUAL_AROUND,
    first: date | None = None,
    last: date | None = None,
) -> None:
    """Compute and replace the four tables' rows of a cluster."""
    # What a plan of the evening before did is none of the first ones' doing.
    known = newest_states(silver(spark, lake, "plans", cluster, first and days_before(first, 1), last)).cache()
    plans = known if first is None else known.where(f.col(DATE) >= f.lit(first))
    topologies = silver(spark, lake, "topologies", cluster, first, last)
    forecasts = silver(spark, lake, "forecasts", cluster, first, last)
    executors = silver(spark, lake, "executors", cluster, first, last)
    expected = expected_load(forecasts, executors, topologies).cache()
    try:
        found = {
            PLAN_EFFECTS: plan_effects(known, topologies, expected, around),
            PREDICTION_ERRORS: prediction_errors(plans),
            LEAGUE: league(plans),
            RESTART_COSTS: restart_costs(known, executors, topologies, expected),
        }
        for table, frame in found.items():
            replace_cluster(frame, lake.gold(table.name), table, cluster)
    finally:
        known.unpersist()
        expected.unpersist()


def summary(spark: SparkSession, lake: Lake, cluster: str) -> Table:
    """The league, for a person: changes are those that the operator itself measured when it verified a plan."""
    table = Table(title=f"policies of {cluster}, by what plans brought", title_justify="left", box=None)
    table.add_column("policy")
    for name in (
        "plans",
        "verified",
        "rolled\nback",
        "mean\nlatency",
        "traffic\nbetween",
        "restarts",
        "failed\ntuples",
    ):
        table.add_column(name, justify="right")
    rows = read(spark, lake.gold(LEAGUE.name), LEAGUE)
    for row in rows.where(rows["cluster"] == cluster).orderBy("latency_change_percent").collect():
        table.add_row(
            row["policy"],
            str(row["plans"]),
            str(row["verified"]),
            str(row["rolled_back"]),
            change(row["latency_change_percent"]),
            change(row["traffic_change_percent"]),
            str(row["restarted_workers"]),
            "-" if row["failed_tuples"] is None else f"{row['failed_tuples']:,.0f}",
        )
    return table


def change(percent: float | None) -> str:
    """For a person; what is not wholly gone is never said to be."""
    if percent is None:
        return "-"
    return f"{max(percent, LEAST_LEFT):+.1f}%" if -100.0 < percent < -99.0 else f"{percent:+.0f}%"
