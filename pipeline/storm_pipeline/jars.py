"""The jars that Spark needs beside its own for Delta tables: from Maven, once, into the user's cache.

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

from storm_operator.local.distribution import COPY_DEPENDENCIES, maven_command
from storm_operator.local.paths import cache_dir

DELTA_VERSION = "4.4.0"
POM = Path(__file__).parent / "resources" / "spark-jars-pom.xml"
GROUPS = "io.delta,io.unitycatalog"
"""All others that Delta names are part of Spark."""
JARS_FOLDER = "STORM_PIPELINE_JARS"
"""Environment variable: where an image has them."""


class JarsError(Exception):
    """The jars are not there and cannot be had; the message says why."""


def jars_dir() -> Path:
    """Where the jars are, or will be."""
    given = os.environ.get(JARS_FOLDER)
    return Path(given) if given else cache_dir() / f"spark-delta-{DELTA_VERSION}"


def delta_jars() -> tuple[Path, ...]:
    """The jars, sorted. Raises `JarsError` when they have not been fetched."""
    found = tuple(sorted(jars_dir().glob("*.jar")))
    if not found:
        raise JarsError(f"Delta's jars are not in {jars_dir()}: run `storm-pipeline jars` (or `make spark-jars`)")
    return found


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
    command = [maven_command(), "-q", "-B", "-f", str(pom), f"-Ddelta.version={DELTA_VERSION}", COPY_DEPENDENCIES]
    command += ["-DincludeScope=runtime", f"-DincludeGroupIds={GROUPS}", f"-DoutputDirectory={into}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise JarsError(f"Maven could not fetch Delta {DELTA_VERSION}:\n" + "\n".join(lines[-8:]))


def jars() -> None:
    """Fetch the jars that Spark needs for Delta tables, unless they are there."""
    console = Console(highlight=False)
    try:
        console.print(f"Delta {DELTA_VERSION}: {ensure_jars()}")
    except JarsError as error:
        console.print(f"[red]{error}[/]")
        raise typer.Exit(1) from error
