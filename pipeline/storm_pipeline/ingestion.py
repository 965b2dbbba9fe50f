"""One batch of recorded files into the silver table: exact, whatever is written twice, cut short or comes again.

Writes are ordered so that a crash between any two of them, and the same batch again, ends in the same tables: first the
numbers for the quality report and what is set aside, then the rows. Each write is known to its table by the stream and
the number of the batch, and is done once; rows that need comparing are merged by key, which can be repeated. Large
files in which nothing has to be cleaned are taken over as they are (`whole_files`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from storm_operator.core.history_tables import Table
from storm_pipeline.bronze import (
    MISPLACED,
    UNKNOWN,
    cluster_of,
    date_of,
    faults_of,
    is_in_place,
    is_of_a_file,
    read_bronze,
)
from storm_pipeline.lake import Lake, append_once, frame_of, read
from storm_pipeline.schemas import BRONZE_ONLY, CLUSTER, DATE, QUALITY, QUARANTINE, SILVER, schema_of
from storm_pipeline.transforms.clean import FILE, REASON, counted, quarantined, ranked_by_key, with_reasons
from storm_pipeline.whole_files import WholeFile, large_ones, take_over

AHEAD = timedelta(hours=1)
"""How far clocks may be apart: a period that ends later than this after the present is of a wrong one."""
CONFLICT = "another row has its key and says otherwise"
LEAST_BYTES_TAKEN_OVER = 1_000_000
"""Files of silver tables should not be smaller: opening one costs as much as reading so much of it."""
Period = tuple[str, datetime]
"""(cluster, end)."""


@dataclass(slots=True)
class Tally:
    """What became of the rows of one cluster in one batch."""

    rows_read: int = 0
    duplicates: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    first_period: datetime | None = None
    last_period: datetime | None = None
    files: list[str] = field(default_factory=list)
    unreadable: int = 0
    """Of the files; no row of them counts above."""

    @property
    def quarantined(self) -> int:
        return sum(self.reasons.values())

    @property
    def rows_kept(self) -> int:
        return self.rows_read - self.duplicates - self.quarantined

    def saw(self, moment: datetime) -> None:
        self.first_period = min(self.first_period or moment, moment)
        self.last_period = max(self.last_period or moment, moment)


@dataclass(slots=True)
class Look:
    """What a first pass over a batch finds, which reads all of it and keeps none.

    `periods` are those of each file, with how many of their rows can be taken in; `doubtful` those whose rows must be
    compared: not whole, in several files, or partly there already; `unclean` the files with rows to set aside;
    `unreadable` those of which no row is taken in, and why.
    """

    tallies: dict[str, Tally] = field(default_factory=dict)
    periods: dict[str, dict[Period, int]] = field(default_factory=dict)
    doubtful: set[Period] = field(default_factory=set)
    unclean: set[str] = field(default_factory=set)
    unreadable: dict[str, str] = field(default_factory=dict)

    def whole_files(self) -> Iterator[WholeFile]:
        """The files in which nothing has to be set aside or compared."""
        for path, periods in sorted(self.periods.items()):
            if path not in self.unclean and not self.doubtful & periods.keys():
                ends = [end for _, end in periods]
                yield WholeFile(path, cluster_of(path), date_of(path), sum(periods.values()), min(ends), max(ends))


@dataclass(frozen=True, slots=True)
class Batch:
    """Files of one table that are taken in together. `stream` is the identity of their stream's checkpoint.

    `now` is the time that it is for this batch, also when it comes again. Rows that ended more than `late_after` before
    the newest of their cluster in earlier batches are set aside; None: no row is too late. Files of `take_over_bytes`
    and more in which nothing has to be cleaned stay as they are.
    """

    lake: Lake
    table: Table
    stream: str
    number: int
    now: datetime
    late_after: timedelta | None = None
    take_over_bytes: int = LEAST_BYTES_TAKEN_OVER

    @property
    def writer(self) -> str:
        return f"ingest-{self.table.name}-{self.stream}"

    def take_in(self, spark: SparkSession, files: Sequence[str]) -> dict[str, Tally]:
        """Take in the files at these paths; returns what became of their rows, by cluster."""
        oldest = self._oldest(spark)
        look = self._look_at_placed(spark, files, oldest)
        tallies = look.tallies
        for path in files:
            tally = tallies.setdefault(cluster_of(path), Tally())
            tally.files.append(path)
            tally.unreadable += path in look.unreadable
        whole = large_ones(spark, look.whole_files(), self.take_over_bytes)
        rest = sorted(set(files) - look.unreadable.keys() - {file.path for file in whole})
        if not rest:
            self._begin(spark, look, whole)
            return tallies
        judged = self._judged(spark, rest, oldest)
        good = judged.where(f.col(REASON).isNull())
        mended = self._compared(spark, good, look.doubtful, tallies) if look.doubtful else None
        self._begin(spark, look, whole)
        self._write(spark, judged, self._without(spark, good, look.doubtful), mended, tallies)
        if mended is not None:
            mended.unpersist()
        return tallies

    def _begin(self, spark: SparkSession, look: Look, whole: Sequence[WholeFile]) -> None:
        """Write all that needs no row to be read again."""
        self._append(self._quality(spark, look.tallies), QUALITY)
        if look.unreadable:
            aside = self._unreadable(spark, look.unreadable)
            append_once(aside, self.lake.silver(QUARANTINE.name), QUARANTINE, f"{self.writer}-files", self.number)
        self._take_over(spark, whole)

    def _unreadable(self, spark: SparkSession, reasons: Mapping[str, str]) -> DataFrame:
        rows = [
            (self.table.name, reason, None, None, path, cluster_of(path), None)
            for path, reason in sorted(reasons.items())
        ]
        return frame_of(spark, rows, QUARANTINE.schema)

    def _look_at_placed(self, spark: SparkSession, files: Sequence[str], oldest: Mapping[str, datetime]) -> Look:
        misplaced = dict.fromkeys((path for path in files if not is_in_place(path, self.table)), MISPLACED)
        placed = [path for path in files if path not in misplaced]
        look = self._look_at_readable(spark, placed, oldest) if placed else Look()
        return replace(look, unreadable={**look.unreadable, **misplaced})

    def _look_at_readable(self, spark: SparkSession, files: Sequence[str], oldest: Mapping[str, datetime]) -> Look:
        """One file that cannot be read fails the look at all; which one it is, only each alone can tell."""
        try:
            return self._look(spark, self._judged(spark, files, oldest))
        except Py4JJavaError as error:
            unreadable = faults_of(spark, self.lake, self.table, files) if is_of_a_file(error) else {}
            if not unreadable:
                raise
        readable = [path for path in files if path not in unreadable]
        look = self._look(spark, self._judged(spark, readable, oldest)) if readable else Look()
        return replace(look, unreadable=unreadable)

    @property
    def _latest(self) -> datetime:
        """No sound clock has written a later period."""
        return self.now + AHEAD

    def _judged(self, spark: SparkSession, files: Sequence[str], oldest: Mapping[str, datetime]) -> DataFrame:
        return with_reasons(read_bronze(spark, self.lake, self.table, files), self.table, oldest, self._latest)

    def _take_over(self, spark: SparkSession, whole: Sequence[WholeFile]) -> None:
        silver = SILVER[self.table.name]
        take_over(spark, whole, self.lake.silver(silver.name), silver, f"{self.writer}-whole", self.number)

    def _oldest(self, spark: SparkSession) -> dict[str, datetime]:
        if self.late_after is None:
            return {}
        earlier = read(spark, self.lake.silver(QUALITY.name), QUALITY).where(
            (f.col("table") == self.table.name)
            & (f.coalesce("stream", f.lit(self.stream)) == self.stream)  # those of an earlier version do not say
            & (f.col("batch") < self.number)
            & (f.col("last_period") <= f.lit(self._latest))  # an earlier version of ingest took later ones in
        )
        newest = earlier.groupBy(CLUSTER).agg(f.max("last_period").alias("newest")).collect()
        return {row[CLUSTER]: row["newest"] - self.late_after for row in newest if row["newest"] is not None}

    def _look(self, spark: SparkSession, judged: DataFrame) -> Look:
        """Count the rows by cluster, period and file, and see which periods must be compared."""
        look = Look()
        seen: set[Period] = set()
        for row in counted(judged).collect():
            tally = look.tallies.setdefault(row[CLUSTER] or UNKNOWN, Tally())
            tally.rows_read += row["rows"]
            path, period = unquote(row[FILE]), (row[CLUSTER], row["period_end"])
            if row[REASON] is not None:
                tally.reasons[row[REASON]] += row["rows"]
                look.unclean.add(path)
                continue
            tally.saw(row["period_end"])
            look.periods.setdefault(path, {})[period] = row["rows"]
            if not row["whole"] or period in seen:
                look.doubtful.add(period)
            seen.add(period)
        look.doubtful |= seen & self._already_there(spark, seen)
        return look

    def _already_there(self, spark: SparkSession, periods: set[Period]) -> set[Period]:
        path = self.lake.silver(self.table.name)
        if not periods:
            return set()
        found = self._around(read(spark, path, SILVER[self.table.name]), periods)
        return {(row[CLUSTER], row["period_end"]) for row in found.select(CLUSTER, "period_end").distinct().collect()}

    def _around(self, silver: DataFrame, periods: set[Period]) -> DataFrame:
        """Silver rows that can be of these periods, by what their files are found by."""
        ends = [end for _, end in periods]
        return silver.where(
            f.col(CLUSTER).isin(sorted({cluster for cluster, _ in periods}))
            & f.col(DATE).between(min(ends).date(), max(ends).date())
            & f.col("period_end").between(min(ends), max(ends))
        )

    def _compared(
        self, spark: SparkSession, good: DataFrame, doubtful: set[Period], tallies: dict[str, Tally]
    ) -> DataFrame:
        """The rows of doubtful periods, each with what it is: new, duplicate or conflict."""
        chosen = good.join(f.broadcast(self._frame_of(spark, doubtful)), [CLUSTER, "period_end"])
        ranked = ranked_by_key(chosen, self.table)
        silver = self._around(read(spark, self.lake.silver(self.table.name), SILVER[self.table.name]), doubtful)
        values = [name for name in self.table.names if name not in BRONZE_ONLY]
        there = silver.select(CLUSTER, *self.table.key, f.xxhash64(*values).alias("there"))
        compared = ranked.join(there, [CLUSTER, *self.table.key], "left")
        content = f.xxhash64(*values)
        same = f.when(f.col("there").isNotNull(), f.col("there") == content).otherwise(f.col("same"))
        new = f.col("there").isNull() & (f.col("rank") == 1)
        verdict = f.when(new, "new").when(same, "duplicate").otherwise("conflict")
        compared = compared.withColumn("verdict", verdict).persist(StorageLevel.MEMORY_AND_DISK)
        for row in compared.groupBy(CLUSTER, "verdict").count().collect():
            if row["verdict"] == "duplicate":
                tallies[row[CLUSTER]].duplicates += row["count"]
            elif row["verdict"] == "conflict":
                tallies[row[CLUSTER]].reasons[CONFLICT] += row["count"]
        return compared

    def _without(self, spark: SparkSession, good: DataFrame, doubtful: set[Period]) -> DataFrame:
        if not doubtful:
            return good
        return good.join(f.broadcast(self._frame_of(spark, doubtful)), [CLUSTER, "period_end"], "left_anti")

    def _frame_of(self, spark: SparkSession, periods: set[Period]) -> DataFrame:
        return frame_of(spark, sorted(periods), schema_of(f"{CLUSTER} text, period_end time"))

    def _write(
        self,
        spark: SparkSession,
        judged: DataFrame,
        whole: DataFrame,
        mended: DataFrame | None,
        tallies: dict[str, Tally],
    ) -> None:
        silver = SILVER[self.table.name]
        if any(tally.quarantined for tally in tallies.values()):
            aside = quarantined(judged.where(f.col(REASON).isNotNull()), self.table)
            if mended is not None:
                conflicts = mended.where(f.col("verdict") == "conflict").withColumn(REASON, f.lit(CONFLICT))
                aside = aside.unionByName(quarantined(conflicts, self.table))
            self._append(aside, QUARANTINE)
        self._append(whole, silver)
        if mended is not None:
            self._merge(spark, mended.where(f.col("verdict") == "new"))

    def _append(self, frame: DataFrame, table: Any) -> None:
        append_once(frame, self.lake.silver(table.name), table, self.writer, self.number)

    def _quality(self, spark: SparkSession, tallies: dict[str, Tally]) -> DataFrame:
        rows = [
            (
                self.table.name,
                self.number,
                tally.rows_read,
                tally.rows_kept,
                tally.duplicates,
                tally.quarantined,
                dict(tally.reasons),
                tally.first_period,
                tally.last_period,
                tally.files,
                self.stream,
                cluster,
            )
            for cluster, tally in sorted(tallies.items())
        ]
        return frame_of(spark, rows, QUALITY.schema)

    def _merge(self, spark: SparkSession, rows: DataFrame) -> None:
        silver = SILVER[self.table.name]
        path = self.lake.silver(silver.name)
        names = [one.name for one in silver.schema.fields]
        rows.select(*names).createOrReplaceTempView("mended_rows")
        on = " AND ".join(f"old.`{name}` <=> new.`{name}`" for name in (CLUSTER, DATE, *self.table.key))
        columns = ", ".join(f"`{name}`" for name in names)
        values = ", ".join(f"new.`{name}`" for name in names)
        rows.sparkSession.sql(
            f"MERGE INTO delta.`{path}` old USING mended_rows new ON {on} "
            f"WHEN NOT MATCHED THEN INSERT ({columns}) VALUES ({values})"
        )
