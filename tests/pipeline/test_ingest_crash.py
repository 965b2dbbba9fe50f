"""Ingest cut short between any two writes, and killed in the middle of a batch: run again, the tables are exact."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from bronze_files import CLUSTER, bronze, lay, naive, run, silver, wanted
from history_scene import record
from storm_operator.core.history_tables import PAIRS
from storm_pipeline import ingestion
from storm_pipeline.lake import Lake, append_once, read
from storm_pipeline.schemas import QUALITY, QUARANTINE, SILVER
from storm_pipeline.whole_files import WholeFile, take_over
from tiny_spark import as_options

WRITES = 3
"""Quality, quarantine, rows."""
PATIENCE_SECONDS = 200.0


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    root = tmp_path_factory.mktemp("recorded")
    record(root, periods=4, cluster=CLUSTER)
    return bronze(root, PAIRS)


class Cut(Exception):
    """The process would be gone."""


def lay_all(root: Path, rows: list[dict[str, Any]]) -> None:
    """A whole history with rows that are there twice and rows that are wrong: every kind of write is needed."""
    wrong = {**rows[0], "tuples_per_second": -1.0}
    lay(root, [*rows[:5], *rows, wrong], "one")


@pytest.mark.parametrize("done", range(WRITES))
def test_cut_short_between_two_writes(
    done: int, spark: SparkSession, rows: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_all(tmp_path, rows)
    left = [done]

    def until_cut(*arguments: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Cut
        append_once(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(ingestion, "append_once", until_cut)
        with pytest.raises(StreamingQueryException):
            run(spark, tmp_path)
    run(spark, tmp_path)
    assert silver(spark, tmp_path) == wanted(rows)
    lake = Lake(str(tmp_path))
    assert read(spark, lake.silver("quarantine"), QUARANTINE).count() == 1
    report = [(row["rows_read"], row["duplicates"]) for row in read(spark, lake.silver("quality"), QUALITY).collect()]
    assert report == [(len(rows) + 6, 5)]


@pytest.mark.parametrize("is_committed", [False, True])
def test_cut_short_around_taking_over(
    is_committed: bool, spark: SparkSession, rows: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = [row for row in rows if row["period_end"] == rows[0]["period_end"]]
    lay(tmp_path, first, "whole")
    lay_all(tmp_path, rows[len(first) :])

    def cut(*arguments: Any) -> None:
        if is_committed:
            take_over(*arguments)
        raise Cut

    with monkeypatch.context() as patch:
        patch.setattr(ingestion, "take_over", cut)
        with pytest.raises(StreamingQueryException):
            run(spark, tmp_path, take_over_bytes=0)
    run(spark, tmp_path, take_over_bytes=0)
    assert silver(spark, tmp_path) == wanted(rows)
    (report,) = read(spark, Lake(str(tmp_path)).silver("quality"), QUALITY).collect()
    assert (report["rows_read"], report["duplicates"], report["quarantined"]) == (len(rows) + 6, 5, 1)


def test_taking_over_again_changes_nothing(spark: SparkSession, rows: list[dict[str, Any]], tmp_path: Path) -> None:
    file = WholeFile(
        str(lay(tmp_path, rows, "one")), CLUSTER, "2026-01-01", len(rows), naive_end(rows[0]), naive_end(rows[-1])
    )
    for _ in range(2):
        take_over(spark, [file], Lake(str(tmp_path)).silver("pairs"), SILVER["pairs"], "writer", 0)
    assert silver(spark, tmp_path) == wanted(rows)


def naive_end(row: dict[str, Any]) -> datetime:
    found = naive(row["period_end"])
    assert isinstance(found, datetime)
    return found


def test_killed_in_the_middle_of_a_batch(spark: SparkSession, rows: list[dict[str, Any]], tmp_path: Path) -> None:
    lay_all(tmp_path, rows)
    options = ["--master", "local[1]", "--heap", "512m", "--off-heap", "128m", *as_options()]
    command = [sys.executable, "-m", "storm_pipeline", "ingest", str(tmp_path), *options]
    with subprocess.Popen(command, start_new_session=True) as process:
        try:
            wait_for(tmp_path / "silver" / "quality" / "_delta_log" / "00000000000000000000.json", process)
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # the program and its JVM
    run(spark, tmp_path)
    assert silver(spark, tmp_path) == wanted(rows)


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    """Until there is such a file: the batch has begun to write."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while not path.exists():
        assert process.poll() is None, "ingest ended before it could be killed"
        assert time.monotonic() < give_up
        time.sleep(0.01)
