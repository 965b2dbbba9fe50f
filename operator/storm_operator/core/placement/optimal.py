"""Policy `optimal`: the proven cheapest assignment, for clusters small enough to prove it.

The constraints and the objective are those of `adaptive`, whose result is the start. What cannot be proven within the
effort comes with the bound that was reached: no assignment costs less. Needs OR-Tools, an extra of the package.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib.util import find_spec

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Infeasible
from storm_operator.core.placement.adaptive import place_adaptive
from storm_operator.core.placement.objective import cost_of
from storm_operator.core.placement.optimal_bounds import least_cost
from storm_operator.core.placement.optimal_cpsat import solve_with_cpsat
from storm_operator.core.placement.optimal_model import (
    ExactModel,
    build_exact_model,
    to_assignment,
    to_places,
)
from storm_operator.core.placement.optimal_solver import PROOF_TOLERANCE, ExactSolver, Solution
from storm_operator.core.placement.prices import prices_of
from storm_operator.core.placement.separation import ways_to_separate
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

NAME = "optimal"

USUAL_EFFORT = 20.0
"""CP-SAT's deterministic seconds for each way to separate; about as many real ones on an idle core."""

ROUNDING = 1e-9
"""Share by which the same cost, summed in another order, may differ."""

TOO_MANY_PRODUCTS = 200_000
"""Programs beyond that would take minutes to write down alone; only the simplest bound is given."""


WITHOUT_SOLVER = (
    "needs OR-Tools, which is not installed: pip install '.[optimum]' in a clone of storm-operator, "
    "or an operator's image built with --build-arg OPERATOR_EXTRAS='history optimum'"
)


def has_solver() -> bool:
    """Whether OR-Tools is there, which is too large for the operator's image as it is built by default."""
    return find_spec("ortools") is not None


class SolverMissing(ImportError):
    """OR-Tools is not installed."""


@dataclass(frozen=True, slots=True)
class OptimumResult:
    """The best assignment found and how good any could be, in tuple-ms/s; `proven` when the two meet."""

    assignment: Assignment
    cost: float
    bound: float

    @property
    def proven(self) -> bool:
        return self.cost - self.bound <= PROOF_TOLERANCE * abs(self.cost)

    def gap_percent(self, cost: float) -> float:
        """How much dearer an assignment that costs `cost` is than the best one found; 0 when nothing costs anything,
        infinite when only the best one found costs nothing."""
        return _percent_above(cost, self.cost)

    def gap_to_bound_percent(self, cost: float) -> float:
        """The most that `gap_percent` could be if the optimum were as low as the bound."""
        return _percent_above(cost, self.bound)


@dataclass(frozen=True, slots=True)
class Gap:
    """How much dearer an assignment is than the best one found. `at_most_percent` counts from the bound instead:
    the same when the optimum is proven, else what the gap could be at worst. Each is None where what it is counted from
    costs 0 and the assignment does not. Costs in tuple-ms/s, with their restarts: `restart_cost` is that part of
    `cost`, which a plan's own sentence leaves out."""

    cost: float
    restart_cost: float
    optimum_cost: float
    bound: float
    proven: bool
    percent: float | None
    at_most_percent: float | None


def gap_to_optimum(
    snapshot: ClusterSnapshot, demand: Demand, proposal: Assignment | Infeasible, settings: PlacementSettings
) -> Gap | None:
    """How far `proposal` is from the optimum; None when there is none. SolverMissing without OR-Tools."""
    if isinstance(proposal, Infeasible):
        return None
    optimum = solve_optimum(snapshot, demand, settings)
    if isinstance(optimum, Infeasible):
        return None
    cost = cost_of(snapshot, proposal, demand, settings)
    percent = optimum.gap_percent(cost.total)
    at_most = percent if optimum.proven else optimum.gap_to_bound_percent(cost.total)
    known = (value if math.isfinite(value) else None for value in (percent, at_most))
    return Gap(cost.total, cost.restarts, optimum.cost, optimum.bound, optimum.proven, *known)


def place_optimal(snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings) -> Assignment | Infeasible:
    """The proven optimum, or the best found within `USUAL_EFFORT`; `Infeasible` also when OR-Tools is missing."""
    try:
        result = solve_optimum(snapshot, demand, settings)
    except SolverMissing as missing:
        return Infeasible(str(missing))
    return result if isinstance(result, Infeasible) else result.assignment


def solve_optimum(
    snapshot: ClusterSnapshot,
    demand: Demand,
    settings: PlacementSettings,
    effort: float = USUAL_EFFORT,
    solver: ExactSolver = solve_with_cpsat,
) -> OptimumResult | Infeasible:
    """The cheapest assignment over all ways to separate that the settings allow. Deterministic.

    SolverMissing without OR-Tools; `Infeasible` when there are not enough slots.
    """
    best = place_adaptive(snapshot, demand, settings)
    if isinstance(best, Infeasible):
        return best
    cost = cost_of(snapshot, best, demand, settings).total
    bound = cost
    for model in _models(snapshot, demand, settings):
        solution = _solve(model, best, cost, effort, solver)
        bound = min(bound, solution.bound)
        if solution.places is None:
            continue
        found = to_assignment(model, solution.places, snapshot.assignment)
        its_cost = cost_of(snapshot, found, demand, settings).total
        if its_cost < cost:
            best, cost = found, its_cost
    return OptimumResult(best, cost, min(bound, cost))


def _models(snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings) -> list[ExactModel]:
    """One for each way to separate for which there are slots; separation yields when there are none."""
    ways = ways_to_separate(snapshot, settings, prices_of(snapshot, settings))
    models = [build_exact_model(snapshot, demand, settings, together) for together in ways]
    return [model for model in models if model.has_slots] or [
        build_exact_model(snapshot, demand, settings, settings.movable)
    ]


def _solve(model: ExactModel, best: Assignment, ceiling: float, effort: float, solver: ExactSolver) -> Solution:
    known = to_places(model, best)
    if len(model.pairs) * len(model.supervisors) ** 2 > TOO_MANY_PRODUCTS:
        return Solution(known, least_cost(model))
    try:
        solution = solver(model, known, ceiling, effort)
    except ImportError:
        raise SolverMissing(f"the proven optimum {WITHOUT_SOLVER}") from None
    # A solver that contradicts a known assignment has lost its way, as in rounding: it has proven nothing.
    refuted = known is not None and _contradicts(solution, model.objective(known), ceiling)
    return Solution(known, least_cost(model)) if refuted else solution


def _contradicts(solution: Solution, known_cost: float, ceiling: float) -> bool:
    """Whether a solver claims more than a known assignment costs, or finds none at the ceiling where that one is."""
    is_within = known_cost <= ceiling * (1.0 + ROUNDING)
    return known_cost < solution.bound * (1.0 - PROOF_TOLERANCE) or (solution.places is None and is_within)


def _percent_above(cost: float, reference: float) -> float:
    if cost <= reference:
        return 0.0
    return 100.0 * (cost - reference) / reference if reference > 0.0 else float("inf")
