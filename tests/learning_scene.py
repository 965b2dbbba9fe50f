"""A small recorded history, taken over as it is into cleaned tables: what the learning jobs start from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from builders import PERIOD_SECONDS
from history_scene import record
from storm_operator.core.history_rows import Pass, columns_of
from storm_operator.core.history_tables import DECISIONS, TABLES, Table
from storm_operator.core.view_from_metrics import UNKNOWN_COLUMNS
from storm_operator.history.store import HistoryStore
from storm_pipeline.lake import Lake, replace_all
from storm_pipeline.schemas import SILVER, bronze_schema

CLUSTER = "blue"
CYCLE_SECONDS = 120.0
"""The load of `history_scene` comes again after so long."""
ALL_BUT_DECISIONS = tuple(table for table in TABLES if table is not DECISIONS)


def lake_of(spark: SparkSession, folder: Path, periods: int = 60, tables: Sequence[Table] = ALL_BUT_DECISIONS) -> Lake:
    """A lake with the cleaned history of `history_scene`'s cluster, which has nothing to clean."""
    lake = Lake(str(folder))
    record(folder / "bronze", periods, CLUSTER)
    take_over(spark, lake, tables)
    return lake


def lake_of_passes(
    spark: SparkSession,
    folder: Path,
    passes: Sequence[Pass],
    tables: Sequence[Table] = ALL_BUT_DECISIONS,
    filled_in: Sequence[Pass] = (),
) -> Lake:
    """A lake with the cleaned history of a cluster that was seen like this; `filled_in` by a backfill afterwards."""
    lake = Lake(str(folder))
    write_passes(folder, passes, filled_in)
    take_over(spark, lake, tables)
    return lake


def write_passes(folder: Path, passes: Sequence[Pass], filled_in: Sequence[Pass] = ()) -> None:
    """As the operator records them."""
    store = HistoryStore.at(str(folder / "bronze"), CLUSTER, "run-1", survives_death=False)
    for made in passes:
        store.write(made.at_seconds, PERIOD_SECONDS, columns_of(made, "simulator"))
    for made in filled_in:
        store.write(made.at_seconds, PERIOD_SECONDS, columns_of(made, "backfill", UNKNOWN_COLUMNS))
    store.publish()


def take_over(spark: SparkSession, lake: Lake, tables: Sequence[Table]) -> None:
    """Recorded tables as cleaned ones, as they are."""
    for table in tables:
        if is_recorded(lake, table):
            replace_all(recorded_rows(spark, lake, table), lake.silver(table.name), SILVER[table.name])


def is_recorded(lake: Lake, table: Table) -> bool:
    return Path(lake.bronze(table.name)).is_dir()


def recorded_rows(spark: SparkSession, lake: Lake, table: Table) -> DataFrame:
    if not is_recorded(lake, table):
        return spark.createDataFrame([], bronze_schema(table))
    return spark.read.schema(bronze_schema(table)).parquet(lake.bronze(table.name))
