"""What a job has read and made, asked of the tables when it ends: rows, size, newest row; for `metrics.told`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from storm_pipeline import gold
from storm_pipeline.lake import TIMES, Lake, exists, read
from storm_pipeline.metrics import Labelled
from storm_pipeline.schemas import CLUSTER, DATE, HEAVIEST_PAIRS, KEY_SKEW, SILVER, TRAFFIC, TRAFFIC_SHARE, DerivedTable

TABLES: Mapping[str, tuple[DerivedTable, ...]] = {
    "ingest": tuple(SILVER.values()),
    "traffic": (*TRAFFIC.values(), TRAFFIC_SHARE, HEAVIEST_PAIRS, KEY_SKEW),
    "profile": (gold.COMPONENT_PROFILE, gold.RESTARTS),
    "forecast": (gold.FORECAST_ERRORS, gold.SEASONS),
    "evaluate": (gold.PLAN_EFFECTS, gold.PREDICTION_ERRORS, gold.LEAGUE, gold.RESTART_COSTS),
    "tune": (gold.TUNING_RUNS, gold.TUNING_ADVICE),
}
"""What each job writes; the report is no table."""


Sources = Callable[[SparkSession], Iterable[tuple[str, DataFrame]]]
"""What a job has gone through: names of tables and, of each, the rows that were chosen."""


def nothing_read(_: SparkSession) -> Iterable[tuple[str, DataFrame]]:
    return ()


def figures_of(
    spark: SparkSession, lake: Lake, job: str, since_seconds: float, sources: Sources = nothing_read
) -> dict[str, Labelled]:
    """Those of `metrics.JobFigures` by name, of a run of `job` that began then; tables that are not there have none."""
    rows = rows_read(sources(spark))
    newest: dict[tuple[str, ...], float] = {}
    size: dict[tuple[str, ...], float] = {}
    for table in TABLES.get(job, ()):
        path = lake.silver(table.name) if job == "ingest" else lake.gold(table.name)
        if not exists(spark, path):
            continue
        size[(table.name,)] = float(spark.sql(f"DESCRIBE DETAIL delta.`{path}`").first()["sizeInBytes"])  # type: ignore[index]
        written = rows_written(spark, path, since_seconds)
        if written is not None:
            rows[table.name, "written"] = written
        at = newest_row(read(spark, path, table), table)
        if at is not None:
            newest[(table.name,)] = at
    found: dict[str, Labelled] = {"rows": rows, "newest_row_at": newest, "table_bytes": size}
    if job == "profile":
        profiled = read(spark, lake.gold(gold.COMPONENT_PROFILE.name), gold.COMPONENT_PROFILE)
        found["profiles_learned_until"] = learned_until(profiled)
    if job == "forecast":
        found["forecast_errors"] = forecast_errors(read(spark, lake.gold("forecast_errors"), gold.FORECAST_ERRORS))
    return found


def rows_read(sources: Iterable[tuple[str, DataFrame]]) -> dict[tuple[str, ...], float]:
    """By (table, read). Each source counts once, however often Spark went through it."""
    rows: dict[tuple[str, ...], float] = {}
    for name, frame in sources:
        rows[name, "read"] = rows.get((name, "read"), 0.0) + frame.count()
    return rows


def rows_written(spark: SparkSession, path: str, since_seconds: float) -> float | None:
    """By all commits of the table since then; None where one does not say (Delta was told to count nothing)."""
    history = spark.sql(f"DESCRIBE HISTORY delta.`{path}`").where("operation = 'WRITE'")
    recent = history.where(f.unix_micros("timestamp") >= int(since_seconds * 1e6))
    counts = [row[0] for row in recent.select(f.col("operationMetrics")["numOutputRows"].cast("double")).collect()]
    return None if None in counts else sum(counts, 0.0)


def newest_row(rows: DataFrame, table: DerivedTable) -> float | None:
    """In seconds since 1970; None where rows have no time, or there are none. Reads the newest day alone."""
    times = [name for name in TIMES if name in table.schema.fieldNames()]
    day = rows.agg(f.max(DATE)).collect()[0][0] if times else None
    if day is None:
        return None
    micros = rows.where(f.col(DATE) == f.lit(day)).agg(f.max(f.unix_micros(times[0]))).collect()[0][0]
    return None if micros is None else float(micros) / 1e6


def learned_until(profiled: DataFrame) -> Labelled:
    """Of each cluster's topology, the end of the newest period that counted for its profile, where that is known."""
    newest = f.max(f.unix_micros("newest_period"))
    return {
        (row[CLUSTER], row["topology_name"]): row["micros"] / 1e6
        for row in profiled.groupBy(CLUSTER, "topology_name").agg(newest.alias("micros")).collect()
        if row["micros"] is not None
    }


def forecast_errors(errors: DataFrame) -> Labelled:
    """Of each forecaster on each cluster's topology, the mean over its components, over the mean load."""
    means = errors.groupBy(CLUSTER, "topology_name", "forecaster").agg(f.avg("error_percent").alias("percent"))
    return {
        (row[CLUSTER], row["topology_name"], row["forecaster"]): row["percent"] / 100.0
        for row in means.collect()
        if row["percent"] is not None
    }
