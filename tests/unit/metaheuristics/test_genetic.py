"""The genetic family of paper 003."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from builders import chain_topology, even_traffic, placement_settings, same_demand, snapshot, supervisors
from placement_cases import Case, burdened, large_case, placed_or_fail, random_case
from storm_operator.core.arrays import Floats, Ints
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment
from storm_operator.core.placement.executor_arrays import ExecutorArrays, executor_arrays, with_one_worker_each
from storm_operator.core.placement.genetic import PARAMETERS, RunningCost, evolve, place_genetic
from storm_operator.core.placement.objective import cost_of

DUE = 1200.0


def case_at(seconds: float = DUE) -> Case:
    case = large_case(60, 8, 2)
    return replace(case, snapshot=replace(case.snapshot, taken_at_seconds=seconds))


def place(case: Case) -> Assignment:
    return placed_or_fail(place_genetic(case.snapshot, case.demand, case.settings))


def running_cost(case: Case, assignment: Assignment) -> float:
    return cost_of(case.snapshot, assignment, case.demand, case.settings).running


def arrays_of(case: Case) -> ExecutorArrays:
    return executor_arrays(case.snapshot, case.settings, case.demand.millicores)


@pytest.mark.parametrize("is_burdened", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_the_cost_of_a_population_is_the_objectives(seed: int, is_burdened: bool) -> None:
    case = random_case(seed, most_topologies=3, slack=0.8)
    case = burdened(case, seed) if is_burdened else case
    arrays = arrays_of(case)
    population = np.random.default_rng(seed).integers(0, len(arrays.machines), size=(4, len(arrays.executors)))
    costs = RunningCost(case.snapshot, case.settings, arrays).of(population)
    expected = [
        running_cost(case, with_one_worker_each(case.snapshot, case.settings, arrays, choice)) for choice in population
    ]
    assert costs - costs[0] == pytest.approx(np.array(expected) - expected[0])
    if len(case.settings.movable) == len(case.snapshot.topologies):
        assert costs[0] == pytest.approx(expected[0])


def test_a_supervisor_is_in_use_where_a_topology_idles_that_may_not_move() -> None:
    """Joining it there costs no supervisor, and leaving it saves none."""
    topology, idle = chain_topology("t", ("spout", 2)), chain_topology("idle", ("spout", 2))
    machines = supervisors(2)
    in_force = dict.fromkeys(topology.executors, machines[0].slots[0])
    in_force |= dict.fromkeys(idle.executors, machines[1].slots[0])
    demand = Demand({**same_demand((topology,)).millicores, **dict.fromkeys(idle.executors, 0.0)}, {})
    picture = replace(snapshot((topology, idle), machines, in_force), taken_at_seconds=DUE)
    case = Case(picture, demand, placement_settings((topology,)))
    costs = RunningCost(case.snapshot, case.settings, arrays_of(case)).of(np.array([[0, 0], [1, 1]]))
    both = case.snapshot.assignment
    joined = both.with_moves(dict.fromkeys(topology.executors, machines[1].slots[1]))
    assert costs.tolist() == pytest.approx([running_cost(case, both), running_cost(case, joined)])
    assert place(case).used_supervisors() == ("s2",)


def test_a_supervisor_that_often_does_not_answer_is_left() -> None:
    topology = chain_topology("t", ("spout", 1), ("bolt", 2))
    machines = (replace(supervisors(2)[0], availability=0.85), supervisors(2)[1])
    in_force = dict.fromkeys(topology.executors, machines[0].slots[0])
    rates = even_traffic(topology, 100.0)
    picture = replace(snapshot((topology,), machines, in_force, rates=rates), taken_at_seconds=DUE)
    found = place(Case(picture, same_demand((topology,), 100.0), placement_settings((topology,))))
    assert found.used_supervisors() == ("s2",)


def test_no_overload_is_worth_a_slot_that_is_not_there() -> None:
    """Nobody talks at the moment, so that only CPU counts, and one topology needs more of it than a supervisor has."""
    topologies = tuple(chain_topology(f"t{n}", ("spout", 1), ("bolt", 4)) for n in range(4))
    machines = supervisors(4, 4000.0, slots=1)
    in_force = {e: machines[n].slots[0] for n, topology in enumerate(topologies) for e in topology.executors}
    busy, idle = same_demand(topologies[:1], 900.0), same_demand(topologies[1:], 100.0)
    demand = Demand({**busy.millicores, **idle.millicores}, {**busy.raw_millicores, **idle.raw_millicores})
    picture = replace(
        snapshot(topologies, machines, in_force, round_trip_ms=80.0), taken_at_seconds=86400.0, period_seconds=100.0
    )
    found = place(Case(picture, demand, placement_settings(topologies)))
    assert {slot.supervisor_id for slot in found.workers()} == {machine.id for machine in machines}
    assert all(len({e.topology_id for e in inside}) == 1 for inside in found.workers().values())


def test_it_beats_as_many_random_placements() -> None:
    case = case_at()
    arrays = arrays_of(case)
    at_random = np.random.default_rng(1).integers(0, len(arrays.machines), size=(2400, len(arrays.executors)))
    best = RunningCost(case.snapshot, case.settings, arrays).of(at_random).min()
    assert running_cost(case, place(case)) < 0.9 * best


def test_it_improves_with_generations_and_never_worsens_what_is_in_force() -> None:
    case = case_at()
    costs = [
        running_cost(case, place(case.under(parameters=(("generations", n), ("least_gain_percent", 0.0)))))
        for n in (1.0, 20.0, 200.0)
    ]
    assert running_cost(case, case.snapshot.assignment) >= costs[0] > costs[1] > costs[2]


class Recorded(RunningCost):
    """Which chromosomes were looked at, and what each costs: the first generation, then the children of each."""

    def __init__(self, case: Case, arrays: ExecutorArrays) -> None:
        super().__init__(case.snapshot, case.settings, arrays)
        self.generations: list[tuple[Ints, Floats]] = []

    def of(self, population: Ints) -> Floats:
        costs = super().of(population)
        self.generations.append((population, costs))
        return costs


def evolved(**parameters: float) -> tuple[Recorded, float]:
    """What was looked at within twenty generations, and the cost of what came of it."""
    case = case_at()
    arrays = arrays_of(case)
    recorded, present = Recorded(case, arrays), arrays.supervisors_of(case.snapshot.assignment)
    values = {name: parameter.default for name, parameter in PARAMETERS.items()} | {"generations": 20.0, **parameters}
    best = evolve(arrays, recorded, present, values)
    return recorded, float(RunningCost(case.snapshot, case.settings, arrays).of(best[None])[0])


def chromosomes(population: Ints) -> set[tuple[int, ...]]:
    return set(map(tuple, population.tolist()))


def test_the_best_that_was_ever_looked_at_lives_on() -> None:
    """Though half of the genes of all children mutate."""
    recorded, cost = evolved(mutation_share=0.5)
    assert cost == pytest.approx(min(costs.min() for _, costs in recorded.generations))


def test_parents_are_selected_by_their_cost() -> None:
    """Without crossover and mutation children are copies: cheap chromosomes have more of them, dear ones none soon."""
    recorded, _ = evolved(crossover_share=0.0, mutation_share=0.0, population=200.0)
    (first, costs), (children, costs_of_children) = recorded.generations[:2]
    assert chromosomes(children) < chromosomes(first)
    # The cheaper one of two at random is in the cheaper half three times in four.
    assert np.mean(costs_of_children <= np.median(costs)) == pytest.approx(0.75, abs=0.08)


def test_children_of_two_parents_have_a_part_of_each() -> None:
    recorded, crossed = evolved(crossover_share=1.0, mutation_share=0.0)
    (first, _), (children, _) = recorded.generations[:2]
    assert len(chromosomes(children) - chromosomes(first)) > len(children) / 2
    for child in children:
        same = first == child  # by chromosome of the first generation (row) and gene
        lacking = [(row.argmin(), len(row) - row[::-1].argmin()) for row in same if not row.all()]
        assert len(lacking) < len(same) or any(same[:, begin:end].all(axis=1).any() for begin, end in lacking)
    _, copied = evolved(crossover_share=0.0, mutation_share=0.0)
    assert crossed < 0.95 * copied


def test_the_seed_decides_and_nothing_else() -> None:
    case = case_at()
    assert place(case) == place(case)
    assert place(case) != place(case.under(parameters=(("seed", 2.0),)))


def test_between_its_times_and_for_a_small_gain_nothing_moves() -> None:
    quiet = case_at(1219.0)
    assert place(quiet) == quiet.snapshot.assignment
    contented = case_at().under(parameters=(("least_gain_percent", 90.0),))
    assert place(contented) == contented.snapshot.assignment


def test_slots_that_are_not_there_are_not_used() -> None:
    case = case_at()
    machines = tuple(replace(machine, ports=machine.ports[:1]) for machine in case.snapshot.supervisors)
    case = replace(case, snapshot=replace(case.snapshot, supervisors=machines)).in_force(Assignment({}))
    existing = {slot for machine in machines for slot in machine.slots}
    placed = place(case)
    assert set(placed.slot_of.values()) <= existing
    assert all(len({e.topology_id for e in inside}) == 1 for inside in placed.workers().values())
