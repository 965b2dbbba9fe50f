"""Files that anybody's code may have left in the metrics folder: which there are, and what is in one.

Workers write where they like and what they like: a name may be that of a pipe, of a link to somebody else's file, of a
file without end. None of it may hold the agent, or fill its memory.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

SUFFIX = ".json"
MOST_FILES = 1_000
MOST_BYTES = 16 * 1024 * 1024
"""A worker of a thousand executors that sends to 5,000 pairs writes 1 MB, and 2 MB when all of them are spouts."""
READ_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Listed:
    """One file of the folder. `stamp` changes whenever it is written."""

    stamp: tuple[int, int, int]
    written_at_seconds: float


@dataclass(frozen=True, slots=True)
class Content:
    """What is in a file and which user owns it; or, without either, why it is not to be read."""

    document: bytes = b""
    owner: int | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """The snapshot files by name; `is_cut`: there are more than are looked at."""

    files: Mapping[str, Listed]
    is_cut: bool


def list_snapshots(folder: Path, first: Collection[str]) -> Listing:
    """At most `MOST_FILES`, those called `first` before others. OSError when the folder cannot be read."""
    with os.scandir(folder) as entries:
        others = (entry.name for entry in entries if entry.name.endswith(SUFFIX) and entry.name not in first)
        names = [*first, *islice(others, max(0, MOST_FILES - len(first)))]
        is_cut = next(others, None) is not None
    return Listing(dict(_listed(folder, names)), is_cut)


def _listed(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, Listed]]:
    """Those that are there. OSError when nothing of any can be told."""
    failure: OSError | None = None
    found = False
    for name in names:
        try:
            status = os.lstat(folder / name)
        except FileNotFoundError:
            continue
        except OSError as error:
            failure = error
            continue
        found = True
        yield name, Listed((status.st_mtime_ns, status.st_ino, status.st_size), status.st_mtime)
    if failure is not None and not found:
        raise failure


def read_snapshot(path: Path) -> Content:
    """Never waits, follows no link, and reads no more than `MOST_BYTES`. FileNotFoundError when there is none."""
    try:
        mode = os.lstat(path).st_mode
        if not stat.S_ISREG(mode):  # nor opened: of a device that alone may do something
            return _not_regular(mode)
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        return Content(problem=f"cannot be read: {error.strerror}")
    try:
        return _read(descriptor)
    except OSError as error:
        return Content(problem=f"cannot be read: {error.strerror}")
    finally:
        os.close(descriptor)


def _read(descriptor: int) -> Content:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):  # it was another a moment ago
        return _not_regular(status.st_mode)
    document = bytearray()
    while len(document) <= MOST_BYTES and status.st_size <= MOST_BYTES:
        if not (part := os.read(descriptor, READ_BYTES)):
            return Content(bytes(document), status.st_uid)
        document += part
    return Content(problem=f"has more than {MOST_BYTES} bytes")


def _not_regular(mode: int) -> Content:
    return Content(problem=f"is not a regular file ({stat.filemode(mode)})")
