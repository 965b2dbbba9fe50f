"""CPU in millicores: the most that is one, and Kubernetes' quantities."""

from __future__ import annotations

import re
from decimal import Decimal

MOST_MILLICORES = 1e9
"""A million cores: no machine has them, and a larger number may be none that a float can hold."""

_SUFFIXES = {"n": Decimal("0.000001"), "u": Decimal("0.001"), "m": Decimal(1), "": Decimal(1000), "k": Decimal(1000000)}
_QUANTITY = re.compile(r"(?P<number>([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2})?)(?P<suffix>[numk]?)")


def millicores_from_quantity(text: str) -> float:
    """`500m` is 500, `0.5` is 500, `2` is 2000. ValueError for what is no CPU quantity."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a CPU quantity such as 500m or 2")
    return float(Decimal(match["number"]) * _SUFFIXES[match["suffix"]])
