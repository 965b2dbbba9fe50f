"""JSON documents as bytes that stay small: plain while they are short, packed beyond.

A plan names the same executors and slots in base, target, moves and limits. Packed, each of these objects is written
once and then called by its number; gzip does the rest. 10,000 executors that all move take half of the million
bytes that a ZooKeeper node holds, not nine of them.
"""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

LONGEST_PLAIN_BYTES = 100_000
"""People and earlier versions of the operator can read a document up to here."""

GZIP_MAGIC = b"\x1f\x8b"
NUMBER = "#"
"""The only key of an object that stands for the one of that number."""


def encode(document: Any) -> bytes:
    """`document`, plain JSON values without an object whose only key is `#`, as bytes for `decode`."""
    plain = _to_bytes(document)
    return plain if len(plain) <= LONGEST_PLAIN_BYTES else gzip.compress(_to_bytes(_packed(document)), mtime=0)


def decode(content: bytes) -> Any:
    """What `encode` was given, or any other JSON text stands for. Raises ValueError when it is neither."""
    if not content.startswith(GZIP_MAGIC):
        return json.loads(content)
    try:
        packed = json.loads(gzip.decompress(content))
        return _unpacked(packed["document"], packed["objects"])
    except (OSError, EOFError, zlib.error, KeyError, IndexError, TypeError) as error:
        raise ValueError(f"packed JSON that cannot be unpacked ({type(error).__name__}: {error})") from error


def _to_bytes(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode("utf-8")


def _packed(document: Any) -> dict[str, Any]:
    number_of: dict[str, int] = {}  # by text: as keys, True and 1 would be the same
    objects: list[dict[str, Any]] = []

    def pack(value: Any) -> Any:
        if isinstance(value, list):
            return [pack(item) for item in value]
        if not isinstance(value, dict):
            return value
        if any(isinstance(item, dict | list) for item in value.values()):
            return {key: pack(item) for key, item in value.items()}
        number = number_of.setdefault(repr(value), len(objects))
        if number == len(objects):
            objects.append(value)
        return {NUMBER: number}

    return {"document": pack(document), "objects": objects}


def _unpacked(value: Any, objects: list[dict[str, Any]]) -> Any:
    if isinstance(value, list):
        return [_unpacked(item, objects) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {NUMBER}:
        return dict(objects[value[NUMBER]])
    return {key: _unpacked(item, objects) for key, item in value.items()}
