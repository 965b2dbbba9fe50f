"""JSON documents as bytes that stay small: plain while they are short, packed beyond.

A plan names the same executors and slots in base, target, moves and limits. Packed, each of these objects is written
once and then called by its number; gzip does the rest. 10,000 executors that all move take half of the million
bytes that a ZooKeeper node holds, not nine of them.
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from typing import Any

LONGEST_PLAIN_BYTES = 100_000
"""People and earlier versions of the operator can read a document up to here."""

GZIP_MAGIC = b"\x1f\x8b"
GZIP_FORMAT = 16 + zlib.MAX_WBITS
NUMBER = "#"
"""The only key of an object that stands for the one of that number."""
BYTES_OF_A_VALUE = 8
"""At least so much packed text is there for each value that it stands for; of a plan 12."""


def encode(document: Any) -> bytes:
    """`document`, plain JSON values without an object whose only key is `#`, as bytes for `decode`."""
    plain = _to_bytes(document)
    return plain if len(plain) <= LONGEST_PLAIN_BYTES else gzip.compress(_to_bytes(_packed(document)), mtime=0)


def decode(content: bytes, longest_bytes: int | None = None) -> Any:
    """What `encode` was given, or any other JSON text stands for. Raises ValueError when it is neither.

    `longest_bytes`, of text from strangers: ValueError, too, as soon as it turns out to be longer than that when
    unpacked, or to stand for more values than an honest one of that length. A thousandth of it may have been sent.
    """
    try:
        if not content.startswith(GZIP_MAGIC):
            return json.loads(content)
        packed = json.loads(_inflated(content, longest_bytes))
        most_values = math.inf if longest_bytes is None else longest_bytes / BYTES_OF_A_VALUE
        return _unpacked(packed["document"], packed["objects"], most_values)
    except (zlib.error, KeyError, IndexError, TypeError, RecursionError) as error:
        raise ValueError(f"JSON that cannot be read ({type(error).__name__}: {error})") from error


def _inflated(content: bytes, longest_bytes: int | None) -> bytes:
    inflater = zlib.decompressobj(GZIP_FORMAT)
    text = inflater.decompress(content, 0 if longest_bytes is None else longest_bytes)
    if not inflater.eof:
        limit = "" if longest_bytes is None else f", or of more than {longest_bytes} bytes when unpacked"
        raise ValueError(f"packed JSON that is cut short{limit}")
    return text


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


def _unpacked(document: Any, objects: list[dict[str, Any]], most_values: float) -> Any:
    """In place: of a large document there is never a second one."""
    values = 0

    def unpack(value: Any) -> Any:
        if not isinstance(value, list | dict):
            return value
        if isinstance(value, dict) and value.keys() == {NUMBER}:
            return object_of(value[NUMBER])
        for at, item in enumerate(value) if isinstance(value, list) else value.items():
            value[at] = unpack(item)
        return value

    def object_of(number: int) -> dict[str, Any]:
        nonlocal values
        found = objects[number]
        values += len(found)
        if values > most_values:
            raise ValueError(f"packed JSON that stands for more than {most_values:.0f} values")
        return dict(found)

    return unpack(document)
