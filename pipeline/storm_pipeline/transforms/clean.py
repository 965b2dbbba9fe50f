"""Bronze to silver: which rows can be believed, which periods are whole, which rows are there twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from storm_operator.core.history_tables import DECISIONS, PLANS, SCHEMA_VERSION, Kind, Table
from storm_operator.core.schema_errors import LARGEST
from storm_pipeline.schemas import BRONZE_ONLY, CLUSTER, DATE

REASON = "reason"
FILE = "file"
"""The recorded file that a row is of, as a URL."""
YET_TO_COME = "period_end is yet to come"
RECKONED = (DECISIONS, PLANS)
"""What is a quotient there, such as a payback, may be of any size."""


def with_reasons(rows: DataFrame, table: Table, oldest: Mapping[str, datetime], latest: datetime) -> DataFrame:
    """`rows` with a column that says why a row cannot be taken in; null where it can.

    `oldest` has, by cluster, the end of the oldest period that is not yet too late; no period can end after `latest`.
    """
    checks = [f.when(wrong, f.lit(reason)) for wrong, reason in _checks(table)]
    checks.append(f.when(f.col("period_end") > f.lit(latest), f.lit(YET_TO_COME)))
    checks += [
        f.when((f.col(CLUSTER) == cluster) & (f.col("period_end") < f.lit(moment)), f.lit("too late"))
        for cluster, moment in sorted(oldest.items())
    ]
    return rows.withColumn(REASON, f.coalesce(*checks))


def _checks(table: Table) -> Iterator[tuple[Column, str]]:
    version = f.col("schema_version")
    yield version > SCHEMA_VERSION, f"schema_version is newer than {SCHEMA_VERSION}: upgrade the pipeline"
    for column in table.columns:
        value = f.col(column.name)
        if column.required:
            lacking = value.isNull() if column.since == 1 else value.isNull() & (version >= column.since)
            yield lacking, f"{column.name} is missing"
        if column.kind is Kind.NUMBER:
            yield f.isnan(value) | (f.abs(value) == float("inf")), f"{column.name} is not a finite number"
            if table not in RECKONED:
                yield f.abs(value) > LARGEST, f"{column.name} is beyond {LARGEST:g}"
        if column.least is not None:
            yield value < column.least, f"{column.name} is below {column.least:g}"
    if table.column("period_seconds").required:
        yield f.col("period_seconds") <= 0.0, "period_seconds is not above 0"
    yield f.to_date("period_end") != f.col(DATE), "period_end is not of its folder's date"


def counted(judged: DataFrame) -> DataFrame:
    """Rows by cluster, period, reason and file, and whether those without a reason are all of their period, each once.

    A recorder writes all rows of a period together, into one file, and says in each how many they are. Where as many
    are there, all by one recorder, none is missing or doubled: no row needs to be compared with another.

    `complete` (rows that lack no value) asks for every column: a file that cannot be read whole fails here, not later.
    Periods are told of rows without a reason alone: others may have ended in a year that Python has no time for.
    """
    end = f.when(f.col(REASON).isNull(), f.col("period_end")).alias("period_end")
    run = f.xxhash64("run_id")
    sums = judged.groupBy(CLUSTER, end, REASON, FILE).agg(
        f.count("*").alias("rows"),
        f.max("rows_in_period").alias("most"),
        f.min("rows_in_period").alias("least"),
        f.min(run).alias("first_run"),
        f.max(run).alias("last_run"),
        f.call_function("count", *judged.drop(REASON).columns).alias("complete"),
    )
    whole = (
        (f.col("rows") == f.col("most")) & (f.col("most") == f.col("least")) & (f.col("first_run") == f.col("last_run"))
    )
    return sums.select(CLUSTER, "period_end", REASON, FILE, "rows", "complete", whole.alias("whole"))


def ranked_by_key(rows: DataFrame, table: Table) -> DataFrame:
    """`rows` with `rank`, 1 for the row that is kept of each key, and `same`: whether it says what that one says.

    Which row is kept depends on what they say alone, not on their order.
    """
    values = [name for name in table.names if name not in BRONZE_ONLY]
    content = f.xxhash64(*values)
    by_key = Window.partitionBy(CLUSTER, *table.key).orderBy(content, "run_id")
    return rows.withColumn("rank", f.row_number().over(by_key)).withColumn(
        "same", f.first(content).over(by_key) == content
    )


def quarantined(rows: DataFrame, table: Table) -> DataFrame:
    """Rows that have a reason, as the table `quarantine` keeps them."""
    return rows.select(
        f.lit(table.name).alias("table"),
        REASON,
        "run_id",
        "period_end",
        f.to_json(f.struct(*table.names)).alias("row"),
        f.coalesce(f.col(CLUSTER), f.lit("unknown")).alias(CLUSTER),
        f.coalesce(f.col(DATE), f.to_date("period_end")).alias(DATE),
    )


def gaps_of(periods: DataFrame) -> DataFrame:
    """Times in which nothing was recorded of a cluster, from silver `periods`.

    A period that begins more than half a usual length after the end of the one before leaves a gap. How long is usual
    the period before tells as well: the first one after a restart or an outage, which no reading begins, counts as long
    as readings are looked for, and that is longer.
    """
    in_time = Window.partitionBy(CLUSTER).orderBy("period_end")
    end, seconds = f.unix_micros("period_end") / 1e6, f.col("period_seconds")
    before = f.lag(end).over(in_time)
    usual_seconds = f.least(seconds, f.lag(seconds).over(in_time))
    gap_seconds = end - seconds - before
    dropped = f.coalesce(f.col("dropped_before"), f.lit(0))
    reason = f.when(dropped > 0, "the recorder was too slow or failed").when(
        f.col("sequence") < f.lag("sequence").over(in_time), "the recorder was restarted"
    )
    with_gaps = periods.select(
        f.timestamp_micros((before * 1e6).cast("long")).alias("gap_start"),
        f.timestamp_micros(((end - seconds) * 1e6).cast("long")).alias("gap_end"),
        f.round(gap_seconds / usual_seconds).cast("long").alias("missing_periods"),
        dropped.alias("dropped"),
        f.coalesce(reason, f.lit("the loop did not run, or could not see the cluster")).alias(REASON),
        CLUSTER,
        DATE,
        (gap_seconds > usual_seconds / 2.0).alias("is_gap"),
    )
    return with_gaps.where("is_gap").drop("is_gap")
