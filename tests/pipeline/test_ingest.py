"""Bronze to silver, on a history recorded from the simulator."""

from __future__ import annotations

import os
import queue
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import types as t

from bronze_files import CLUSTER, FOLDER, break_page, bronze, change_type, lay, naive, run, silver, wanted
from history_scene import record
from storm_operator.core.history_tables import EXECUTORS, PAIRS, PERIODS, SCHEMA_VERSION, TABLES
from storm_pipeline import lake as lake_module
from storm_pipeline.bronze import MISPLACED, UNREADABLE
from storm_pipeline.ingestion import AHEAD, CONFLICT, LEAST_BYTES_TAKEN_OVER, Tally
from storm_pipeline.jobs.ingest import Intake, TablesGone
from storm_pipeline.lake import Lake, prepare, read
from storm_pipeline.schemas import GAPS, QUALITY, QUARANTINE, SILVER
from storm_pipeline.transforms.clean import YET_TO_COME

PERIOD_COUNT = 6
PATIENCE_SECONDS = 120.0
YEAR_12000_MICROSECONDS = 316_516_000_000_000_000


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("recorded")
    record(root, periods=PERIOD_COUNT, cluster=CLUSTER)
    return root


def test_whole_periods_are_taken_as_they_are(spark: SparkSession, recorded: Path, tmp_path: Path) -> None:
    rows = bronze(recorded, PAIRS)
    lay(tmp_path, rows, "one")
    told = run(spark, tmp_path)
    assert silver(spark, tmp_path) == wanted(rows)
    assert (told["pairs"].rows_read, told["pairs"].duplicates, told["pairs"].quarantined) == (len(rows), 0, 0)
    assert run(spark, tmp_path) == {}  # nothing new
    assert silver(spark, tmp_path) == wanted(rows)


def whole_files(root: Path) -> list[bytes]:
    """What the table of pairs has taken over as it was."""
    return [path.read_bytes() for path in Path(Lake(str(root)).silver("pairs")).rglob("whole-*.parquet")]


def test_a_whole_file_is_taken_over_as_it_is(spark: SparkSession, recorded: Path, tmp_path: Path) -> None:
    rows = bronze(recorded, PAIRS)
    half = [row for row in rows if row["period_end"] <= rows[len(rows) // 2]["period_end"]]
    laid = lay(tmp_path, half, "one")
    assert run(spark, tmp_path, take_over_bytes=0)["pairs"].rows_kept == len(half)
    assert silver(spark, tmp_path) == wanted(half)
    laid_later = lay(tmp_path, rows[len(half) :], "two")
    run(spark, tmp_path, take_over_bytes=0)
    assert silver(spark, tmp_path) == wanted(rows)
    assert sorted(whole_files(tmp_path)) == sorted(path.read_bytes() for path in (laid, laid_later))
    table = read(spark, Lake(str(tmp_path)).silver("pairs"), SILVER["pairs"])
    for row in (half[0], half[-1], rows[-1]):  # files are found by the times that the table says they have
        same = [one for one in rows if one["period_end"] == row["period_end"]]
        assert table.where(table["period_end"] == row["period_end"].replace(tzinfo=None)).count() == len(same)
    lay(tmp_path, rows[: len(half)], "again")
    assert run(spark, tmp_path, take_over_bytes=0)["pairs"].duplicates == len(half)
    assert silver(spark, tmp_path) == wanted(rows)


def test_files_that_need_cleaning_or_are_small_are_not_taken_over(
    spark: SparkSession, recorded: Path, tmp_path: Path
) -> None:
    rows = bronze(recorded, PAIRS)
    first = [row for row in rows if row["period_end"] == rows[0]["period_end"]]
    rest = rows[len(first) :]
    lay(tmp_path, [*first, first[0]], "twice")
    lay(tmp_path, [*rest, {**rest[0], "tuples_per_second": -1.0}], "wrong")
    told = run(spark, tmp_path, take_over_bytes=0)["pairs"]
    assert (told.rows_kept, told.duplicates, told.quarantined) == (len(rows), 1, 1)
    assert silver(spark, tmp_path) == wanted(rows)
    other = tmp_path / "other"
    small = lay(other, rows, "one")
    run(spark, other, take_over_bytes=small.stat().st_size + 1)
    assert silver(spark, other) == wanted(rows)
    assert whole_files(tmp_path) == whole_files(other) == []


@pytest.mark.parametrize("take_over_bytes", [0, LEAST_BYTES_TAKEN_OVER])
def test_neither_order_nor_repetition_of_input_changes_what_comes_out(
    take_over_bytes: int, spark: SparkSession, recorded: Path, tmp_path: Path
) -> None:
    rows = bronze(recorded, PAIRS)
    third = len(rows) // 3
    lay(tmp_path, rows[::-1][:third] + rows[::-1][: third // 2], "a")  # part of it, some twice
    first = run(spark, tmp_path, take_over_bytes=take_over_bytes)["pairs"]
    lay(tmp_path, rows[third:] + rows[-5:], "b")  # overlaps with the first batch
    lay(tmp_path, rows[:third], "c")
    second = run(spark, tmp_path, take_over_bytes=take_over_bytes)["pairs"]
    assert silver(spark, tmp_path) == wanted(rows)
    assert first.rows_kept + second.rows_kept == len(rows)
    assert first.duplicates == third // 2


def test_bad_rows_are_set_aside_with_their_reason(spark: SparkSession, recorded: Path, tmp_path: Path) -> None:
    rows = bronze(recorded, PAIRS)
    spoilt = [
        {**rows[0], "tuples_per_second": float("nan")},
        {**rows[1], "tuples_per_second": -1.0},
        {**rows[2], "topology_id": None},
        {**rows[3], "schema_version": 99},
        {**rows[4], "tuples_per_second": rows[4]["tuples_per_second"] + 1.0},
        {**rows[5], "tuples_per_second": 1e300},
    ]
    lay(tmp_path, spoilt + rows[4:5] + rows[6:], "one")
    (tmp_path / "bronze/pairs" / FOLDER / "junk.parquet").write_bytes(b"PAR1 no more")
    told = run(spark, tmp_path)["pairs"]
    quarantine = read(spark, Lake(str(tmp_path)).silver("quarantine"), QUARANTINE).collect()
    reasons = sorted(row["reason"].partition(": file:")[0] for row in quarantine)
    assert reasons == sorted(
        [
            "tuples_per_second is not a finite number",
            "tuples_per_second is below 0",
            "tuples_per_second is beyond 1e+15",
            "topology_id is missing",
            f"schema_version is newer than {SCHEMA_VERSION}: upgrade the pipeline",
            CONFLICT,
            UNREADABLE,
        ]
    )
    assert told.rows_read == told.rows_kept + told.quarantined
    assert len(silver(spark, tmp_path)) == len(rows) - 5
    quality = read(spark, Lake(str(tmp_path)).silver("quality"), QUALITY).collect()
    assert [row["quarantined"] for row in quality] == [6]


def test_a_row_of_a_year_that_python_has_no_time_for_is_set_aside(
    spark: SparkSession, recorded: Path, tmp_path: Path
) -> None:
    rows = bronze(recorded, PAIRS)
    spoilt = pq.read_table(lay(tmp_path, rows, "one"))
    ends = spoilt["period_end"].cast(pa.int64()).to_pylist()
    ends[-1] = YEAR_12000_MICROSECONDS
    place = spoilt.column_names.index("period_end")
    times = pa.array(ends, pa.timestamp("us", tz="UTC"))
    pq.write_table(spoilt.set_column(place, "period_end", times), tmp_path / "bronze/pairs" / FOLDER / "one.parquet")
    told = run(spark, tmp_path)["pairs"]
    assert (told.rows_kept, told.reasons) == (len(rows) - 1, {"period_end is not of its folder's date": 1})
    assert silver(spark, tmp_path) == wanted(rows[:-1])


@pytest.mark.parametrize("take_over_bytes", [0, LEAST_BYTES_TAKEN_OVER])
@pytest.mark.parametrize(("spoil", "column"), [(break_page, "target_supervisor"), (change_type, "tuples_per_second")])
def test_a_file_that_cannot_be_read_whole_is_set_aside_and_the_others_are_not(
    spoil: Callable[[Path, str], None],
    column: str,
    take_over_bytes: int,
    spark: SparkSession,
    recorded: Path,
    tmp_path: Path,
) -> None:
    rows = bronze(recorded, PAIRS)
    half = len(rows) // 2
    lay(tmp_path, rows[:half], "sound")
    spoilt = lay(tmp_path, rows[half:], "spoilt")
    spoil(spoilt, column)
    told = run(spark, tmp_path, take_over_bytes=take_over_bytes)["pairs"]
    assert (told.rows_read, told.rows_kept, told.unreadable) == (half, half, 1)
    assert silver(spark, tmp_path) == wanted(rows[:half])
    run(spark, tmp_path)
    (aside,) = read(spark, Lake(str(tmp_path)).silver("quarantine"), QUARANTINE).collect()
    assert aside["reason"].startswith(UNREADABLE)
    assert (aside["row"].endswith(spoilt.name), aside["table"], aside["cluster"]) == (True, "pairs", CLUSTER)


def test_files_are_taken_in_however_long_ago_they_were_written(
    spark: SparkSession, recorded: Path, tmp_path: Path
) -> None:
    rows = bronze(recorded, PAIRS)
    half = len(rows) // 2
    lay(tmp_path, rows[half:], "new")
    run(spark, tmp_path)
    copied = lay(tmp_path, rows[:half], "copied")
    written = copied.stat().st_mtime - timedelta(days=30).total_seconds()
    os.utime(copied, (written, written))
    assert run(spark, tmp_path)["pairs"].rows_kept == half
    assert silver(spark, tmp_path) == wanted(rows)


def test_what_comes_too_late_is_set_aside(spark: SparkSession, recorded: Path, tmp_path: Path) -> None:
    rows = bronze(recorded, PERIODS)
    lay(tmp_path, rows[2:], "new", PERIODS)
    run(spark, tmp_path, (PERIODS,), late_after=timedelta(seconds=45))
    lay(tmp_path, rows[:2], "old", PERIODS)
    told = run(spark, tmp_path, (PERIODS,), late_after=timedelta(seconds=45))["periods"]
    assert dict(told.reasons) == {"too late": 1}
    assert len(silver(spark, tmp_path, PERIODS)) == len(rows) - 1


def test_nothing_is_too_late_for_a_table_that_is_made_anew_by_smaller_batches(
    spark: SparkSession, recorded: Path, tmp_path: Path
) -> None:
    rows, late = bronze(recorded, PERIODS), timedelta(seconds=15)
    for number, row in enumerate(rows):
        written = lay(tmp_path, [row], f"period-{number}", PERIODS).stat().st_mtime + number
        os.utime(tmp_path / "bronze" / PERIODS.name / FOLDER / f"period-{number}.parquet", (written, written))
    run(spark, tmp_path, (PERIODS,), late_after=late)
    for gone in ("checkpoints/ingest-periods", "silver/periods"):
        shutil.rmtree(tmp_path / gone)
    run(spark, tmp_path, (PERIODS,), late_after=late, files_in_batch=1)
    assert silver(spark, tmp_path, PERIODS) == wanted(rows)


def test_a_clock_that_runs_ahead_makes_nothing_too_late(spark: SparkSession, recorded: Path, tmp_path: Path) -> None:
    rows = bronze(recorded, PERIODS)
    late, now = timedelta(minutes=30), rows[-1]["period_end"]
    last, wrong = ({**rows[-1], "period_end": now + AHEAD + timedelta(seconds=more)} for more in (0, 1))
    lay(tmp_path, [rows[0], wrong], "ahead", PERIODS)
    told = run(spark, tmp_path, (PERIODS,), late_after=late, now=now)["periods"]
    assert (told.rows_kept, dict(told.reasons)) == (1, {YET_TO_COME: 1})
    lay(tmp_path, rows[1:3], "sound", PERIODS)
    assert run(spark, tmp_path, (PERIODS,), late_after=late, now=now)["periods"].rows_kept == 2
    lay(tmp_path, [wrong], "as it was taken in before", PERIODS)
    assert run(spark, tmp_path, (PERIODS,), late_after=late, now=wrong["period_end"])["periods"].rows_kept == 1
    lay(tmp_path, [*rows[3:], last], "and after it", PERIODS)
    assert run(spark, tmp_path, (PERIODS,), late_after=late, now=now)["periods"].quarantined == 0


def test_it_is_now_unless_said_otherwise(spark: SparkSession, recorded: Path, tmp_path: Path) -> None:
    row = bronze(recorded, PERIODS)[0]
    lay(tmp_path, [{**row, "period_end": row["period_end"].replace(year=2200)}], "far off", PERIODS)
    folder = tmp_path / "bronze" / PERIODS.name / FOLDER
    folder.rename(folder.with_name("date=2200-01-01"))
    assert dict(run(spark, tmp_path, (PERIODS,))["periods"].reasons) == {YET_TO_COME: 1}


def test_a_file_of_the_version_before_is_read(spark: SparkSession, recorded: Path, tmp_path: Path) -> None:
    path = lay(tmp_path, bronze(recorded, EXECUTORS), "one", EXECUTORS)
    newer = {column.name for column in EXECUTORS.columns if column.since > 1}
    older = pq.read_table(path).drop_columns(sorted(newer))
    older = older.set_column(0, "schema_version", pa.array([1] * older.num_rows))
    pq.write_table(older, path)
    told = run(spark, tmp_path, (EXECUTORS,))["executors"]
    assert told.rows_kept == older.num_rows
    read_back = read(spark, Lake(str(tmp_path)).silver("executors"), SILVER["executors"])
    assert newer
    assert read_back.where(" or ".join(f"{name} is not null" for name in newer)).count() == 0


def test_gaps_are_said(spark: SparkSession, recorded: Path, tmp_path: Path) -> None:
    rows = bronze(recorded, PERIODS)
    rows[4]["dropped_before"] = 1
    lay(tmp_path, [rows[0], rows[1], rows[4], rows[5]], "one", PERIODS)
    run(spark, tmp_path, (PERIODS,))
    gaps = read(spark, Lake(str(tmp_path)).gold("gaps"), GAPS).collect()
    assert [(row["missing_periods"], row["dropped"], row["reason"]) for row in gaps] == [
        (2, 1, "the recorder was too slow or failed")
    ]
    assert gaps[0]["gap_start"] == naive(rows[1]["period_end"])


@pytest.mark.parametrize(("away_seconds", "missing"), [(603, 59), (33, 2), (19, None)])
def test_periods_missing_before_a_restart_are_as_long_as_those_before_them(
    spark: SparkSession, recorded: Path, tmp_path: Path, away_seconds: int, missing: int | None
) -> None:
    """The first pass of a recorder finds no reading of one before, and counts as long as it looks for them: 15 s."""
    rows = bronze(recorded, PERIODS)[:2]
    end = rows[0]["period_end"].replace(hour=12)
    rows[0] |= {"period_end": end, "period_seconds": 10.0, "sequence": 500}
    rows[1] |= {"period_end": end + timedelta(seconds=away_seconds), "period_seconds": 15.0, "sequence": 0}
    lay(tmp_path, rows, "one", PERIODS)
    run(spark, tmp_path, (PERIODS,))
    gaps = read(spark, Lake(str(tmp_path)).gold("gaps"), GAPS).collect()
    assert [row["missing_periods"] for row in gaps] == ([] if missing is None else [missing])


def test_every_table_of_a_recorded_history_is_taken_in(spark: SparkSession, recorded: Path, tmp_path: Path) -> None:
    lake = Lake(str(tmp_path), str(recorded))
    told: dict[str, Tally] = {}
    Intake(lake).run(spark, lambda table, _, tallies: told.update({table: tallies[CLUSTER]}))
    assert set(told) == {table.name for table in TABLES if (recorded / table.name).exists()}
    assert all(tally.rows_kept == tally.rows_read > 0 for tally in told.values())
    files = [path for row in read(spark, lake.silver("quality"), QUALITY).collect() for path in row["files"]]
    assert sorted(unquote(path.rpartition("/")[2]) for path in files) == sorted(
        path.name for path in recorded.rglob("*.parquet")
    )
    assert not Path(lake.silver("quarantine")).exists()


def test_tables_that_are_taken_in_together_widen_an_older_one_once(
    spark: SparkSession, recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Lake(str(tmp_path)).silver(QUALITY.name)
    fields = [field for field in QUALITY.schema.fields if field.name != "files"]
    prepare(spark, path, replace(QUALITY, schema=t.StructType(fields)))
    widen, two = lake_module._widen, threading.Barrier(2)

    def widen_together(found: Any, *more: Any) -> None:
        if "files" not in found.columns:
            with suppress(threading.BrokenBarrierError):
                two.wait(5.0)
        widen(found, *more)

    monkeypatch.setattr(lake_module, "_widen", widen_together)
    tables = (PERIODS, PAIRS, EXECUTORS)
    for table in tables:
        lay(tmp_path, bronze(recorded, table), "one", table)
    run(spark, tmp_path, tables)
    assert {row["table"] for row in read(spark, path, QUALITY).collect() if row["files"]} == {
        one.name for one in tables
    }


def test_followed_tables_may_come_later_and_gaps_are_said_meanwhile(
    spark: SparkSession, recorded: Path, tmp_path: Path
) -> None:
    lake, heard = Lake(str(tmp_path)), queue.Queue[str]()
    periods = bronze(recorded, PERIODS)
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(Intake(lake).follow, spark, lambda table, *_: heard.put(table), "1 second")
        try:
            lay(tmp_path, [*periods[:2], *periods[4:]], "one", PERIODS)
            assert heard.get(timeout=PATIENCE_SECONDS) == "periods"
            lay(tmp_path, bronze(recorded, PAIRS), "one")
            assert heard.get(timeout=PATIENCE_SECONDS) == "pairs"
            give_up = time.monotonic() + PATIENCE_SECONDS
            while read(spark, lake.gold(GAPS.name), GAPS).count() == 0:
                assert time.monotonic() < give_up
                time.sleep(0.1)
            assert not following.done()
        finally:
            for stream in spark.streams.active:
                stream.stop()
    following.result()
    assert silver(spark, tmp_path) == wanted(bronze(recorded, PAIRS))


def test_a_stream_that_fails_ends_all(spark: SparkSession, recorded: Path, tmp_path: Path) -> None:
    for table in (PERIODS, PAIRS):
        lay(tmp_path, bronze(recorded, table), "one", table)

    def fail(table: str, *_: Any) -> None:
        if table == PAIRS.name:
            raise RuntimeError("no more of these")

    with pytest.raises(StreamingQueryException, match="no more of these"):
        Intake(Lake(str(tmp_path))).follow(spark, fail, "1 second")
    assert not spark.streams.active


@pytest.mark.parametrize(
    "folder",
    [
        ".",
        FOLDER.partition("/")[0],
        f"{FOLDER}/copy",
        "cluster=green/date=yesterday",
        "cluster=green/day=2026-01-01",
        "cluster=/date=2026-01-01",
        "cluster=__HIVE_DEFAULT_PARTITION__/date=2026-01-01",
    ],
)
def test_a_file_that_lies_in_no_clusters_date_is_set_aside_and_the_others_are_not(
    folder: str, spark: SparkSession, recorded: Path, tmp_path: Path
) -> None:
    rows = bronze(recorded, PAIRS)
    sound = lay(tmp_path, rows, "sound")
    misplaced = tmp_path / "bronze" / PAIRS.name / folder / "misplaced.parquet"
    misplaced.parent.mkdir(parents=True, exist_ok=True)
    misplaced.write_bytes(sound.read_bytes())
    run(spark, tmp_path)
    assert silver(spark, tmp_path) == wanted(rows)
    (aside,) = read(spark, Lake(str(tmp_path)).silver("quarantine"), QUARANTINE).collect()
    assert aside["row"].endswith(misplaced.name)
    assert MISPLACED in aside["reason"]


@pytest.mark.parametrize("gone", ["silver", "silver/pairs"])
def test_what_is_gone_of_what_was_taken_in_is_said_and_can_be_taken_in_again(
    gone: str, spark: SparkSession, recorded: Path, tmp_path: Path
) -> None:
    rows = bronze(recorded, PAIRS)
    lay(tmp_path, rows, "one")
    run(spark, tmp_path)
    shutil.rmtree(tmp_path / gone)
    with pytest.raises(TablesGone, match="checkpoints/ingest-pairs"):
        run(spark, tmp_path)
    shutil.rmtree(tmp_path / "checkpoints" / "ingest-pairs")
    run(spark, tmp_path)
    assert silver(spark, tmp_path) == wanted(rows)


def test_a_table_of_which_no_row_was_ever_kept_is_not_gone(spark: SparkSession, recorded: Path, tmp_path: Path) -> None:
    rows = bronze(recorded, PAIRS)
    lay(tmp_path, rows, "broken").write_bytes(b"PAR1 no more")
    run(spark, tmp_path)
    lay(tmp_path, rows, "sound")
    run(spark, tmp_path)
    assert silver(spark, tmp_path) == wanted(rows)


def test_a_lake_that_was_moved_is_read_again_and_stays_as_it_is(
    spark: SparkSession, recorded: Path, tmp_path: Path
) -> None:
    rows = bronze(recorded, PAIRS)
    lay(tmp_path / "here", rows, "one")
    run(spark, tmp_path / "here")
    (tmp_path / "here").rename(tmp_path / "there")
    assert run(spark, tmp_path / "there")["pairs"].duplicates == len(rows)
    assert silver(spark, tmp_path / "there") == wanted(rows)
