"""ClusterSnapshot as a JSON text: versioned, checked strictly, nothing lost. The form is docs/reference/snapshot.md."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.snapshot_document import VERSION, InvalidSnapshot, from_document, to_document

SCHEMA_FILE = Path(__file__).parent.parent / "schemas" / "snapshot-v1.schema.json"
LINE_WIDTH = 110
SHOWN_VALUE_WIDTH = 80

TYPE_NAMES = {
    "object": "an object",
    "array": "a list",
    "string": "a text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "null",
}


@cache
def snapshot_schema() -> Mapping[str, Any]:
    """The JSON schema (draft 2020-12) of version 1."""
    return cast("Mapping[str, Any]", json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))


def dump_snapshot(snapshot: ClusterSnapshot) -> str:
    """`snapshot` as JSON for people and programs; the same snapshot gives the same text.

    ValueError when it holds NaN or infinity, or names executors that its topologies do not have.
    """
    return _pretty(to_document(snapshot)) + "\n"


def load_snapshot(text: str) -> ClusterSnapshot:
    """The snapshot in a JSON text; InvalidSnapshot with one message when it is not one of version 1."""
    document = _parse(text)
    if not isinstance(document, dict):
        raise InvalidSnapshot(f"the document is {_shown(document)}: expected an object with a version")
    version = document.get("version")
    if version != VERSION or isinstance(version, bool):
        raise InvalidSnapshot(f"version is {_shown(version)}: expected {VERSION}, the only one that is known here")
    problem = best_match(Draft202012Validator(snapshot_schema()).iter_errors(document))
    if problem is not None:
        raise InvalidSnapshot(_sentence(problem))
    return from_document(document)


def _parse(text: str) -> object:
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise InvalidSnapshot(f"line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise InvalidSnapshot("not a snapshot: nested too deeply") from None


def _refuse_constant(name: str) -> float:
    raise InvalidSnapshot(f"the document contains {name}: expected finite numbers, and null for what is unknown")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse_constant(text)


def _sentence(error: ValidationError) -> str:
    path = _path(error)
    schema = cast("Mapping[str, Any]", error.schema)
    if error.validator == "additionalProperties":
        known = schema.get("properties", {})
        unknown = sorted(set(cast("Mapping[str, Any]", error.instance)) - set(known))
        return f"{path} has the unknown field {unknown[0]!r}: expected only {', '.join(known)}"
    if error.validator == "required":
        missing = [name for name in schema["required"] if name not in cast("Mapping[str, Any]", error.instance)]
        return f"{path} lacks the field {missing[0]!r}: expected {', '.join(schema['required'])}"
    return f"{path} is {_shown(error.instance)}: expected {_expected(error)}"


def _path(error: ValidationError) -> str:
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path]
    return "".join(parts).removeprefix(".") or "the document"


def _expected(error: ValidationError) -> str:
    limit = error.validator_value
    match error.validator:
        case "type":
            names = [limit] if isinstance(limit, str) else cast("list[str]", limit)
            return " or ".join(TYPE_NAMES[name] for name in names)
        case "enum":
            return "one of " + ", ".join(_shown(choice) for choice in cast("list[object]", limit))
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


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= SHOWN_VALUE_WIDTH else text[:SHOWN_VALUE_WIDTH] + "..."


def _pretty(value: object, indent: int = 0) -> str:
    """JSON with whatever fits on a line on one line: a row of a table reads as a row."""
    line = json.dumps(value, allow_nan=False, ensure_ascii=False)
    if indent + len(line) <= LINE_WIDTH or not isinstance(value, dict | list):
        return line
    inner = " " * (indent + 1)
    if isinstance(value, dict):
        rows = [f"{json.dumps(key, ensure_ascii=False)}: {_pretty(item, indent + 1)}" for key, item in value.items()]
        return "{\n" + ",\n".join(inner + row for row in rows) + "\n" + " " * indent + "}"
    return "[\n" + ",\n".join(inner + _pretty(item, indent + 1) for item in value) + "\n" + " " * indent + "]"
