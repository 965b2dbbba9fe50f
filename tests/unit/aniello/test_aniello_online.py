"""Section 3.2 of Aniello et al., DEBS'13: Algorithm 1 and what triggers it."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations, product

import pytest

from builders import chain_topology, even_traffic, placed, placement_settings, same_demand, snapshot, supervisors
from placement_cases import Case, placed_or_fail, random_case
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Executor, ExecutorLoad, Infeasible
from storm_operator.core.placement.aniello_offline import most_executors_in_slot
from storm_operator.core.placement.aniello_online import place_aniello_online
from storm_operator.core.placement.greedy_pairs import Bins
from storm_operator.core.placement.utilisation import supervisor_loads
from storm_operator.core.snapshot import LoadPeriod
from storm_operator.core.traffic import TrafficMatrix

QUIET = 1015.0
"""A time at which no multiple of P = 40 s has just passed."""
DUE = 1040.0

CHAIN = replace(chain_topology("chain", ("spout", 2), ("bolt", 2)), num_workers=2)
SPOUT_1, SPOUT_2, BOLT_1, BOLT_2 = CHAIN.executors
STREAMS = {(SPOUT_1, BOLT_2): 100.0, (SPOUT_2, BOLT_1): 90.0, (SPOUT_1, BOLT_1): 1.0, (SPOUT_2, BOLT_2): 1.0}
APART = {"spout": ["s1", "s2"], "bolt": ["s1", "s2"]}


def case_at(seconds: float, cpu_of_s1: Sequence[float] = (), capacity: float = 1000.0, **parameters: float) -> Case:
    picture = snapshot((CHAIN,), supervisors(2, capacity=capacity), placed(CHAIN, APART), rates=STREAMS)
    history = tuple(LoadPeriod(seconds, 10.0, {}, {"s1": cpu}) for cpu in cpu_of_s1)
    picture = replace(picture, taken_at_seconds=seconds, period_seconds=10.0, history=history)
    case = Case(picture, same_demand((CHAIN,), 400.0), placement_settings((CHAIN,)))
    return case.under(parameters=tuple(sorted(parameters.items())))


def place(case: Case) -> Assignment:
    return placed_or_fail(place_aniello_online(case.snapshot, case.demand, case.settings))


def together(assignment: Assignment) -> set[frozenset[str]]:
    return {frozenset(executor.label for executor in inside) for inside in assignment.workers().values()}


def test_heaviest_pairs_share_a_worker() -> None:
    assert together(place(case_at(DUE))) == {frozenset({"1-1", "4-4"}), frozenset({"2-2", "3-3"})}


def test_nothing_moves_between_comparisons() -> None:
    case = case_at(QUIET)
    assert place(case) == case.snapshot.assignment


@pytest.mark.parametrize(("percent", "moves"), [(98.0, True), (99.0, False)])
def test_traffic_between_supervisors_must_fall_by_more_than_r(percent: float, moves: bool) -> None:
    case = case_at(DUE, least_reduction_percent=percent)  # 190 of 192 tuples/s cross before, 2 after: 98.9% less
    assert (place(case) != case.snapshot.assignment) == moves


@pytest.mark.parametrize(
    ("cpu", "moves"),
    [
        ([900.0] * 4, True),  # 40 s at B = 900
        ([900.0] * 3, False),  # 30 s are not more than X = 30 s
        ([900.0, 900.0, 899.0, 900.0], False),  # it broke off
    ],
)
def test_overload_for_more_than_x_seconds_triggers(cpu: list[float], moves: bool) -> None:
    case = case_at(QUIET, cpu)
    assert (place(case) != case.snapshot.assignment) == moves


def beside_others(case: Case) -> Case:
    """The case with a topology under other settings that sends 10,000 tuples/s from s3 to s4."""
    others = chain_topology("others", ("spout", 1), ("bolt", 1))
    machines = supervisors(4, capacity=1000.0)
    there = {**case.snapshot.assignment.slot_of, **placed(others, {"spout": "s3", "bolt": "s4"})}
    rates = {**STREAMS, **even_traffic(others, 10_000.0)}
    seen = snapshot((CHAIN, others), machines, there, rates=rates, periods=case.snapshot.history)
    at, period = case.snapshot.taken_at_seconds, case.snapshot.period_seconds
    return replace(case, snapshot=replace(seen, taken_at_seconds=at, period_seconds=period))


@pytest.mark.parametrize(("percent", "moves"), [(98.0, True), (99.0, False)])
def test_r_is_a_part_of_the_traffic_that_may_be_moved(percent: float, moves: bool) -> None:
    case = beside_others(case_at(DUE, least_reduction_percent=percent))
    assert (place(case) != case.snapshot.assignment) == moves


@pytest.mark.parametrize(("overloaded", "moves"), [("s1", True), ("s3", False)])
def test_a_supervisor_that_only_others_fill_is_no_reason_to_reschedule(overloaded: str, moves: bool) -> None:
    case = beside_others(case_at(QUIET))
    full = tuple(LoadPeriod(QUIET - ago, 10.0, {}, {overloaded: 950.0}) for ago in (30.0, 20.0, 10.0, 0.0))
    case = replace(case, snapshot=replace(case.snapshot, history=full))
    assert (place(case) != case.snapshot.assignment) == moves


def test_a_period_that_nobody_measured_is_no_overload() -> None:
    case = case_at(QUIET, [900.0] * 4)
    blind = replace(case.snapshot.history[2], supervisor_cpu_millicores={})
    history = (*case.snapshot.history[:2], blind, case.snapshot.history[3])
    case = replace(case, snapshot=replace(case.snapshot, history=history))
    assert place(case) == case.snapshot.assignment


@pytest.mark.parametrize(
    ("seconds_ago", "moves"),
    [
        ((30.0, 20.0, 10.0, 0.0), True),
        ((100.0, 90.0, 80.0, 0.0), False),  # for a minute no topology was measured completely
        ((90.0, 80.0, 70.0, 60.0), False),  # nor for the last minute
        ((33.0, 21.0, 9.0, 0.0), True),  # passes are not that punctual
    ],
)
def test_periods_that_are_not_there_are_no_overload_either(seconds_ago: Sequence[float], moves: bool) -> None:
    case = case_at(QUIET)
    history = tuple(LoadPeriod(QUIET - ago, 10.0, {}, {"s1": 900.0}) for ago in seconds_ago)
    case = replace(case, snapshot=replace(case.snapshot, history=history))
    assert (place(case) != case.snapshot.assignment) == moves


def test_capacity_keeps_workers_apart_and_its_absence_does_not() -> None:
    # All four executors exchange tuples: without a bound both workers would go to one supervisor.
    assert len(place(case_at(DUE, capacity=1000.0)).used_supervisors()) == 2
    roomy = case_at(DUE, capacity=10_000.0)
    assert len(place(roomy).used_supervisors()) == 1


def test_measured_load_counts_before_demand() -> None:
    case = case_at(DUE, capacity=1000.0)
    light = {executor: ExecutorLoad(cpu_millicores=10.0) for executor in CHAIN.executors}
    assert len(place(replace(case, snapshot=replace(case.snapshot, loads=light))).used_supervisors()) == 1


def test_executors_without_a_place_are_placed_at_any_time() -> None:
    case = case_at(QUIET)
    case = case.in_force(Assignment({SPOUT_1: case.snapshot.assignment.slot_of[SPOUT_1]}))
    assert set(place(case).slot_of) == set(CHAIN.executors)


def test_a_topology_of_which_nothing_is_known_begins_as_storm_would_have_it() -> None:
    # "Initializes the application using a schedule obtained applying exactly the same approach used by the default
    # scheduler" (section 4.1): 8 workers on 8 nodes with 5 slots each, and 4 of 30 executors at most in each.
    steps = [(f"stage{n}", 5) for n in range(6)]
    topology = chain_topology("reference", *steps, num_workers=8)
    picture = snapshot((topology,), supervisors(8, slots=5))
    unknown = Case(picture, Demand({}, {}), placement_settings((topology,)))
    sizes = {slot.supervisor_id: len(inside) for slot, inside in place(unknown).workers().items()}
    assert sizes == {"s1": 4, "s2": 4, "s3": 4, "s4": 4, "s5": 4, "s6": 4, "s7": 3, "s8": 3}


@pytest.mark.parametrize("workers", [1, 3, 5, 99])
@pytest.mark.parametrize("alpha", [0.0, 0.05, 0.5, 1.0])
def test_as_many_workers_as_are_asked_for_none_beyond_m_and_cpu_within_the_bound(workers: int, alpha: float) -> None:
    """Equations 1 and 2 of section 3.2.2, and M of section 3; CPU where every executor may have a worker of its own."""
    for seed in range(8):
        case = random_case(seed, slack=2.5, obstacles=False).at(DUE).in_force(Assignment({}))
        topologies = tuple(replace(topology, num_workers=workers) for topology in case.snapshot.topologies)
        case = replace(case, snapshot=replace(case.snapshot, topologies=topologies)).under(
            parameters=(("alpha", alpha),)
        )
        assignment = place_aniello_online(case.snapshot, case.demand, case.settings)
        if isinstance(assignment, Infeasible):
            assert workers > 1
            continue
        for topology in topologies:
            sizes = [len(inside) for inside in assignment.restricted_to({topology.id}).workers().values()]
            assert len(sizes) == min(workers, len(topology.executors))
            assert max(sizes) <= most_executors_in_slot(len(topology.executors), len(sizes), alpha)
        if workers == 99:
            used = supervisor_loads(case.snapshot, assignment, case.demand.millicores)
            assert all(used[m.id] <= 0.9 * (m.cpu_capacity_millicores or 0.0) for m in case.snapshot.supervisors)


def test_too_few_slots_is_a_value_with_a_reason() -> None:
    case = case_at(QUIET).in_force(Assignment({}))
    one_slot = tuple(replace(machine, ports=machine.ports[:1]) for machine in case.snapshot.supervisors[:1])
    case = replace(case, snapshot=replace(case.snapshot, supervisors=one_slot))
    result = place_aniello_online(case.snapshot, case.demand, case.settings)
    assert result == Infeasible("2 workers are asked for but only 1 slots are free")


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("capacity_fraction", 1.2, "must be from 0.01 to 1"),
        ("overload_seconds", -1.0, "must be from 0 to 540"),
        ("beta", 0.5, "policy aniello-online has no such parameter"),
    ],
)
def test_a_wrong_parameter_is_named_whatever_the_trigger(name: str, value: float, says: str) -> None:
    with pytest.raises(ValueError, match=f"scheduling.parameters.{name} = {value:g}: {says}"):
        place(case_at(QUIET).under(parameters=((name, value),)))


def test_each_rate_is_looked_at_once_in_each_phase_however_many_topologies_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topologies = tuple(chain_topology(f"t{n}", ("spout", 2), ("bolt", 2)) for n in range(8))
    rates = {pair: rate for topology in topologies for pair, rate in even_traffic(topology, 100.0).items()}
    picture = snapshot(topologies, supervisors(8, slots=5), rates=rates)
    looked_at: list[float] = []
    pairs = TrafficMatrix.pairs

    def counted(matrix: TrafficMatrix) -> Iterator[tuple[Executor, Executor, float]]:
        for source, target, rate in pairs(matrix):
            looked_at.append(rate)
            yield source, target, rate

    monkeypatch.setattr(TrafficMatrix, "pairs", counted)
    placed_or_fail(place_aniello_online(picture, same_demand(topologies), placement_settings(topologies)))
    assert len(looked_at) == 2 * len(rates)


def by_the_letter(loads: Sequence[float], rates: Mapping[tuple[int, int], float], bins: int) -> dict[int, int]:
    """A phase of Algorithm 1, line by line; of equally good choices the first, of equally loaded bins the emptiest."""
    at: dict[int, int] = {}

    def carried(where: int) -> tuple[float, int, int]:
        inside = [item for item in at if at[item] == where]
        return sum(loads[item] for item in inside), len(inside), where

    for j, k in sorted(rates, key=lambda pair: (-rates[pair], pair)):
        least_loaded = min(range(bins), key=carried)
        if j not in at and k not in at:
            at[j] = at[k] = least_loaded
            continue
        choices = dict.fromkeys([*(at[item] for item in (j, k) if item in at), least_loaded])
        tried = [at | {j: to_j, k: to_k} for to_j, to_k in product(choices, choices)]
        at.update(min(tried, key=partial(_crossing, rates)))
    return at


def _crossing(rates: Mapping[tuple[int, int], float], at: Mapping[int, int]) -> float:
    return sum(rate for (x, y), rate in rates.items() if x in at and y in at and at[x] != at[y])


@pytest.mark.parametrize("seed", range(100))
def test_without_bounds_a_phase_does_what_algorithm_1_says_line_by_line(seed: int) -> None:
    rng = random.Random(seed)
    items, count = rng.randint(2, 9), rng.randint(1, 4)
    loads = [float(rng.randint(1, 50)) for _ in range(items)]
    pairs = [pair for pair in permutations(range(items), 2) if rng.random() < 0.4]
    rates = {pair: float(rng.randint(1, 1000)) for pair in pairs}
    bins = Bins(loads, rates, [0.0] * count, [math.inf] * count, [items] * count)
    bins.place_pairs()
    assert {item: at for item, at in enumerate(bins.bin_of) if at is not None} == by_the_letter(loads, rates, count)


def test_a_later_pair_may_take_an_item_along() -> None:
    # 0 and 1 open the first bin, 2 and 3 the second; then 1 and 2 meet: together they save most in bin 0.
    bins = Bins([1.0] * 4, {(0, 1): 9.0, (2, 3): 5.0, (1, 2): 7.0}, [0.0, 0.0], [10.0, 10.0], [4, 4])
    bins.place_pairs()
    assert bins.bin_of[0] == bins.bin_of[1] == bins.bin_of[2]


def test_room_and_limits_are_kept() -> None:
    bins = Bins([4.0, 4.0, 4.0], {(0, 1): 9.0, (1, 2): 8.0}, [0.0, 1.0], [8.0, 8.0], [4, 4])
    bins.place_pairs()
    assert bins.place_rest()
    assert [bins.bin_of.count(at) for at in (0, 1)] == [2, 1]
    assert not Bins([1.0], {}, [0.0], [9.0], [0]).place_rest()


def test_an_empty_bin_gets_what_is_missed_least() -> None:
    bins = Bins([1.0] * 3, {(0, 1): 9.0, (1, 2): 1.0}, [0.0, 0.0], [10.0] * 2, [3, 3])
    for item in range(3):
        bins.put(item, 0)
    bins.fill_empty()
    assert bins.bin_of == [0, 0, 1]
