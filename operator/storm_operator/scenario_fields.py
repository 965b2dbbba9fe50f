"""Fields of a scenario file: each reader takes a value and its path, and gives the value as what it should be."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any

from storm_operator.core.finite import is_finite, number_in_words
from storm_operator.core.short_repr import short_repr

Reader = Callable[[object, str], Any]
"""Raises `InvalidScenario`."""


class InvalidScenario(Exception):
    """The file is no scenario; the message names the field, the value and what would be right."""


def in_words(value: object) -> str:
    """What stands in the file, as a message quotes it."""
    return "left empty" if value is None else short_repr(value)


def one_of(known: Collection[str]) -> Reader:
    """A text of those `known`, which are named where it is none."""

    def reader(value: object, path: str) -> str:
        if not isinstance(value, str) or value not in known:
            raise InvalidScenario(f"{path} is {in_words(value)}: one of {', '.join(known)} is right")
        return value

    return reader


def required(given: Mapping[str, Any], field: str, reader: Reader, where: str) -> Any:
    """As `read`, of a field that must be there."""
    return reader(given.get(field), f"{where}.{field}")


def read(given: Mapping[str, Any], field: str, reader: Reader, default: Any, where: str = "") -> Any:
    """The field of the mapping at the path `where` ("": the document); `default` where it is left out."""
    return reader(given[field], f"{where}.{field}".removeprefix(".")) if field in given else default


def number(right: str, fits: Callable[[float], bool]) -> Reader:
    """Of finite numbers those that fit, which are called `right`."""

    def reader(value: object, path: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidScenario(f"{path} is {in_words(value)}: {right} is right")
        if not is_finite(value) or not fits(value):
            raise InvalidScenario(f"{path} is {number_in_words(value)}: {right} is right")
        return float(value)

    return reader


NOT_NEGATIVE = number("a number of 0 or more", lambda value: value >= 0.0)
POSITIVE = number("a number of more than 0", lambda value: value > 0.0)
SHARE = number("a number from 0 to 1", lambda value: 0.0 <= value <= 1.0)


def whole(least: int, most: int | None = None) -> Reader:
    """A whole number of `least` or more, and up to `most` where it is given."""

    def reader(value: object, path: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InvalidScenario(f"{path} is {in_words(value)}: a whole number of {least} or more is right")
        if most is not None and value > most:
            raise InvalidScenario(f"{path} is {in_words(value)}: up to {most:,} can be simulated")
        return value

    return reader


def by_name(reader: Reader) -> Reader:
    """A mapping, with each of its values read by `reader`."""
    return lambda value, path: {name: reader(one, f"{path}.{name}") for name, one in mapping(value, path).items()}


def flag(value: object, path: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidScenario(f"{path} is {in_words(value)}: true or false is right")
    return value


def text(value: object, path: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidScenario(f"{path} is {in_words(value)}: a text is right")
    return value


def rate_text(value: object, path: str) -> str:
    """A plain number is one, too."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{Decimal(str(value)):f}" if is_number else text(value, path)


def mapping(value: object, path: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidScenario(f"{path} is {in_words(value)}: a mapping is right")
    return value


def sequence(value: object, path: str) -> Sequence[Any]:
    if not isinstance(value, list):
        raise InvalidScenario(f"{path} is {in_words(value)}: a list is right")
    return value


def only(given: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    """Raises `InvalidScenario` for a field of `given`, at the path `where`, that is not known."""
    unknown = sorted(set(given) - set(known), key=str)
    if unknown:
        raise InvalidScenario(f"{where} has the unknown field {unknown[0]!r}: only {', '.join(known)} are known")
