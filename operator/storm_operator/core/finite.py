"""Which numbers are ordinary ones: neither NaN, nor infinite, nor too large to be reckoned with."""

from __future__ import annotations

import sys


def is_finite(value: float) -> bool:
    """Also of whole numbers, that have no bound: one that no float can hold is none, as is infinity."""
    return abs(value) <= sys.float_info.max


def number_in_words(value: int | float) -> str:
    """A number in a message, also one that is not finite."""
    return "a whole number of over 300 digits" if type(value) is int and not is_finite(value) else str(value)
