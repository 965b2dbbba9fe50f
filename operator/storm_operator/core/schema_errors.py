"""JSON documents against their schema: strict reading, and one sentence that names field, value and what is right."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn, cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

SHOWN_VALUE_WIDTH = 80
LARGEST = 1e15
"""Of numbers in a document. None that is measured comes near it; squares and sums of such ones are still numbers."""

TYPE_NAMES = {
    "object": "an object",
    "array": "a list",
    "string": "a text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "null",
}


class InvalidDocument(ValueError):
    """A text that is not what it should be; the message names the field, its value and what would be right."""


def parse_strictly(text: str, what: str) -> object:
    """The JSON in `text`, which is to be `what` ("a snapshot"), without NaN and infinity. Raises `InvalidDocument`."""
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_whole)
    except json.JSONDecodeError as error:
        raise InvalidDocument(f"line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise InvalidDocument(f"not {what}: nested too deeply") from None


def check_version(document: object, version: int) -> dict[str, Any]:
    """`document` if it is an object of `version`. Raises `InvalidDocument`."""
    if not isinstance(document, dict):
        raise InvalidDocument(f"the document is {shown(document)}: expected an object with a version")
    found = document.get("version")
    if found != version or isinstance(found, bool):
        raise InvalidDocument(f"version is {shown(found)}: expected {version}, the only one that is known here")
    return document


def check_document(document: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """Raises `InvalidDocument` with the worst of what `schema` finds, or a number too large to be reckoned with."""
    problem = best_match(Draft202012Validator(schema).iter_errors(document))
    if problem is not None:
        raise InvalidDocument(_sentence(problem))
    for path, value in _beyond_bounds(document, ()):
        raise InvalidDocument(f"{_path(path)} is {shown(value)}: expected a number up to {LARGEST:g}")


def shown(value: object) -> str:
    """A value in a message, shortened."""
    text = json.dumps(value)
    return text if len(text) <= SHOWN_VALUE_WIDTH else text[:SHOWN_VALUE_WIDTH] + "..."


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidDocument(f"the document contains {name}: expected finite numbers, and null for what is unknown")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse_constant(text)


def _whole(text: str) -> int:
    """Python itself refuses to read more digits than some thousands."""
    if len(text) > SHOWN_VALUE_WIDTH:
        raise InvalidDocument(f"the document contains {text[:SHOWN_VALUE_WIDTH]}...: expected up to {LARGEST:g}")
    return int(text)


def _beyond_bounds(value: object, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], float]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _beyond_bounds(item, (*path, name))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _beyond_bounds(item, (*path, at))
    elif isinstance(value, int | float) and abs(value) > LARGEST:
        yield path, value


def _sentence(error: ValidationError) -> str:
    path = _path(error.absolute_path)
    schema = cast("Mapping[str, Any]", error.schema)
    if error.validator == "additionalProperties":
        known = schema.get("properties", {})
        unknown = sorted(set(cast("Mapping[str, Any]", error.instance)) - set(known))
        return f"{path} has the unknown field {unknown[0]!r}: expected only {', '.join(known)}"
    if error.validator == "required":
        missing = [name for name in schema["required"] if name not in cast("Mapping[str, Any]", error.instance)]
        return f"{path} lacks the field {missing[0]!r}: expected {', '.join(schema['required'])}"
    return f"{path} is {shown(error.instance)}: expected {_expected(error)}"


def _path(steps: Iterable[str | int]) -> str:
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in steps]
    return "".join(parts).removeprefix(".") or "the document"


def _expected(error: ValidationError) -> str:
    limit = error.validator_value
    match error.validator:
        case "type":
            names = [limit] if isinstance(limit, str) else cast("list[str]", limit)
            return " or ".join(TYPE_NAMES[name] for name in names)
        case "enum":
            return "one of " + ", ".join(shown(choice) for choice in cast("list[object]", limit))
        case "minimum":
            return f"{limit} or more"
        case "exclusiveMinimum":
            return f"more than {limit}"
        case "maximum":
            return f"{limit} or less"
        case "minLength":
            return "a text that is not empty"
        case "minItems" | "maxItems":
            return f"{limit} entries"
        case _:
            return error.message
