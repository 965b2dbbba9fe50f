"""A policy's own numbers: names, defaults and ranges, and one clear message when one is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Parameter:
    """One number of a policy: its default, its range (both ends allowed) and what it means.

    `is_period`: so many seconds pass between the times at which the policy looks for something better by itself.
    `is_whole`: a number of things, of which there are no parts.
    """

    default: float
    least: float
    most: float
    meaning: str
    is_period: bool = False
    is_whole: bool = False


Parameters = Mapping[str, Parameter]

Ascending = tuple[str, ...]
"""Names of parameters of which each must be above the one before."""

SEED = Parameter(1.0, 0.0, 2.0**53, "whole number that all chance follows from", is_whole=True)


def read_parameters(policy: str, known: Parameters, given: Iterable[tuple[str, float]]) -> dict[str, float]:
    """`given` over the defaults; ValueError naming the field, the value and what would be right."""
    values = dict(given)
    wrong = wrong_parameters(policy, known, values)
    if wrong:
        raise ValueError("; ".join(wrong))
    return {name: parameter.default for name, parameter in known.items()} | values


def wrong_parameters(policy: str, known: Parameters, given: Mapping[str, float]) -> list[str]:
    """A sentence for each that the policy does not take, naming the field, the value and what would be right."""
    words = (_wrong_parameter(policy, known, name, value) for name, value in given.items())
    return [sentence for sentence in words if sentence]


def _wrong_parameter(policy: str, known: Parameters, name: str, value: float) -> str:
    where = f"scheduling.parameters.{name} = {value:g}"
    if name not in known:
        right = f"it has {', '.join(sorted(known))}" if known else "it has none"
        return f"{where}: policy {policy} has no such parameter; {right}"
    parameter = known[name]
    if not parameter.least <= value <= parameter.most:
        return f"{where}: must be from {parameter.least:g} to {parameter.most:g} ({parameter.meaning})"
    if parameter.is_whole and value != int(value):
        return f"{where}: must be a whole number ({parameter.meaning})"
    return ""


def check_ascending(names: Ascending, values: Mapping[str, float]) -> None:
    """ValueError naming the fields and their values where one is not above the one before."""
    if any(values[lower] >= values[upper] for lower, upper in pairwise(names)):
        listed = ", ".join(f"{name} = {values[name]:g}" for name in names)
        raise ValueError(f"scheduling.parameters: {listed}: each must be above the one before")
