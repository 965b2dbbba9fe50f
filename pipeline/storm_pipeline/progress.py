"""Which days a job has done, from which data: a run cut short goes on, and unchanged days are left alone."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from storm_pipeline.lake import Day, Lake, frame_of, read, replace_day
from storm_pipeline.schemas import SILVER, DerivedTable, schema_of

DONE = DerivedTable(
    "done",
    "Days that a job has made, the fingerprint of the data that they were made from, and the options they were made by",
    schema_of("job text, source text, cluster text, date date"),
)


@dataclass(frozen=True, slots=True)
class Ledger:
    """The days of one job. A day is due when a silver table that it is made from has changed, or `options` have."""

    spark: SparkSession
    lake: Lake
    job: str
    sources: Sequence[str]
    options: str = ""

    def version_of(self, day: Day) -> str:
        """Which files the day's silver tables have now, and the job's options; take it before reading them."""
        files = [f"{name}:{self._fingerprint(name, day)}" for name in self.sources]
        return " ".join([*files, self.options] if self.options else files)

    def is_due(self, day: Day) -> bool:
        """Whether the day was never made, or from other data."""
        rows = read(self.spark, self.lake.gold(DONE.name), DONE).where(day.condition).where(f.col("job") == self.job)
        made_from = [row["source"] for row in rows.collect()]
        return made_from != [self.version_of(day)]

    def done(self, day: Day, version: str) -> None:
        """The day is made from the data that `version_of` named before."""
        row = frame_of(self.spark, [(self.job, version, day.cluster, day.date)], DONE.schema)
        replace_day(row, self.lake.gold(DONE.name), DONE, day, f"job = '{self.job}'")

    def _fingerprint(self, name: str, day: Day) -> str:
        """The number and names of the table's data files of the day; rows of a Delta table only change with them."""
        rows = read(self.spark, self.lake.silver(name), SILVER[name]).where(day.condition)
        files = sorted(path.rpartition("/")[2] for path in rows.inputFiles())
        return f"{len(files)}/{zlib.crc32(' '.join(files).encode())}"
