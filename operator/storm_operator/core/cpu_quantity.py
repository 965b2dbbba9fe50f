"""Kubernetes' CPU quantities in millicores."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

_SUFFIXES = {"n": Decimal("0.000001"), "u": Decimal("0.001"), "m": Decimal(1), "": Decimal(1000), "k": Decimal(1000000)}


def millicores_from_quantity(text: str) -> float:
    """`500m` is 500, `0.5` is 500, `2` is 2000. ValueError for what is no CPU quantity."""
    number = text.rstrip("numk")
    try:
        return float(Decimal(number) * _SUFFIXES[text[len(number) :]])
    except (InvalidOperation, KeyError) as error:
        raise ValueError(f"{text!r} is not a CPU quantity such as 500m or 2") from error
