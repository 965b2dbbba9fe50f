"""How the files of open periods are called."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class PartName:
    """`2026-01-31T120000-0000042.parquet`: when its period ended, and its number among those of its run."""

    date: str
    clock: str
    number: str

    def __str__(self) -> str:
        return f"{self.date}T{self.clock}-{self.number}.parquet"

    @classmethod
    def of(cls, path: str) -> PartName:
        date, _, rest = posixpath.basename(path).removesuffix(".parquet").partition("T")
        clock, _, number = rest.partition("-")
        return cls(date, clock, number)


def by_date(parts: Iterable[str]) -> dict[str, list[str]]:
    """Of each date in the order that they were written in, whatever the clock did.

    A file is then called after its first and last part, and whatever is written later is of another name.
    """
    found: dict[str, list[str]] = {}
    for path in sorted(parts, key=lambda path: PartName.of(path).number):
        found.setdefault(PartName.of(path).date, []).append(path)
    return found


def utc_date(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}"


def utc_clock(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%H%M%S}"
