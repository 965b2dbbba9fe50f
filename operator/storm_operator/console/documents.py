"""Views as JSON documents: field by field, as they are named. Figures are rounded: nobody reads a ninth digit."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from storm_operator.core.wording import as_told

COMPRESSION_LEVEL = 5


def document(value: object) -> Any:
    """`value` (a view, or tuples and mappings of views) as plain JSON values. NaN and infinity become null."""
    if isinstance(value, float):
        return _rounded(value)
    if value is None or isinstance(value, str | bool | int):
        return value
    if is_dataclass(value):
        return {name: document(getattr(value, name)) for name in _names(value.__class__)}
    if isinstance(value, Mapping):
        return {str(key): document(one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return [document(one) for one in value]
    raise TypeError(f"{type(value).__name__} has no place in a document")


def to_bytes(value: object) -> bytes:
    """`value` as compact JSON text in UTF-8."""
    return json.dumps(document(value), separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def squeezed(content: bytes) -> bytes:
    """`content` as gzip; the same content always gives the same bytes."""
    return gzip.compress(content, COMPRESSION_LEVEL, mtime=0)


def unsqueezed(content: bytes) -> bytes:
    return gzip.decompress(content)


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind))


def _rounded(value: float) -> float | None:
    if value != value or value in (float("inf"), float("-inf")):
        return None
    return as_told(value)
