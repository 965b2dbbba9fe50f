"""Which numbers are ordinary ones: neither NaN, nor infinite, nor too large to be reckoned with."""

from __future__ import annotations

import sys

MOST_MEASURED = 1e24
LEAST_MEASURED = 1e-24
"""Nothing that is measured comes near; sums, squares and quotients of what lies between are finite."""


def is_finite(value: float) -> bool:
    """Also of whole numbers, that have no bound: one that no float can hold is none, as is infinity."""
    return abs(value) <= sys.float_info.max


def is_measure(value: float) -> bool:
    """Whether somebody may have counted or measured it: 0 or more, and within reason."""
    return 0.0 <= value <= MOST_MEASURED


def number_in_words(value: int | float) -> str:
    """A number in a message, also one that is not finite."""
    return "a whole number of over 300 digits" if type(value) is int and not is_finite(value) else str(value)
