"""The CRDs' own schemas, used where no API server does: defaults, and one sentence for the worst mistake."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match
from jsonschema.validators import extend

from storm_operator.core.finite import is_finite, number_in_words
from storm_operator.core.short_repr import short_repr
from storm_operator.core.wording import first_of

PACKAGE = Path(__file__).parent.parent
CRD_FOLDERS = (PACKAGE / "crds", PACKAGE.parent.parent / "crds")
"""Installed, the CRDs lie in the package; in a checkout, where kubectl takes them from."""


TYPE_NAMES = {
    "object": "a mapping",
    "array": "a list",
    "string": "a text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
}

MOST_TOLD = 5
TOO_DEEP = "the document is nested too deeply"


class InvalidResource(ValueError):
    """A document that is not a valid StormTopology; the message names the field, the value and what would be right.

    `others` are as many more such messages, where more than one thing is known to be wrong. `topology` is the name of
    the topology that it describes, where anybody has looked and that can be read all the same.
    """

    def __init__(self, message: str, others: Iterable[str] = (), topology: str = "") -> None:
        super().__init__(message)
        self.others = tuple(others)
        self.topology = topology

    @property
    def in_one_sentence(self) -> str:
        """All that is known to be wrong, as far as a sentence can hold it."""
        return first_of((str(self), *self.others), "; ", MOST_TOLD)


class UnreadableResource(InvalidResource):
    """A file that could not be read: nothing is known of the document in it, and it may be read later as it is."""


def crd_file(plural: str) -> Path:
    """The file that defines a resource, by the resource's plural."""
    files = (folder / f"{plural}.storm-operator.dev.yaml" for folder in CRD_FOLDERS)
    return next(file for file in files if file.is_file())


def _pattern(_: object, pattern: str, instance: object, __: object) -> Iterator[ValidationError]:
    """As the API server has it: `$` is the end of the text, also where that is a new line, and `\\w` is of ASCII.

    The CRDs' patterns begin with `^` and end with `$`.
    """
    if isinstance(instance, str) and re.fullmatch(pattern, instance, re.ASCII) is None:
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


SchemaValidator = extend(Draft202012Validator, {"pattern": _pattern})  # type: ignore[no-untyped-call]


@cache
def topology_schema() -> Mapping[str, Any]:
    """The CRD's OpenAPI schema, closed: a field that it does not know is an error (the API server would prune it).

    A list that the API server takes for a set has each item once.
    """
    crd = yaml.safe_load(crd_file("stormtopologies").read_text(encoding="utf-8"))
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return cast("Mapping[str, Any]", _closed(schema))


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong at a field's path, in a sentence that names it, its value and what would be right."""

    path: tuple[str | int, ...]
    words: str


def refuse(mistakes: Iterable[Mistake]) -> None:
    """Raises `InvalidResource` where there are any; each sentence is told once."""
    words = list(dict.fromkeys(one.words for one in mistakes))
    if words:
        raise InvalidResource(words[0], words[1:])


def check_schema(document: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """Raises `InvalidResource` for what `schema_mistakes` finds."""
    refuse(schema_mistakes(document, schema))


def schema_mistakes(document: Mapping[str, Any], schema: Mapping[str, Any]) -> list[Mistake]:
    """The mistakes that a schema of single fields can tell, the worst of them first.

    Before them a number that JSON does not have, and so no API server lets pass: no bound of a schema stops NaN.
    """
    strange = _not_finite_mistakes(document)
    places = {path_text(one.path) for one in strange}
    found = [one for one in SchemaValidator(schema).iter_errors(document) if path_text(one.absolute_path) not in places]
    problems = _each_told_once(found)
    worst = best_match(problems)
    if worst is None:
        return strange
    each = (best_match([problem]) for problem in problems if _misspelt(problem, problems) is None)
    first = _misspelt(worst, problems) or worst
    return [*strange, *(Mistake(tuple(one.absolute_path), _sentence(one)) for one in (first, *each) if one is not None)]


def with_defaults(value: Any, schema: Mapping[str, Any]) -> Any:
    """A copy of `value` in which what is absent has the schema's default, as the API server would store it."""
    if isinstance(value, list):
        return [with_defaults(item, schema.get("items", {})) for item in value]
    if not isinstance(value, dict):
        return value
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    filled = {name: sub["default"] for name, sub in properties.items() if "default" in sub} | value
    return {
        name: with_defaults(item, properties.get(name, others if isinstance(others, dict) else {}))
        for name, item in filled.items()
    }


def with_text_keys(value: Any) -> Any:
    """A copy of `value` whose keys are texts, as JSON has them and `kubectl` makes them: a component may be named 7."""
    if isinstance(value, list):
        return [with_text_keys(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key if isinstance(key, str) else _yaml_word(key): with_text_keys(item) for key, item in value.items()}


def _yaml_word(key: object) -> str:
    """A key that is no text as it stood in the file: `true` and not `True`."""
    return {True: "true", False: "false", None: "null"}[key] if isinstance(key, bool | None) else str(key)


def of_known_fields(document: Any, schema: Mapping[str, Any]) -> Any:
    """A copy of `document` without the fields that the closed `schema` does not know, as an API server would prune it.

    Raises `InvalidResource`.
    """
    try:
        return _pruned(document, schema)
    except RecursionError:
        raise InvalidResource(TOO_DEEP) from None


def _pruned(value: Any, schema: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_pruned(item, schema.get("items", {})) for item in value]
    if not isinstance(value, dict):
        return value
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    return {
        name: _pruned(item, properties.get(name, others if isinstance(others, dict) else {}))
        for name, item in value.items()
        if name in properties or others is not False
    }


def path_text(path: Iterable[str | int]) -> str:
    """A field's path as kubectl writes it, e.g. `spec.scheduling.excludedWindows[0].cron`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".") or "the document"


def _not_finite_mistakes(document: Mapping[str, Any]) -> list[Mistake]:
    try:
        strange = list(_not_finite(document, ()))
    except RecursionError:
        raise InvalidResource(TOO_DEEP) from None
    return [
        Mistake(path, f"{path_text(path)} is {number_in_words(value)}: a finite number is right")
        for path, value in strange
    ]


def _not_finite(value: object, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], float]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _not_finite(item, (*path, str(name)))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _not_finite(item, (*path, at))
    elif isinstance(value, int | float) and not is_finite(value):
        yield path, value


def _closed(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items() if key not in ("properties", "items")}
    if "items" in schema:
        closed["items"] = _closed(schema["items"])
    if schema.get("x-kubernetes-list-type") == "set":
        closed["uniqueItems"] = True
    if "properties" in schema:
        closed["properties"] = {name: _closed(sub) for name, sub in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            closed.setdefault("additionalProperties", False)
    return closed


def value_in_words(value: object) -> str:
    return "left empty" if value is None else short_repr(value)


def _each_told_once(problems: Sequence[ValidationError]) -> list[ValidationError]:
    """What is of another type is none of the values that are right, either: these say it all, but of what is left empty
    its type does."""
    listed = {tuple(one.absolute_path) for one in problems if one.validator == "enum" and one.instance is not None}
    return [
        one
        for one in problems
        if not (one.validator == "enum" and one.instance is None)
        and not (one.validator == "type" and tuple(one.absolute_path) in listed)
    ]


def _misspelt(problem: ValidationError, problems: Iterable[ValidationError]) -> ValidationError | None:
    """The unknown field beside one that is missing: most likely that one, written otherwise."""
    if problem.validator != "required":
        return None
    return next(
        (
            one
            for one in problems
            if one.validator == "additionalProperties" and one.absolute_path == problem.absolute_path
        ),
        None,
    )


def _sentence(error: ValidationError) -> str:
    """jsonschema's message with the field's path in front, and without the whole document in it."""
    path = path_text(error.absolute_path)
    if error.validator == "additionalProperties":
        properties = cast("Mapping[str, Any]", error.schema).get("properties", {})
        extra = ", ".join(sorted(map(str, set(cast("Mapping[Any, Any]", error.instance)) - set(properties))))
        return f"{path}: unknown field {extra}; known are {', '.join(sorted(properties))}"
    if error.validator == "enum":
        right = ", ".join(str(value) for value in cast("list[Any]", error.validator_value))
        return f"{path} is {value_in_words(error.instance)}: one of {right} is right"
    if error.validator == "pattern":
        meaning = cast("Mapping[str, Any]", error.schema).get("description", f"text like {error.validator_value}")
        return f"{path} is {value_in_words(error.instance)}, and should be: {meaning}"
    if error.validator == "required":
        return _sentence_of_missing(error)
    if error.validator == "uniqueItems":
        items = cast("list[Any]", error.instance)
        twice = next(item for at, item in enumerate(items) if item in items[:at])
        return f"{path} has {value_in_words(twice)} more than once: once is right"
    if error.validator == "type":
        return f"{path} is {value_in_words(error.instance)}: {TYPE_NAMES[cast('str', error.validator_value)]} is right"
    return f"{path} is {value_in_words(error.instance)}: {error.message.removeprefix(repr(error.instance)).strip()}"


def _sentence_of_missing(error: ValidationError) -> str:
    """Of several that are missing, each is an error of its own; only its message says which one it is."""
    schema = cast("Mapping[str, Any]", error.schema)
    name = next(name for name in schema["required"] if error.message.startswith(f"{name!r} "))
    right = TYPE_NAMES[schema["properties"][name]["type"]]
    return f"{path_text((*error.absolute_path, name))} is missing: {right} is right"
