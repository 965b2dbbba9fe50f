"""Files of one folder or object store prefix, written so that they appear whole or not at all."""

from __future__ import annotations

import io
import os
import posixpath
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
from fsspec.implementations.arrow import ArrowFSWrapper
from pyarrow import fs

PROBE = ".probe"
"""Written and deleted at once."""
ARROW_SCHEMES = ("s3", "gs", "hdfs", "abfs")
"""Object stores that pyarrow reaches by itself; others need their fsspec package."""
TEMPORARY = ".writing"
"""Ends the name of a file that is not whole yet; readers skip names that begin with a dot."""


@dataclass(frozen=True, slots=True)
class Files:
    """Paths given and returned are relative to `root`, with slashes between. `filesystem` is one of fsspec's."""

    filesystem: Any
    root: str

    @classmethod
    def at(cls, root: str) -> Files:
        """Files below a folder or URL. OSError or ValueError when there can be none.

        Keys, region and endpoint of an object store come from its usual environment (AWS_ACCESS_KEY_ID,
        AWS_ENDPOINT_URL, ...). s3a://, as Hadoop says, is s3://.
        """
        scheme, separator, rest = root.partition("://")
        if separator and scheme in ("s3", "s3a", "gs") and not rest.partition("/")[0]:
            raise ValueError(f"it names no bucket, as {scheme}://bucket/prefix does")
        if scheme == "s3a":
            return cls.at(f"s3://{rest}")
        if scheme == "s3" and _endpoint():
            return cls(ArrowFSWrapper(_own_s3(_endpoint())), rest)
        if scheme in ARROW_SCHEMES:
            filesystem, path = fs.FileSystem.from_uri(root)
            return cls(ArrowFSWrapper(filesystem), path)
        filesystem, path = fsspec.core.url_to_fs(root)
        return cls(filesystem, path)

    @property
    def is_local(self) -> bool:
        return "file" in _protocols(self.filesystem)

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

    def delete_abandoned(self, before_seconds: float) -> None:
        """What writers that died left of files that never were whole, if last written before then (since 1970)."""
        if not self.is_local:
            return
        for path, about in self.filesystem.find(self.root, detail=True).items():
            if (
                posixpath.basename(path).startswith(".")
                and path.endswith(TEMPORARY)
                and about["mtime"] < before_seconds
            ):
                self.filesystem.rm(path)

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
        """(path, bytes) of the whole files anywhere below `folder`."""
        self.filesystem.invalidate_cache()
        found = self.filesystem.find(self._full(folder), detail=True)
        return [
            (posixpath.relpath(path, self.root), int(about["size"] or 0))
            for path, about in found.items()
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
