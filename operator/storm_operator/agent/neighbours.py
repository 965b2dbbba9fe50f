"""Which peers an agent probes. In a large cluster not all: a thousand agents would make a million distances."""

from __future__ import annotations

import re
from collections.abc import Iterable

MOST_NEIGHBOURS = 32
"""Enough for network coordinates to tell near from far (docs/explanation/architecture.md)."""


def neighbours(own: str, peers: Iterable[str], most: int = MOST_NEIGHBOURS) -> tuple[str, ...]:
    """All peers; where there are more than `most`, those some steps before and after `own` in the ring of all names.

    The steps grow geometrically, from one to half of the ring, so that any two supervisors are few steps apart. All
    agents take the same steps: a pair is probed from both sides or from none, and each agent by as many as it probes.
    Names are in the order of the numbers in them: of a StatefulSet that may still grow, the first pods are there, and
    short steps lead to others that are.
    """
    ring = sorted({own, *peers}, key=_numbers_by_value)
    if len(ring) - 1 <= most:
        return tuple(name for name in ring if name != own)
    here = ring.index(own)
    halfway = (len(ring) - 1) // 2
    places = {(here + sign * step) % len(ring) for step in _steps(halfway, most // 2) for sign in (1, -1)}
    return tuple(ring[place] for place in sorted(places))


def _steps(longest: int, count: int) -> list[int]:
    """`count` whole numbers, about geometric, from 1 to `longest`."""
    steps: list[int] = []
    for at in range(count):
        wanted = round(longest ** (at / (count - 1))) if count > 1 else 1
        steps.append(max(wanted, steps[-1] + 1 if steps else 1))
    return steps


def _numbers_by_value(name: str) -> tuple[list[tuple[int, str]], str]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", name)], name
