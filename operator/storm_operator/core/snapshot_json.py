"""ClusterSnapshot as a JSON text: versioned, checked strictly, nothing lost. The form is docs/reference/snapshot.md."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from storm_operator.core.schema_errors import InvalidDocument, check_document, check_version, parse_strictly
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.snapshot_document import VERSION, InvalidSnapshot, from_document, to_document

SCHEMA_FILE = Path(__file__).parent.parent / "schemas" / "snapshot-v1.schema.json"
LINE_WIDTH = 110


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
    try:
        document = check_version(parse_strictly(text, "a snapshot"), VERSION)
        check_document(document, snapshot_schema())
    except InvalidDocument as error:
        raise InvalidSnapshot(str(error)) from None
    return from_document(document)


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
