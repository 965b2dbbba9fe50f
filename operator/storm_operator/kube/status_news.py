"""Whether a status is written: what in it is news, what can wait, and how long a message may be. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from storm_operator.kube.managed import Body

NEWS_FRACTION = 0.1
"""Figures that changed by less than this share of themselves are no news: a steady topology is not written again."""

FIGURES_SECONDS = 60.0
"""Of a topology that nothing else happens to, figures are written so often at most, those in sentences too."""

LONGEST_MESSAGE = 32_768
"""Characters, by the CRDs."""

MESSAGES = frozenset({"message", "reason"})

NUMBER = re.compile(r"\d[\d,]*(\.\d+)?")

MEASURED = frozenset({"latency", "throughputTuplesPerSecond", "interSupervisorTuplesPerSecond", "percentOfBest"})

HOLDS = frozenset({"lastHold", "heldResize"})


def is_news(old: Body, new: Mapping[str, Any]) -> bool:
    """Whether `new` says anything that `old` does not, small changes of figures apart."""
    return any(_differs(old.get(key), value) for key, value in new.items())


def is_due(old: Body, new: Mapping[str, Any], figures_age_seconds: float) -> bool:
    """Whether `new` is to be written now, that many seconds after the figures in `old` were (infinity: never)."""
    if is_news(_told_at_once(old), {k: v for k, v in _told_at_once(new).items() if k not in MEASURED}):
        return True
    return figures_age_seconds >= FIGURES_SECONDS and is_news(old, new)


def _told_at_once(status: Body) -> dict[str, Any]:
    """Without numbers in sentences, and without the sentences of holds: while the reason stays, each pass may name
    another proposal in them."""
    steady: dict[str, Any] = without_numbers(status)
    for name in HOLDS & steady.keys():
        steady[name] = {key: part for key, part in (steady[name] or {}).items() if key != "message"} or None
    return steady


def has_figures(status: Mapping[str, Any]) -> bool:
    """Whether anything in it may be another number in the next pass: what was measured, or a number in a sentence."""
    return any(status.get(name) is not None for name in MEASURED) or without_numbers(status) != status


def without_numbers(value: Any) -> Any:
    """The same with all messages as they are whatever was measured."""
    if isinstance(value, Mapping):
        return {
            name: NUMBER.sub("#", one) if name == "message" and isinstance(one, str) else without_numbers(one)
            for name, one in value.items()
        }
    return [without_numbers(one) for one in value] if isinstance(value, list) else value


def with_short_messages(value: Any) -> Any:
    """The same with no message that is longer than the CRDs allow: the API server would refuse all of it."""
    if isinstance(value, Mapping):
        return {
            name: _shortened(one) if name in MESSAGES and isinstance(one, str) else with_short_messages(one)
            for name, one in value.items()
        }
    return [with_short_messages(one) for one in value] if isinstance(value, list) else value


def _shortened(message: str) -> str:
    return message if len(message) <= LONGEST_MESSAGE else f"{message[: LONGEST_MESSAGE - 3]}..."


def _differs(old: Any, new: Any) -> bool:
    # What is counted is an int, and news; what is measured is a float (that the API may give back as an int).
    if isinstance(new, float) and isinstance(old, int | float) and not isinstance(old, bool):
        return abs(new - old) > NEWS_FRACTION * max(abs(new), abs(old))
    if isinstance(new, Mapping) and isinstance(old, Mapping):
        return any(_differs(old.get(key), new.get(key)) for key in {*old, *new})
    if isinstance(new, list) and isinstance(old, list):
        return len(old) != len(new) or any(_differs(a, b) for a, b in zip(old, new, strict=True))
    return bool(old != new)
