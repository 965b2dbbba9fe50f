"""The pipeline's tables and what it reads in an object store, through S3's own protocol (moto's server)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs
from pyspark.sql import SparkSession

from bronze_files import CLUSTER, bronze, silver_of, wanted
from history_scene import record
from learning_scene import CLUSTER as LEARNED_CLUSTER
from learning_scene import CYCLE_SECONDS, lake_of
from s3_server import BUCKET, KEYS, s3_server
from storm_operator.core.history_tables import EXECUTORS, PERIODS, PLANS
from storm_operator.history.files import Files
from storm_pipeline import gold
from storm_pipeline.jobs import evaluate, forecast, profile, report, tune
from storm_pipeline.jobs.ingest import Intake
from storm_pipeline.jobs.traffic import TrafficJob
from storm_pipeline.lake import Lake, days_of, lake_at, read
from storm_pipeline.options import insist_on_writable
from storm_pipeline.publishing import compose_profile, read_findings
from storm_pipeline.reporting.page import write_report
from storm_pipeline.schemas import GAPS, SILVER, TRAFFIC
from storm_pipeline.transforms.effects import Around
from storm_pipeline.transforms.forecasts import Cycle
from storm_pipeline.tuning.candidates import candidates
from storm_pipeline.tuning.halving import Ladder, climb, standings
from storm_pipeline.tuning.reading import read_recording
from storm_pipeline.tuning.replay import Prices


@pytest.fixture(scope="module")
def store(spark: SparkSession) -> Iterator[str]:
    """A bucket, as the recorder names it. Spark knows where it is, with which keys, and goes there ever after."""
    with s3_server() as url:
        settings = {
            "fs.s3a.endpoint": url,
            "fs.s3a.endpoint.region": KEYS["AWS_REGION"],
            "fs.s3a.path.style.access": "true",
            "fs.s3a.access.key": KEYS["AWS_ACCESS_KEY_ID"],
            "fs.s3a.secret.key": KEYS["AWS_SECRET_ACCESS_KEY"],
        }
        hadoop = spark._jsc.hadoopConfiguration()
        for key, value in settings.items():
            hadoop.set(key, value)
        yield f"s3://{BUCKET}"
        for key in settings:
            hadoop.unset(key)


@pytest.fixture
def bucket(store: str, tmp_path: Path) -> str:
    """An empty folder of the test's own."""
    return f"{store}/{tmp_path.name}"


def test_ingest_reads_and_writes_an_object_store(spark: SparkSession, bucket: str, tmp_path: Path) -> None:
    record(tmp_path, periods=4, cluster=CLUSTER)
    fs.copy_files(str(tmp_path / PERIODS.name), f"{bucket}/recorded/{PERIODS.name}")
    lake = lake_at(f"{bucket}/lake", f"{bucket}/recorded")
    assert take_in(spark, lake) == 4
    assert silver_of(spark, lake, PERIODS) == wanted(bronze(tmp_path, PERIODS))
    assert read(spark, lake.gold(GAPS.name), GAPS).count() == 0
    assert take_in(spark, lake) == 0, "how far the stream has come is in the bucket too"


def test_what_is_learned_and_told_lies_in_an_object_store(spark: SparkSession, bucket: str, tmp_path: Path) -> None:
    here = lake_of(spark, tmp_path, periods=24, tables=(EXECUTORS, PLANS))
    fs.copy_files(f"{here.root}/silver", f"{bucket}/lake/silver")
    lake = lake_at(f"{bucket}/lake")
    profile.run(spark, lake, LEARNED_CLUSTER)
    forecast.run(spark, lake, LEARNED_CLUSTER, Cycle(CYCLE_SECONDS, 10.0, phi=3, with_yardsticks=False))
    learned = compose_profile(read_findings(spark, lake, LEARNED_CLUSTER), valid_seconds=60.0)
    assert set(learned.topologies["wordcount"]) >= {"sentences", "split", "count"}
    report.run(spark, lake, LEARNED_CLUSTER, f"{bucket}/learned")
    told = Files.at(f"{bucket}/learned")
    assert b"What components cost" in told.open("report.html").read()
    assert told.open("component-profile.csv").read().startswith(b"topology_name,component,")


def test_traffic_effects_and_settings_are_found_in_an_object_store(
    spark: SparkSession, bucket: str, tmp_path: Path
) -> None:
    here = lake_of(spark, tmp_path, periods=24)
    fs.copy_files(f"{here.root}/silver", f"{bucket}/lake/silver")
    lake = lake_at(f"{bucket}/lake")
    pairs = SILVER["pairs"]
    for day in days_of(spark, lake.silver(pairs.name)):
        TrafficJob(spark, lake).do_day(day, lambda _: None)
    minutes = read(spark, lake.gold("traffic_executor"), TRAFFIC["executor"]).where("window = '1 minute'")
    recorded = read(spark, here.silver(pairs.name), pairs).selectExpr("sum(tuples_per_second * period_seconds)")
    assert minutes.selectExpr("sum(tuples)").collect()[0][0] == pytest.approx(recorded.collect()[0][0])
    evaluate.run(spark, lake, LEARNED_CLUSTER, Around(60.0, 2))
    assert read(spark, lake.gold(gold.LEAGUE.name), gold.LEAGUE).count() == 1
    recording = read_recording(spark, lake, LEARNED_CLUSTER, 0.05)
    ladder = Ladder(recording.seconds, rungs=1, keep=2, finalists=2, choosing=2, replays=2, least_seconds=180.0)
    outcomes = climb(candidates(2, 0), ladder, 0, tune.play_on(spark, recording, Prices(), lambda _: None))
    tune.write(spark, lake, recording, outcomes, standings(outcomes, ladder))
    assert read(spark, lake.gold(gold.TUNING_ADVICE.name), gold.TUNING_ADVICE).count() >= 2


def test_a_report_is_written_to_an_object_store(bucket: str) -> None:
    insist_on_writable("--output", f"{bucket}/report")
    path = write_report(CLUSTER, [], "Made from nothing.", f"{bucket}/report")
    assert path == f"{bucket}/report/report.html"
    assert b"What was learned of" in Files.at(f"{bucket}/report").open("report.html").read()


def take_in(spark: SparkSession, lake: Lake) -> int:
    """How many rows were kept."""
    kept: list[int] = []
    Intake(lake).run(spark, lambda _table, _batch, tallies: kept.append(tallies[CLUSTER].rows_kept), (PERIODS,))
    return sum(kept)
