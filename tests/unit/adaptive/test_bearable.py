"""Between what a plan would fill and what is needed, load may rise and fall without anything being proposed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from placement_cases import Case, measured_example, placed_or_fail, random_case
from storm_operator.core.model import Assignment, Executor
from storm_operator.core.placement.adaptive_shares import place_adaptive_as_shared
from storm_operator.core.placement.bearable import bearable
from storm_operator.core.placement.objective import cost_of, overloaded_millicores
from storm_operator.core.settings import Separation, Trigger
from storm_operator.core.snapshot import Distances

SEEDS = range(8)
FULL = 1.1
"""So little room that not every placement fits."""


def proposed(case: Case) -> Assignment:
    return placed_or_fail(place_adaptive_as_shared(case.snapshot, case.demand, case.settings))


def settled_case(seed: int) -> Case:
    """In force is what `adaptive` itself has proposed, until it proposes nothing else."""
    case = random_case(seed, obstacles=False, slack=FULL)
    for _ in range(10):
        found = proposed(case)
        if found == case.snapshot.assignment:
            return case
        case = case.in_force(found)
    raise AssertionError(f"case {seed}: one proposal follows another")


def crowded(case: Case, times: float) -> dict[Executor, float]:
    """So many times their needs, of those of the fullest supervisor."""
    needs, residents = case.demand.raw_millicores, case.snapshot.assignment.residents()
    fullest = max(residents, key=lambda supervisor_id: sum(needs[e] for e in residents[supervisor_id]))
    return {e: need * (times if e in residents[fullest] else 1.0) for e, need in needs.items()}


def lacking(case: Case, wanted: Mapping[Executor, float]) -> float:
    return overloaded_millicores(
        case.snapshot, case.snapshot.assignment, replace(case.demand, room_millicores=wanted), case.settings
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_who_has_what_is_needed_is_not_moved_for_the_sake_of_room(seed: int) -> None:
    case = settled_case(seed)
    room = crowded(case, 1.5)
    assert lacking(case, room) > 0.0
    assert proposed(replace(case, demand=replace(case.demand, room_millicores=room))) == case.snapshot.assignment


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_needed_soon_moves_executors(seed: int) -> None:
    case = settled_case(seed)
    soon = crowded(case, 1.5)
    assert lacking(case, soon) > 0.0
    case = replace(case, demand=replace(case.demand, room_millicores=soon, coming_millicores=soon))
    assert lacking(case.in_force(proposed(case)), soon) < lacking(case, soon)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_busy_supervisor_is_relieved_whatever_is_thought_to_be_needed(seed: int) -> None:
    case = settled_case(seed)
    room = crowded(case, 1.5)
    busy = {s.id: s.cpu_capacity_millicores or 0.0 for s in case.snapshot.supervisors}
    snapshot = replace(case.snapshot, supervisor_cpu_millicores=busy)
    case = replace(case, snapshot=snapshot, demand=replace(case.demand, room_millicores=room))
    assert lacking(case.in_force(proposed(case)), room) < lacking(case, room)


@pytest.mark.parametrize("seed", SEEDS)
def test_workers_are_kept_apart_whatever_that_costs(seed: int) -> None:
    case = settled_case(seed).under(separation=Separation.ALWAYS)
    apart = case.in_force(proposed(case))
    for executors in apart.snapshot.assignment.workers().values():
        topology = case.snapshot.topology(executors[0].topology_id)
        assert len({topology.component(e.component).stateful for e in executors}) == 1


def test_where_all_that_could_be_saved_is_too_little_nothing_is_proposed() -> None:
    """Both executors' components live on one supervisor, in two workers: the hop between these is all there is."""
    case = measured_example(Separation.AUTO)
    distances = Distances({}, default_ms=4.0, worker_hop_ms=1.3)
    case = replace(case, snapshot=replace(case.snapshot, distances=distances))
    apart = case.in_force(proposed(case.under(separation=Separation.ALWAYS)))
    apart = replace(apart, settings=replace(apart.settings, restart_seconds=1.0))
    running = cost_of(apart.snapshot, apart.snapshot.assignment, apart.demand, apart.settings)
    most_percent = 100.0 * running.network / running.running
    eager, reluctant = (apart.under(minimum_gain_percent=most_percent + more) for more in (-0.1, 0.1))
    assert len(proposed(eager).workers()) == 1
    assert proposed(reluctant) == apart.snapshot.assignment
    assert len(proposed(reluctant.under(trigger=Trigger.POLICY)).workers()) == 1


@pytest.mark.parametrize("slack", [1.5, 2.5])
def test_what_a_search_finds_was_thought_possible(slack: float) -> None:
    found = 0
    for seed in range(40):
        case = random_case(seed, obstacles=False, slack=slack).under(minimum_gain_percent=0.0)
        in_force = bearable(case.snapshot, case.demand, case.settings)
        saving = in_force.saving_of(proposed(case)) if in_force else None
        if saving and saving.saved_cost > 0.0:
            found += 1
            asked = case.under(minimum_gain_percent=100.0 * saving.saved_cost / saving.running_cost - 1e-6)
            able = bearable(case.snapshot, case.demand, asked.settings)
            assert able
            assert not able.cannot_pay, seed
    assert found >= 10
