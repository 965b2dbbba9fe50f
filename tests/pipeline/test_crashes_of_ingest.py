"""Ingest cut short in each of its writes, and run again: its tables are those of a run that nothing disturbed.

One after the other: to Spark the streams of all crashes are the same stream.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bronze_files import CLUSTER, break_page, bronze, lay, silver, wanted
from crashes import contents, crashes_of, gone_on_from
from history_scene import record
from storm_operator.core.history_tables import PAIRS, PERIODS, Table
from storm_pipeline.ingestion import LEAST_BYTES_TAKEN_OVER
from storm_pipeline.jobs.ingest import Intake
from storm_pipeline.lake import Lake

WRITES_OF_INGEST = [
    "before-save",  # quality
    "before-save",  # the table, empty
    "before-_copy",
    "before-_commit",
    "before-save",  # quarantine
    "before-save",  # rows
    "before-sql",  # merged ones
    "after-take_in",
]
WRITES_OF_MORE = [
    "before-save",  # quality
    "before-save",  # quarantine: the file
    "before-save",  # quarantine: rows
    "before-save",  # rows
    "before-sql",  # all known: nothing to merge, so that this is the end of the batch, too
]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("recorded")
    record(root, periods=5, cluster=CLUSTER)
    return root


def lay_pairs(root: Path, rows: list[dict[str, Any]]) -> Iterator[list[str]]:
    """Two batches one after the other, each followed by its writes: together they need every kind that there is."""
    first, second, third, last = (list(of_period) for _, of_period in groupby(rows, itemgetter("period_end")))
    lay(root, first, "taken-over")
    lay(root, [*second, second[0], *third, {**third[0], "tuples_per_second": -1.0}], "cleaned")
    yield WRITES_OF_INGEST
    lay(root, [*last, *first, {**first[0], "tuples_per_second": 1e6}], "new-and-known")
    break_page(lay(root, rows, "broken"), "target_supervisor")
    yield WRITES_OF_MORE


def ingest(spark: SparkSession, history: Path, table: Table, lake: Path) -> None:
    """All that is in `history`; pairs that need no cleaning are taken over."""
    least_bytes = 0 if table is PAIRS else LEAST_BYTES_TAKEN_OVER
    intake = Intake(Lake(str(lake), str(history / "bronze")), take_over_bytes=least_bytes)
    intake.run(spark, lambda *_: None, (table,))


@pytest.mark.timeout(3600)  # CI gives it what CPU others leave
def test_ingest_cut_short_in_any_write(spark: SparkSession, recorded: Path, tmp_path: Path) -> None:
    rows = bronze(recorded, PAIRS)
    job, lake = partial(ingest, spark, tmp_path, PAIRS), tmp_path / "lake"
    lake.mkdir()
    for number, writes in enumerate(lay_pairs(tmp_path, rows)):
        with crashes_of(lake, tmp_path / f"crashes-{number}") as crashes:
            job(lake)
        assert [crash.name.partition("-")[2] for crash in crashes] == writes
        undisturbed = contents(lake)
        assert gone_on_from(crashes, job) == {crash.name: undisturbed for crash in crashes}
    assert silver(spark, lake) == wanted(rows)
    reasons = [json.loads(row)[1] for row in undisturbed["silver/quarantine"]]
    assert len(reasons) == 3, "a row that is wrong, one that says otherwise, a file"


@pytest.mark.timeout(3600)  # CI gives it what CPU others leave
def test_gaps_cut_short_in_any_write(spark: SparkSession, recorded: Path, tmp_path: Path) -> None:
    first, _, *others = bronze(recorded, PERIODS)
    lay(tmp_path, [first, *others], "one", PERIODS)
    job, lake = partial(ingest, spark, tmp_path, PERIODS), tmp_path / "lake"
    lake.mkdir()
    with crashes_of(lake, tmp_path / "crashes") as crashes:
        job(lake)
    undisturbed = contents(lake)
    assert len(undisturbed["gold/gaps"]) == 1
    assert gone_on_from(crashes, job) == {crash.name: undisturbed for crash in crashes}
