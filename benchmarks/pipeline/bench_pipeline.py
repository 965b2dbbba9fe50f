"""Rows per second of the data pipeline, beside DuckDB and Polars on the same files; the last line is JSON.

Phases run one after the other, each in a process of its own whose memory is measured; results are kept beside the
data, so that a long run can be done in parts (`--phases`). On a machine that others use too look at CPU-seconds.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from pipeline.generate import generate, rows_of
from storm_operator.core.history_tables import EXECUTORS, PAIRS

GIGABYTE = 1e9
LOOK_SECONDS = 0.2
MASTER = "local[2]"
MADE = ("silver", "gold", "checkpoints")
"""Folders of a lake that jobs write."""
QUERY = """
SELECT count(*), sum(tuples) FROM (
  SELECT epoch_ms(period_end) // 60000 AS minute, topology_id, source_task, target_task,
         source_supervisor, source_port, target_supervisor, target_port,
         sum(tuples_per_second * period_seconds) AS tuples, sum(period_seconds) AS measured_seconds
  FROM read_parquet('{files}') GROUP BY ALL)
"""
Answer = tuple[int, float]
"""(groups, tuples): all engines must agree."""


def spark_settings() -> Any:
    from storm_pipeline.spark import SparkSettings

    return SparkSettings(MASTER, heap="2g", off_heap="2g")


def traffic_spark(folder: Path) -> Answer:
    from pyspark.sql import functions as f

    from storm_pipeline.schemas import BRONZE, bronze_schema
    from storm_pipeline.spark import open_session
    from storm_pipeline.transforms.spans import SECONDS, TUPLES, by_span

    spark = open_session("bench", spark_settings())
    pairs = spark.read.schema(bronze_schema(BRONZE["pairs"])).parquet(str(folder / "bronze/pairs"))
    started()
    spans = by_span(pairs)
    row = spans.agg(*[f.count(name) for name in SECONDS], *[f.sum(name) for name in TUPLES]).collect()[0]
    ended()
    counts, sums = row[: len(SECONDS)], row[len(SECONDS) :]
    return sum(counts), math.fsum(tuples for tuples in sums if tuples is not None)


def traffic_duckdb(folder: Path) -> Answer:
    import duckdb

    connection = duckdb.connect(config={"threads": 2, "memory_limit": "5GB", "temp_directory": str(folder / "spill")})
    started()
    row = connection.execute(QUERY.format(files=f"{folder}/bronze/pairs/**/*.parquet")).fetchall()[0]
    ended()
    return int(row[0]), float(row[1])


def traffic_polars(folder: Path) -> Answer:
    import polars as pl

    keys = ["topology_id", "source_task", "target_task", "source_supervisor", "source_port", "target_supervisor"]
    started()
    sums = (
        pl.scan_parquet(f"{folder}/bronze/pairs/**/*.parquet", hive_partitioning=False)
        .group_by(pl.col("period_end").dt.epoch("s") // 60, *keys, "target_port")
        .agg(
            (pl.col("tuples_per_second") * pl.col("period_seconds")).sum().alias("tuples"),
            pl.col("period_seconds").sum(),
        )
        .select(pl.len().alias("groups"), pl.col("tuples").sum())
        .collect(engine="streaming")
    )
    ended()
    return int(sums["groups"][0]), float(sums["tuples"][0])


def ingest(folder: Path) -> Answer:
    from storm_pipeline.jobs.ingest import Intake
    from storm_pipeline.lake import Lake
    from storm_pipeline.spark import open_session

    for made in MADE:
        shutil.rmtree(folder / made, ignore_errors=True)
    spark = open_session("bench", spark_settings())
    kept = []
    started()
    Intake(Lake(str(folder))).run(spark, lambda table, _, tallies: kept.append((table, tallies["bench"].rows_kept)))
    ended()
    return sum(rows for table, rows in kept if table == "pairs"), 0.0


def tables(folder: Path) -> Answer:
    from storm_pipeline.jobs.traffic import TrafficJob
    from storm_pipeline.lake import Lake, days_of, read
    from storm_pipeline.schemas import TRAFFIC
    from storm_pipeline.spark import open_session

    spark = open_session("bench", spark_settings())
    job = TrafficJob(spark, Lake(str(folder)))
    started()
    for day in days_of(spark, job.lake.silver("pairs")):
        job.do_day(day, lambda _: None)
    ended()
    rows = read(spark, job.lake.gold("traffic_executor"), TRAFFIC["executor"]).where("window = '1 minute'")
    row = rows.selectExpr("count(*)", "sum(tuples)").collect()[0]
    return int(row[0]), float(row[1])


def profile(folder: Path) -> Answer:
    return command_line("profile", str(folder), "--master", MASTER)


def together(folder: Path) -> Answer:
    """Ingest, traffic and profile in one session, as somebody would run them; its start counts."""
    for made in MADE:
        shutil.rmtree(folder / made, ignore_errors=True)
    return command_line("run", str(folder), "ingest", "traffic", "profile", "--master", MASTER)


def command_line(*words: str) -> Answer:
    """A command of `storm-pipeline` in this process, whose Java lives on until its CPU-seconds have been read."""
    from storm_pipeline.cli import app

    started()
    failed = app(list(words), standalone_mode=False)
    ended()
    if failed:
        raise SystemExit(f"storm-pipeline {' '.join(words)} ended with {failed}")
    return 0, 0.0


PHASES: dict[str, Callable[[Path], Answer]] = {
    "traffic": traffic_spark,
    "duckdb": traffic_duckdb,
    "polars": traffic_polars,
    "ingest": ingest,
    "tables": tables,
    "profile": profile,
    "together": together,
}
AGREE = ("traffic", "duckdb", "polars", "tables")
_clock: dict[str, float] = {}


def started() -> None:
    _clock["wall"], _clock["cpu"] = time.perf_counter(), cpu_seconds()


def ended() -> None:
    _clock["wall"], _clock["cpu"] = time.perf_counter() - _clock["wall"], cpu_seconds() - _clock["cpu"]


def cpu_seconds() -> float:
    """Of this process and those that it started."""
    me = psutil.Process()
    times = [process.cpu_times() for process in (me, *me.children(recursive=True))]
    return sum(one.user + one.system for one in times) + sum(
        (one.children_user + one.children_system) for one in times[:1]
    )


@contextmanager
def watched_memory() -> Any:
    """The most memory that this process and those that it started had together, in the list's one item."""
    peak, over = [0.0], threading.Event()

    def watch() -> None:
        me = psutil.Process()
        while not over.wait(LOOK_SECONDS):
            together = 0.0
            for process in (me, *me.children(recursive=True)):
                try:
                    together += process.memory_info().rss
                except psutil.Error:
                    continue
            peak[0] = max(peak[0], together)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        over.set()
        thread.join()


def run_phase(name: str, folder: Path) -> None:
    with watched_memory() as peak:
        groups, tuples = PHASES[name](folder)
    result = {"seconds": _clock["wall"], "cpu_seconds": _clock["cpu"], "peak_gb": peak[0] / GIGABYTE}
    result |= {"groups": groups, "tuples": tuples}
    (folder / f"{name}.json").write_text(json.dumps(result), encoding="utf-8")


def summary(folder: Path) -> dict[str, Any]:
    """All results that there are, as rates over pair-rows."""
    rows = rows_of(folder / "bronze", PAIRS)
    found = {name: json.loads(path.read_text()) for name in PHASES if (path := folder / f"{name}.json").exists()}
    agreed = [found[name] for name in AGREE if name in found]
    if any(one["groups"] != agreed[0]["groups"] for one in agreed) or any(
        abs(one["tuples"] / agreed[0]["tuples"] - 1.0) > 1e-9 for one in agreed
    ):
        raise SystemExit(f"engines disagree: {[(one['groups'], one['tuples']) for one in agreed]}")
    rates = {name: rows / one["seconds"] for name, one in found.items()}
    return {
        "rows": rows,
        "executor_rows": rows_of(folder / "bronze", EXECUTORS),
        "bytes_per_pair_row": sum(p.stat().st_size for p in (folder / "bronze/pairs").rglob("*.parquet")) / rows,
        "rows_per_second": rates.get("traffic"),
        "duckdb_rows_per_second": rates.get("duckdb"),
        "polars_rows_per_second": rates.get("polars"),
        "pipeline_rows_per_second": rates.get("together"),
        "without_profile_rows_per_second": (
            rows / sum(found[name]["seconds"] for name in ("ingest", "tables")) if "tables" in found else None
        ),
        "rows_per_cpu_second": {name: rows / one["cpu_seconds"] for name, one in found.items()},
        "seconds": {name: one["seconds"] for name, one in found.items()},
        "peak_gb": {name: one["peak_gb"] for name, one in found.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="pair-rows")
    parser.add_argument("--folder", type=Path, default=Path("build/bench-pipeline"))
    parser.add_argument("--phases", nargs="+", default=list(PHASES), choices=list(PHASES), help="only these")
    parser.add_argument("--in-process", help=argparse.SUPPRESS)
    given = parser.parse_args()
    folder = (given.folder / str(given.rows)).absolute()
    if given.in_process:
        run_phase(given.in_process, folder)
        return
    if not (folder / "generated").exists():
        shutil.rmtree(folder, ignore_errors=True)
        print(f"generating {given.rows:,} pair-rows", flush=True)
        generate(folder / "bronze", given.rows)
        (folder / "generated").touch()
    for name in given.phases:
        command = [sys.executable, "-m", "pipeline.bench_pipeline", "--rows", str(given.rows)]
        subprocess.run([*command, "--folder", str(given.folder), "--in-process", name], check=True)
        result = json.loads((folder / f"{name}.json").read_text())
        print(
            f"{name}: {result['seconds']:.1f} s, {result['cpu_seconds']:.1f} CPU-seconds, {result['peak_gb']:.1f} GB",
            flush=True,
        )
    print(json.dumps(summary(folder)))


if __name__ == "__main__":
    main()
