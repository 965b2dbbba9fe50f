"""Where tables lie, and the few ways in which they are written: each of them can be repeated without harm."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from storm_pipeline.dates import Dates, is_between
from storm_pipeline.schemas import CLUSTER, DATE, DerivedTable

NO_TABLE = ("PATH_NOT_FOUND", "DELTA_TABLE_NOT_FOUND", "DELTA_PATH_DOES_NOT_EXIST")
TIMES = ("period_end", "window_start")
OBJECT_STORE = "s3a://"
"""As Hadoop calls it; the recorder, like everybody else, says s3://."""
_making = threading.Lock()
"""What is taken in side by side writes tables that all share: one makes or widens such a table before others write."""


@dataclass(frozen=True, slots=True)
class Lake:
    """One folder, or prefix of an object store (`s3a://...`), with all tables of the pipeline in it.

    `history` is where the recorder writes, by default the lake's own folder `bronze`.
    """

    root: str
    history: str | None = None

    @property
    def is_in_object_store(self) -> bool:
        """Whether any of it is: Spark then needs more jars."""
        return any(path.startswith(OBJECT_STORE) for path in (self.root, self.history or ""))

    def bronze(self, table: str) -> str:
        """Parquet files, in folders cluster=C/date=D."""
        return f"{self.history or self.root + '/bronze'}/{table}"

    def silver(self, table: str) -> str:
        """A Delta table."""
        return f"{self.root}/silver/{table}"

    def gold(self, table: str) -> str:
        """A Delta table."""
        return f"{self.root}/gold/{table}"

    def checkpoint(self, job: str) -> str:
        """Where a streaming job keeps how far it has come."""
        return f"{self.root}/checkpoints/{job}"


def lake_at(root: str, history: str | None = None) -> Lake:
    """The lake that a command line names. A folder's path is made absolute: Delta takes no others for tables."""
    return Lake(_placed(root), _placed(history) if history else None)


def is_folder_here(path: str) -> bool:
    """Whether `path` is of this machine's file system, rather than `s3a://...` or the like."""
    return "://" not in path and not path.startswith("file:")


def _placed(path: str) -> str:
    if is_folder_here(path):
        return str(Path(path).absolute())
    return (OBJECT_STORE + path.removeprefix("s3://") if path.startswith("s3://") else path).rstrip("/")


@dataclass(frozen=True, slots=True)
class Day:
    """The unit of work: one cluster's tables of one UTC date."""

    cluster: str
    date: date

    @property
    def condition(self) -> str:
        """As SQL, for reading and for replacing."""
        return f"{CLUSTER} = {_quoted(self.cluster)} AND {DATE} = DATE'{self.date.isoformat()}'"


def _quoted(text: str) -> str:
    """As SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def exists(spark: SparkSession, path: str) -> bool:
    """Whether there is a Delta table at `path`."""
    return _opened(spark, path) is not None


def _opened(spark: SparkSession, path: str) -> DataFrame | None:
    """The Delta table at `path`; None when there is none."""
    try:
        return spark.read.format("delta").load(path)
    except AnalysisException as error:
        if error.getCondition() in NO_TABLE or "is not a Delta table" in str(error):
            return None
        raise


def read(spark: SparkSession, path: str, table: DerivedTable) -> DataFrame:
    """The Delta table at `path`, its lacking columns null; an empty frame of its schema when there is none yet."""
    found = _opened(spark, path)
    if found is None:
        return frame_of(spark, (), table.schema)
    lacking = {field.name: f.lit(None).cast(field.dataType) for field in _lacking(found, table)}
    return found.withColumns(lacking) if lacking else found


def frame_of(spark: SparkSession, rows: Sequence[tuple[Any, ...]], schema: StructType) -> DataFrame:
    """A small frame of `rows`: through Arrow, since Spark's own way from Python starts Python workers for it."""
    arrow = to_arrow_schema(schema, timezone="UTC")
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(arrow)
    arrays = [
        pa.array([list(value.items()) if isinstance(value, dict) else value for value in values], type=field.type)
        for values, field in zip(columns, arrow, strict=True)
    ]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=arrow), schema)


def append_once(frame: DataFrame, path: str, table: DerivedTable, writer: str, batch: int) -> None:
    """Append `frame`, unless `writer` has already written this `batch` to the table (after a crash, say)."""
    _write(frame, path, table, "append", txnAppId=writer, txnVersion=batch)


def replace_day(frame: DataFrame, path: str, table: DerivedTable, day: Day, more: str = "") -> None:
    """Put `frame` in the place of all rows of `day` (narrowed by the condition `more`), in one step."""
    condition = f"{day.condition} AND {more}" if more else day.condition
    _write(frame, path, table, "overwrite", replaceWhere=condition)


def replace_cluster(frame: DataFrame, path: str, table: DerivedTable, cluster: str) -> None:
    """Put `frame` in the place of all rows of `cluster`, in one step."""
    _write(frame, path, table, "overwrite", replaceWhere=f"{CLUSTER} = {_quoted(cluster)}")


def replace_all(frame: DataFrame, path: str, table: DerivedTable) -> None:
    """Put `frame` in the place of the whole table, in one step."""
    _write(frame, path, table, "overwrite")


def _write(frame: DataFrame, path: str, table: DerivedTable, mode: str, **options: str | int) -> None:
    """The first rows make the table: a table made beforehand would be one more commit, a third of a small write."""
    writer = _shaped(frame, table).write.format("delta").partitionBy(*table.partitions)
    with _making:
        found = _opened(frame.sparkSession, path)
        if found is None:
            options.pop("replaceWhere", None)  # there is nothing to replace
            writer.mode(mode).options(**options, **_skipping(table)).save(path)
            return
        _widen(found, path, table)
    writer.mode(mode).options(**options).save(path)


def prepare(spark: SparkSession, path: str, table: DerivedTable) -> None:
    """Make the table, empty, unless there is one; give one of an earlier version the columns that it lacks."""
    with _making:
        found = _opened(spark, path)
        if found is not None:
            _widen(found, path, table)
            return
    _write(frame_of(spark, (), table.schema), path, table, "append")


def _widen(found: DataFrame, path: str, table: DerivedTable) -> None:
    """Give a table of an earlier version the columns that it lacks."""
    if lacking := _lacking(found, table):
        columns = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in lacking)
        found.sparkSession.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS ({columns})")


def _lacking(found: DataFrame, table: DerivedTable) -> list[StructField]:
    return [field for field in table.schema.fields if field.name not in found.columns]


def _skipping(table: DerivedTable) -> dict[str, str]:
    """Files are found by time alone: least and most of every column would cost a fifth of writing."""
    times = [name for name in TIMES if name in table.schema.fieldNames()]
    return {"delta.dataSkippingStatsColumns": ",".join(times)} if times else {}


def days_of(spark: SparkSession, path: str, cluster: str | None = None) -> tuple[Day, ...]:
    """The days that the table has rows of, sorted; read from its log.

    Of the table itself Spark would open each file, to see how many rows it has.
    """
    if not exists(spark, path):
        return ()
    partition = f.col("partitionValues")
    found = _files_of(spark, path).select(partition[CLUSTER].alias(CLUSTER), partition[DATE].cast("date").alias(DATE))
    days = {Day(row[CLUSTER], row[DATE]) for row in found.distinct().collect()}
    return tuple(sorted((day for day in days if cluster in (None, day.cluster)), key=lambda d: (d.cluster, d.date)))


def delta_log(spark: SparkSession, path: str) -> Any:
    """Delta's own view of the table at `path`."""
    return spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)  # type: ignore[union-attr]


def _files_of(spark: SparkSession, path: str) -> DataFrame:
    """What Delta knows of each file that the table has now."""
    none = spark._jvm.scala.Option.empty()  # type: ignore[union-attr]
    return DataFrame(delta_log(spark, path).update(False, none, none).allFiles().toDF(), spark)


def newest_dates(days: Iterable[Day]) -> dict[str, date]:
    """The newest date of each cluster."""
    newest: dict[str, date] = {}
    for day in days:
        newest[day.cluster] = max(day.date, newest.get(day.cluster, day.date))
    return newest


def within(days: Sequence[Day], dates: Dates) -> tuple[Day, ...]:
    """Those of each cluster that `dates` choose."""
    newest = newest_dates(days)
    return tuple(day for day in days if is_between(day.date, dates.of(newest[day.cluster])))


def _shaped(frame: DataFrame, table: DerivedTable) -> DataFrame:
    """The table's columns in their order, cast to their types; a column that the frame lacks is an error."""
    return frame.select(*[frame[field.name].cast(field.dataType).alias(field.name) for field in table.schema.fields])
