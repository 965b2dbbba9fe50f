"""`storm-pipeline traffic`: traffic matrices of every day that has new data, from silver to gold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import typer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from rich.markup import escape
from rich.progress import Progress

from storm_pipeline.dates import Dates
from storm_pipeline.job_console import job_console
from storm_pipeline.jobs.learning import bounds_of
from storm_pipeline.lake import Day, Lake, days_of, read, replace_day, within
from storm_pipeline.options import (
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
    parse_dates,
    settings_of,
    spark_job,
)
from storm_pipeline.progress import Ledger
from storm_pipeline.schemas import HEAVIEST_PAIRS, KEY_SKEW, SILVER, TRAFFIC, TRAFFIC_SHARE, WINDOWS, DerivedTable
from storm_pipeline.transforms.traffic import (
    MINUTE,
    at_level,
    by_minute,
    for_table,
    heaviest,
    in_each_window,
    in_longer_windows,
    key_skew,
    named,
    residents,
    shares,
)

HEAVIEST = 20
SOURCES = ("pairs", "executors", "edges")
STEPS = 8
Step = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class TrafficJob:
    """The traffic tables of a lake. Each day is replaced as a whole: a repetition changes nothing.

    `windows` are names of `WINDOWS`, shortest first, the minute among them: each is made from the one before.
    """

    spark: SparkSession
    lake: Lake
    heaviest_pairs: int = HEAVIEST
    windows: tuple[str, ...] = tuple(WINDOWS)

    def ledger(self) -> Ledger:
        """The days that were made with as many heaviest pairs."""
        return Ledger(self.spark, self.lake, "traffic", SOURCES, f"heaviest_pairs:{self.heaviest_pairs}")

    def silver(self, table: str, day: Day) -> DataFrame:
        return read(self.spark, self.lake.silver(table), SILVER[table]).where(day.condition)

    def write(self, rows: DataFrame, table: DerivedTable, day: Day, more: str = "") -> None:
        replace_day(for_table(rows, day.cluster), self.lake.gold(table.name), table, day, more)

    def gold(self, level: str, day: Day) -> DataFrame:
        table = TRAFFIC[level]
        return read(self.spark, self.lake.gold(table.name), table).where(day.condition).drop("cluster", "date")

    def do_day(self, day: Day, step: Step) -> None:
        """All traffic tables of one day. Minutes by executor first: all others are sums of them."""
        there = residents(self.silver("executors", day)).persist()
        step("executors by minute")
        minutes = named(by_minute(self.silver("pairs", day)), there)
        self.write(minutes, TRAFFIC["executor"], day, f"window = '{MINUTE}'")
        step("executors by longer windows")
        minutes = self.gold("executor", day).where(f.col("window") == MINUTE)
        longer = in_longer_windows(minutes, [window for window in self.windows if window != MINUTE])
        self.write(longer, TRAFFIC["executor"], day, f"window <> '{MINUTE}'")
        there.unpersist()
        self.do_sums(day, step)

    def do_sums(self, day: Day, step: Step) -> None:
        """Everything that is made of the executor level, all windows at once."""
        executors = self.gold("executor", day)
        for level, source in (("component", "executor"), ("worker", "executor"), ("supervisor", "worker")):
            step(f"{level}s")
            minutes = at_level(self.gold(source, day).where(f.col("window") == MINUTE), level)
            self.write(in_each_window(minutes, level, self.windows), TRAFFIC[level], day)
        step("shares")
        self.write(shares(self.gold("worker", day)), TRAFFIC_SHARE, day)
        step("heaviest pairs")
        self.write(heaviest(executors, self.heaviest_pairs), HEAVIEST_PAIRS, day)
        step("key skew")
        skew = key_skew(executors, self.silver("edges", day), self.silver("executors", day), self.windows)
        self.write(skew, KEY_SKEW, day)


def traffic(
    lake: LakeRoot,
    cluster: Cluster = None,
    first: First = None,
    last: Last = None,
    days: LastDays = None,
    again: Annotated[bool, typer.Option("--again", help="Also days whose data has not changed since.")] = False,
    heaviest_pairs: Annotated[int, typer.Option(min=1, help="Pairs kept of each window and topology.")] = HEAVIEST,
    master: Master = "local[*]",
    heap: Heap = "2g",
    off_heap: OffHeap = "2g",
    conf: Conf = None,
) -> None:
    """Traffic matrices by window and level, day by day. Can be cut short anywhere and run again."""
    console = job_console()
    dates = parse_dates(first, last, days)
    tables = cleaned_lake(lake)
    due: list[Day] = []

    def read_rows(spark: SparkSession) -> list[tuple[str, DataFrame]]:
        job = TrafficJob(spark, tables)
        return [(table, job.silver(table, day)) for day in due for table in SOURCES]

    with spark_job("traffic", settings_of(master, heap, off_heap, conf), console, tables, sources=read_rows) as spark:
        job = TrafficJob(spark, tables, heaviest_pairs)
        ledger = job.ledger()
        chosen = days_with_pairs(spark, tables, cluster, dates)
        due += [day for day in chosen if again or ledger.is_due(day)]
        with Progress(console=console) as progress:
            task = progress.add_task("traffic", total=len(due) * STEPS)
            for day in due:
                version = ledger.version_of(day)

                def step(what: str, day: Day = day) -> None:
                    progress.update(task, advance=1, description=f"{escape(day.cluster)} {day.date}: {what}")

                job.do_day(day, step)
                ledger.done(day, version)
        console.print(outcome(len(due), len(chosen)))


def days_with_pairs(spark: SparkSession, lake: Lake, cluster: str | None, dates: Dates) -> tuple[Day, ...]:
    """Those of `cluster`, or of all, that `dates` choose. A usage error where nothing of that was ingested."""
    chosen = within(days_of(spark, lake.silver("pairs"), cluster), dates)
    if not chosen:
        bounds_of(spark, lake, cluster, dates)
    return chosen


def outcome(made: int, there: int) -> str:
    """What was done, in a sentence."""
    if not there:
        return "traffic: no tuples between executors were recorded on such dates: nothing made"
    unchanged = there - made
    return f"traffic: {made} of {there} days made" + (f"; {unchanged} had not changed" if unchanged else "")
