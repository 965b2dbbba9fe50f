"""The API's OpenAPI document, made from its routes and from the views themselves: it cannot say anything else."""

from __future__ import annotations

import inspect
import json
import types
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

from storm_operator.console.api_documents import Failure
from storm_operator.console.messages import JSON
from storm_operator.console.routes import PREFIX, ROUTES, Route

SCALARS: Mapping[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
DESCRIPTION = (
    "What the operator sees, decides and does, as its page shows it. Times are seconds since 1970; null is unknown. "
    "Answers carry an ETag: ask with If-None-Match, and what has not changed costs nothing."
)


def openapi_document(version: str) -> dict[str, Any]:
    """OpenAPI 3.1."""
    schemas: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    for name, route in ROUTES.items():
        paths.setdefault(PREFIX + route.path, {})[route.method.lower()] = _operation(name, route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "storm-operator", "version": version, "description": DESCRIPTION},
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "A Kubernetes token."}},
        },
    }


def openapi_text(version: str) -> str:
    return json.dumps(openapi_document(version), indent=2) + "\n"


def _operation(name: str, route: Route, schemas: dict[str, Any]) -> dict[str, Any]:
    ok = "202" if route.form else "200"
    found: dict[str, Any] = {
        "operationId": name,
        "summary": route.summary,
        "parameters": [
            {
                "name": parameter.name,
                "in": "path" if parameter.in_path else "query",
                "required": parameter.in_path,
                "description": parameter.meaning,
                "schema": {"type": parameter.kind},
            }
            for parameter in route.parameters
        ],
        "responses": {
            ok: {"description": route.summary, "content": {JSON: {"schema": _reference(route.answer, schemas)}}},
            "default": {
                "description": "What is wrong.",
                "content": {JSON: {"schema": _reference(Failure, schemas)}},
            },
        },
    }
    if route.form is None:
        found["responses"]["304"] = {"description": "Nothing has changed since the answer with that ETag."}
    else:
        found["requestBody"] = {"required": True, "content": {JSON: {"schema": _reference(route.form, schemas)}}}
        found["security"] = [{}, {"token": []}]
    return found


def _reference(kind: type, schemas: dict[str, Any]) -> dict[str, Any]:
    """A reference to the schema of a dataclass, which is put among `schemas`."""
    if kind.__name__ not in schemas:
        schemas[kind.__name__] = {}  # holds the place while its fields are looked at
        hints = get_type_hints(kind)
        schemas[kind.__name__] = {
            "type": "object",
            "description": " ".join((inspect.getdoc(kind) or "").split()),
            "required": list(hints),
            "additionalProperties": False,
            "properties": {name: _schema(hint, schemas) for name, hint in hints.items()},
        }
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


def _schema(hint: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    if hint in SCALARS:
        return {"type": SCALARS[hint]}
    if is_dataclass(hint):
        assert isinstance(hint, type)
        return _reference(hint, schemas)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is tuple:
        return {"type": "array", "items": _schema(arguments[0], schemas)}
    if origin is Mapping or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return {"type": "object", "additionalProperties": _schema(arguments[1], schemas)}
    if origin in (Union, types.UnionType):
        (only,) = (one for one in arguments if one is not type(None))
        schema = _schema(only, schemas)
        return {"type": [schema["type"], "null"]} if "type" in schema else {"anyOf": [schema, {"type": "null"}]}
    raise TypeError(f"{hint} has no schema")
