"""The jars that Spark needs beside its own, for Delta tables and s3a:// paths: from Maven, once, into the user's cache.

PyPI's delta-spark would bring another PySpark; what `spark.jars.packages` fetches at each start includes Spark anew.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape

from storm_operator.local.distribution import COPY_DEPENDENCIES, maven_command
from storm_operator.local.paths import cache_dir
from storm_pipeline.error_console import error_console

DELTA_VERSION = "4.4.0"
HADOOP_VERSION = "3.5.0"
"""That of the hadoop-client which PySpark brings."""
POM = Path(__file__).parent / "resources" / "spark-jars-pom.xml"
DELTA_GROUPS = ("io.delta", "io.unitycatalog")
S3_GROUPS = (
    "org.apache.hadoop",
    "org.reactivestreams",
    "software.amazon.awssdk",
    "software.amazon.eventstream",
    "software.amazon.s3.analyticsaccelerator",
)
"""All others that these name are part of Spark."""
DELTA_JARS = ("delta-", "unitycatalog-")
"""How the names of Delta's jars begin; the others are S3's."""
JARS_FOLDER = "STORM_PIPELINE_JARS"
"""Environment variable: where an image has them."""


class JarsError(Exception):
    """The jars are not there and cannot be had; the message says why."""


def jars_dir() -> Path:
    """Where the jars are, or will be."""
    given = os.environ.get(JARS_FOLDER)
    return Path(given) if given else cache_dir() / f"spark-delta-{DELTA_VERSION}-s3a-{HADOOP_VERSION}"


def jars_for(*, object_store: bool) -> tuple[Path, ...]:
    """Delta's jars, and those for s3a:// where they are wanted; sorted. Raises `JarsError` when there are none."""
    found = tuple(sorted(jars_dir().glob("*.jar")))
    if not found:
        raise JarsError(f"Delta's jars are not in {jars_dir()}: run `storm-pipeline jars` (or `make spark-jars`)")
    return tuple(jar for jar in found if object_store or jar.name.startswith(DELTA_JARS))


def ensure_jars() -> Path:
    """The folder of the jars, fetched if it is not there yet. It appears whole or not at all. Raises `JarsError`."""
    home = jars_dir()
    if home.is_dir():
        return home
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=".spark-jars-") as scratch:
        build = Path(scratch) / home.name
        _fetch(build, Path(scratch))
        try:
            build.rename(home)
        except OSError:
            if not home.is_dir():  # else somebody was faster, and theirs is whole too
                raise
    return home


def _fetch(into: Path, scratch: Path) -> None:
    # A copy of the POM, since Maven may write `target/` beside it and package data can be read-only.
    pom = Path(shutil.copy(POM, scratch))
    command = [maven_command(), "-q", "-B", "-f", str(pom), COPY_DEPENDENCIES, f"-Ddelta.version={DELTA_VERSION}"]
    command += [f"-Dhadoop.version={HADOOP_VERSION}", f"-DincludeGroupIds={','.join(DELTA_GROUPS + S3_GROUPS)}"]
    command += ["-DincludeScope=runtime", f"-DoutputDirectory={into}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise JarsError(
            f"Maven could not fetch Delta {DELTA_VERSION} and Hadoop's S3 {HADOOP_VERSION}:\n" + "\n".join(lines[-8:])
        )


def jars() -> None:
    """Fetch the jars that Spark needs for Delta tables and s3a:// paths, unless they are there."""
    console = Console(highlight=False)
    try:
        console.print(f"Delta {DELTA_VERSION}, Hadoop's S3 {HADOOP_VERSION}: {ensure_jars()}", soft_wrap=True)
    except JarsError as error:
        error_console().print(f"[red]{escape(str(error))}[/]")
        raise typer.Exit(1) from error
