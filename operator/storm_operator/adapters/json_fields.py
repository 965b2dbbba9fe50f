"""Strict reading of JSON objects: a wrong field raises MalformedDocument with its name, value and what is right."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from storm_operator.adapters.errors import MalformedDocument

T = TypeVar("T")


def decode_object(name: str, content: bytes, parse: Callable[[bytes], Any] = json.loads) -> dict[str, Any]:
    """A JSON object, whatever is in it. `parse` raises ValueError for what is none."""
    try:
        document = parse(content)
    except ValueError as error:
        raise MalformedDocument(f"{name}: not JSON: {error}") from error
    if not isinstance(document, dict):
        raise wrong(name, document, "a JSON object")
    return document


def take(document: Any, where: str, field: str, kind: type[T] | tuple[type[T], ...]) -> T:
    """`document[field]`, which must be there and of that kind; a bool is no number."""
    if not isinstance(document, dict):
        raise wrong(where, document, "a JSON object")
    kinds = kind if isinstance(kind, tuple) else (kind,)
    expected = " or ".join(each.__name__ for each in kinds)
    if field not in document:
        raise MalformedDocument(f"{where}: {field} is missing; it must be {expected}")
    value = document[field]
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise wrong(f"{where}: {field}", value, expected)
    return value


def wrong(where: str, value: Any, right: str) -> MalformedDocument:
    """The error for a value that is not what it must be."""
    return MalformedDocument(f"{where} is {value!r}; it must be {right}")
