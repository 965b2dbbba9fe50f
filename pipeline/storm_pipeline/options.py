"""Options that all jobs have in common."""

from __future__ import annotations

import logging
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from rich.console import Console
from rich.markup import escape

from storm_operator.core.history_tables import TABLES
from storm_operator.core.seasonal import bins_in
from storm_operator.folders import is_folder
from storm_operator.history.files import Files
from storm_pipeline.dates import Dates
from storm_pipeline.error_console import error_console
from storm_pipeline.jars import JarsError
from storm_pipeline.lake import Lake, is_folder_here, lake_at
from storm_pipeline.made import Sources, figures_of, nothing_read
from storm_pipeline.metrics import Labelled, is_told, told
from storm_pipeline.spark import SparkSettings, open_session

LakeRoot = Annotated[
    str, typer.Argument(metavar="LAKE", help="Folder or s3:// (s3a://) prefix of the pipeline's tables.")
]
History = Annotated[
    str | None, typer.Option("--history", help="Where the operator records; else LAKE/bronze.", metavar="PATH")
]
Cluster = Annotated[str | None, typer.Option(help="Only this cluster.")]
First = Annotated[str | None, typer.Option("--from", metavar="YYYY-MM-DD", help="First date (UTC).")]
Last = Annotated[str | None, typer.Option("--to", metavar="YYYY-MM-DD", help="Last date, included.")]
MOST_DAYS = 36_500
MOST_HOURS = 24.0 * MOST_DAYS
MOST_SECONDS = 3600.0 * MOST_HOURS
"""A hundred years: with a bound, what is no number or infinite is refused too."""
LastDays = Annotated[
    int | None,
    typer.Option("--days", min=1, max=MOST_DAYS, help="So many days up to --to, or to the cluster's newest; else all."),
]
Master = Annotated[str, typer.Option(envvar="SPARK_MASTER", help="Spark's master; under spark-submit it has its own.")]
Heap = Annotated[str, typer.Option(help="Java heap of the driver (and of each executor).")]
OffHeap = Annotated[str, typer.Option(help="Memory outside the heap, where Spark hashes and sorts.")]
Conf = Annotated[list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="Spark setting (repeatable).")]

_LENGTH = r"(\d+\s+(millisecond|second|minute|hour|day)s?|\d+\.\d+\s+seconds?)"
INTERVAL = re.compile(rf"\s*{_LENGTH}(\s+{_LENGTH})*\s*", re.ASCII | re.IGNORECASE)
"""What Spark takes as the interval of a trigger, in its plain form; only seconds may have a fraction."""
SECONDS = {"millisecond": 0.001, "second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}
ENDING = (signal.SIGINT, signal.SIGTERM)
STOP_SECONDS = 30.0
"""Given to Spark to stop after a signal."""
MEMORY = re.compile(r"0*[1-9]\d*[kmgt]", re.ASCII | re.IGNORECASE)
"""What Java and Spark both take: without a unit Java means bytes, and Spark not everywhere; `2gb` Java refuses."""

PATTERN = re.compile(r"[][{}*?\\]")
"""What recorded files are read by is a pattern to Spark, which finds other files by it, or none, and says nothing."""

_NUMBER = r"\s*0*[1-9]\d*\s*"
MASTER = re.compile(
    rf"local(\[(\*|0*[1-9]\d*)(\s*,{_NUMBER})?\])?"
    rf"|local-cluster\[{_NUMBER},{_NUMBER},{_NUMBER}\]"
    r"|spark://\S+:\d+|k8s://\S+|yarn",
    re.ASCII,
)
"""Spark's own forms; of others it says so in its own words, when it has started."""


def recorded_lake(root: str, history: str | None, is_awaited: bool = False) -> Lake:
    """The lake that has recorded history; a folder that is not there is said before Spark takes its time to start.

    As is one without any of its tables, unless they are awaited.
    """
    lake = lake_at(root, history)
    recorded = lake.history or f"{lake.root}/bronze"
    if PATTERN.search(recorded):
        _refuse(f"{recorded} cannot be read: Spark takes [ ] {{ }} * ? \\ in a folder's name for a pattern; rename it")
    _insist(recorded, f"no recorded history in {recorded}: record with --history, or say where it is with --history")
    if (
        not is_awaited
        and is_folder_here(recorded)
        and not any(is_folder(Path(lake.bronze(table.name))) for table in TABLES)
    ):
        _refuse(f"no recorded history in {recorded} yet: a recorder publishes what it has written every ten minutes")
    return lake


def cleaned_lake(root: str) -> Lake:
    """The lake that has cleaned history; a folder that is not there is said before Spark takes its time to start."""
    lake = lake_at(root)
    _insist(f"{lake.root}/silver", f"no cleaned history in {lake.root}: run `storm-pipeline ingest` first")
    return lake


def _insist(folder: str, otherwise: str) -> None:
    if is_folder_here(folder) and not is_folder(Path(folder)):
        _refuse(otherwise)


def _refuse(why: str) -> NoReturn:
    typer.echo(why, err=True)
    raise typer.Exit(2)


def insist_on_writable(option: str, folder: str) -> None:
    """One that nothing can be written to is said, as what `option` names, before a job takes its time."""
    try:
        Files.at(folder).insist_on_writable()
    except (OSError, ValueError, ImportError) as error:
        typer.echo(f"{option} {folder}: nothing can be written there: {error}", err=True)
        raise typer.Exit(2) from error


def settings_of(master: str, heap: str, off_heap: str, conf: list[str] | None) -> SparkSettings:
    """The settings as given on a command line; a usage error names what is wrong."""
    extra = {}
    for text in conf or ():
        key, separator, value = text.partition("=")
        if not separator or not key.startswith("spark."):
            raise typer.BadParameter(f"--conf: {text!r} must look like spark.sql.shuffle.partitions=8")
        extra[key] = value
    for option, memory in (("--heap", heap), ("--off-heap", off_heap)):
        if MEMORY.fullmatch(memory) is None:
            raise typer.BadParameter(f"{option}: {memory!r} must be a number above 0 with a unit, like 2g or 512m")
    if MASTER.fullmatch(master) is None:
        raise typer.BadParameter(
            f"--master: {master!r} is none of Spark's, which are like local[*], local[4], spark://HOST:7077, "
            "k8s://https://HOST or yarn"
        )
    return SparkSettings(master, heap, off_heap, extra=extra)


def parse_interval(option: str, text: str | None) -> str | None:
    """The interval as Spark takes it; a usage error, since Spark says so only when it has started."""
    if text is not None and INTERVAL.fullmatch(text) is None:
        raise typer.BadParameter(f"{option}: {text!r} must be an interval like '30 seconds' or '1 hour 30 minutes'")
    return text


def parse_bins(cycle_seconds: float, bin_seconds: float) -> int:
    """How many bins a cycle has; a usage error names what is wrong."""
    try:
        return bins_in(cycle_seconds, bin_seconds)
    except ValueError as error:
        raise typer.BadParameter(f"--bin: {error}") from error


def seconds_of(interval: str) -> float:
    """How long an interval is that `parse_interval` lets pass."""
    words = interval.lower().split()
    return sum(
        float(count) * SECONDS[unit.removesuffix("s")] for count, unit in zip(words[::2], words[1::2], strict=True)
    )


def parse_dates(first: str | None, last: str | None, days: int | None = None) -> Dates:
    """What --from, --to and --days choose; a usage error names what is wrong."""
    if first is not None and days is not None:
        raise typer.BadParameter("--days: it says where to begin, and so does --from; give one of them")
    begin, end = _parse_date("--from", first), _parse_date("--to", last)
    if begin is not None and end is not None and begin > end:
        raise typer.BadParameter(f"--to: {last} is before --from {first}; give the same date or a later one")
    return Dates(begin, end, days)


def _parse_date(option: str, text: str | None) -> date | None:
    try:
        return None if text is None else datetime.strptime(text, "%Y-%m-%d").date()  # noqa: DTZ007 - a date has none
    except ValueError as error:
        raise typer.BadParameter(f"{option}: {text!r} must be a date like 2026-01-31") from error


@contextmanager
def spark_job(
    name: str,
    settings: SparkSettings,
    console: Console,
    lake: Lake,
    figures: Callable[[], Mapping[str, Labelled]] = dict,
    sources: Sources = nothing_read,
) -> Iterator[SparkSession]:
    """`session_for` one job, and what is told of the job when it ends.

    `figures` are told to Prometheus at the end, beside how long the job took, what it read (`sources`, asked when it is
    done) and what it made (`metrics.told`).
    """
    made: dict[str, Labelled] = {}
    started_seconds = time.time()
    with told(name, lambda: {**made, **figures()}), session_for(name, settings, lake, console) as spark:
        yield spark
        if is_told():
            made.update(figures_of(spark, lake, name, started_seconds, sources))


def for_lake(settings: SparkSettings, lake: Lake) -> SparkSettings:
    """With what Spark needs to reach the lake."""
    return replace(settings, object_store=lake.is_in_object_store)


@contextmanager
def session_for(name: str, settings: SparkSettings, lake: Lake, console: Console) -> Iterator[SparkSession]:
    """The session that is open, as it is, or one that ends here; what Spark complains of is said in a sentence."""
    shared = SparkSession.getActiveSession()
    spark = shared or _opened(name, for_lake(settings, lake), console)
    try:
        with nullcontext() if shared else ended_by_signals(name, spark, console):
            yield spark
    except PySparkException as error:
        first = str(error).strip().splitlines()[0]
        error_console().print(f"[red]{name}:[/] {escape(first)}", soft_wrap=True, markup=True)
        raise typer.Exit(1) from error
    finally:
        if shared is None:
            spark.stop()


@contextmanager
def ended_by_signals(name: str, spark: SparkSession, console: Console) -> Iterator[None]:
    """Ctrl-C and SIGTERM end what is done inside, and the program, with a sentence; a second one kills at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []

    def on_signal(number: int, _: object) -> None:
        heard.append(number)
        for each in ENDING:
            signal.signal(each, signal.SIG_DFL)
        logging.disable()  # py4j tells of each answer that will not come
        # A thread of its own, since this one's connection to Java may be waiting for an answer.
        silencing = threading.Thread(target=_stop_silently, args=(spark,), daemon=True)
        silencing.start()
        silencing.join(STOP_SECONDS)
        raise KeyboardInterrupt

    before = {each: signal.signal(each, on_signal) for each in ENDING}
    try:
        yield
    except BaseException as error:
        if not heard:
            raise
        console.print(f"{name}: interrupted; what was committed stays, run it again to go on", soft_wrap=True)
        raise typer.Exit(128 + heard[0]) from error
    finally:
        logging.disable(logging.NOTSET)
        for each, handler in before.items():
            signal.signal(each, handler)


def _stop_silently(spark: SparkSession) -> None:
    """Without Spark's complaints about tasks that are cut short; a stream complains even so of what is gone."""
    spark.sparkContext.setLogLevel("OFF")
    for stream in spark.streams.active:
        stream.stop()
    spark.stop()


def _opened(name: str, settings: SparkSettings, console: Console) -> SparkSession:
    heard: list[int] = []
    spark: SparkSession | None = None
    try:
        with console.status(f"{name}: Spark starts"), heard_later(heard):
            spark = open_session(name, settings)
    except Exception as error:
        if not heard:  # else Java may have heard it, too, and be gone
            _say_why_not(name, error)
            raise
    if heard or spark is None:
        if spark is not None:
            with suppress(Exception):
                spark.stop()
        console.print(f"{name}: interrupted before it began", soft_wrap=True)
        raise typer.Exit(128 + heard[0])
    return spark


def _say_why_not(name: str, error: Exception) -> None:
    """A sentence and the program's end, where it is known why Spark does not start."""
    if isinstance(error, JarsError):
        error_console().print(f"[red]{escape(str(error))}[/]", soft_wrap=True)
        raise typer.Exit(1) from error
    if isinstance(error, PySparkException):  # a --master or --heap that Java refuses: it has said why, above
        error_console().print(f"[red]{name}:[/] Spark does not start; --master, --heap, --off-heap, --conf say how")
        raise typer.Exit(1) from error


@contextmanager
def heard_later(heard: list[int]) -> Iterator[None]:
    """Ctrl-C and SIGTERM are put into `heard`; a second one kills at once.

    A Java that Python leaves before it has said where it listens would stay, with nobody to end it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(number: int, _: object) -> None:
        heard.append(number)
        for each in ENDING:
            signal.signal(each, signal.SIG_DFL)

    before = {each: signal.signal(each, on_signal) for each in ENDING}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
