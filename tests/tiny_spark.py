"""Spark as tests have it: settings with which frames of a few rows cost least."""

from __future__ import annotations

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Of a JVM that ends within a minute."""
LONG_JAVA = "-XX:+UseSerialGC"
"""Of one that serves many tests: C2 pays off after a few."""
TINY_FRAMES = {
    # Compiling a query costs more than running it on ten rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.extraJavaOptions": JAVA,
    # So does telling in words what each query does, and remembering which line of Python asked for it.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.maxPlanStringLength": "100",
    "spark.sql.debug.maxToStringFields": "2",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.stats.collect": "false",
    "spark.databricks.delta.properties.defaults.checkpointInterval": "1000",
}


def as_options() -> list[str]:
    """The same for a command of `storm-pipeline`."""
    return [word for key, value in TINY_FRAMES.items() for word in ("--conf", f"{key}={value}")]
