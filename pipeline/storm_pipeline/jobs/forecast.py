"""`storm-pipeline forecast`: forecasters against each other on history, and the season that the best goes by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as f
from rich.table import Table

from storm_operator.core.learned_profile import SEASONAL
from storm_operator.core.settings import Forecast
from storm_pipeline.dates import Bounds
from storm_pipeline.gold import FORECAST_ERRORS, SEASONS
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
from storm_pipeline.models.season import FEWEST_CYCLES
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
    parse_bins,
    parse_dates,
    settings_of,
    spark_job,
)
from storm_pipeline.transforms.components import component_periods
from storm_pipeline.transforms.forecasts import Cycle, judged_components, seasons

SOURCES = ("executors",)
MEANING = (
    "Each component's load was forecast on cycles held back: how far off that was, and the CPU that would have been "
    "lacking or too much with limits set by it; beside it what Liu's regression (Line) would have lacked."
)
"""What the table for a person shows."""


def forecast(
    lake: LakeRoot,
    cluster: Cluster = None,
    first: First = None,
    last: Last = None,
    days: LastDays = None,
    cycle: Annotated[
        float,
        typer.Option(min=1.0, max=MOST_SECONDS, help="Seconds after which loads come again: a day, or 604800."),
    ] = 86_400.0,
    bins: Annotated[
        float, typer.Option("--bin", min=1.0, max=MOST_SECONDS, help="Seconds of a bin of the season.")
    ] = 30.0,
    phi: Annotated[int, typer.Option(min=1, help="Periods that the operator looks back over.")] = 5,
    theta: Annotated[
        float,
        typer.Option(min=1.0, max=1e6, help="The operator's thetaMillicores: what a lack of CPU is judged by."),
    ] = 200.0,
    yardsticks: Annotated[bool, typer.Option(help="Judge seasonal forecasters of others, too.")] = True,
    publish_file: Publish = None,
    config_map: ConfigMap = None,
    valid_days: ValidDays = USUAL_VALID_DAYS,
    master: Master = "local[*]",
    heap: Heap = "2g",
    off_heap: OffHeap = "2g",
    conf: Conf = None,
) -> None:
    """Rolling-origin backtests per component, and its season; the winner goes into the learned profile.

    Reads the cleaned history, writes the tables forecast_errors and seasons anew for each cluster.
    """
    console = job_console()
    where = publication_of(publish_file, config_map, valid_days)
    dates = parse_dates(first, last, days)
    parse_bins(cycle, bins)
    season = Cycle(cycle, bins, phi, theta, yardsticks)
    tables = cleaned_lake(lake)
    bounds: dict[str, Bounds] = {}
    read_rows = sources(tables, SOURCES, bounds)
    with spark_job("forecast", settings_of(master, heap, off_heap, conf), console, tables, sources=read_rows) as spark:
        bounds |= bounds_of(spark, tables, cluster, dates)
        insist_on_one(bounds, where)
        for name, of_cluster in bounds.items():
            with console.status(f"forecasts of {name}"):
                run(spark, tables, name, season, *of_cluster)
            nothing = f"forecasts of {name}: its history is too short for a backtest, or nothing came to any component"
            show(console, summary(spark, tables, name), MEANING, nothing)
            console.print(seasons_found(spark, tables, name, season), soft_wrap=True)
        publish(spark, tables, bounds, where, console)


def run(spark: SparkSession, lake: Lake, cluster: str, cycle: Cycle, first: object = None, last: object = None) -> None:
    """Compute and replace both tables' rows of a cluster."""
    executors = silver(spark, lake, "executors", cluster, first, last)
    judged = judged_components(component_periods(executors), cycle).cache()
    try:
        errors = judged.where(f.col("forecaster").isNotNull())
        replace_cluster(errors, lake.gold(FORECAST_ERRORS.name), FORECAST_ERRORS, cluster)
        replace_cluster(seasons(judged, executors), lake.gold(SEASONS.name), SEASONS, cluster)
    finally:
        judged.unpersist()


def summary(spark: SparkSession, lake: Lake, cluster: str) -> Table:
    """The best forecaster of each component beside Liu's line, for a person; the page that `report` makes has all."""
    table = Table(title=f"forecasts of {cluster}, in % of the mean load", title_justify="left", box=None)
    rows = read(spark, lake.gold(FORECAST_ERRORS.name), FORECAST_ERRORS)
    found = rows.where(rows["cluster"] == cluster).orderBy("topology_name", "component", "forecaster").collect()
    for name in ("topology", "component", "best"):
        table.add_column(name, overflow="fold")
    for name in ("mean\nerror", "CPU\nlacking", "CPU too\nmuch", "lacking\nby Line"):
        table.add_column(name, justify="right", no_wrap=True)
    for key in dict.fromkeys((row["topology_name"], row["component"]) for row in found):
        own = {row["forecaster"]: row for row in found if (row["topology_name"], row["component"]) == key}
        best = next((row for row in own.values() if row["is_winner"]), None)
        line = own.get(Forecast.LINE.value)
        table.add_row(*key, *_cells(best), "-" if line is None else f"{line['short_percent']:.2f}")
    return table


def seasons_found(spark: SparkSession, lake: Lake, cluster: str, cycle: Cycle) -> str:
    """How many components have a season, how many are forecast by it, and what it takes."""
    rows = read(spark, lake.gold(SEASONS.name), SEASONS)
    own = rows.where(rows["cluster"] == cluster).orderBy("topology_name", "component").collect()
    has_season = [row["season"] is not None for row in own]
    found = seasons_in_words(has_season, [row["forecaster"] == SEASONAL for row in own], cycle.cycle_seconds)
    unmeasured = [f"{row['topology_name']}/{row['component']}" for row in own if row["newest_period"] is None]
    if not unmeasured:
        return found
    return f"{found}\nIn no period were all executors measured, so that nothing was learned: {', '.join(unmeasured)}"


def seasons_in_words(has_season: Sequence[bool], is_best: Sequence[bool], cycle_seconds: float) -> str:
    """`has_season` and `is_best`, one of each for a component: whether it has a season, and is forecast best by it."""
    known, best = sum(has_season), sum(is_best)
    found = f"{known} of {len(has_season)} components have a season"
    if known < len(has_season):
        needed = f"{(FEWEST_CYCLES + 1) * cycle_seconds / 3600.0:,.4g} hours"
        found += f"; it takes {FEWEST_CYCLES + 1} whole cycles of history ({needed})"
    if not known:
        return found
    found += f". With the published profile the operator forecasts {best} of them by it (best: {SEASONAL})."
    if best == known:
        return found
    return (
        f"{found} The other {known - best} stay with the forecaster of its settings: there the season does not leave "
        "clearly less CPU lacking, or has more too much."
    )


def _cells(row: Row | None) -> tuple[str, str, str, str]:
    if row is None:
        return "-", "-", "-", "-"
    figures = f"{row['error_percent']:.1f}", f"{row['short_percent']:.2f}", f"{row['over_percent']:,.0f}"
    return str(row["forecaster"]), *figures
