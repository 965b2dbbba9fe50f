"""Values of series, before they become text."""

from __future__ import annotations

from typing import NamedTuple

PREFIX = "storm_operator_"
MILLICORES_PER_CORE = 1000.0
MS_PER_SECOND = 1000.0
PERCENT = 100.0


class Reading(NamedTuple):
    """One value of one series. `metric` is the contract's name without PREFIX; `labels` are without `nimbus`."""

    metric: str
    labels: tuple[str, ...]
    value: float
