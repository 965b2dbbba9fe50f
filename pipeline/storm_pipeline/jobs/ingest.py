"""`storm-pipeline ingest`: what the operator recorded (bronze) into clean tables (silver), as a stream."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Annotated, Any
from urllib.parse import unquote

import typer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from rich.console import Console
from rich.table import Table as RichTable

from storm_operator.core.history_tables import TABLES, Table
from storm_pipeline.ingestion import LEAST_BYTES_TAKEN_OVER, Batch, Tally, cluster_of
from storm_pipeline.lake import Lake, append_once, exists, frame_of, read, replace_all
from storm_pipeline.metrics import Labelled
from storm_pipeline.options import (
    Conf,
    Heap,
    History,
    LakeRoot,
    Master,
    OffHeap,
    parse_interval,
    recorded_lake,
    settings_of,
    spark_job,
)
from storm_pipeline.schemas import GAPS, QUALITY, QUARANTINE, SILVER, bronze_schema
from storm_pipeline.transforms.clean import gaps_of

FILES_IN_BATCH = 200
UNREADABLE = "no row of this file can be read"
Told = Callable[[str, int, dict[str, Tally]], None]
"""(table, number of the batch, what became of its rows by cluster)."""


def _unheard(_: str) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True)
class Intake:
    """How recorded files are taken in."""

    lake: Lake
    late_after: timedelta | None = None
    files_in_batch: int = FILES_IN_BATCH
    take_over_bytes: int = LEAST_BYTES_TAKEN_OVER

    def start(self, spark: SparkSession, table: Table, told: Told, every: str | None) -> Any:
        """The stream of one table. `every` None: it ends when all files that are there have been taken in."""
        source = (
            spark.readStream.schema(bronze_schema(table))
            .option("pathGlobFilter", "*.parquet")
            .option("maxFilesPerTrigger", self.files_in_batch)
            .option("ignoreCorruptFiles", "true")  # found out by `set_aside_unreadable`, not passed over
            .parquet(self.lake.bronze(table.name))
        )

        # The stream says which files are new; a batch then reads of them what it needs, which a stream's own frame
        # would decode whole each time.
        def take_in(frame: DataFrame, number: int) -> None:
            # A stream's paths are URLs: what a name has in per cents, twice.
            files = sorted(unquote(row["file"]) for row in frame.distinct().collect())
            if files:
                stream = frame.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
                batch = Batch(self.lake, table, str(stream), number, self.late_after, self.take_over_bytes)
                told(table.name, number, batch.take_in(frame.sparkSession, files))

        writer = source.select(f.col("_metadata.file_path").alias("file")).writeStream.foreachBatch(take_in)
        writer = writer.option("checkpointLocation", self.lake.checkpoint(f"ingest-{table.name}"))
        writer = writer.trigger(processingTime=every) if every else writer.trigger(availableNow=True)
        return writer.start()

    def run(
        self, spark: SparkSession, told: Told, tables: Sequence[Table] = TABLES, begun: Callable[[str], None] = _unheard
    ) -> None:
        """Take in all that is there, table by table; `begun` hears what is looked at now."""
        recorded = [table for table in tables if has_files(spark, self.lake.bronze(table.name))]
        for number, table in enumerate(recorded, start=1):
            begun(f"{table.name} (table {number} of {len(recorded)})")
            self.start(spark, table, told, None).awaitTermination()
        begun("files that cannot be read, and gaps")
        set_aside_unreadable(spark, self.lake, recorded)
        if exists(spark, self.lake.silver("periods")):
            find_gaps(spark, self.lake)

    def follow(self, spark: SparkSession, told: Told, every: str) -> None:
        """Take in what is there, then what comes, until interrupted or a stream fails."""
        for table in TABLES:
            if has_files(spark, self.lake.bronze(table.name)):
                self.start(spark, table, told, every)
        spark.streams.awaitAnyTermination()


def has_files(spark: SparkSession, folder: str) -> bool:
    """Whether there is such a folder, in whatever file system it is."""
    path = spark._jvm.org.apache.hadoop.fs.Path(folder)  # type: ignore[union-attr]
    return bool(path.getFileSystem(spark._jsc.hadoopConfiguration()).exists(path))


def set_aside_unreadable(spark: SparkSession, lake: Lake, tables: Sequence[Table]) -> int:
    """Files that are there and that no batch found a row in: into quarantine, once; returns how many."""
    unknown = _not_taken_in(spark, lake, tables)
    readable = _with_rows(spark, unknown) if unknown else set()
    unreadable = sorted(path for path in unknown if _tail(path) not in readable)
    if unreadable:
        rows = [(path.split("/")[-4], UNREADABLE, None, None, path, cluster_of(path), None) for path in unreadable]
        once = zlib.crc32("\n".join(unreadable).encode())
        append_once(
            frame_of(spark, rows, QUARANTINE.schema), lake.silver(QUARANTINE.name), QUARANTINE, f"unreadable-{once}", 0
        )
    return len(unreadable)


def _not_taken_in(spark: SparkSession, lake: Lake, tables: Sequence[Table]) -> list[str]:
    """Recorded files that neither a batch has read nor the quarantine knows as unreadable."""
    folders = [lake.bronze(table.name) for table in tables]
    listed = (
        spark.read.format("binaryFile")
        .option("recursiveFileLookup", "true")
        .option("pathGlobFilter", "*.parquet")
        .load(folders)
        .select(f.col("path").alias("file"))
        .where(~f.col("file").contains("/_"))
    )
    taken = read(spark, lake.silver(QUALITY.name), QUALITY).select(f.explode("files").alias("file"))
    set_aside = read(spark, lake.silver(QUARANTINE.name), QUARANTINE).where(f.col("reason") == UNREADABLE)
    known = taken.union(set_aside.select("row"))
    tail = f.substring_index("file", "/", -4)
    unknown = listed.withColumn("t", tail).join(known.select(tail.alias("t")), "t", "left_anti")
    return [row["file"] for row in unknown.collect()]


def _with_rows(spark: SparkSession, paths: Sequence[str]) -> set[str]:
    """The tails of those files of which a row can be read: what was recorded meanwhile will be in the next run."""
    rows = spark.read.schema("schema_version bigint").option("ignoreCorruptFiles", "true").parquet(*paths)
    return {_tail(unquote(row["file_path"])) for row in rows.select("_metadata.file_path").distinct().collect()}


def _tail(path: str) -> str:
    """Table, cluster, date, name: the same however a path is written."""
    return "/".join(path.split("/")[-4:])


def find_gaps(spark: SparkSession, lake: Lake) -> None:
    """The gold table `gaps`, made anew from silver `periods`."""
    periods = read(spark, lake.silver("periods"), SILVER["periods"])
    replace_all(gaps_of(periods), lake.gold(GAPS.name), GAPS)


def ingest(
    lake: LakeRoot,
    history: History = None,
    every: Annotated[
        str | None, typer.Option(metavar="INTERVAL", help="Go on, and look so often: '30 seconds'. Else end when done.")
    ] = None,
    late_after_hours: Annotated[
        float, typer.Option(min=0.0, help="Rows that are so much older than the newest are set aside; 0: none are.")
    ] = 0.0,
    files_in_batch: Annotated[int, typer.Option(min=1, help="Most files taken in at once.")] = FILES_IN_BATCH,
    master: Master = "local[*]",
    heap: Heap = "2g",
    off_heap: OffHeap = "2g",
    conf: Conf = None,
) -> None:
    """Take recorded history into clean tables. Can be cut short anywhere and run again."""
    console = Console(highlight=False)
    late = timedelta(hours=late_after_hours) if late_after_hours else None
    interval = parse_interval("--every", every)
    intake = Intake(recorded_lake(lake, history), late, files_in_batch)
    totals: dict[str, Tally] = {}

    def figures() -> Mapping[str, Labelled]:
        return figures_of(totals)

    def told(table: str, number: int, tallies: dict[str, Tally]) -> None:
        for cluster, tally in sorted(tallies.items()):
            console.print(f"{table} batch {number}, {cluster}: {sentence(tally)}", soft_wrap=True)
            totals[table] = added(totals.get(table, Tally()), tally)

    with spark_job("ingest", settings_of(master, heap, off_heap, conf), console, intake.lake, figures) as spark:
        if interval:
            intake.follow(spark, told, interval)
        else:
            with console.status("ingest") as status:
                intake.run(spark, told, begun=lambda what: status.update(f"ingest: {what}"))
    console.print(report(totals) if totals else "nothing new")


def figures_of(totals: Mapping[str, Tally]) -> Mapping[str, Labelled]:
    """The run for Prometheus: rows by table and kind, and those set aside by reason."""
    rows: dict[tuple[str, ...], float] = {}
    quarantined: dict[tuple[str, ...], float] = {}
    for table, tally in totals.items():
        kinds = (tally.rows_read, tally.rows_kept, tally.duplicates, tally.quarantined)
        for kind, count in zip(("read", "written", "duplicate", "quarantined"), kinds, strict=True):
            rows[table, kind] = float(count)
        for reason, count in tally.reasons.items():
            quarantined[table, reason] = float(count)
    return {"rows": rows, "quarantined": quarantined}


def sentence(tally: Tally) -> str:
    """What became of rows, in words."""
    reasons = "; ".join(f"{count:,} {reason}" for reason, count in sorted(tally.reasons.items()))
    aside = f", {tally.quarantined:,} set aside ({reasons})" if reasons else ""
    return f"{tally.rows_kept:,} of {tally.rows_read:,} rows kept, {tally.duplicates:,} duplicates{aside}"


def added(a: Tally, b: Tally) -> Tally:
    """Two tallies as one."""
    return replace(
        a, rows_read=a.rows_read + b.rows_read, duplicates=a.duplicates + b.duplicates, reasons=a.reasons + b.reasons
    )


def report(totals: dict[str, Tally]) -> RichTable:
    """The run's data quality, table by table."""
    table = RichTable(title="taken in", title_justify="left", box=None)
    for name in ("table", "rows read", "kept", "duplicates", "set aside"):
        table.add_column(name, justify="left" if name == "table" else "right")
    for name, tally in totals.items():
        counts = (tally.rows_read, tally.rows_kept, tally.duplicates, tally.quarantined)
        table.add_row(name, *(f"{count:,}" for count in counts))
    return table
