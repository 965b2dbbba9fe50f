"""What the pipeline makes of a recorded real run (`pipeline/recorded`): the tables kept in `pipeline/golden`.

Run as a program (`make golden`) it makes them anew; read the change before you keep it.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from storm_pipeline import gold
from storm_pipeline.jobs import evaluate, profile
from storm_pipeline.jobs.ingest import Intake
from storm_pipeline.jobs.traffic import TrafficJob
from storm_pipeline.lake import Lake, days_of, read
from storm_pipeline.schemas import GAPS, HEAVIEST_PAIRS, KEY_SKEW, QUALITY, TRAFFIC, TRAFFIC_SHARE, DerivedTable
from storm_pipeline.spark import SparkSettings, open_session
from storm_pipeline.transforms.effects import Around
from tiny_spark import TINY_FRAMES

RECORDED = Path(__file__).parent / "pipeline" / "recorded"
GOLDEN = Path(__file__).parent / "pipeline" / "golden"
CLUSTER = "recorded"
AFTERWARDS = datetime(2026, 11, 23, tzinfo=UTC)
"""The run was recorded before, whatever the clock of this machine says."""
WINDOWS = ("1 minute", "10 minutes")
AROUND = Around(60.0, 3)
HEAVIEST = 3
FIGURES = 6
"""Significant digits: sums of the same numbers in another order differ in the last of theirs."""
TABLES: tuple[DerivedTable, ...] = (
    TRAFFIC["component"],
    TRAFFIC["supervisor"],
    TRAFFIC_SHARE,
    HEAVIEST_PAIRS,
    KEY_SKEW,
    gold.COMPONENT_PROFILE,
    gold.RESTARTS,
    gold.PLAN_EFFECTS,
    gold.PREDICTION_ERRORS,
    gold.LEAGUE,
    gold.RESTART_COSTS,
    GAPS,
)

Rows = list[dict[str, Any]]


def made_of_recorded(spark: SparkSession, folder: Path) -> Mapping[str, Rows]:
    """Run ingest, traffic, profile and evaluate on the recorded run, with `folder` for the lake; their tables' rows."""
    lake = Lake(str(folder), str(RECORDED))
    Intake(lake, now=AFTERWARDS).run(spark, lambda *_: None)
    job = TrafficJob(spark, lake, HEAVIEST, WINDOWS)
    for day in days_of(spark, lake.silver("pairs"), CLUSTER):
        job.do_day(day, lambda _: None)
    profile.run(spark, lake, CLUSTER)
    evaluate.run(spark, lake, CLUSTER, AROUND)
    quality = QUALITY.name, _rows(spark, lake.silver(QUALITY.name), QUALITY, without=("files", "stream"))
    return dict([quality, *((table.name, _rows(spark, lake.gold(table.name), table)) for table in TABLES)])


def golden() -> Mapping[str, Rows]:
    """The tables that are kept."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(GOLDEN.glob("*.json"))}


def _rows(spark: SparkSession, path: str, table: DerivedTable, without: tuple[str, ...] = ()) -> Rows:
    found = [row.asDict() for row in read(spark, path, table).drop(*without).collect()]
    plain = [{key: _plain(value) for key, value in row.items()} for row in found]
    return sorted(plain, key=lambda row: json.dumps(row, sort_keys=True))


def _plain(value: Any) -> Any:
    """As JSON gives it back."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    return float(f"{value:.{FIGURES}g}") if isinstance(value, float) else value


def _lines(rows: Rows) -> Iterator[str]:
    """A row on each line, so that a change reads well."""
    yield "["
    for number, row in enumerate(rows, start=1):
        yield " " + json.dumps(row, sort_keys=True) + ("," if number < len(rows) else "")
    yield "]\n"


def main() -> None:
    spark = open_session("golden", SparkSettings("local[2]", heap="1g", off_heap="256m", extra=TINY_FRAMES))
    with tempfile.TemporaryDirectory() as folder:
        made = made_of_recorded(spark, Path(folder))
    spark.stop()
    shutil.rmtree(GOLDEN, ignore_errors=True)
    GOLDEN.mkdir()
    for name, rows in made.items():
        (GOLDEN / f"{name}.json").write_text("\n".join(_lines(rows)), encoding="utf-8")


if __name__ == "__main__":
    main()
