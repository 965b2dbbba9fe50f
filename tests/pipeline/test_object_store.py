"""The pipeline's tables and what it reads in an object store, through S3's own protocol (moto's server)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs
from pyspark.sql import SparkSession
from rich.console import Console

from bronze_files import CLUSTER, bronze, silver_of, wanted
from history_scene import record
from s3_server import BUCKET, KEYS, s3_server
from storm_operator.core.history_tables import PERIODS
from storm_operator.history.files import Files
from storm_pipeline.jobs.ingest import Intake
from storm_pipeline.jobs.report import check_output
from storm_pipeline.lake import Lake, lake_at, read
from storm_pipeline.reporting.page import write_report
from storm_pipeline.schemas import GAPS


@pytest.fixture
def bucket(spark: SparkSession) -> Iterator[str]:
    """An empty one, as the recorder names it; Spark knows where it is, and with which keys."""
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


def test_ingest_reads_and_writes_an_object_store(spark: SparkSession, bucket: str, tmp_path: Path) -> None:
    record(tmp_path, periods=4, cluster=CLUSTER)
    fs.copy_files(str(tmp_path / PERIODS.name), f"{bucket}/recorded/{PERIODS.name}")
    lake = lake_at(f"{bucket}/lake", f"{bucket}/recorded")
    assert take_in(spark, lake) == 4
    assert silver_of(spark, lake, PERIODS) == wanted(bronze(tmp_path, PERIODS))
    assert read(spark, lake.gold(GAPS.name), GAPS).count() == 0
    assert take_in(spark, lake) == 0, "how far the stream has come is in the bucket too"


def test_a_report_is_written_to_an_object_store(bucket: str) -> None:
    check_output(f"{bucket}/report", Console())
    path = write_report(CLUSTER, [], "Made from nothing.", f"{bucket}/report")
    assert path == f"{bucket}/report/report.html"
    assert b"Nothing has been learned of this cluster yet" in Files.at(f"{bucket}/report").open("report.html").read()


def take_in(spark: SparkSession, lake: Lake) -> int:
    """How many rows were kept."""
    kept: list[int] = []
    Intake(lake).run(spark, lambda _table, _batch, tallies: kept.append(tallies[CLUSTER].rows_kept), (PERIODS,))
    return sum(kept)
