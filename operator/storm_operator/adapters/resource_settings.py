"""Sections of a StormTopology's spec, valid by its schema and with defaults: scheduling, resources, parallelism."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from enum import StrEnum
from typing import Any, TypeVar

from storm_operator.adapters.resource_rules import check_rules
from storm_operator.adapters.resource_schema import (
    Mistake,
    check_schema,
    path_text,
    refuse,
    topology_schema,
    with_defaults,
)
from storm_operator.core.cron import InvalidCron, parse_cron
from storm_operator.core.excluded_windows import zone_named
from storm_operator.core.placement.registry import policy_mistakes
from storm_operator.core.settings import (
    ApprovalMode,
    ApprovalSettings,
    AutoApproval,
    ExcludedWindow,
    ResourceSettings,
    SchedulingSettings,
)
from storm_operator.core.topology_spec import ComponentParallelism, ParallelismMode, ParallelismSpec

SCHEDULING = ("spec", "scheduling")
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
    refuse(scheduling_mistakes(given, ()))
    return _settings(SchedulingSettings, given)


def scheduling_mistakes(given: Mapping[str, Any], known: Collection[Mistake]) -> list[Mistake]:
    """What no schema can tell of a section, but for fields of which a mistake is `known`."""
    found: list[Mistake] = []
    windows = given.get("excludedWindows")
    for at, window in enumerate(windows if isinstance(windows, list) else ()):
        where = (*SCHEDULING, "excludedWindows", at)
        found += [] if _is_known(where, known) else _wrong_in_window(where, window)
    named = ("policy", "parameters")
    if not any(_is_known((*SCHEDULING, name), known) for name in named):
        settings = _settings(SchedulingSettings, {name: given[name] for name in named if name in given})
        sentences = policy_mistakes(settings.policy, settings.parameters)
        found += [Mistake((*SCHEDULING, "parameters"), f"spec.{words}") for words in sentences]
    return found


def _is_known(path: tuple[str | int, ...], mistakes: Collection[Mistake]) -> bool:
    """Whether one of them is of that field, or of what is in it."""
    return any(one.path[: len(path)] == path for one in mistakes)


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
    return tuple(ExcludedWindow(one["cron"], int(one["durationSeconds"]), one["timeZone"]) for one in given)


def _wrong_in_window(path: tuple[str | int, ...], given: Mapping[str, Any]) -> list[Mistake]:
    """What the CRD cannot know to be wrong."""
    where, wrong = path_text(path), []
    try:
        parse_cron(given["cron"])
    except InvalidCron as error:
        wrong.append(Mistake(path, f"{where}.cron is {given['cron']!r}: {error}"))
    try:
        zone_named(given["timeZone"])
    except ValueError as error:
        wrong.append(Mistake(path, f"{where}.timeZone: {error}"))
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
