"""Paper 003's ant colony: it lowers the mean CPU load and balances it against round robin; sigmoid evaporation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from placement_cases import Case, large_case, placed_or_fail, random_case
from storm_operator.core.model import Assignment
from storm_operator.core.placement import ant_colony
from storm_operator.core.placement.ant_colony import PARAMETERS, cpu_load, evaporation, place_ant_colony
from storm_operator.core.placement.even import place_even
from storm_operator.core.placement.executor_arrays import executor_arrays
from storm_operator.core.placement.inventory import executor_loads

DUE = 1200.0
TRANSFER = PARAMETERS["transfer_millicores"].default


def under_round_robin(case: Case, seconds: float = DUE) -> Case:
    """The case at a time, with every topology dealt out over as many workers as there are supervisors."""
    wide = tuple(replace(t, num_workers=len(case.snapshot.supervisors)) for t in case.snapshot.topologies)
    case = replace(case, snapshot=replace(case.snapshot, topologies=wide, taken_at_seconds=seconds))
    return case.in_force(placed_or_fail(place_even(case.snapshot, case.demand, case.settings)))


def place(case: Case) -> Assignment:
    return placed_or_fail(place_ant_colony(case.snapshot, case.demand, case.settings))


def load(case: Case, assignment: Assignment) -> tuple[float, float]:
    arrays = executor_arrays(case.snapshot, case.settings, executor_loads(case.snapshot, case.demand))
    return cpu_load(arrays, arrays.supervisors_of(assignment), TRANSFER)


@pytest.mark.parametrize(
    "case",
    [large_case(60, 8, 2), random_case(5, most_executors=40, most_supervisors=8, obstacles=False)],
    ids=["word-count", "heavy-traffic"],
)
def test_mean_cpu_load_and_its_deviation_fall_against_round_robin(case: Case) -> None:
    case = under_round_robin(case)
    mean, deviation = load(case, place(case))
    mean_of_round_robin, deviation_of_round_robin = load(case, case.snapshot.assignment)
    assert mean < mean_of_round_robin
    assert deviation < 0.965 * deviation_of_round_robin  # the published 3.5%


def test_a_quarter_less_mean_load_where_transfer_is_a_good_part_of_it() -> None:
    case = under_round_robin(random_case(5, most_executors=40, most_supervisors=8, obstacles=False))
    assert load(case, place(case))[0] < 0.74 * load(case, case.snapshot.assignment)[0]  # the published 26%


def test_evaporation_is_a_sigmoid_from_most_to_least() -> None:
    assert evaporation(-10.0, 0.1, 0.6) == pytest.approx(0.6)
    assert evaporation(0.0, 0.1, 0.6) == pytest.approx(0.6, abs=0.01)
    assert evaporation(0.5, 0.1, 0.6) == pytest.approx(0.35)
    assert evaporation(1.0, 0.1, 0.6) == pytest.approx(0.1, abs=0.01)
    assert evaporation(10.0, 0.1, 0.6) == pytest.approx(0.1)
    steps = [evaporation(at / 10, 0.1, 0.6) for at in range(11)]
    assert steps == sorted(steps, reverse=True)
    assert steps[4] - steps[5] > 5 * (steps[0] - steps[1])


def blind(case: Case, **parameters: float) -> Case:
    """The case for ants that neither see where CPU is free nor where their peers are: only trails can lead them."""
    return case.under(
        parameters=tuple({"beta": 0.0, "iterations": 60.0, "least_gain_percent": 0.0, **parameters}.items())
    )


def test_trails_lead_later_ants_to_what_earlier_ones_found() -> None:
    case = under_round_robin(random_case(5, most_executors=40, most_supervisors=8, obstacles=False))
    led, at_random = (sum(load(case, place(blind(case, alpha=alpha)))) for alpha in (1.0, 0.0))
    assert led < 0.9 * at_random


def test_trails_fade_by_the_evaporation_of_the_progress_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sigmoid is asked once for each iteration, from the first to the last, and what it says counts."""
    case = under_round_robin(random_case(5, most_executors=40, most_supervisors=8, obstacles=False))
    asked: list[tuple[float, float, float]] = []

    def recorded(progress: float, least: float, most: float) -> float:
        asked.append((progress, least, most))
        return evaporation(progress, least, most)

    monkeypatch.setattr(ant_colony, "evaporation", recorded)
    found = place(blind(case, iterations=5.0, evaporation_least=0.2, evaporation_most=0.7))
    assert asked == [(at / 4, 0.2, 0.7) for at in range(5)]
    monkeypatch.setattr(ant_colony, "evaporation", lambda progress, least, most: 0.0)
    assert place(blind(case, iterations=5.0)) != found


def test_cpu_load_by_hand() -> None:
    """Half of a chain's tuples cross: 1,000 tuples/s cost 20 millicores on both of them."""
    case = under_round_robin(large_case(60, 8, 2))
    arrays = executor_arrays(case.snapshot, case.settings, executor_loads(case.snapshot, case.demand))
    choice = arrays.supervisors_of(case.snapshot.assignment)
    millicores = sum(case.demand.millicores.values())
    crossing = case.snapshot.traffic.inter_supervisor(case.snapshot.assignment)
    expected = (millicores + 2 * crossing * 20.0 / 1000.0) / 8 / arrays.capacities[0]
    assert cpu_load(arrays, choice, 20.0)[0] == pytest.approx(expected)


@pytest.mark.slow
def test_the_seed_decides_and_nothing_else() -> None:
    case = under_round_robin(large_case(60, 8, 2))
    assert place(case) == place(case)
    assert place(case) != place(case.under(parameters=(("seed", 2.0),)))


def test_between_its_times_and_for_a_small_gain_nothing_moves() -> None:
    case = under_round_robin(large_case(60, 8, 2), seconds=1219.0)
    assert place(case) == case.snapshot.assignment
    case = under_round_robin(large_case(60, 8, 2)).under(parameters=(("least_gain_percent", 50.0),))
    assert place(case) == case.snapshot.assignment


def test_its_own_result_is_good_enough_the_next_time() -> None:
    case = under_round_robin(large_case(60, 8, 2))
    first = place(case)
    assert place(case.in_force(first)) == first


def test_a_topology_keeps_a_slot_for_the_next_one() -> None:
    """Two topologies, and as many slots: each gets one, whatever the ants would like."""
    case = large_case(20, 2, 2)
    machines = tuple(replace(machine, ports=machine.ports[:1]) for machine in case.snapshot.supervisors)
    case = replace(case, snapshot=replace(case.snapshot, supervisors=machines)).in_force(Assignment({}))
    workers = place(case).workers()
    assert len(workers) == 2
    assert {inside[0].topology_id for inside in workers.values()} == {"t00", "t01"}
