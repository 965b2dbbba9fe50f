"""`storm-pipeline profile`: what tuples cost in each component, and how long restarts take."""

from __future__ import annotations

import typer
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from storm_pipeline.gold import COMPONENT_PROFILE, RESTARTS
from storm_pipeline.jobs.learning import (
    USUAL_VALID_DAYS,
    ConfigMap,
    Publication,
    Publish,
    ValidDays,
    clusters_of,
    publish,
    silver,
    sources,
)
from storm_pipeline.lake import Lake, read, replace_cluster
from storm_pipeline.options import (
    Cluster,
    Conf,
    First,
    Heap,
    LakeRoot,
    Last,
    Master,
    OffHeap,
    cleaned_lake,
    parse_dates,
    settings_of,
    spark_job,
)
from storm_pipeline.transforms.components import component_periods
from storm_pipeline.transforms.profiles import component_profile, newest_states, restart_times

SOURCES = ("executors", "plans")


def profile(
    lake: LakeRoot,
    cluster: Cluster = None,
    first: First = None,
    last: Last = None,
    publish_file: Publish = None,
    config_map: ConfigMap = None,
    valid_days: ValidDays = USUAL_VALID_DAYS,
    master: Master = "local[*]",
    heap: Heap = "2g",
    off_heap: OffHeap = "2g",
    conf: Conf = None,
) -> None:
    """Cost per tuple, tuples emitted for one executed, growth of queues; by component and hour of the week.

    Reads the cleaned history, writes the tables component_profile and restarts anew for each cluster.
    """
    console = Console(highlight=False)
    where = Publication(publish_file, config_map, valid_days)
    dates = parse_dates(first, last)
    tables = cleaned_lake(lake)
    read_rows = sources(tables, SOURCES, cluster, *dates)
    with spark_job("profile", settings_of(master, heap, off_heap, conf), console, tables, sources=read_rows) as spark:
        clusters = clusters_of(spark, tables, cluster, console)
        for name in clusters:
            with console.status(f"profile of {name}"):
                run(spark, tables, name, *dates)
            console.print(summary(spark, tables, name))
        publish(spark, tables, clusters, where, console)


def run(spark: SparkSession, lake: Lake, cluster: str, first: object = None, last: object = None) -> None:
    """Compute and replace both tables' rows of a cluster."""
    executors = silver(spark, lake, "executors", cluster, first, last)
    periods = component_periods(executors)
    replace_cluster(component_profile(periods), lake.gold(COMPONENT_PROFILE.name), COMPONENT_PROFILE, cluster)
    plans = newest_states(silver(spark, lake, "plans", cluster, first, last))
    replace_cluster(restart_times(plans, executors), lake.gold(RESTARTS.name), RESTARTS, cluster)


def summary(spark: SparkSession, lake: Lake, cluster: str) -> Table:
    """The components over all hours, for a person."""
    table = Table(title=f"components of {cluster}", title_justify="left", box=None)
    for name in ("topology", "component"):
        table.add_column(name)
    for name in ("CPU per tuple, ms", "emitted for one", "queue growth /s", "used p95, m", "of declared", "periods"):
        table.add_column(name, justify="right")
    rows = read(spark, lake.gold(COMPONENT_PROFILE.name), COMPONENT_PROFILE)
    rows = rows.where(rows["hour_of_week"].isNull() & (rows["cluster"] == cluster))
    for row in rows.orderBy("topology_name", "component").collect():
        table.add_row(
            row["topology_name"],
            row["component"],
            _with_spread(row["cpu_per_tuple"], row["cpu_per_tuple_spread"]),
            _with_spread(row["selectivity"], row["selectivity_spread"]),
            _with_spread(row["queue_growth"], row["queue_growth_spread"]),
            _figure(row["used_millicores_p95"]),
            "-" if row["used_share_of_declared"] is None else f"{100.0 * row['used_share_of_declared']:.0f}%",
            f"{row['periods']:,}",
        )
    return table


def _with_spread(value: float | None, spread: float | None) -> str:
    return "-" if value is None or spread is None else f"{value:.3g} ± {spread:.2g}"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


if __name__ == "__main__":
    typer.run(profile)
