"""`storm-pipeline tune`: recorded history replayed over a grid of settings, spread over Spark's executors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import typer
from pyspark import Accumulator
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from storm_operator.core.settings import SchedulingSettings
from storm_operator.settings_overrides import InvalidOverride, Settings, override_settings
from storm_pipeline.error_console import error_console
from storm_pipeline.gold import TUNING_ADVICE, TUNING_RUNS
from storm_pipeline.job_console import job_console
from storm_pipeline.jobs.learning import (
    USUAL_VALID_DAYS,
    ConfigMap,
    Publish,
    ValidDays,
    clusters_of,
    insist_on_one,
    publication_of,
    publish,
)
from storm_pipeline.lake import Lake, replace_cluster
from storm_pipeline.options import (
    MOST_HOURS,
    Cluster,
    Conf,
    Heap,
    LakeRoot,
    Master,
    OffHeap,
    cleaned_lake,
    settings_of,
    spark_job,
)
from storm_pipeline.tuning.candidates import Overrides, candidates
from storm_pipeline.tuning.candidates import settings_of as settings_of_overrides
from storm_pipeline.tuning.halving import (
    PRESENT,
    Ladder,
    PlayAll,
    Standing,
    climb,
    is_surely_better,
    mean_of,
    standings,
)
from storm_pipeline.tuning.reading import SOURCES, read_recording, recorded
from storm_pipeline.tuning.recording import InvalidRecording, Recording
from storm_pipeline.tuning.replay import Outcome, Prices, Try, insist_on_playable, least_seconds, replay

TRIES_IN_A_TASK = 4
"""Small tasks even out; each costs Spark some milliseconds, and a try takes hundreds."""
FEW_TRIES = 64
"""These are the long ones, of the late rounds: each is a task of its own."""
HIGHEST_PRICE = 1e9
Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ReplaysDone:
    """How far a round is, for a person: `done` of `total` replays. Spark adds to it when a task ends."""

    done: Accumulator[int]
    total: int

    def __rich__(self) -> str:
        return f"{self.done.value:,} of {self.total:,} replays done"


def known(present: list[str] | None) -> list[str] | None:
    """The overrides of --set as they are; a usage error names one that is none."""
    try:
        settings_of_overrides(tuple(present or ()))
    except InvalidOverride as error:
        raise typer.BadParameter(str(error)) from error
    return present


def tune(
    lake: LakeRoot,
    cluster: Cluster = None,
    hours: Annotated[
        float, typer.Option(min=0.05, max=MOST_HOURS, help="Hours of the newest history that are replayed.")
    ] = 1.0,
    settings: Annotated[int, typer.Option(min=2, help="How many settings are tried.")] = 200,
    present: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", callback=known, help="The present settings, beside the defaults."),
    ] = None,
    replays: Annotated[
        int, typer.Option(min=2, help="How often the best and the present ones are replayed to decide.")
    ] = 8,
    under_price: Annotated[
        float, typer.Option(min=0.0, max=HIGHEST_PRICE, help="A CPU-second that was lacking, in CPU-seconds too many.")
    ] = 10.0,
    failed_price: Annotated[float, typer.Option(min=0.0, max=HIGHEST_PRICE, help="A failed tuple, likewise.")] = 0.01,
    restart_price: Annotated[
        float, typer.Option(min=0.0, max=HIGHEST_PRICE, help="A restart of a worker, likewise.")
    ] = 10.0,
    seed: Annotated[int, typer.Option(min=0, help="What is drawn depends on it alone.")] = 0,
    publish_file: Publish = None,
    config_map: ConfigMap = None,
    valid_days: ValidDays = USUAL_VALID_DAYS,
    master: Master = "local[*]",
    heap: Heap = "2g",
    off_heap: OffHeap = "2g",
    conf: Conf = None,
) -> None:
    """Tries settings on recorded history by successive halving, and recommends the best with their expected effect.

    Reads the cleaned history, writes the tables tuning_runs and tuning_advice anew for each cluster.
    """
    console = job_console()
    where = publication_of(publish_file, config_map, valid_days)
    try:
        chosen = candidates(settings, seed, tuple(present or ()))
    except InvalidOverride as error:
        raise typer.BadParameter(f"--set: {error}") from error
    scheduling = settings_of_overrides(chosen[PRESENT]).scheduling
    prices = Prices(under_price, failed_price, restart_price)
    tables = cleaned_lake(lake)
    clusters: tuple[str, ...] = ()

    def read_rows(spark: SparkSession) -> list[tuple[str, DataFrame]]:
        return [(table, recorded(spark, tables, name, hours)[1](table)) for name in clusters for table in SOURCES]

    with spark_job("tune", settings_of(master, heap, off_heap, conf), console, tables, sources=read_rows) as spark:
        clusters = clusters_of(spark, tables, cluster)
        insist_on_one(clusters, where)
        not_replayed = False
        for name in clusters:
            try:
                recording = read_recording(spark, tables, name, hours)
                tell_assumptions(name, recording, console)
                insist_on_playable(recording, scheduling)
                ladder = ladder_of(recording, scheduling, replays)
                outcomes = climb(chosen, ladder, seed, play_on(spark, recording, prices, console.print, console))
            except InvalidRecording as error:
                error_console().print(f"[red]{escape(name)}:[/] {escape(str(error))}", soft_wrap=True)
                not_replayed = True
                continue
            found = standings(outcomes, ladder)
            write(spark, tables, recording, outcomes, found)
            console.print(summary(name, found, tuple(present or ())))
            console.print(verdict(found, tuple(present or ())), soft_wrap=True)
        if not_replayed:
            raise typer.Exit(1)
        publish(spark, tables, clusters, where, console)


def tell_assumptions(cluster: str, recording: Recording, console: Console) -> None:
    """What is replayed otherwise than it may have been, as nobody recorded how it was."""
    for one in recording.assumed:
        console.print(f"{cluster}: {one}", soft_wrap=True, markup=False)


def ladder_of(recording: Recording, scheduling: SchedulingSettings, replays: int) -> Ladder:
    """No stretch is so short that settings with this control period could not show what they do."""
    return Ladder(recording.seconds, replays=replays, least_seconds=least_seconds(scheduling))


def play_on(
    spark: SparkSession, recording: Recording, prices: Prices, told: Told, console: Console | None = None
) -> PlayAll:
    """Plays tries on Spark's executors, tells of each rung, and shows on a `console` how far it is."""

    def play_all(tries: Sequence[Try]) -> list[Outcome]:
        context = spark.sparkContext
        tasks = max(1, min(len(tries), max(FEW_TRIES, 2 * context.defaultParallelism, len(tries) // TRIES_IN_A_TASK)))
        told(f"round {tries[0].rung + 1}: {len(tries)} replays of {tries[0].seconds:,.0f} s of history")
        done = context.accumulator(0)

        def play(one: Try) -> Outcome:
            outcome = replay(recording, one, prices)
            done.add(1)
            return outcome

        with console.status(ReplaysDone(done, len(tries))) if console else nullcontext():
            return context.parallelize(tries, tasks).map(play).collect()

    return play_all


def write(
    spark: SparkSession, lake: Lake, recording: Recording, outcomes: Sequence[Outcome], found: Sequence[Standing]
) -> None:
    """Replace both tables' rows of the cluster."""
    newest = datetime.fromtimestamp(recording.ended_at_seconds, UTC)
    runs = [
        (
            o.tried.rung,
            o.tried.candidate,
            " ".join(o.tried.overrides),
            float(o.tried.seconds),
            o.tried.seed,
            float(o.score),
            float(o.under_core_seconds),
            float(o.over_core_seconds),
            float(o.failed_tuples),
            round(o.restarts),
            o.plans,
            recording.cluster,
        )
        for o in outcomes
    ]
    advice = [
        (
            rank,
            " ".join(s.overrides),
            s.change_percent,
            s.low_percent,
            s.high_percent,
            len(s.outcomes),
            mean_of(s.outcomes, "under_core_seconds"),
            mean_of(s.outcomes, "over_core_seconds"),
            mean_of(s.outcomes, "restarts"),
            newest,
            recording.cluster,
        )
        for rank, s in enumerate(found, start=1)
    ]
    for table, rows in ((TUNING_RUNS, runs), (TUNING_ADVICE, advice)):
        frame = spark.createDataFrame(rows, table.schema)
        replace_cluster(frame, lake.gold(table.name), table, recording.cluster)


def summary(cluster: str, found: Sequence[Standing], present: Overrides = ()) -> Table:
    """The finalists, for a person: what each changes of the `present` settings, one setting a line."""
    title = f"settings for {cluster}: scores against the present ones (less is better), and means per hour of history"
    table = Table(title=title, title_justify="left", box=None)
    table.add_column("changed settings", overflow="fold")
    for name in ("score", "90% interval", "CPU-s\nlacking", "CPU-s\ntoo much", "worker\nrestarts"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in found:
        table.add_row(
            "\n".join(changed(one, present)) or "the present ones",
            f"{one.change_percent:+.1f}%",
            f"{one.low_percent:+.1f} to {one.high_percent:+.1f}%",
            *(
                f"{mean_of(one.outcomes, figure):,.1f}"
                for figure in ("under_core_seconds", "over_core_seconds", "restarts")
            ),
        )
    return table


def changed(standing: Standing, present: Overrides) -> Overrides:
    """What a candidate sets otherwise than the present settings do, of which most are the defaults.

    Of a key that is set twice the last counts.
    """
    now, then = override_settings(Settings(), present), dict(one.split("=", 1) for one in standing.overrides)
    return tuple(one for one in (f"{key}={value}" for key, value in then.items()) if _changes(now, one))


def _changes(now: Settings, override: str) -> bool:
    try:
        return override_settings(now, (override,)) != now
    except InvalidOverride:  # it goes together with another change only
        return True


def verdict(found: Sequence[Standing], present: Overrides) -> str:
    """What to do, in a sentence."""
    best = found[0]
    if not is_surely_better(best.high_percent):
        return "keep the present settings: the best others were not surely better in replays that had not chosen them"
    return (
        f"surely better, in replays that had not chosen them: {' '.join(changed(best, present))}; nothing was changed"
    )
