"""What an exact solver is asked and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from storm_operator.core.placement.optimal_model import ExactModel, Places

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
