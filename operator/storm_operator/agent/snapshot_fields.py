"""The fields of a worker snapshot, read one by one: what each may be at all.

A worker runs its users' code, which may write anything at all. What gets past here can be reckoned with, stands in a
label of the page, and names a process or thread that there can be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from storm_operator.core.short_repr import short_repr

T = TypeVar("T")
Fields = dict[str, Any]

MOST_COUNTED = 2.0**63
"""Java counts no further, so that sums of a cluster's counts are finite."""
LAST_TASK = 2**31 - 1
LAST_PORT = 2**16 - 1
LAST_PID = 2**31 - 1
LONGEST_TEXT = 4_000
"""Characters; a text stands in each of its series."""


class SnapshotError(ValueError):
    """A document that is not a worker snapshot of a version known here; the message names the field."""


def text(fields: Fields, name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise SnapshotError(f".{name} must be a non-empty string, not {short_repr(value)}")
    if not is_label(value):
        raise SnapshotError(
            f".{name} must be text of at most {LONGEST_TEXT} characters that UTF-8 can say, not {short_repr(value)}"
        )
    return value


def is_label(value: str) -> bool:
    """Whether it can be a label of a series. JSON can say half of a surrogate pair, UTF-8 cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return 0 < len(value) <= LONGEST_TEXT


def task(fields: Fields, name: str) -> int:
    return _whole(fields, name, 0, LAST_TASK)


def port(fields: Fields, name: str) -> int:
    return _whole(fields, name, 0, LAST_PORT)


def process_id(fields: Fields, name: str) -> int:
    """Of a process or a thread."""
    return _whole(fields, name, 1, LAST_PID)


def _whole(fields: Fields, name: str, least: int, most: int) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise SnapshotError(f".{name} must be a whole number, not {short_repr(value)}")
    if not least <= value <= most:
        raise SnapshotError(f".{name} must be from {least} to {most}, not {short_repr(value)}")
    return value


def number(fields: Fields, name: str) -> float:
    return checked_number(fields.get(name), name)


def number_or_none(fields: Fields, name: str) -> float | None:
    value = fields.get(name)
    return None if value is None else checked_number(value, name)


def checked_number(value: Any, name: str) -> float:
    # json accepts NaN and Infinity, which no counter can be, and whole numbers that no float can hold.
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= MOST_COUNTED:
        raise SnapshotError(f".{name} must be a number of at least 0 and at most 2^63, not {short_repr(value)}")
    return float(value)


def rows(fields: Fields, name: str, parse_row: Callable[[Fields], T]) -> tuple[T, ...]:
    """Each row of the list called `name`; an error names the row and its field."""
    found = fields.get(name)
    if not isinstance(found, list):
        raise SnapshotError(f"{name} must be a list, not {short_repr(found)}")
    parsed = []
    for index, row in enumerate(found):
        if not isinstance(row, dict):
            raise SnapshotError(f"{name}[{index}] must be an object, not {short_repr(row)}")
        try:
            parsed.append(parse_row(row))
        except SnapshotError as error:
            raise SnapshotError(f"{name}[{index}]{error}") from None
    return tuple(parsed)
