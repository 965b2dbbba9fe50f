"""`storm-pipeline traffic`: traffic matrices of every day that has new data, from silver to gold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import typer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from rich.console import Console
from rich.progress import Progress

from storm_pipeline.lake import Day, Lake, days_of, read, replace_day, within
from storm_pipeline.options import (
    Cluster,
    Conf,
    First,
    Heap,
    LakeRoot,
    Last,
    Master,
    OffHeap,
    cleaned_lake,
    parse_date,
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
    in_windows,
    key_skew,
    named,
    shares,
)

LARGER_LEVELS = ("component", "worker", "supervisor")
HEAVIEST = 20
SOURCES = ("pairs", "executors", "edges")
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

    def silver(self, table: str, day: Day) -> DataFrame:
        return read(self.spark, self.lake.silver(table), SILVER[table]).where(day.condition)

    def write(self, rows: DataFrame, table: DerivedTable, day: Day, window: str) -> None:
        ready = for_table(rows, day.cluster, window)
        replace_day(ready, self.lake.gold(table.name), table, day, f"window = '{window}'")

    def gold(self, level: str, day: Day, window: str) -> DataFrame:
        table = TRAFFIC[level]
        rows = read(self.spark, self.lake.gold(table.name), table).where(day.condition)
        return rows.where(f.col("window") == window).drop("cluster", "date", "window")

    def do_day(self, day: Day, step: Step) -> None:
        """All traffic tables of one day. Minutes by executor first: all others are sums of them."""
        executors = self.silver("executors", day)
        step("executors by minute")
        minutes = named(by_minute(self.silver("pairs", day)), executors)
        self.write(minutes, TRAFFIC["executor"], day, MINUTE)
        shorter = MINUTE
        for window in self.windows:
            if window != MINUTE:
                step(f"executors by {window}")
                longer = at_level(in_windows(self.gold("executor", day, shorter), window), "executor")
                self.write(longer, TRAFFIC["executor"], day, window)
            self.do_window(day, window, executors, step)
            shorter = window

    def do_window(self, day: Day, window: str, executors: DataFrame, step: Step) -> None:
        """Everything that is made of one window's executor level."""
        rows = self.gold("executor", day, window)
        for level in LARGER_LEVELS:
            step(f"{level}s by {window}")
            self.write(at_level(rows, level), TRAFFIC[level], day, window)
        step(f"shares, heaviest pairs, key skew by {window}")
        self.write(shares(self.gold("worker", day, window)), TRAFFIC_SHARE, day, window)
        self.write(heaviest(rows, self.heaviest_pairs), HEAVIEST_PAIRS, day, window)
        self.write(key_skew(rows, self.silver("edges", day), executors), KEY_SKEW, day, window)


STEPS = len(WINDOWS) * (2 + len(LARGER_LEVELS))


def traffic(
    lake: LakeRoot,
    cluster: Cluster = None,
    first: First = None,
    last: Last = None,
    again: Annotated[bool, typer.Option("--again", help="Also days whose data has not changed since.")] = False,
    heaviest_pairs: Annotated[int, typer.Option(min=1, help="Pairs kept of each window and topology.")] = HEAVIEST,
    master: Master = "local[*]",
    heap: Heap = "2g",
    off_heap: OffHeap = "2g",
    conf: Conf = None,
) -> None:
    """Traffic matrices by window and level, day by day. Can be cut short anywhere and run again."""
    console = Console(highlight=False)
    dates = parse_date("--from", first), parse_date("--to", last)
    tables = cleaned_lake(lake)
    with spark_job("traffic", settings_of(master, heap, off_heap, conf), console, tables) as spark:
        job = TrafficJob(spark, tables, heaviest_pairs)
        ledger = Ledger(spark, job.lake, "traffic", SOURCES)
        days = within(days_of(spark, job.lake.silver("pairs"), SILVER["pairs"], cluster), *dates)
        due = [day for day in days if again or ledger.is_due(day)]
        with Progress(console=console) as progress:
            task = progress.add_task("traffic", total=len(due) * STEPS)
            for day in due:
                version = ledger.version_of(day)

                def step(what: str, day: Day = day) -> None:
                    progress.update(task, advance=1, description=f"{day.cluster} {day.date}: {what}")

                job.do_day(day, step)
                ledger.done(day, version)
        console.print(f"traffic: {len(due)} of {len(days)} days made; the others had not changed")
