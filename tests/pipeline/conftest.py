"""One Spark session for all tests of a worker: starting it takes longer than most tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from storm_pipeline.spark import SparkSettings, open_session
from tiny_spark import LONG_JAVA, TINY_FRAMES


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    lasting = {**TINY_FRAMES, "spark.driver.extraJavaOptions": LONG_JAVA}
    settings = SparkSettings("local[2]", heap="1g", off_heap="256m", object_store=True, extra=lasting)
    session = open_session("tests", settings)
    yield session
    session.stop()
