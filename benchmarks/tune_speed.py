"""How fast `storm-pipeline tune` is: settings replayed on an hour of a 100-executor cluster, on one and two executors.

Executors are processes of their own (Spark's local-cluster). The last line is JSON.
"""

from __future__ import annotations

import itertools
import json
import math
import time
from typing import Annotated

import typer

from storm_operator.core.settings import SchedulingSettings
from storm_pipeline.jobs.tune import ladder_of, play_on
from storm_pipeline.spark import SparkSettings, open_session
from storm_pipeline.tuning.candidates import candidates
from storm_pipeline.tuning.halving import climb, standings
from storm_pipeline.tuning.recording import (
    RecordedComponent,
    RecordedEdge,
    RecordedMachine,
    RecordedTopology,
    Recording,
)
from storm_pipeline.tuning.replay import Prices, Try

HOUR_SECONDS = 3600.0
PERIOD_SECONDS = 10.0
TOPOLOGIES = 5
MACHINES = 10
WORKERS = 8
BASE_PER_SECOND = 500.0
COMPONENTS = (
    ("spout", "spout", 2, 0.1),
    ("parse", "bolt", 6, 0.8),
    ("join", "bolt", 6, 0.5),
    ("count", "bolt", 6, 0.4),
)
EXECUTOR_MEGABYTES = 1024
REPLAYS = 8
"""That decide, as many as `tune` makes."""


def recording() -> Recording:
    """Five chains of twenty executors on ten supervisors, each with a load that rises and falls within the hour."""
    return Recording(
        "bench",
        HOUR_SECONDS,
        PERIOD_SECONDS,
        1.0,
        tuple(RecordedMachine(f"s{n}", 4, 4000.0) for n in range(MACHINES)),
        tuple(_topology(number) for number in range(TOPOLOGIES)),
        HOUR_SECONDS,
    )


def _topology(number: int) -> RecordedTopology:
    times = [PERIOD_SECONDS * n for n in range(round(HOUR_SECONDS / PERIOD_SECONDS) + 1)]
    load = tuple(
        (at, BASE_PER_SECOND * (1.0 + 0.5 * math.sin(2.0 * math.pi * (at / 1800.0 + number / TOPOLOGIES))))
        for at in times
    )
    components = tuple(
        RecordedComponent(name, kind, executors, name == "count", cpu_ms, load if kind == "spout" else ())
        for name, kind, executors, cpu_ms in COMPONENTS
    )
    names = [name for name, *_ in COMPONENTS]
    edges = tuple(
        RecordedEdge(source, "default", target, "fields" if target == "count" else "shuffle", 1.0)
        for source, target in itertools.pairwise(names)
    )
    return RecordedTopology(f"topology-{number}", f"topology{number}", WORKERS, 0, components, edges)


def seconds_of(master: str, tries: list[Try], played: Recording) -> float:
    """How long the tries take, without the start of Spark and its workers."""
    spark = open_session("bench-tune", SparkSettings(master, heap="1g", off_heap="64m"))
    try:
        play_all = play_on(spark, played, Prices(), lambda _: None)
        play_all(tries[:4])
        started = time.perf_counter()
        play_all(tries)
        return time.perf_counter() - started
    finally:
        spark.stop()


def main(
    settings: Annotated[int, typer.Option(help="Settings of the whole tuning; 0 leaves it out.")] = 1000,
    tries: Annotated[int, typer.Option(help="Replays that one and two executors are compared on.")] = 32,
    seconds: Annotated[float, typer.Option(help="History of each of those.")] = 600.0,
) -> None:
    """Compare one executor with two, then tune with two."""
    played = recording()
    chosen = candidates(max(settings, tries), 0)
    some = [Try(0, n, chosen[n], 0.0, seconds, 0) for n in range(tries)]
    one, two = (seconds_of(f"local-cluster[{n},1,{EXECUTOR_MEGABYTES}]", some, played) for n in (1, 2))
    print(f"{tries} replays of {seconds:.0f} s: {one:.1f} s on one executor, {two:.1f} s on two")
    result: dict[str, float | int | None] = {
        "one_executor_seconds": round(one, 1),
        "two_executors_seconds": round(two, 1),
    }
    result["speedup"] = round(one / two, 2)
    if settings:
        spark = open_session("bench-tune", SparkSettings(f"local-cluster[2,1,{EXECUTOR_MEGABYTES}]", "1g", "64m"))
        ladder = ladder_of(played, SchedulingSettings(), REPLAYS)
        started = time.perf_counter()
        outcomes = climb(chosen[:settings], ladder, 0, play_on(spark, played, Prices(), print))
        result |= {"settings": settings, "tune_seconds": round(time.perf_counter() - started, 1)}
        result["best_change_percent"] = round(standings(outcomes, ladder)[0].change_percent, 1)
        spark.stop()
    print(json.dumps(result))


if __name__ == "__main__":
    typer.run(main)
