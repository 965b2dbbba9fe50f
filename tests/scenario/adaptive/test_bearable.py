"""Between what a plan would fill and what is needed, load may rise and fall without anything being proposed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import pytest

from placement_cases import Case, placed_or_fail, random_case
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.decide import DecisionMemory, decide
from storm_operator.core.decision import Hold, Plan
from storm_operator.core.model import Assignment, Executor, Infeasible
from storm_operator.core.placement import adaptive_shares
from storm_operator.core.placement.adaptive import place_adaptive
from storm_operator.core.placement.adaptive_shares import place_adaptive_as_shared
from storm_operator.core.placement.bearable import bearable, is_beyond_gain
from storm_operator.core.placement.objective import overloaded_millicores
from storm_operator.core.settings import PlacementSettings, Separation, Trigger
from storm_operator.core.snapshot import ClusterSnapshot, LoadPeriod
from storm_operator.core.traffic import TrafficMatrix

SEEDS = range(8)
FULL = 1.1
"""So little room that not every placement fits."""


def proposed(case: Case) -> Assignment:
    return placed_or_fail(place_adaptive_as_shared(case.snapshot, case.demand, case.settings))


@cache
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


def test_what_decide_would_carry_out_is_proposed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search to the end, whatever can be gained, leads to no plan that the policy would not lead to."""
    for percent, plans in decided_under((10.0, 30.0), range(30), monkeypatch).items():
        for seed, (ours, to_the_end) in enumerate(plans):
            assert isinstance(ours, Plan) == isinstance(to_the_end, Plan), (percent, seed)
        planned = sum(isinstance(ours, Plan) for ours, _ in plans)
        assert 5 <= planned <= 25, f"{percent}: both plans and holds were compared"


def decided_under(
    percents: tuple[float, ...], seeds: range, monkeypatch: pytest.MonkeyPatch
) -> Mapping[float, list[tuple[Plan | Hold, Plan | Hold]]]:
    """What follows from the policy's proposal, and what from a search to the end, by the gain that is asked for."""
    found: dict[float, list[tuple[Plan | Hold, Plan | Hold]]] = {percent: [] for percent in percents}
    for seed in seeds:
        varied = varied_case(seed)
        for percent in percents:
            case = varied.under(minimum_gain_percent=percent, minimum_periods=0)
            ours = decision(case)
            with monkeypatch.context() as patched:
                patched.setattr(adaptive_shares, "is_beyond_gain", lambda *_: False)
                patched.setattr(adaptive_shares, "place_adaptive", searched_to_the_end)
                found[percent].append((ours, decision(case)))
    return found


def searched_to_the_end(
    snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings, **_: object
) -> Assignment | Infeasible:
    return place_adaptive(snapshot, demand, settings)


def varied_case(seed: int) -> Case:
    """Most near a good placement, under other traffic; some want more room, some must not move, some are ranked."""
    rng = random.Random(seed)
    case = random_case(seed, slack=rng.choice([FULL, 1.5, 3.0]))
    if seed % 3:
        case = case.in_force(proposed(case))
    needs = case.demand.raw_millicores
    room = {e: need * rng.uniform(1.0, 1.6) for e, need in needs.items()} if seed % 2 else dict(needs)
    priority = {topology.id: n for n, topology in enumerate(case.snapshot.topologies)} if seed % 5 == 0 else {}
    rates = {(a, b): rate * rng.choice([0.2, 1.0, 3.0]) for a, b, rate in case.snapshot.traffic.pairs()}
    return replace(
        case,
        snapshot=replace(
            case.snapshot,
            traffic=TrafficMatrix(rates),
            history=(LoadPeriod(case.snapshot.taken_at_seconds, 10.0, {}, {}),),
        ),
        demand=replace(case.demand, room_millicores=room),
        settings=replace(case.settings, priority=priority),
    )


def decision(case: Case) -> Plan | Hold:
    return decide(
        case.snapshot,
        case.demand,
        place_adaptive_as_shared(case.snapshot, case.demand, case.settings),
        case.settings,
        DecisionMemory(),
        now_seconds=case.snapshot.taken_at_seconds,
        plan_id="p",
    )


def test_where_plans_need_not_gain_anything_room_is_reason_enough() -> None:
    case = settled_case(1)
    crowd = replace(case.demand, room_millicores=crowded(case, 1.5))
    by_policy = replace(case.under(trigger=Trigger.POLICY), demand=crowd)
    assert proposed(by_policy) != case.snapshot.assignment


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
            assert not is_beyond_gain(case.snapshot, case.demand, asked.settings), seed
    assert found >= 10
