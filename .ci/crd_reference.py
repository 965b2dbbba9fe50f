"""Writes docs/reference/<kind>.md from each CRD; `--check` only says which are not what the CRDs say."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent
COMMAND = ".venv/bin/python .ci/crd_reference.py"
TYPES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "object",
    "array": "list",
}
Schema = Mapping[str, Any]
Row = tuple[str, ...]


def references() -> dict[Path, str]:
    """What each file of the reference should hold."""
    files = sorted((ROOT / "crds").glob("*.yaml"))
    crds = [(file, yaml.safe_load(file.read_text(encoding="utf-8"))) for file in files]
    return {ROOT / f"docs/reference/{crd['spec']['names']['singular']}.md": page(file, crd) for file, crd in crds}


def page(file: Path, crd: Schema) -> str:
    names, version = crd["spec"]["names"], crd["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]
    short, category = names["shortNames"][0], names["categories"][0]
    parts = [
        f"# {names['kind']}",
        f"<!-- Made from crds/{file.name} by `{COMMAND}`: edit that file, not this one. -->",
        schema["description"],
        f"`apiVersion: {crd['spec']['group']}/{version['name']}`. `kubectl get {short}` lists them,"
        f" `kubectl get {category}` all kinds of the operator; `kubectl explain {short}.spec` says what is said here.",
        "## Spec",
        table(("field", "type", "default", "meaning"), fields(schema["properties"]["spec"], "spec", required=True)),
        "## Rules",
        "The API server refuses what breaks one of these, naming the field and the rule.",
        table(("field", "rule"), rules(schema, "")),
        "## Status",
        schema["properties"]["status"]["description"],
        table(("field", "type", "meaning"), ((at, kind, text) for at, kind, _, text in status_fields(schema))),
        "## Columns of `kubectl get`",
        table(("column", "field", "meaning"), columns(version["additionalPrinterColumns"])),
    ]
    return "\n\n".join(parts) + "\n"


def table(header: Row, rows: Iterator[Row]) -> str:
    lines = [header, tuple("---" for _ in header), *(tuple(cell.replace("|", "\\|") for cell in row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def status_fields(schema: Schema) -> Iterator[Row]:
    """The fields of status, itself left out."""
    rows = fields(schema["properties"]["status"], "status", required=False)
    next(rows)
    return rows


def fields(schema: Schema, path: str, required: bool) -> Iterator[Row]:
    """(path, type, default, meaning) of a field and of all below it."""
    yield f"`{path}`", kind_of(schema), default_of(schema, required), schema.get("description", "")
    for name, sub in schema.get("properties", {}).items():
        yield from fields(sub, f"{path}.{name}", name in schema.get("required", ()))
    for inner, suffix in inner_schemas(schema):
        if "properties" in inner:
            for name, sub in inner["properties"].items():
                yield from fields(sub, f"{path}{suffix}.{name}", name in inner.get("required", ()))


def inner_schemas(schema: Schema) -> list[tuple[Schema, str]]:
    """The schema of a list's items or of a map's values, with how a path goes on there."""
    inner = [(schema.get("items"), "[]"), (schema.get("additionalProperties"), ".NAME")]
    return [(one, suffix) for one, suffix in inner if isinstance(one, dict)]


def kind_of(schema: Schema) -> str:
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("format") == "date-time":
        return "time"
    for inner, suffix in inner_schemas(schema):
        return f"list of {TYPES[inner['type']]}s" if suffix == "[]" else f"{TYPES[inner['type']]}s by name"
    return TYPES[schema["type"]] + bounds(schema) if "type" in schema else "anything"


def bounds(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f", {low:,} to {high:,}"
    if low is not None:
        return f", {low:,} or more"
    return f", up to {high:,}" if high is not None else ""


def default_of(schema: Schema, required: bool) -> str:
    if required:
        return "required"
    default = schema.get("default")
    if default is None or default in ({}, []):
        return ""
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def rules(schema: Schema, path: str) -> Iterator[Row]:
    """(field, message) of each rule of a schema and of all below it."""
    for rule in schema.get("x-kubernetes-validations", ()):
        yield f"`{(path + rule.get('fieldPath', '')).removeprefix('.')}`", rule["message"]
    for name, sub in schema.get("properties", {}).items():
        yield from rules(sub, f"{path}.{name}")
    for inner, suffix in inner_schemas(schema):
        yield from rules(inner, path + suffix)


def columns(printed: list[Schema]) -> Iterator[Row]:
    for column in printed:
        where = " (with `-o wide`)" if column.get("priority") else ""
        yield column["name"] + where, f"`{column['jsonPath'].removeprefix('.')}`", column.get("description", "")


def main() -> int:
    wanted = references()
    stale = [path for path, text in wanted.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is not what the CRD says: run `{COMMAND}`", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.write_text(wanted[path], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
