"""The three ways to apply a plan, measured on a real cluster: pause, failed tuples, time to running, workers kept.

The count executors of a WordCount move to another supervisor and back, the ways taking turns; the worker with spout and
split stays. Prints a table and, on the last line, JSON.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import threading
import time
from dataclasses import asdict, dataclass
from itertools import pairwise

import typer
from cluster_bench import Bench
from rich.console import Console
from rich.table import Table

from storm_operator.adapters.metrics.page import ScrapeError, fetch_text
from storm_operator.adapters.metrics.scrape import parse_metrics
from storm_operator.core.plan_record import PlanRecord, PlanState
from storm_operator.core.settings import ApplyMethod
from storm_operator.local.build import plugin_jar, workloads_jar
from storm_operator.local.cluster import LocalCluster
from storm_operator.local.spec import LocalClusterSpec

AFTER_SECONDS = 3.0
RATE = 300
MESSAGE_TIMEOUT_SECONDS = 10
EMITTED = "storm_executor_emitted_tuples_total"


@dataclass(frozen=True, slots=True)
class Run:
    """One application of a plan. `pause_seconds`: longest time in which no spout emitted anything."""

    method: str
    pause_seconds: float
    failed_tuples: float
    seconds_to_in_force: float
    seconds_to_running: float
    workers_kept: int
    workers_meant_to_be_kept: int


class EmissionWatch:
    """Polls the spouts' counters while a plan is applied, five times a second."""

    def __init__(self, urls: list[str]) -> None:
        self._urls = urls
        self._stop = threading.Event()
        self._moments: list[float] = []
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> EmissionWatch:
        self._started = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def longest_pause(self) -> float:
        moments = [self._started, *self._moments]
        return max((b - a for a, b in pairwise(moments)), default=0.0)

    def _watch(self) -> None:
        last = -1.0
        while not self._stop.wait(0.2):
            emitted = sum(_spout_emissions(url) for url in self._urls)
            if emitted != last:
                self._moments.append(time.monotonic())
            last = emitted


def _spout_emissions(url: str) -> float:
    try:
        readings = parse_metrics(fetch_text(url, 2.0))
    except ScrapeError:
        return 0.0
    return sum(
        value for key, value in readings.items() if key.name == EMITTED and key.label("component") == "sentences"
    )


def main(repeats: int = 2) -> None:
    """Run each way `repeats` times there and back."""
    console = Console(stderr=True)
    spec = LocalClusterSpec(
        name="bench-apply",
        subnet="10.91.0.0/24",
        plugin_jar=plugin_jar(),
        message_timeout_seconds=MESSAGE_TIMEOUT_SECONDS,
        extra_conf={"storm_operator.metrics.period.ms": 200},
    )
    args = ("--rate", f"steady:{RATE}", "--parallelism", "split=2,count=2", "--workers", "3")
    with LocalCluster(spec) as cluster:
        bench = Bench.submit(cluster, str(workloads_jar()), "words", args, executors=6)
        try:
            runs = _measure(bench, repeats, console)
        finally:
            bench.close()
    _print(runs, console)
    print(json.dumps({"rate_tuples_per_second": RATE, "runs": [asdict(run) for run in runs]}))


def _measure(bench: Bench, repeats: int, console: Console) -> list[Run]:
    bench.apply(bench.layout(1))
    runs = []
    for repeat in range(repeats):
        for method in ApplyMethod:
            for target in (bench.layout(2), bench.layout(1)):
                failures = bench.wait_until_no_tuple_fails(MESSAGE_TIMEOUT_SECONDS + 3.0)
                record = bench.record(target, method)
                with EmissionWatch(list(bench.cluster.agent_urls.values())) as watch:
                    record = bench.assembly.loop.applier.apply(record, lambda _: None)
                    time.sleep(AFTER_SECONDS)
                if record.state is not PlanState.SETTLING:
                    sys.exit(f"{method.value}: {record.message}")
                failed = bench.wait_until_no_tuple_fails(MESSAGE_TIMEOUT_SECONDS + 3.0) - failures
                runs.append(_run(record, watch.longest_pause(), failed))
                console.log(f"repeat {repeat + 1}: {runs[-1]}")
    return runs


def _run(record: PlanRecord, pause_seconds: float, failed_tuples: float) -> Run:
    return Run(
        record.method.value,
        pause_seconds,
        failed_tuples,
        record.seconds_to_in_force or math.nan,
        record.seconds_to_running or math.nan,
        record.workers_kept or 0,
        len(record.plan.kept_workers),
    )


def _print(runs: list[Run], console: Console) -> None:
    table = Table(title=f"{RATE} sentences/s; median (minimum to maximum)")
    for heading in ("method", "runs", "pause, s", "failed tuples", "in force, s", "running, s", "kept"):
        table.add_column(heading)
    for method in ApplyMethod:
        own = [run for run in runs if run.method == method.value]
        if not own:
            continue
        table.add_row(
            method.value,
            str(len(own)),
            _spread([run.pause_seconds for run in own]),
            _spread([run.failed_tuples for run in own]),
            _spread([run.seconds_to_in_force for run in own]),
            _spread([run.seconds_to_running for run in own]),
            f"{sum(run.workers_kept for run in own)} of {sum(run.workers_meant_to_be_kept for run in own)}",
        )
    console.print(table)


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


if __name__ == "__main__":
    typer.run(main)
