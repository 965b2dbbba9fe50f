"""`storm-pipeline profile`: what tuples cost in each component, and how long restarts take."""

from __future__ import annotations

from pyspark.sql import SparkSession
from rich.table import Table

from storm_pipeline.dates import Bounds
from storm_pipeline.gold import COMPONENT_PROFILE, RESTARTS
from storm_pipeline.job_console import job_console
from storm_pipeline.jobs.learning import (
    USUAL_VALID_DAYS,
    ConfigMap,
    Publish,
    ValidDays,
    bounds_of,
    insist_on_one,
    publication_of,
    publish,
    show,
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
    LastDays,
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
MEANING = (
    "Medians over all hours, ± how far periods spread: what a tuple costs, how many are emitted for one executed, and "
    "how much longer queues get in a second (0: the component keeps up); and the CPU that 95% of periods do not exceed."
)
"""What the table for a person shows."""


def profile(
    lake: LakeRoot,
    cluster: Cluster = None,
    first: First = None,
    last: Last = None,
    days: LastDays = None,
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
    console = job_console()
    where = publication_of(publish_file, config_map, valid_days)
    dates = parse_dates(first, last, days)
    tables = cleaned_lake(lake)
    bounds: dict[str, Bounds] = {}
    read_rows = sources(tables, SOURCES, bounds)
    with spark_job("profile", settings_of(master, heap, off_heap, conf), console, tables, sources=read_rows) as spark:
        bounds |= bounds_of(spark, tables, cluster, dates)
        insist_on_one(bounds, where)
        for name, of_cluster in bounds.items():
            with console.status(f"profile of {name}"):
                run(spark, tables, name, *of_cluster)
            nothing = f"components of {name}: in no period were all executors of one measured"
            show(console, summary(spark, tables, name), MEANING, nothing)
        publish(spark, tables, bounds, where, console)


def run(spark: SparkSession, lake: Lake, cluster: str, first: object = None, last: object = None) -> None:
    """Compute and replace both tables' rows of a cluster."""
    executors = silver(spark, lake, "executors", cluster, first, last)
    periods = component_periods(executors).cache()  # a hundredth of the rows, gone through several times
    replace_cluster(component_profile(periods), lake.gold(COMPONENT_PROFILE.name), COMPONENT_PROFILE, cluster)
    periods.unpersist()
    plans = newest_states(silver(spark, lake, "plans", cluster, first, last))
    replace_cluster(restart_times(plans, executors), lake.gold(RESTARTS.name), RESTARTS, cluster)


def summary(spark: SparkSession, lake: Lake, cluster: str) -> Table:
    """The components over all hours, for a person: medians, and how far they spread."""
    table = Table(title=f"components of {cluster}", title_justify="left", box=None)
    for name in ("topology", "component"):
        table.add_column(name)
    for name in (
        "CPU ms\nper tuple,\nidling\nincluded",
        "emitted\nfor one",
        "queue\ngrowth/s",
        "millicores\nused (p95)",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    rows = read(spark, lake.gold(COMPONENT_PROFILE.name), COMPONENT_PROFILE)
    rows = rows.where(rows["hour_of_week"].isNull() & (rows["cluster"] == cluster))
    found = rows.orderBy("topology_name", "component").collect()
    is_declared = any(row["used_share_of_declared"] is not None for row in found)
    if is_declared:
        table.add_column("of\ndeclared", justify="right", no_wrap=True)
    for row in found:
        table.add_row(
            row["topology_name"],
            row["component"],
            _with_spread(row["cpu_per_tuple"], row["cpu_per_tuple_spread"]),
            _with_spread(row["selectivity"], row["selectivity_spread"]),
            _growth(row["queue_growth"], row["queue_growth_spread"]),
            _figure(row["used_millicores_p95"]),
            *([_percent(row["used_share_of_declared"])] if is_declared else []),
        )
    return table


def _with_spread(value: float | None, spread: float | None) -> str:
    """The spread as a share of the value, where it is one."""
    if value is None:
        return "-"
    percent = round(100.0 * spread / abs(value)) if spread and value else 0
    return f"{value:.3g} ±{percent}%" if percent else f"{value:.3g}"


def _growth(value: float | None, spread: float | None) -> str:
    """The spread in the value's own unit: most queues do not grow."""
    if value is None:
        return "-"
    return f"{value:.2g} ± {spread:.1g}" if spread else f"{value:.2g}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100.0 * share:.0f}%"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"
