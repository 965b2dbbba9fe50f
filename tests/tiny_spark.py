"""Spark as tests have it: settings with which frames of a few rows cost least."""

from __future__ import annotations

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
TINY_FRAMES = {
    # Compiling a query costs more than running it on ten rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.extraJavaOptions": JAVA,
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.stats.collect": "false",
    "spark.databricks.delta.properties.defaults.checkpointInterval": "1000",
}


def as_options() -> list[str]:
    """The same for a command of `storm-pipeline`."""
    return [word for key, value in TINY_FRAMES.items() for word in ("--conf", f"{key}={value}")]
