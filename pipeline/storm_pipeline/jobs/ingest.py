"""`storm-pipeline ingest`: what the operator recorded (bronze) into clean tables (silver), as a stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Any
from urllib.parse import unquote

import typer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from rich.markup import escape
from rich.table import Table as RichTable

from storm_operator.core.history_tables import TABLES, Table
from storm_pipeline.bronze import FILE_ITSELF
from storm_pipeline.error_console import error_console
from storm_pipeline.ingestion import LEAST_BYTES_TAKEN_OVER, Batch, Tally
from storm_pipeline.job_console import job_console
from storm_pipeline.lake import Lake, exists, frame_of, read, replace_all
from storm_pipeline.metrics import Labelled
from storm_pipeline.options import (
    MOST_HOURS,
    Conf,
    Heap,
    History,
    LakeRoot,
    Master,
    OffHeap,
    parse_interval,
    recorded_lake,
    seconds_of,
    settings_of,
    spark_job,
)
from storm_pipeline.schemas import GAPS, QUALITY, SILVER
from storm_pipeline.transforms.clean import gaps_of

FILES_IN_BATCH = 200
FOR_EVER = "36500d"
MEANING = (
    "Kept rows are in the clean tables, each once; rows set aside cannot be right, and are kept apart with the reason."
)
"""What the table for a person shows."""
LEAST_SECONDS = 1
"""Between two looks for new tables and gaps."""
Told = Callable[[str, int, dict[str, Tally]], None]
"""(table, number of the batch, what became of its rows by cluster)."""


class TablesGone(Exception):
    """What was taken in is no longer there, and would not be taken in again; the message says what can be done."""


def _unheard(_: str) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True)
class Intake:
    """How recorded files are taken in. `now` is the time that it is; None: the time at which Spark began a batch."""

    lake: Lake
    late_after: timedelta | None = None
    files_in_batch: int = FILES_IN_BATCH
    take_over_bytes: int = LEAST_BYTES_TAKEN_OVER
    now: datetime | None = None

    def start(self, spark: SparkSession, table: Table, told: Told, every: str | None) -> Any:
        """The stream of one table. `every` None: it ends when all files that are there have been taken in."""
        # The stream says which files are new and opens none. A batch then reads of them what it needs, which a stream's
        # own frame would decode whole each time.
        source = (
            spark.readStream.format("binaryFile")
            .schema(FILE_ITSELF)
            .option("pathGlobFilter", "*.parquet")
            .option("recursiveFileLookup", "true")  # else a single folder of another form fails the stream
            .option("maxFilesPerTrigger", self.files_in_batch)
            .option("maxFileAge", FOR_EVER)  # history may be copied in at any time, with the times that its files had
            .option("ignoreMissingFiles", "true")  # the recorder's bound may take one before a cut batch comes again
            .load(self.lake.bronze(table.name))
        )
        # Spark keeps the time at which a batch began: it is the same when the batch comes again after a crash.
        now = f.current_timestamp() if self.now is None else f.lit(self.now)

        def take_in(frame: DataFrame, number: int) -> None:
            # A stream's paths are URLs: what a name has in per cents, twice.
            began = {unquote(row["file"]): row["now"] for row in frame.collect()}
            if began:
                stream = str(frame.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"))
                moment = min(began.values())
                batch = Batch(self.lake, table, stream, number, moment, self.late_after, self.take_over_bytes)
                told(table.name, number, batch.take_in(frame.sparkSession, sorted(began)))

        files = source.select(f.col("_metadata.file_path").alias("file"), now.alias("now"))
        writer = files.writeStream.foreachBatch(take_in)
        writer = writer.option("checkpointLocation", self.lake.checkpoint(f"ingest-{table.name}"))
        writer = writer.trigger(processingTime=every) if every else writer.trigger(availableNow=True)
        return writer.start()

    def run(
        self, spark: SparkSession, told: Told, tables: Sequence[Table] = TABLES, begun: Callable[[str], None] = _unheard
    ) -> None:
        """Take in all that is there; `begun` hears what is done now.

        Tables side by side: most of what a small one costs is one thread's, that plans and commits. Raises
        `TablesGone`.
        """
        insist_on_tables(spark, self.lake)
        recorded = [table for table in tables if has_files(spark, self.lake.bronze(table.name))]
        begun(", ".join(table.name for table in recorded))
        with ExitStack() as ends:  # where one stream fails, the others' next run goes on where they are now
            streams = []
            for table in recorded:
                streams.append(stream := self.start(spark, table, told, None))
                ends.callback(stream.stop)
            for stream in streams:
                stream.awaitTermination()
        begun("gaps")
        find_gaps(spark, self.lake)

    def follow(self, spark: SparkSession, told: Told, every: str) -> None:
        """Take in what is there, then what comes, until interrupted or a stream fails.

        So often as streams look for files, new tables are looked for, and gaps. Raises `TablesGone`.
        """
        insist_on_tables(spark, self.lake)
        seconds = max(round(seconds_of(every)), LEAST_SECONDS)
        waiting = list(TABLES)
        spark.streams.resetTerminated()
        with ExitStack() as ends:
            is_over = False
            while not is_over:
                for table in [table for table in waiting if has_files(spark, self.lake.bronze(table.name))]:
                    ends.callback(self.start(spark, table, told, every).stop)
                    waiting.remove(table)
                find_gaps(spark, self.lake)
                is_over = bool(spark.streams.awaitAnyTermination(seconds))


def has_files(spark: SparkSession, folder: str) -> bool:
    """Whether there is such a folder, in whatever file system it is."""
    path = spark._jvm.org.apache.hadoop.fs.Path(folder)  # type: ignore[union-attr]
    return bool(path.getFileSystem(spark._jsc.hadoopConfiguration()).exists(path))


def insist_on_tables(spark: SparkSession, lake: Lake) -> None:
    """A checkpoint knows which files were taken in, and nothing of what became of the table since."""
    for table in TABLES:
        checkpoint = lake.checkpoint(f"ingest-{table.name}")
        if _has_ended_batches(spark, checkpoint) and _is_gone(spark, lake, table):
            raise TablesGone(
                f"{lake.silver(table.name)} is gone, and {checkpoint} says that its files were taken in: put it back, "
                "or delete the checkpoint to take in all recorded files again"
            )


def _has_ended_batches(spark: SparkSession, checkpoint: str) -> bool:
    """Spark makes the folder when it begins, and in it a file named by its number for each batch that has ended."""
    folder = spark._jvm.org.apache.hadoop.fs.Path(f"{checkpoint}/commits")  # type: ignore[union-attr]
    files = folder.getFileSystem(spark._jsc.hadoopConfiguration())
    return bool(files.exists(folder)) and any(one.getPath().getName().isdigit() for one in files.listStatus(folder))


def _is_gone(spark: SparkSession, lake: Lake, table: Table) -> bool:
    """A table of which no row was ever kept has never been there; what was kept is in the quality report."""
    if exists(spark, lake.silver(table.name)):
        return False
    report = lake.silver(QUALITY.name)
    kept = read(spark, report, QUALITY).where((f.col("table") == table.name) & (f.col("rows_kept") > 0))
    return not exists(spark, report) or not kept.isEmpty()


def find_gaps(spark: SparkSession, lake: Lake) -> None:
    """The gold table `gaps` from silver `periods`, all of it anew; followed, it is nearly always as it was."""
    if not exists(spark, lake.silver("periods")):
        return
    names, path = GAPS.schema.names, lake.gold(GAPS.name)
    periods = read(spark, lake.silver("periods"), SILVER["periods"])
    gaps = set(gaps_of(periods).select(*names).collect())
    if not exists(spark, path) or gaps != set(read(spark, path, GAPS).select(*names).collect()):
        replace_all(frame_of(spark, sorted(gaps), GAPS.schema), path, GAPS)


def ingest(
    lake: LakeRoot,
    history: History = None,
    every: Annotated[
        str | None,
        typer.Option(
            metavar="INTERVAL",
            help="Go on, and look so often for files, new tables and gaps: '30 seconds'. Else end when done.",
        ),
    ] = None,
    late_after_hours: Annotated[
        float,
        typer.Option(
            min=0.0, max=MOST_HOURS, help="Rows that are so much older than the newest are set aside; 0: none are."
        ),
    ] = 0.0,
    files_in_batch: Annotated[int, typer.Option(min=1, help="Most files taken in at once.")] = FILES_IN_BATCH,
    master: Master = "local[*]",
    heap: Heap = "2g",
    off_heap: OffHeap = "2g",
    conf: Conf = None,
) -> None:
    """Take recorded history into clean tables. Can be cut short anywhere and run again."""
    console = job_console()
    late = timedelta(hours=late_after_hours) if late_after_hours else None
    interval = parse_interval("--every", every)
    intake = Intake(recorded_lake(lake, history, is_awaited=interval is not None), late, files_in_batch)
    totals: dict[str, Tally] = {}

    def figures() -> Mapping[str, Labelled]:
        return figures_of(totals)

    def told(table: str, number: int, tallies: dict[str, Tally]) -> None:
        for cluster, tally in sorted(tallies.items()):
            console.print(f"{table} batch {number}, {cluster}: {sentence(tally)}", soft_wrap=True)
            totals[table] = added(totals.get(table, Tally()), tally)

    with spark_job("ingest", settings_of(master, heap, off_heap, conf), console, intake.lake, figures) as spark:
        try:
            if interval:
                intake.follow(spark, told, interval)
            else:
                with console.status("ingest") as status:
                    intake.run(spark, told, begun=lambda what: status.update(f"ingest: {what}"))
        except TablesGone as error:
            error_console().print(f"[red]ingest:[/] {escape(str(error))}", soft_wrap=True)
            raise typer.Exit(1) from error
    console.print(report(totals) if totals else "nothing new")
    if totals:
        console.print(MEANING, soft_wrap=True)


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
    files = f", {tally.unreadable:,} files set aside that cannot be read" if tally.unreadable else ""
    return f"{tally.rows_kept:,} of {tally.rows_read:,} rows kept, {tally.duplicates:,} duplicates{aside}{files}"


def added(a: Tally, b: Tally) -> Tally:
    """Two tallies as one."""
    return replace(
        a,
        rows_read=a.rows_read + b.rows_read,
        duplicates=a.duplicates + b.duplicates,
        reasons=a.reasons + b.reasons,
        unreadable=a.unreadable + b.unreadable,
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
