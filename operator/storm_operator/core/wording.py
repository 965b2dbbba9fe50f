"""How messages put numbers, and lists that may be long."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext

ROUNDING = 1e-9
"""As much as sums and products of shares may be off."""

NO_PLAN_YET = (
    "none since the operator started; one that waited for approval before that is proposed anew while it is worth it"
)
EFFECT_UNKNOWN = "effect unknown"
"""Beside the state of a plan that stands although nothing tells what it brought."""
SIGNIFICANT_DIGITS = 6
MOST_DIGITS = 9
HALVES_UP = Context(rounding=ROUND_HALF_UP)


def figure(value: float | None) -> str:
    """For people, as the page has it: whole from a hundred on, one digit below where it has any; `unknown` for None."""
    if value is None:
        return "unknown"
    exact = Decimal(str(as_told(value)))
    with localcontext(HALVES_UP):
        return f"{exact:,.0f}" if abs(value) >= 100.0 else f"{exact:,.1f}".removesuffix(".0")


def as_told(value: float) -> float:
    """A number as the API has it, which the page puts into words: to a thousandth, or to six digits below 1."""
    return round(value, 3) if abs(value) >= 1.0 else float(f"{value:.{SIGNIFICANT_DIGITS}g}")


def figure_beside(value: float, bound: float) -> str:
    """`figure`, with as many digits as it takes to tell a value that misses its `bound` from the bound."""
    text = figure(value)
    if value == bound or text != figure(bound):
        return text
    enough = (digits for digits in range(1, MOST_DIGITS) if float(f"{value:.{digits}f}") != bound)
    return f"{value:,.{next(enough, MOST_DIGITS)}f}"


def whole_percent(share: float) -> int:
    """`share` (0 to 1) in per cent, never up: where one is missing it is not 100%."""
    return math.floor(100.0 * share + ROUNDING)


def counted(number: int, noun: str) -> str:
    """E.g. `1 executor`, `2,000 executors`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def state_in_words(state: str, approved_by: str) -> str:
    """A plan's state, as the page has it: one that was proposed and is approved waits for the next pass alone."""
    return "Approved" if state == "Proposed" and approved_by else state


def first_of(names: Sequence[str], separator: str = ", ", most: int = 5) -> str:
    """The first `most` of `names`, and how many more there are: people read it, and the API server bounds messages."""
    if len(names) <= most:
        return separator.join(names)
    joint = " and " if separator == ", " else f"{separator}and "
    return f"{separator.join(names[:most])}{joint}{len(names) - most} more"
