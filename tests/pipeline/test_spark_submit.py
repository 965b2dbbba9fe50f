"""A job under spark-submit: what that was told of tuning stands, what tables depend on is ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark

from storm_pipeline.jars import jars_for
from tiny_spark import JAVA

PROBE = """
import json
from storm_pipeline.spark import open_session

spark = open_session("probe")
print(json.dumps({key: spark.conf.get(key) for key in %r}))
spark.stop()
"""
GIVEN = {
    "spark.sql.parquet.compression.codec": "snappy",
    "spark.sql.session.timeZone": "Europe/Berlin",
    "spark.sql.extensions": "org.example.Others",
}
UNTOLD = {"spark.sql.shuffle.partitions": "200", "spark.sql.files.maxPartitionBytes": "16m"}


def test_what_spark_submit_was_told_stands_but_for_what_tables_depend_on(tmp_path: Path) -> None:
    script = tmp_path / "probe.py"
    script.write_text(PROBE % [*GIVEN, *UNTOLD])
    jars = ":".join(map(str, jars_for(object_store=False)))
    told = {**GIVEN, "spark.master": "local[1]", "spark.driver.extraClassPath": jars, "spark.ui.enabled": "false"}
    options = [word for key, value in told.items() for word in ("--conf", f"{key}={value}")]
    done = subprocess.run(
        [Path(pyspark.__file__).parent / "bin/spark-submit", "--driver-java-options", JAVA, *options, script],
        check=False,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {
        **UNTOLD,
        "spark.sql.parquet.compression.codec": "snappy",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    }
