"""Ingest really killed in the middle of a batch, and what comes again; `test_crashes` cuts it short in any write."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from bronze_files import CLUSTER, bronze, lay, naive, run, silver, wanted
from history_scene import record
from storm_operator.core.history_tables import PAIRS
from storm_pipeline import ingestion
from storm_pipeline.lake import Lake
from storm_pipeline.schemas import SILVER
from storm_pipeline.whole_files import WholeFile, take_over
from tiny_spark import as_options

PATIENCE_SECONDS = 200.0


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    root = tmp_path_factory.mktemp("recorded")
    record(root, periods=4, cluster=CLUSTER)
    return bronze(root, PAIRS)


class Cut(Exception):
    """The process would be gone."""


def lay_all(root: Path, rows: list[dict[str, Any]]) -> None:
    """A whole history with rows that are there twice and rows that are wrong."""
    wrong = {**rows[0], "tuples_per_second": -1.0}
    lay(root, [*rows[:5], *rows, wrong], "one")


def test_a_batch_that_comes_again_is_judged_by_the_same_time(
    spark: SparkSession, rows: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_all(tmp_path, rows)
    times: list[datetime] = []

    def cut(batch: ingestion.Batch, *_: Any) -> None:
        times.append(batch.now)
        raise Cut

    monkeypatch.setattr(ingestion.Batch, "take_in", cut)
    for _ in range(2):
        with pytest.raises(StreamingQueryException):
            run(spark, tmp_path)
    assert times[0] == times[1]


@pytest.mark.parametrize("are_all_gone", [False, True], ids=["one of two", "all"])
def test_a_batch_comes_again_when_the_recorders_bound_has_taken_files_of_it(
    are_all_gone: bool, spark: SparkSession, rows: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = len(rows) // 2
    old, kept = lay(tmp_path, rows[:half], "old"), lay(tmp_path, rows[half:], "kept")
    with monkeypatch.context() as cut_short:
        cut_short.setattr(ingestion.Batch, "take_in", Mock(side_effect=Cut))
        with pytest.raises(StreamingQueryException):
            run(spark, tmp_path)
    old.unlink()
    if are_all_gone:
        kept.unlink()
    lay(tmp_path, rows[:1], "new")
    run(spark, tmp_path)
    assert silver(spark, tmp_path) == wanted(rows[:1] if are_all_gone else [*rows[half:], rows[0]])


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
