"""What an exact solver is asked and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from storm_operator.core.placement.optimal_model import ExactModel, Places

Variable = TypeVar("Variable")

PROOF_TOLERANCE = 1e-4
"""An assignment within this share of the bound counts as the optimum: 0.01%, far below what rates are known to."""


@dataclass(frozen=True, slots=True)
class Solution:
    """The best places found, None when there are none at or below the ceiling; none cost less than `bound`."""

    places: Places | None
    bound: float
    """Tuple-ms/s."""


class ExactSolver(Protocol):
    """Look for places that cost at most `ceiling`, from `known` ones if there are any.

    `effort` limits the work by the solver's own deterministic measure, so that the same call gives the same answer.
    """

    def __call__(self, model: ExactModel, known: Places | None, ceiling: float, effort: float) -> Solution: ...


def company_of(
    products: Mapping[tuple[int, int, int, int], Variable],
) -> dict[tuple[int, int], list[tuple[int, Variable]]]:
    """(executor, supervisor) -> with whom it may be there: the others, and the variable that both are.

    `products` has the variables that an executor `a` is on `s` and another, `b`, on `t`, by (a, b, s, t).
    """
    company: dict[tuple[int, int], list[tuple[int, Variable]]] = {}
    for (a, b, s, t), both in products.items():
        if s == t:
            company.setdefault((a, s), []).append((b, both))
            company.setdefault((b, s), []).append((a, both))
    return company
