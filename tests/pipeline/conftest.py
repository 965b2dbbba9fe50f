"""One Spark session for all tests of a worker: starting it takes longer than most tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from storm_pipeline.spark import SparkSettings, open_session

TINY_FRAMES = {
    # Compiling a query costs more than running it on ten rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.adaptive.enabled": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.stats.collect": "false",
    "spark.databricks.delta.properties.defaults.checkpointInterval": "1000",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    settings = SparkSettings("local[2]", heap="1g", off_heap="256m", shuffle_partitions=1, extra=TINY_FRAMES)
    session = open_session("tests", settings)
    yield session
    session.stop()
