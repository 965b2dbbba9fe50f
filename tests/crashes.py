"""What crashes leave of a lake: pictures of its folder before each write of a job, spoilt as if cut in mid-write.

    with crashes_of(lake, album) as crashes:
        run the job on `lake`, undisturbed

`crashes` are then folders, each as a process that was gone at that moment would have left the lake. Nothing is raised
inside the job, which could catch it or clean up: whatever is dead does neither.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrameWriter, SparkSession

from storm_pipeline import ingestion, whole_files

LOG = "_delta_log"
BEFORE: Sequence[tuple[Any, str]] = (
    (DataFrameWriter, "save"),
    (SparkSession, "sql"),  # merges, new columns
    (whole_files, "_copy"),
    (whole_files, "_commit"),
    (os, "replace"),  # of what is published: it lies there whole, by another name
)
"""All through which jobs write. Whatever else wrote would be found by `_insist_on_single_writes`."""
AFTER: Sequence[tuple[Any, str]] = ((ingestion.Batch, "take_in"),)
"""All is written, and the stream's checkpoint does not say so yet."""
FIGURES = 9
"""Significant digits: sums of the same numbers in another order differ in the last of theirs."""
Job = Callable[[Path], None]
"""Runs on the lake in a folder, and publishes into it."""
Contents = dict[str, list[str] | str]
"""The rows of tables and the text of files, by name."""


@dataclass(slots=True)
class Album:
    """Pictures of a lake in the order in which they were taken. Each differs from the one before."""

    lake: Path
    folder: Path
    pictures: list[Path] = field(default_factory=list)
    _seen: dict[Path, tuple[int, int]] | None = None

    def take(self, moment: str) -> None:
        """Keep a copy of the lake, unless it is as it was."""
        stats = {path: path.stat() for path in _files(self.lake)}
        now = {path: (stat.st_size, stat.st_mtime_ns) for path, stat in stats.items()}
        if now != self._seen:
            self._seen = now
            self.pictures.append(self.folder / f"{len(self.pictures)}-{moment}")
            shutil.copytree(self.lake, self.pictures[-1])

    def develop(self) -> list[Path]:
        """The crashes: all pictures but the last, which is of the end, each in the middle of the write that came next.

        Then its data is there, which no table knows of. From there it is harder to go on than from before the write.
        """
        _insist_on_single_writes(self.pictures)
        for before, after in pairwise(self.pictures):
            for path in _data(after) - _data(before):
                (before / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(after / path, before / path)
        return self.pictures[:-1]


@contextmanager
def crashes_of(lake: Path, folder: Path) -> Iterator[list[Path]]:
    """The crashes of whatever writes to `lake` meanwhile; they are complete at the end, and in `folder`."""
    album, crashes = Album(lake, folder), list[Path]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole_files, "COPIES_AT_ONCE", 1)  # in the middle of another copy no picture can be taken
        for owner, name in BEFORE:
            patch.setattr(owner, name, _pictured_before(getattr(owner, name), name, album))
        for owner, name in AFTER:
            patch.setattr(owner, name, _pictured_after(getattr(owner, name), name, album))
        yield crashes
    album.take("end")
    crashes += album.develop()


def gone_on_from(crashes: Sequence[Path], job: Job, at_once: int = 1) -> dict[str, Contents]:
    """What there is at the end, by crash, when the job has run again on each."""
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(job, crashes))
    return {crash.name: contents(crash) for crash in crashes}


def _pictured_before(act: Callable[..., Any], name: str, album: Album) -> Callable[..., Any]:
    def pictured(*arguments: Any, **named: Any) -> Any:
        album.take(f"before-{name}")
        return act(*arguments, **named)

    return pictured


def _pictured_after(act: Callable[..., Any], name: str, album: Album) -> Callable[..., Any]:
    def pictured(*arguments: Any, **named: Any) -> Any:
        result = act(*arguments, **named)
        album.take(f"after-{name}")
        return result

    return pictured


def _insist_on_single_writes(pictures: Sequence[Path]) -> None:
    """Two writes between two pictures would be a crash that nobody looked at."""
    for before, after in pairwise(pictures):
        done = _done(after) - _done(before)
        assert len(done) <= 1, f"between {before.name} and {after.name}: {sorted(done)}"


def _done(lake: Path) -> set[str]:
    """What has been committed to tables, and what has been published and when."""
    commits = {str(path.relative_to(lake)) for path in lake.rglob(f"{LOG}/*.json")}
    published = {f"{path.name} {path.stat().st_mtime_ns}" for path in _beside_tables(lake)}
    return commits | published


def _beside_tables(lake: Path) -> Iterator[Path]:
    """Files that are published, whole ones."""
    return (path for path in lake.iterdir() if path.is_file() and not path.name.startswith("."))


def _data(lake: Path) -> set[Path]:
    """The files of tables, without their logs."""
    tables = (log.parent for log in lake.rglob(LOG))
    return {path.relative_to(lake) for table in tables for path in _files(table) if LOG not in path.parts}


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def contents(lake: Path) -> Contents:
    """All that there is to read in a lake.

    Tables by what Delta's protocol says of their logs: Spark takes seconds for so many small ones, and what it
    remembers of them is no business of a comparison.
    """
    found: Contents = {path.name: path.read_text() for path in _beside_tables(lake)}
    tables = (log.parent for log in lake.rglob(LOG))
    return found | {table.relative_to(lake).as_posix(): sorted(_rows(table)) for table in tables}


def _rows(table: Path) -> Iterator[str]:
    names: list[str] = []
    files: dict[str, dict[str, str]] = {}
    for log in sorted((table / LOG).glob("*.json")):
        for action in map(json.loads, log.read_text().splitlines()):
            if "metaData" in action:
                names = [column["name"] for column in json.loads(action["metaData"]["schemaString"])["fields"]]
            elif "add" in action:
                files[action["add"]["path"]] = action["add"]["partitionValues"]
            elif "remove" in action:
                del files[action["remove"]["path"]]
    for path, partition in files.items():
        for row in pq.ParquetFile(table / unquote(path)).read().to_pylist():
            yield json.dumps([_plain((partition | row).get(name)) for name in names])


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    return float(f"{value:.{FIGURES}g}") if isinstance(value, float) else value
