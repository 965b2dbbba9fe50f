"""What the learning jobs have in common: their options, and the clusters that they go through one by one."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated

import typer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from storm_operator.core.learned_profile import LearnedProfile
from storm_operator.folders import is_folder
from storm_pipeline.dates import ALL_DATES, Bounds, Dates
from storm_pipeline.error_console import error_console
from storm_pipeline.lake import Lake, days_of, newest_dates, read, within
from storm_pipeline.made import Sources
from storm_pipeline.publishing import (
    CannotPublish,
    compose_profile,
    publish_to_config_map,
    publish_to_file,
    read_findings,
    validity,
)
from storm_pipeline.schemas import CLUSTER, DATE, SILVER

Publish = Annotated[
    Path | None, typer.Option("--publish", metavar="FILE", help="Write the learned profile there, for `standalone`.")
]
ConfigMap = Annotated[
    str | None,
    typer.Option("--config-map", metavar="NAMESPACE/NAME", help="Put the learned profile into this ConfigMap."),
]
ValidDays = Annotated[
    float,
    typer.Option(min=0.01, max=36_500.0, help="Days after the newest period learned from, when a profile is refused."),
]
USUAL_VALID_DAYS = 14.0
SECONDS_PER_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Publication:
    """Where a profile goes; nowhere when both are None."""

    file: Path | None
    config_map: str | None
    valid_days: float

    @property
    def is_wanted(self) -> bool:
        return self.file is not None or self.config_map is not None


def publication_of(file: Path | None, config_map: str | None, valid_days: float) -> Publication:
    """As given on a command line; what could not be written to is a usage error before the job takes its time."""
    if config_map is not None and (config_map.count("/") != 1 or not all(config_map.split("/"))):
        raise typer.BadParameter(f"--config-map: {config_map!r} must look like storm/learned-profile")
    if file is not None:
        if file.parts[:1] and file.parts[0].endswith(":"):  # as s3://bucket/profile.json is, read as a path
            raise typer.BadParameter(f"--publish: {file} is no file of this machine, where `standalone` reads it")
        if is_folder(file):
            raise typer.BadParameter(f"--publish: {file} is a folder; name a file in it, like {file / 'profile.json'}")
        # Looked at only: publishing makes folders that are not there, and a probe would be one more write to survive.
        folder = next(parent for parent in file.absolute().parents if _is_there(parent))
        if not (is_folder(folder) and os.access(folder, os.W_OK)):
            raise typer.BadParameter(f"--publish: nothing can be written to {folder}")
    return Publication(file, config_map, valid_days)


def _is_there(path: Path) -> bool:
    """As far as may be looked."""
    try:
        return path.exists()
    except OSError:
        return False


def clusters_of(spark: SparkSession, lake: Lake, wanted: str | None) -> tuple[str, ...]:
    """The clusters that there is cleaned history of, or the `wanted` one; a usage error when there is none."""
    return tuple(bounds_of(spark, lake, wanted, ALL_DATES))


def bounds_of(spark: SparkSession, lake: Lake, wanted: str | None, dates: Dates) -> dict[str, Bounds]:
    """What `dates` choose of the history of each cluster of which they choose anything; a usage error if of none."""
    days = days_of(spark, lake.silver("executors"))
    there = newest_dates(days)
    chosen = {day.cluster for day in within(days, dates)}
    found = {name: dates.of(newest) for name, newest in there.items() if wanted in (None, name) and name in chosen}
    if found:
        return found
    error_console().print(_why_nothing(lake.root, there, wanted), soft_wrap=True)
    raise typer.Exit(2)


def _why_nothing(root: str, there: Mapping[str, date], wanted: str | None) -> str:
    if not there:
        return f"[red]no cleaned history in {escape(root)}:[/] run `storm-pipeline ingest` first"
    if wanted not in (None, *there):
        return (
            f"[red]--cluster: {escape(repr(wanted))} is not in {escape(root)};[/] there is {escape(', '.join(there))}"
        )
    newest = there[wanted] if wanted is not None else max(there.values())
    return f"[red]there is no cleaned history of such dates in {escape(root)}:[/] its newest is of {newest}"


def silver(
    spark: SparkSession, lake: Lake, table: str, cluster: str, first: object = None, last: object = None
) -> DataFrame:
    """A cluster's rows of a silver table, between two dates (both included; None: open)."""
    rows = read(spark, lake.silver(table), SILVER[table]).where(f.col(CLUSTER) == cluster)
    if first is not None:
        rows = rows.where(f.col(DATE) >= f.lit(first))
    return rows if last is None else rows.where(f.col(DATE) <= f.lit(last))


def sources(lake: Lake, tables: Sequence[str], bounds: Mapping[str, Bounds]) -> Sources:
    """The rows of silver tables that a job goes through: of the clusters and dates that `bounds` has by then."""
    return lambda spark: [
        (table, silver(spark, lake, table, cluster, *dates)) for cluster, dates in bounds.items() for table in tables
    ]


def insist_on_one(clusters: Collection[str], where: Publication) -> None:
    """A profile is of one cluster: a usage error before the job takes its time, if one is wanted and there are more."""
    if where.is_wanted and len(clusters) != 1:
        option = "--publish" if where.file is not None else "--config-map"
        raise typer.BadParameter(f"{option}: there are clusters {', '.join(clusters)}; name one with --cluster")


def publish(spark: SparkSession, lake: Lake, clusters: Collection[str], where: Publication, console: Console) -> None:
    """Compose the profile of the one cluster, and put it where it is wanted."""
    if not where.is_wanted:
        return
    (cluster,) = clusters
    try:
        profile = compose_profile(read_findings(spark, lake, cluster), where.valid_days * SECONDS_PER_DAY)
        for place in _put(profile, where):
            console.print(f"profile of {cluster} published: {place}", soft_wrap=True)
        console.print(validity(profile, time.time()), soft_wrap=True)
    except CannotPublish as error:
        error_console().print(f"[red]not published:[/] {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(1) from error


def show(console: Console, found: Table, meaning: str, nothing: str) -> None:
    """A table and what it shows; where it has no rows, why, in place of both."""
    if not found.row_count:
        console.print(nothing, soft_wrap=True)
        return
    console.print(found)
    console.print(meaning, soft_wrap=True)


def _put(profile: LearnedProfile, where: Publication) -> Iterator[str]:
    if where.file is not None:
        publish_to_file(profile, where.file)
        yield str(where.file)
    if where.config_map is not None:
        namespace, _, name = where.config_map.partition("/")
        publish_to_config_map(profile, namespace, name)
        yield f"ConfigMap {where.config_map}"
