"""An API server's own OpenAPI documents as the JSON schemas that kubeconform reads: one file for each kind. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]
REFERENCE = "#/components/schemas/"
LOCATION = "{{ .Group }}.{{ .ResourceAPIVersion }}.{{ .ResourceKind }}.json"
"""Where kubeconform finds a kind's schema, below the folder; in the core group `Group` is the version."""

NO_CONSTRAINTS = frozenset({"properties", "default", "example", "format"})
"""Keywords that say nothing about what is valid, or mean something else to Kubernetes; properties are taken apart."""


def kind_schemas(document: Schema) -> Iterator[tuple[str, dict[str, Any]]]:
    """File name and closed schema of each kind in the OpenAPI v3 document of one group and version.

    Closed: what an object does not name is not allowed in it, unless the API says that anything is.
    """
    schemas: Mapping[str, Schema] = document["components"]["schemas"]
    for name, schema in schemas.items():
        # Options for deleting and the like have one entry for every group: they are no objects that anyone applies.
        kinds = schema.get("x-kubernetes-group-version-kind", ())
        if len(kinds) == 1 and "metadata" in schema.get("properties", {}):
            definitions = {each: closed(schemas[each]) for each in sorted(_reachable(name, schemas))}
            yield file_name(kinds[0]), {"$ref": f"#/definitions/{name}", "definitions": definitions}


def file_name(kind: Mapping[str, str]) -> str:
    """`LOCATION`, filled in."""
    return f"{kind['group'] or kind['version']}.{kind['version']}.{kind['kind'].lower()}.json"


def closed(node: Any) -> Any:
    """The schema in JSON schema's words, with `additionalProperties: false` in each object that names its fields."""
    if isinstance(node, list):
        return [closed(each) for each in node]
    if not isinstance(node, Mapping):
        return node
    if "$ref" in node:
        return {"$ref": "#/definitions/" + node["$ref"].removeprefix(REFERENCE)}
    made = {key: closed(value) for key, value in node.items() if key not in NO_CONSTRAINTS}
    if "properties" in node:
        # Apart: the names of fields are no keywords, though a field may be called `default` or `$ref`.
        made["properties"] = {field: closed(schema) for field, schema in node["properties"].items()}
        if not node.get("x-kubernetes-preserve-unknown-fields") and "additionalProperties" not in node:
            made["additionalProperties"] = False
    return made


def _reachable(name: str, schemas: Mapping[str, Schema]) -> set[str]:
    """The schema and all that it refers to, itself perhaps among them."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        current = waiting.pop()
        if current not in found:
            found.add(current)
            waiting += _references(schemas[current])
    return found


def _references(node: Any) -> Iterator[str]:
    """Names of the schemas that a schema refers to."""
    if isinstance(node, list):
        for each in node:
            yield from _references(each)
    elif isinstance(node, Mapping):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].removeprefix(REFERENCE)
        for each in node.values():
            yield from _references(each)
