"""CPU in millicores: the most that is one, and Kubernetes' quantities."""

from __future__ import annotations

import re
from decimal import Decimal

MOST_MILLICORES = 1e9
"""A million cores: no machine has them, and a larger number may be none that a float can hold."""

_SMALL = {"n": Decimal("0.000001"), "u": Decimal("0.001"), "m": Decimal(1), "": Decimal(1000)}
_DECIMAL = {suffix: Decimal(1000) ** (power + 1) for power, suffix in enumerate("kMGTPE", start=1)}
_BINARY = {f"{letter}i": 1000 * Decimal(1024) ** power for power, letter in enumerate("KMGTPE", start=1)}
_SUFFIXES = _SMALL | _DECIMAL | _BINARY
"""Nobody writes CPU with most of them, but anybody may: the API server takes them, and writes a million cores as 1M."""
_QUANTITY = re.compile(
    r"(?P<number>([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2})?)(?P<suffix>[numkMGTPE]?|[KMGTPE]i)"
)


def millicores_from_quantity(text: str) -> float:
    """`500m` is 500, `0.5` is 500, `2` is 2000. ValueError for what is no CPU quantity."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a CPU quantity such as 500m or 2")
    return float(Decimal(match["number"]) * _SUFFIXES[match["suffix"]])
