"""Sections of a StormTopology's spec, valid by its schema and with defaults: scheduling, resources, parallelism."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from enum import StrEnum
from typing import Any, TypeVar

from storm_operator.adapters.resource_rules import check_rules
from storm_operator.adapters.resource_schema import InvalidResource, check_schema, topology_schema, with_defaults
from storm_operator.core.cron import InvalidCron, parse_cron
from storm_operator.core.excluded_windows import zone_named
from storm_operator.core.placement.registry import check_policy
from storm_operator.core.settings import (
    ApprovalMode,
    ApprovalSettings,
    AutoApproval,
    ExcludedWindow,
    ResourceSettings,
    SchedulingSettings,
)
from storm_operator.core.topology_spec import ComponentParallelism, ParallelismMode, ParallelismSpec

S = TypeVar("S", SchedulingSettings, ResourceSettings)


def checked_section(name: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Section `name` of a spec by itself, checked as a StormTopology's is, and filled up with the CRD's defaults.

    Raises `InvalidResource`; the path that it names begins with `name`.
    """
    schema = topology_schema()["properties"]["spec"]["properties"][name]
    check_schema({name: given}, {"properties": {name: schema}})
    filled: Mapping[str, Any] = with_defaults(given, schema)
    check_rules({name: filled}, {"properties": {name: schema}})
    return filled


def scheduling_settings(given: Mapping[str, Any]) -> SchedulingSettings:
    """Raises `InvalidResource` for what no schema can tell: the policy's own numbers, cron and time zones."""
    settings = _settings(SchedulingSettings, given)
    try:
        check_policy(settings.policy, settings.parameters)
    except ValueError as error:
        raise InvalidResource(f"spec.{error}") from error  # it begins with scheduling.policy or .parameters
    return settings


def resource_settings(given: Mapping[str, Any]) -> ResourceSettings:
    return _settings(ResourceSettings, given)


def parallelism_spec(given: Mapping[str, Any]) -> ParallelismSpec:
    return ParallelismSpec(
        mode=ParallelismMode(given["mode"]),
        components={
            name: ComponentParallelism(**{bound: int(value) for bound, value in component.items()})
            for name, component in given.get("components", {}).items()
        },
        workers=int(given["workers"]) if "workers" in given else None,
    )


def _settings(kind: type[S], given: Mapping[str, Any]) -> S:
    """The section's fields, each in the type of its default."""
    defaults, values = kind(), {}
    for entry in fields(kind):
        key = _camel(entry.name)
        if key in given:
            values[entry.name] = _converted(entry.name, getattr(defaults, entry.name), given[key])
    return kind(**values)


def _converted(name: str, default: object, value: Any) -> Any:
    if name in _NESTED:
        return _NESTED[name](value)
    return type(default)(value) if isinstance(default, StrEnum | int | float) else value


def _parameters(given: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    return tuple(sorted((name, float(value)) for name, value in given.items()))


def _sorted_names(given: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(given))


def _approval(given: Mapping[str, Any]) -> ApprovalSettings:
    conditions = given.get("autoApproveWhen")
    return ApprovalSettings(ApprovalMode(given["mode"]), _auto_approval(conditions) if conditions else None)


def _auto_approval(given: Mapping[str, Any]) -> AutoApproval:
    restarts = given.get("maximumRestartedWorkers")
    return AutoApproval(
        minimum_gain_percent=given.get("minimumGainPercent"),
        maximum_restarted_workers=int(restarts) if restarts is not None else None,
        maximum_payback_seconds=given.get("maximumPaybackSeconds"),
    )


def _excluded_windows(given: Sequence[Mapping[str, Any]]) -> tuple[ExcludedWindow, ...]:
    wrong = [words for at, one in enumerate(given) for words in _wrong_in_window(at, one)]
    if wrong:
        raise InvalidResource(wrong[0], wrong[1:])
    return tuple(ExcludedWindow(one["cron"], int(one["durationSeconds"]), one["timeZone"]) for one in given)


def _wrong_in_window(at: int, given: Mapping[str, Any]) -> list[str]:
    """What the CRD cannot know to be wrong."""
    where, wrong = f"spec.scheduling.excludedWindows[{at}]", []
    try:
        parse_cron(given["cron"])
    except InvalidCron as error:
        wrong.append(f"{where}.cron is {given['cron']!r}: {error}")
    try:
        zone_named(given["timeZone"])
    except ValueError as error:
        wrong.append(f"{where}.timeZone: {error}")
    return wrong


_NESTED: Mapping[str, Callable[[Any], Any]] = {
    "parameters": _parameters,
    "approval": _approval,
    "excluded_windows": _excluded_windows,
    "pinned_components": _sorted_names,
}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)
