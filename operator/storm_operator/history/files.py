"""Files of one folder or object store prefix, written so that they appear whole or not at all."""

from __future__ import annotations

import io
import os
import posixpath
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import fsspec
from fsspec.implementations.arrow import ArrowFSWrapper
from fsspec.implementations.local import LocalFileSystem
from pyarrow import fs

PROBE = ".probe"
"""Written and deleted at once."""
ARROW_SCHEMES = ("s3", "gs", "hdfs", "abfs")
"""Object stores that pyarrow reaches by itself; others need their fsspec package."""
TEMPORARY = ".writing"
"""Ends the name of a file that is not whole yet; readers skip names that begin with a dot."""


@dataclass(frozen=True, slots=True)
class Files:
    """Paths given and returned are relative to `place`, a folder or URL, with slashes between."""

    place: str
    is_local: bool
    _reached: Callable[[], tuple[Any, str]]
    """One of fsspec's file systems, and where `place` is in it. OSError where it cannot be reached now."""

    @classmethod
    def at(cls, place: str) -> Files:
        """Files below a folder or URL. OSError, ValueError or ImportError when there can be none.

        An object store is first asked for something when it is used: one that cannot be reached now is tried again by
        whatever is done next. Keys, region and endpoint come from its usual environment (AWS_ACCESS_KEY_ID,
        AWS_ENDPOINT_URL, ...). s3a://, as Hadoop says, is s3://.
        """
        if not place:
            raise ValueError("it is empty: a folder or s3://bucket/prefix is right")
        scheme, separator, rest = place.partition("://")
        if separator and scheme in ("s3", "s3a", "gs") and not rest.partition("/")[0]:
            raise ValueError(f"it names no bucket, as {scheme}://bucket/prefix does")
        if scheme == "s3a":
            return cls.at(f"s3://{rest}")
        if scheme in ARROW_SCHEMES:
            return cls(place, False, cache(lambda: _arrow(place)))
        if not separator:  # fsspec takes what follows `::`, as in an IPv6 address, for a URL of its own
            folder = LocalFileSystem()
            return cls(place, True, lambda: (folder, folder._strip_protocol(place)))
        found = fsspec.core.url_to_fs(place)
        return cls(place, "file" in _protocols(found[0]), lambda: found)

    @property
    def filesystem(self) -> Any:
        return self._reached()[0]

    @property
    def root(self) -> str:
        return self._reached()[1]

    def write_whole(self, path: str, write: Callable[[Any], None]) -> int:
        """Let `write` fill a file that then appears at `path`; returns its bytes.

        On this machine: under another name, which is each writer's own, to disk, renamed. An object appears when its
        stream is closed, which an error does as well: nothing is sent before there is all of it.
        """
        target = self._full(path)
        if not self.is_local:
            whole = io.BytesIO()
            write(whole)
            with self.filesystem.open(target, "wb") as sink:
                sink.write(whole.getvalue())
            return whole.tell()
        folder, name = posixpath.split(target)
        temporary = Path(folder, f".{name}.{uuid.uuid4().hex[:8]}{TEMPORARY}")
        self.filesystem.makedirs(folder, exist_ok=True)
        try:
            with temporary.open("wb") as sink:
                write(sink)
                sink.flush()
                os.fsync(sink.fileno())
                size = sink.tell()
            temporary.replace(target)
        except BaseException:  # nobody will write under that name again
            temporary.unlink(missing_ok=True)
            raise
        return size

    def insist_on_writable(self) -> None:
        """Write a small file and delete it again. OSError where that is impossible."""
        self.write_whole(PROBE, lambda sink: sink.write(b""))
        self.delete(PROBE)

    def insist_on_use(self) -> None:
        """OSError or ValueError where there is no way to an object store now, or a folder cannot be written to."""
        self._reached()
        if self.is_local:
            self.insist_on_writable()

    def delete_abandoned(self, before_seconds: float) -> None:
        """What writers that died left of files that never were whole, if last written before then (since 1970)."""
        if not self.is_local:
            return
        for folder, _, names in os.walk(self.root):
            for name in names:
                if name.startswith(".") and name.endswith(TEMPORARY):
                    _delete_if_older(Path(folder, name), before_seconds)

    def open(self, path: str) -> Any:
        """For reading, as a context manager."""
        return self.filesystem.open(self._full(path), "rb")

    def exists(self, path: str) -> bool:
        return bool(self.filesystem.exists(self._full(path)))

    def names(self, folder: str) -> Sequence[str]:
        """Names right below `folder`, sorted; none when it is not there."""
        self.filesystem.invalidate_cache()
        try:
            found = self.filesystem.ls(self._full(folder), detail=False)
        except FileNotFoundError:
            return ()
        return sorted(posixpath.basename(path.rstrip("/")) for path in found)

    def below(self, folder: str) -> Sequence[tuple[str, int]]:
        """(path, bytes) of the whole files anywhere below `folder`; none when it is not there.

        OSError where a folder cannot be listed: nobody knows then what is in it.
        """
        self.filesystem.invalidate_cache()
        return [
            (posixpath.relpath(path, self.root), size)
            for path, size in _files_below(self.filesystem, self._full(folder))
            if not posixpath.basename(path).startswith(".")
        ]

    def delete(self, path: str) -> None:
        """A file, or a folder with all that is in it; one that is gone already is no error."""
        try:
            self.filesystem.rm(self._full(path), recursive=True)
        except FileNotFoundError:
            return

    def _full(self, path: str) -> str:
        return posixpath.join(self.root, path)


def _arrow(url: str) -> tuple[Any, str]:
    """By pyarrow itself, which asks Amazon for a bucket's region."""
    scheme, _, rest = url.partition("://")
    if scheme == "s3" and _endpoint():
        return ArrowFSWrapper(_own_s3(_endpoint())), rest
    filesystem, path = fs.FileSystem.from_uri(_undecoded(url))
    return ArrowFSWrapper(filesystem), path


def _undecoded(url: str) -> str:
    """A URL whose path pyarrow, which decodes it, takes as it stands: as other clients of object stores do."""
    scheme, _, rest = url.partition("://")
    where, slash, inside = rest.partition("/")
    path, mark, query = inside.partition("?")
    return f"{scheme}://{where}{slash}{path.replace('%', '%25')}{mark}{query}"


def _files_below(filesystem: Any, folder: str) -> Iterator[tuple[str, int]]:
    """As `find` of fsspec, which leaves out what it cannot list."""
    if isinstance(filesystem, ArrowFSWrapper):  # in as few requests as there can be
        for info in filesystem.fs.get_file_info(fs.FileSelector(folder, allow_not_found=True, recursive=True)):
            if info.is_file:
                yield info.path, info.size
        return
    try:
        found = filesystem.ls(folder, detail=True)
    except FileNotFoundError:
        return
    for about in found:
        if about["type"] != "directory":
            yield about["name"], int(about["size"] or 0)
        elif about["name"].rstrip("/") != folder.rstrip("/"):  # which some object stores list in itself
            yield from _files_below(filesystem, about["name"])


def _delete_if_older(path: Path, before_seconds: float) -> None:
    with suppress(FileNotFoundError):  # its writer is done with it
        if path.stat().st_mtime < before_seconds:
            path.unlink()


def _endpoint() -> str:
    """Of an S3 of one's own, as AWS' own clients are told of it; empty: Amazon's."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""


def _own_s3(url: str) -> Any:
    scheme, _, address = url.rpartition("://")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    return fs.S3FileSystem(endpoint_override=address.rstrip("/"), scheme=scheme or "https", region=region)


def _protocols(filesystem: Any) -> tuple[str, ...]:
    protocol = filesystem.protocol
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)
