"""Policy `optimal`: what it proves is true, what it cannot prove it says."""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from itertools import product

import pytest

from builders import chain_topology
from optimum_cases import MOST_EXECUTORS, SHAPES, optimum_case
from placement_cases import Case, burdened, dealt, large_case, measured_example, placed_or_fail, random_case
from storm_operator.adapters.resource_schema import InvalidResource
from storm_operator.adapters.resource_settings import scheduling_settings
from storm_operator.core.model import Assignment, Infeasible, Topology
from storm_operator.core.placement.adaptive import place_adaptive
from storm_operator.core.placement.objective import cost_of
from storm_operator.core.placement.optimal import (
    OptimumResult,
    SolverMissing,
    gap_to_optimum,
    place_optimal,
    solve_optimum,
)
from storm_operator.core.placement.optimal_cpsat import solve_with_cpsat
from storm_operator.core.placement.optimal_model import (
    ExactModel,
    Places,
    build_exact_model,
    to_assignment,
    to_places,
)
from storm_operator.core.placement.optimal_solver import Solution
from storm_operator.core.placement.optimal_symmetry import executor_orders, first_in_order
from storm_operator.core.placement.prices import prices_of
from storm_operator.core.placement.separation import ways_to_separate
from storm_operator.core.settings import Separation

pytest.importorskip("ortools", reason="OR-Tools is missing: it is in the dev group, run `make venv`")

QUICKLY_PROVEN = (10, 12, 16, 58, 71, 81, 85, 119, 189)


def total(case: Case, assignment: Assignment) -> float:
    return cost_of(case.snapshot, assignment, case.demand, case.settings).total


def models_of(case: Case) -> list[ExactModel]:
    ways = ways_to_separate(case.snapshot, case.settings, prices_of(case.snapshot, case.settings))
    models = [build_exact_model(case.snapshot, case.demand, case.settings, together) for together in ways]
    return [model for model in models if model.has_slots]


def optimum_of(case: Case) -> OptimumResult:
    result = solve_optimum(case.snapshot, case.demand, case.settings)
    assert isinstance(result, OptimumResult), result
    return result


def random_places(model: ExactModel, rng: random.Random) -> Places:
    return tuple(rng.randrange(len(model.supervisors)) for _ in model.executors)


def beside_large_obstacles(declared: float | None) -> Case:
    """The measured example, each component of which declares so many MB, where three times the memory that supervisors
    have is declared by executors that must not move."""
    case = measured_example(Separation.NEVER)
    (mine,) = case.snapshot.topologies
    fixed = declaring(chain_topology("fixed", ("spout", 3)), 3000.0)
    machines = tuple(replace(machine, memory_mb=1000.0) for machine in case.snapshot.supervisors)
    slot_of = dict(case.snapshot.assignment.slot_of) | dealt(fixed, [machine.slots[1] for machine in machines])
    topologies = (declaring(mine, declared), fixed)
    picture = replace(case.snapshot, topologies=topologies, supervisors=machines, assignment=Assignment(slot_of))
    return replace(case, snapshot=picture)


def declaring(topology: Topology, megabytes: float | None) -> Topology:
    components = tuple(replace(component, declared_memory_mb=megabytes) for component in topology.components)
    return replace(topology, components=components)


@pytest.mark.parametrize("number", range(0, 200, 4))
def test_program_prices_any_assignment_as_the_objective_does(number: int) -> None:
    case = optimum_case(number).case
    rng = random.Random(number)
    for model in models_of(case):
        for places in [random_places(model, rng) for _ in range(4)] + [(0,) * len(model.executors)]:
            if model.fits_slots(places):
                assignment = to_assignment(model, places, case.snapshot.assignment)
                assert model.objective(places) == pytest.approx(total(case, assignment), rel=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_program_prices_obstacles_and_loss_of_slots_too(seed: int) -> None:
    case = burdened(random_case(seed), seed)
    rng = random.Random(seed)
    for model in models_of(case):
        in_force = to_places(model, case.snapshot.assignment) or random_places(model, rng)
        elsewhere = ((in_force[0] + 1) % len(model.supervisors), *in_force[1:])
        for places in (in_force, elsewhere, random_places(model, rng)):
            if model.fits_slots(places):
                assignment = to_assignment(model, places, case.snapshot.assignment)
                assert model.objective(places) == pytest.approx(total(case, assignment), rel=1e-12)


@pytest.mark.parametrize("number", QUICKLY_PROVEN)
def test_small_clusters_are_proven(number: int) -> None:
    case = optimum_case(number).case
    optimum = optimum_of(case)
    assert optimum.proven
    assert optimum.cost == total(case, optimum.assignment)
    assert optimum.bound == pytest.approx(optimum.cost, rel=1e-4)
    assert optimum.cost <= total(case, placed_or_fail(place_adaptive(case.snapshot, case.demand, case.settings)))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("separation", [Separation.ALWAYS, Separation.NEVER])
def test_optimum_is_what_trying_everything_finds(seed: int, separation: Separation) -> None:
    case = random_case(seed, most_executors=6, most_supervisors=3, most_topologies=1).under(separation=separation)
    if seed % 2:
        case = burdened(case, seed)
    cheapest = min(
        model.objective(places)
        for model in models_of(case)
        for places in product(range(len(model.supervisors)), repeat=len(model.executors))
        if model.fits_slots(places)
    )
    assert optimum_of(case).cost == pytest.approx(cheapest, rel=1e-4)


@pytest.mark.parametrize("declared", [64.0, None])
def test_obstacles_that_declare_more_memory_than_there_is_make_no_program_infeasible(declared: float | None) -> None:
    case = beside_large_obstacles(declared)
    (model,) = models_of(case)
    assert max(model.memory_room) < 0.0
    everywhere = product(range(len(model.supervisors)), repeat=len(model.executors))
    cheapest = min(model.objective(places) for places in everywhere if model.fits_slots(places))
    solution = solve_with_cpsat(model, None, 2.0 * cheapest, 20.0)
    assert solution.places is not None
    assert model.objective(solution.places) == pytest.approx(cheapest, rel=1e-4)
    assert solution.bound == pytest.approx(cheapest, rel=1e-4)


def test_optimum_in_force_stays() -> None:
    case = measured_example()
    settled = case.in_force(optimum_of(case).assignment)
    assert place_optimal(settled.snapshot, settled.demand, settled.settings) == settled.snapshot.assignment


def test_same_question_same_answer() -> None:
    case = optimum_case(58).case
    assert optimum_of(case) == optimum_of(case)


def test_breaking_symmetry_keeps_the_cost_and_kept_workers() -> None:
    rng = random.Random(1)
    swapped = 0
    for number in range(0, 200, 5):
        for model in models_of(optimum_case(number).case):
            places = list(random_places(model, rng))
            for worker in model.keepable[:1]:
                for at in model.members_of(worker.group):
                    elsewhere = (worker.supervisor + 1) % len(model.supervisors)
                    places[at] = worker.supervisor if at in worker.members else elsewhere
            ordered = first_in_order(model, tuple(places))
            swapped += ordered != tuple(places)
            assert model.objective(ordered) <= model.objective(tuple(places)) * (1 + 1e-12)
            kept = [worker for worker in model.keepable if model.is_kept(worker, ordered)]
            for order in executor_orders(model):
                if not any(model.keepable[n] in kept for n in order.unless_kept):
                    assert ordered[order.low] <= ordered[order.high]
    assert swapped > 5


def test_without_ortools_the_policy_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    case = measured_example()
    answer = place_optimal(case.snapshot, case.demand, case.settings)
    assert isinstance(answer, Infeasible)
    assert "pip install '.[optimum]' in a clone of storm-operator" in answer.reason
    with pytest.raises(SolverMissing, match="not installed"):
        solve_optimum(case.snapshot, case.demand, case.settings)


def test_a_resource_that_asks_for_it_where_ortools_is_missing_is_refused_rather_than_given_more_supervisors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert scheduling_settings({"policy": "optimal"}).policy == "optimal"
    monkeypatch.setattr("storm_operator.core.placement.optimal.find_spec", lambda _: None)
    with pytest.raises(InvalidResource, match=r"spec\.scheduling\.policy = 'optimal' needs OR-Tools.*OPERATOR_EXTRAS"):
        scheduling_settings({"policy": "optimal"})
    assert scheduling_settings({"policy": "liu"}).policy == "liu"


def test_a_solver_that_contradicts_a_known_assignment_proves_nothing() -> None:
    def boastful(model: ExactModel, known: Places | None, ceiling: float, effort: float) -> Solution:
        return Solution(known, 1.5 * ceiling)

    case = measured_example()
    result = solve_optimum(case.snapshot, case.demand, case.settings, solver=boastful)
    assert isinstance(result, OptimumResult)
    assert result.bound < result.cost
    assert not result.proven


def test_a_solver_that_finds_nothing_where_an_assignment_is_known_proves_nothing() -> None:
    def at_a_loss(model: ExactModel, known: Places | None, ceiling: float, effort: float) -> Solution:
        return Solution(None, ceiling)

    case = measured_example()
    result = solve_optimum(case.snapshot, case.demand, case.settings, solver=at_a_loss)
    assert isinstance(result, OptimumResult)
    assert result.bound < result.cost
    assert not result.proven


def test_too_large_a_cluster_gets_adaptive_and_a_bound() -> None:
    case = large_case(24, 60, 1)
    result = optimum_of(case)
    assert result.assignment == place_adaptive(case.snapshot, case.demand, case.settings)
    assert 0.0 < result.bound < result.cost
    assert not result.proven


def test_gap_is_of_the_whole_cost() -> None:
    case = optimum_case(119).case
    adaptive = placed_or_fail(place_adaptive(case.snapshot, case.demand, case.settings))
    in_force = case.snapshot.assignment
    near = gap_to_optimum(case.snapshot, case.demand, adaptive, case.settings)
    far = gap_to_optimum(case.snapshot, case.demand, in_force, case.settings)
    assert near is not None
    assert far is not None
    assert near.percent is not None
    assert far.percent is not None
    assert far.percent == pytest.approx(100.0 * (total(case, in_force) / near.optimum_cost - 1.0))
    assert 0.0 <= near.percent < far.percent
    assert gap_to_optimum(case.snapshot, case.demand, Infeasible("no slots"), case.settings) is None


def test_instances_have_every_shape_and_stay_small() -> None:
    cases = [optimum_case(number) for number in range(200)]
    assert {case.shape for case in cases} == set(SHAPES)
    assert max(len(model.executors) for case in cases[:20] for model in models_of(case.case)) <= MOST_EXECUTORS
    assert {"nothing", "dealt", "runs"} <= {case.description.rpartition("in force: ")[2] for case in cases}
    assert optimum_case(7).description == optimum_case(7).description
