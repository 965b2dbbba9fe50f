"""Whether latency has come to rest: it falls at first, while code is compiled and what waited is worked off."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

PASSES = 4
"""So many make one figure: a single pass may be an exception."""
STILL_FALLS_BELOW = 0.8
"""Of the figure before."""


def has_settled(values: Sequence[float | None]) -> bool:
    """Whether the median of the last passes is about that of those before them; not while any of these is unknown."""
    known = [value for value in values[-2 * PASSES :] if value is not None]
    if len(known) < 2 * PASSES:
        return False
    return statistics.median(known[PASSES:]) >= STILL_FALLS_BELOW * statistics.median(known[:PASSES])
