"""The same jobs on a real Spark cluster of several processes: a master, two workers, an executor in each."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from bronze_files import CLUSTER, bronze, silver, wanted
from history_scene import record
from storm_operator.core.history_tables import PAIRS, PERIODS
from tiny_spark import JAVA, as_options

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
PATIENCE_SECONDS = 240.0
LOOPBACK = "127.0.0.1"
TAKEN_IN = {table.name: table for table in (PERIODS, PAIRS)}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


@contextmanager
def process(log: Path, *command: str) -> Iterator[None]:
    """A process and all that it starts, until the block ends."""
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": LOOPBACK,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_WORKER_DIR": str(log.parent / "work"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": JAVA,
    }
    with log.open("wb") as out:
        started = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )
        try:
            yield
        finally:
            os.killpg(started.pid, signal.SIGTERM)
            started.wait(30.0)


def wait_for(log: Path, words: str) -> None:
    give_up = time.monotonic() + PATIENCE_SECONDS
    while not re.search(words, log.read_text(encoding="utf-8", errors="replace")):
        assert time.monotonic() < give_up, log.read_text(encoding="utf-8", errors="replace")[-2000:]
        time.sleep(0.2)


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    port = free_port()
    where = ("--host", LOOPBACK, "--port", str(port), "--webui-port", str(free_port()))
    with ExitStack() as stack:
        log = tmp_path / "master.log"
        stack.enter_context(process(log, str(SPARK_CLASS), "org.apache.spark.deploy.master.Master", *where))
        wait_for(log, "I have been elected leader|Bound MasterWebUI")
        url = f"spark://{LOOPBACK}:{port}"
        for number in (1, 2):
            worker = tmp_path / f"worker-{number}.log"
            size = ("--cores", "1", "--memory", "1g", "--host", LOOPBACK, "--webui-port", str(free_port()))
            stack.enter_context(process(worker, str(SPARK_CLASS), "org.apache.spark.deploy.worker.Worker", *size, url))
            wait_for(worker, "Successfully registered with master")
        yield url


@pytest.mark.timeout(900)
def test_ingest_on_a_cluster_is_ingest(master: str, spark: SparkSession, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    record(lake / "bronze", periods=4, cluster=CLUSTER)
    for folder in (lake / "bronze").iterdir():
        if folder.name not in TAKEN_IN:
            shutil.rmtree(folder)
    options = ["--master", master, "--heap", "512m", "--off-heap", "128m", "--conf", "spark.executor.cores=1"]
    options += as_options()
    command = [sys.executable, "-m", "storm_pipeline", "ingest", str(lake), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    for table in TAKEN_IN.values():
        assert silver(spark, lake, table) == wanted(bronze(lake / "bronze", table))
    executors = [path for path in (tmp_path / "work").rglob("stderr") if path.stat().st_size]
    assert len(executors) >= 2
