"""`key=value` texts laid over the default settings, for trying a policy with other numbers.

What results is held to the StormTopology's schema and rules, as a file or a cluster would be.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from storm_operator.adapters.resource_schema import InvalidResource
from storm_operator.adapters.resource_settings import checked_section
from storm_operator.core.placement.registry import POLICIES, parameters_of
from storm_operator.core.schema_errors import LARGEST
from storm_operator.core.settings import ObjectiveWeights, ResourceSettings, SchedulingSettings

NOT_SETTABLE = frozenset({"weights", "parameters", "approval", "excluded_windows", "pinned_components"})


class InvalidOverride(ValueError):
    """A `key=value` that cannot be laid over the settings; the message says what would be right."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All that a plan from a file depends on beside the file."""

    scheduling: SchedulingSettings = field(default_factory=SchedulingSettings)
    resources: ResourceSettings = field(default_factory=ResourceSettings)


def override_settings(settings: Settings, overrides: Iterable[str]) -> Settings:
    """`settings` with each `key=value` of `overrides` laid over them, in order.

    Keys are field names as StormTopology has them (`coolDownSeconds`) or as the code has them (`cool_down_seconds`);
    `weights.<name>` is a price of the objective and `parameters.<name>` a number of the policy's own. Raises
    `InvalidOverride`, also where a StormTopology with the same settings would be refused.
    """
    for text in overrides:
        settings = _overridden(settings, *key_and_value(text))
    _check_section("scheduling", settings.scheduling)
    _check_section("resources", settings.resources)
    return settings


def key_and_value(text: str) -> tuple[str, str]:
    """Of `key=value`, without the space around each. Raises `InvalidOverride` where one is lacking."""
    key, _, value = (part.strip() for part in text.partition("="))
    if not key or not value:
        raise InvalidOverride(f"{text!r} has no key or no value: KEY=VALUE is needed, e.g. coolDownSeconds=0")
    return key, value


def setting_names() -> tuple[str, ...]:
    """Every key that can be set, as StormTopology spells it."""
    plain = [entry.name for kind in (SchedulingSettings, ResourceSettings) for entry in fields(kind)]
    weights = [f"weights.{_camel(entry.name)}" for entry in fields(ObjectiveWeights)]
    return tuple(sorted(_camel(name) for name in plain if name not in NOT_SETTABLE)) + tuple(sorted(weights))


def _overridden(settings: Settings, key: str, value: str) -> Settings:
    scheduling, resources = settings.scheduling, settings.resources
    section, dot, name = key.rpartition(".")
    name = _snake(name)
    if section == "parameters":
        numbers = {**dict(scheduling.parameters), key.rpartition(".")[2]: _number(key, value)}
        return replace(settings, scheduling=replace(scheduling, parameters=tuple(sorted(numbers.items()))))
    if section == "weights" and name in _names(ObjectiveWeights):
        weights = replace(scheduling.weights, **{name: _number(key, value)})
        return replace(settings, scheduling=replace(scheduling, weights=weights))
    if not dot and name in _names(SchedulingSettings):
        changed = replace(scheduling, **{name: _like(getattr(scheduling, name), key, value)})
        return replace(settings, scheduling=changed)
    if not dot and name in _names(ResourceSettings):
        return replace(settings, resources=replace(resources, **{name: _like(getattr(resources, name), key, value)}))
    right = _meant(key, scheduling.policy) or f"expected parameters.<name> or one of {', '.join(setting_names())}"
    raise InvalidOverride(f"{key!r} is no setting: {right}")


def _check_section(section: str, settings: SchedulingSettings | ResourceSettings) -> None:
    given = {_camel(name): getattr(settings, name) for name in _names(type(settings))}
    try:
        checked_section(section, given)
    except InvalidResource as error:
        raise InvalidOverride(str(error).removeprefix(f"{section}.")) from error  # keys have no section


def _meant(key: str, policy: str) -> str | None:
    """A question where `key` is a setting's name with a wrong section or none."""
    name = key.rpartition(".")[2]
    likely = [setting for setting in setting_names() if setting.rpartition(".")[2] == _camel(name)]
    takers = [taker for taker in sorted(POLICIES) if name in parameters_of(taker)]
    if takers:
        likely.append(f"parameters.{name}" + ("" if policy in takers else f" (of policy {' or '.join(takers)})"))
    return f"did you mean {' or '.join(likely)}?" if likely else None


def _names(kind: type[Any]) -> set[str]:
    return {entry.name for entry in fields(kind)} - NOT_SETTABLE


def _like(present: object, key: str, value: str) -> Any:
    """`value` as the type that the setting has now."""
    if isinstance(present, StrEnum):
        choices = [choice.value for choice in type(present)]
        if value not in choices:
            raise InvalidOverride(f"{key} is {value!r}: expected one of {', '.join(choices)}")
        return type(present)(value)
    if isinstance(present, int):
        if not value.isdecimal() or int(value) < 1:
            raise InvalidOverride(f"{key} is {value!r}: expected a whole number of 1 or more")
        return int(value)
    return _finite(key, value, "a number") if isinstance(present, float) else value


def _number(key: str, value: str) -> float:
    """Of those that no schema bounds: a price, or a number of the policy's own. Sums of larger ones would overflow."""
    right = f"a number from 0 to {LARGEST:g}"
    number = _finite(key, value, right)
    if not 0.0 <= number <= LARGEST:
        raise InvalidOverride(f"{key} is {value!r}: expected {right}")
    return number


def _finite(key: str, value: str, right: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidOverride(f"{key} is {value!r}: expected {right}")
    return number


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)
