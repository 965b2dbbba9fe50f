"""The CRD's rules (CEL, which only an API server evaluates) for where there is none: by message, the same in Python.

The messages are the CRD's. Rules about a change of an object, and those that hold in Kubernetes alone, have no twin.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from storm_operator.adapters.resource_schema import Mistake, path_text, refuse
from storm_operator.core.short_repr import short_repr

Rule = Callable[[Any], bool]
Path = tuple[str | int, ...]

CRON_SHAPE = re.compile(r"[0-9A-Za-z*/,-]+( [0-9A-Za-z*/,-]+){4}")
CONDITIONS = ("minimumGainPercent", "maximumRestartedWorkers", "maximumPaybackSeconds")


def _one_of(*names: str) -> Rule:
    return lambda it: sum(name in it for name in names) == 1


def _all_or_none(*names: str) -> Rule:
    return lambda it: sum(name in it for name in names) in (0, len(names))


def _own_name(document: Mapping[str, Any]) -> str:
    metadata = document.get("metadata")
    return str(metadata.get("name")) if isinstance(metadata, dict) else ""


def _has_bounds(component: Mapping[str, Any]) -> bool:
    return "minimum" in component or "maximum" in component


TWINS: Mapping[str, Rule] = {
    "Storm allows no dot in a topology's name; give another name in spec.topologyName": lambda it: (
        "topologyName" in it["spec"] or "." not in _own_name(it)
    ),
    "exactly one of spec.jar, spec.flux and spec.adopt is needed": _one_of("jar", "flux", "adopt"),
    "the port must be 1 to 65535": lambda it: (
        ":" not in it or it.endswith("]") or 1 <= int(it.rpartition(":")[2]) <= 65535
    ),
    "exactly one of path, url and persistentVolumeClaim says where the jar is": _one_of(
        "path", "url", "persistentVolumeClaim"
    ),
    "url and sha256 belong together; the jar's content must be known to be the right one": _all_or_none(
        "url", "sha256"
    ),
    "image is the image that holds path; give path too": lambda it: "image" not in it or "path" in it,
    "must be relative to the root of the volume; leave out a leading / and any ..": lambda it: (
        not it.startswith("/") and ".." not in it.split("/")
    ),
    "exactly one of spec.flux.definition, spec.flux.configMap and spec.flux.path is needed": _one_of(
        "definition", "configMap", "path"
    ),
    "exactly one of jar (a path) and jarFrom says where the jar with Flux and the classes is": _one_of(
        "jar", "jarFrom"
    ),
    "a component cannot be both stateful and stateless; name it in one list": lambda it: (
        not set(it["stateful"]) & set(it["stateless"])
    ),
    "minimum must not be more than maximum": lambda it: it.get("minimum", 0) <= it.get("maximum", math.inf),
    "minimum and maximum of components need mode Auto; with mode Fixed give executors": lambda it: (
        it["mode"] == "Auto" or not any(_has_bounds(one) for one in it.get("components", {}).values())
    ),
    "give executors, or bounds (minimum, maximum), and not both": lambda it: ("executors" in it) != _has_bounds(it),
    "autoApproveWhen needs mode Auto; with mode Manual every plan waits for a person": lambda it: (
        "autoApproveWhen" not in it or it["mode"] == "Auto"
    ),
    "give at least one of minimumGainPercent, maximumRestartedWorkers and maximumPaybackSeconds": lambda it: any(
        name in it for name in CONDITIONS
    ),
    "must have five fields with one space between them (minute, hour, day of month, month, day of week), for example"
    " 0 8 * * MON-FRI": lambda it: CRON_SHAPE.fullmatch(it) is not None,
    "must be at least 0.05": lambda it: it >= 0.05,
    "floorMillicores must not be more than ceilingMillicores": lambda it: (
        it["floorMillicores"] <= it["ceilingMillicores"]
    ),
}
WITHOUT_TWIN = frozenset(
    {
        "the topology's name in Storm cannot change; delete this StormTopology and make another",
        "a topology that runs (see status.topologyId) cannot change to another Nimbus; delete this StormTopology"
        " (deletionPolicy Leave keeps the topology) and make another",
        "in Kubernetes this is a path inside an image and must begin with /",
        "path is for the standalone mode; in Kubernetes give definition or configMap",
    }
)


def check_rules(document: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """Raises `InvalidResource` for the rules that `document`, valid by `schema` and with defaults, breaks."""
    refuse(rule_mistakes(document, schema))


def rule_mistakes(
    document: Mapping[str, Any], schema: Mapping[str, Any], known: Collection[Mistake] = ()
) -> list[Mistake]:
    """The rules that `document`, with defaults, breaks, but for those of fields of which a mistake is `known`."""
    return list(_broken_rules(document, schema, [one.path for one in known]))


def _broken_rules(document: Mapping[str, Any], schema: Mapping[str, Any], wrong: Collection[Path]) -> Iterator[Mistake]:
    for path, value, rule in _rules_of(document, schema, ()):
        message = rule["message"]
        if message in TWINS and not _concerns(path, message, wrong) and not TWINS[message](value):
            where = rule.get("fieldPath", "").removeprefix(".") or path_text(path)
            yield Mistake(path, f"{where}: {message}; found {_found(value, message)}")


def _concerns(path: Path, message: str, wrong: Collection[Path]) -> bool:
    """Whether any of the `wrong` fields is the one that has the rule, or of those below it that its message names."""
    fields, depth = re.findall(r"\w+", message), len(path)
    return any(one[:depth] == path and (len(one) == depth or one[depth] in fields) for one in wrong)


def rule_messages(schema: Mapping[str, Any]) -> Iterator[str]:
    """The messages of all rules in a schema."""
    yield from (rule["message"] for rule in schema.get("x-kubernetes-validations", ()))
    for sub in (*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")):
        if isinstance(sub, dict):
            yield from rule_messages(sub)


def _rules_of(value: Any, schema: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, Any, Mapping[str, Any]]]:
    """(path, value there, rule) of each rule that applies to `value`, outer ones first."""
    yield from ((path, value, rule) for rule in schema.get("x-kubernetes-validations", ()))
    if isinstance(value, list):
        for at, item in enumerate(value):
            yield from _rules_of(item, schema.get("items", {}), (*path, at))
    elif isinstance(value, dict):
        others = schema.get("additionalProperties")
        for name, item in value.items():
            sub = schema.get("properties", {}).get(name, others)
            if isinstance(sub, dict):
                yield from _rules_of(item, sub, (*path, name))


def _found(value: Any, message: str) -> str:
    """What there is of the fields that `message` speaks of; single values and lists are shown."""
    if not isinstance(value, dict):
        return short_repr(value)
    named = dict.fromkeys(re.findall(r"\w+", message))
    shown = [
        name if isinstance(value[name], dict) else f"{name} {short_repr(value[name])}"
        for name in named
        if name in value
    ]
    return " and ".join(shown) or "none"
