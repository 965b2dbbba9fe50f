"""The Spark session that all jobs share: settings that were measured to matter, and Delta."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from storm_pipeline.jars import jars_for

CLASS_PATHS = {"spark.driver.extraClassPath", "spark.executor.extraClassPath", "spark.jars"}
"""What is given of these comes after ours; all else goes before what we say."""
GATEWAY_OF_SPARK_SUBMIT = "PYSPARK_GATEWAY_PORT"
LOOPBACK = "127.0.0.1"
ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""Without these, tables are wrong or cannot be read: they stand against what spark-submit was told."""
MEASURED = {
    # 50 partitions, Delta's default, for a log of a few files: five times slower to open.
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.parquet.compression.codec": "zstd",
    # A task sums up few enough rows that their groups stay near the processor: a sixth less CPU than with 128 MB.
    "spark.sql.files.maxPartitionBytes": "16m",
    # A file for each partition is open while writing, instead of sorting all rows by partition first.
    "spark.sql.maxConcurrentOutputFileWriters": "16",
    # A task with more groups than this sorts all its rows instead, where an aggregate is an object, such as a heap.
    # Spark's default is 128: a day of one topology has more.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "10000",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
"""What makes jobs faster, unless spark-submit, spark-defaults.conf or --conf says otherwise."""
QUIET = Path(__file__).parent / "resources" / "spark-conf"
"""Spark's own logging, from its first line on; `setLogLevel` would come after them."""


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """Where Spark runs and how much it may take. Memory is of the driver, which with `local[*]` is all there is.

    `shuffle_partitions` None: eight times the cores of `local[N]`, else, and under spark-submit, what Spark or `extra`
    says. `object_store`: whether there are paths with s3a://.
    """

    master: str = "local[*]"
    heap: str = "2g"
    off_heap: str = "2g"
    shuffle_partitions: int | None = None
    object_store: bool = False
    extra: Mapping[str, str] = field(default_factory=dict)


def open_session(name: str, settings: SparkSettings = SparkSettings()) -> SparkSession:
    """The session of job `name`; under spark-submit master, memory, jars and all tuning that it has are its business.

    Raises `JarsError` when Delta's jars have not been fetched.
    """
    os.environ["TZ"] = "UTC"  # PySpark gives times to Python in the process' own zone, and takes them so
    time.tzset()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers take the system's python3
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    own = {} if _is_submitted() else _own_process(settings)
    builder = SparkSession.builder.appName(f"storm-pipeline {name}")
    added_to = {key: own[key] for key in own.keys() & CLASS_PATHS}
    for key, value in {**ALWAYS, **own, **settings.extra, **added_to}.items():
        builder = builder.config(key, value)
    with _quiet():
        session = builder.getOrCreate()
    given = session.sparkContext.getConf()
    for key, value in {**MEASURED, **_tuning(settings)}.items():
        if not given.contains(key):
            session.conf.set(key, value)
    session.sparkContext.setLogLevel("ERROR")
    return session


def _is_submitted() -> bool:
    return GATEWAY_OF_SPARK_SUBMIT in os.environ


@contextmanager
def _quiet() -> Iterator[None]:
    """Spark's Java starts with our logging, unless there may be settings of somebody's own; nothing else does."""
    if os.environ.keys() & {"SPARK_HOME", "SPARK_CONF_DIR"}:
        yield
        return
    os.environ["SPARK_CONF_DIR"] = str(QUIET)
    try:
        yield
    finally:
        os.environ.pop("SPARK_CONF_DIR", None)


def _tuning(settings: SparkSettings) -> dict[str, str]:
    partitions = settings.shuffle_partitions or (None if _is_submitted() else _partitions_of(settings.master))
    return {} if partitions is None else {"spark.sql.shuffle.partitions": str(partitions)}


def _partitions_of(master: str) -> int | None:
    """Eight times the cores of `local[N]` or `local[*]`: small enough for the cache; small ones are joined."""
    if not master.startswith("local") or master.startswith("local-cluster"):
        return None
    cores = master.removeprefix("local").strip("[]").partition(",")[0].strip() or "1"
    return 8 * (len(os.sched_getaffinity(0)) if cores == "*" else int(cores))


def _own_process(settings: SparkSettings) -> dict[str, str]:
    os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
    options = {
        "spark.master": settings.master,
        "spark.driver.memory": settings.heap,
        "spark.executor.memory": settings.heap,
        # The one setting that makes aggregates a third faster: no garbage collection of what is hashed and sorted.
        "spark.memory.offHeap.enabled": "true",
        "spark.memory.offHeap.size": settings.off_heap,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    jars = [str(jar) for jar in jars_for(object_store=settings.object_store)]
    if settings.master.startswith("local"):
        # On this machine: what is named here is neither copied nor has a process started to make it executable.
        for key in ("spark.driver.extraClassPath", "spark.executor.extraClassPath"):
            options[key] = ":".join([*jars, *filter(None, [settings.extra.get(key)])])
    else:
        options["spark.jars"] = ",".join([*jars, *filter(None, [settings.extra.get("spark.jars")])])
    if settings.master.startswith(("local", f"spark://{LOOPBACK}")):
        options |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    return options
