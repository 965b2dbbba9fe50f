"""`storm-pipeline traffic`: traffic matrices of every day that has new data, from silver to gold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

import typer
from pyspark.sql import DataFrame, SparkSession
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
from storm_pipeline.schemas import (
    HEAVIEST_PAIRS,
    KEY_SKEW,
    SILVER,
    TRAFFIC,
    TRAFFIC_KEYS,
    TRAFFIC_SHARE,
    WINDOWS,
    DerivedTable,
)
from storm_pipeline.transforms.spans import at_level, by_span, in_each_window, lives, named, residents
from storm_pipeline.transforms.traffic import for_table, heaviest, key_skew, shares

HEAVIEST = 20
MOST_HEAVIEST = 100_000
"""Spark keeps no more in a heap."""
SOURCES = ("pairs", "executors", "edges")
STEPS = 7
Step = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class TrafficJob:
    """The traffic tables of a lake. Each day is replaced as a whole: a repetition changes nothing.

    `windows` are names of `WINDOWS`.
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

    def do_day(self, day: Day, step: Step) -> None:
        """All traffic tables of one day, each of them sums of the spans of its executors."""
        step("executors")
        with (
            kept(lives(self.silver("executors", day))) as lived,
            kept(named(by_span(self.silver("pairs", day)), residents(lived))) as executors,
        ):
            self.write_level(executors, "executor", day)
            self.do_sums(executors, lived, day, step)

    def do_sums(self, executors: DataFrame, lived: DataFrame, day: Day, step: Step) -> None:
        """The tables of all other levels."""
        step("components")
        self.write_level(at_level(executors, *TRAFFIC_KEYS["component"]), "component", day)
        with kept(at_level(executors, *TRAFFIC_KEYS["worker"])) as workers:
            step("workers")
            self.write_level(workers, "worker", day)
            step("supervisors")
            self.write_level(at_level(workers, *TRAFFIC_KEYS["supervisor"]), "supervisor", day)
            step("shares")
            self.write(shares(workers, self.windows), TRAFFIC_SHARE, day)
        step("heaviest pairs")
        self.write(heaviest(executors, self.heaviest_pairs, self.windows), HEAVIEST_PAIRS, day)
        step("key skew")
        self.write(key_skew(executors, self.silver("edges", day), lived, self.windows), KEY_SKEW, day)

    def write_level(self, spans: DataFrame, level: str, day: Day) -> None:
        self.write(in_each_window(spans, TRAFFIC_KEYS[level], self.windows), TRAFFIC[level], day)

    def write(self, rows: DataFrame, table: DerivedTable, day: Day) -> None:
        replace_day(for_table(rows, day.cluster), self.lake.gold(table.name), table, day)


@contextmanager
def kept(rows: DataFrame) -> Iterator[DataFrame]:
    """`rows`, computed once, in memory and where there is too little of it on disk."""
    rows.persist()
    try:
        yield rows
    finally:
        rows.unpersist()


def traffic(
    lake: LakeRoot,
    cluster: Cluster = None,
    first: First = None,
    last: Last = None,
    days: LastDays = None,
    again: Annotated[bool, typer.Option("--again", help="Also days whose data has not changed since.")] = False,
    heaviest_pairs: Annotated[
        int, typer.Option(min=1, max=MOST_HEAVIEST, help="Pairs kept of each window and topology.")
    ] = HEAVIEST,
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
