"""The default policy: the measured example, what it does under load and at rest, and how near it is to the optimum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent import futures
from dataclasses import replace
from itertools import permutations, product
from typing import Any, cast

import numba
import numpy as np
import pytest
from plan.instance import Scale, make_instance

from builders import FIRST_PORT, even_traffic, placement_settings, same_demand, snapshot
from placement_cases import (
    Case,
    acked_chain,
    burdened,
    large_case,
    measured_example,
    placed_or_fail,
    random_case,
    workers_by_supervisor,
)
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.distances import Distances
from storm_operator.core.model import Assignment, Infeasible, Supervisor, WorkerSlot
from storm_operator.core.placement import adaptive
from storm_operator.core.placement.adaptive import place_adaptive
from storm_operator.core.placement.objective import (
    cost_of,
    network_usage,
    overfull_megabytes,
    overloaded_millicores,
    restarted_workers,
)
from storm_operator.core.placement.prices import prices_of
from storm_operator.core.placement.search.arrays import search_of
from storm_operator.core.placement.search.kicks import kick_and_settle
from storm_operator.core.placement.search.partition_state import Partition, Search, empty_partition
from storm_operator.core.placement.search.port_repair import repair_ports
from storm_operator.core.placement.search.problem import Problem, build_problem, to_assignment
from storm_operator.core.placement.search.refinement import refine
from storm_operator.core.placement.search.restoring import restore_workers
from storm_operator.core.placement.search.settling import restless, settle_from_home
from storm_operator.core.placement.search.step_prices import moved, put_all, total_cost
from storm_operator.core.placement.separation import cheaper_together
from storm_operator.core.settings import Enforcement, ResourceSettings, Separation
from storm_operator.core.traffic import TrafficMatrix


def place(case: Case) -> Assignment:
    return placed_or_fail(place_adaptive(case.snapshot, case.demand, case.settings))


def total(case: Case, assignment: Assignment) -> float:
    return cost_of(case.snapshot, assignment, case.demand, case.settings).total


def with_load_of_topologies(case: Case, factors: Mapping[str, float]) -> Case:
    """Tuples and CPU of each topology (by id) times its factor, and all by one, so that the sum of the CPU stays."""
    needs = {e: value * factors[e.topology_id] for e, value in case.demand.millicores.items()}
    same = sum(case.demand.millicores.values()) / sum(needs.values())
    needs = {e: value * same for e, value in needs.items()}
    rates = {(a, b): rate * same * factors[a.topology_id] for a, b, rate in case.snapshot.traffic.pairs()}
    changed = replace(case.snapshot, traffic=TrafficMatrix(rates))
    return replace(case, snapshot=changed, demand=Demand(needs, needs))


def with_traffic(case: Case, times: float) -> Case:
    rates = {(a, b): rate * times for a, b, rate in case.snapshot.traffic.pairs()}
    return replace(case, snapshot=replace(case.snapshot, traffic=TrafficMatrix(rates)))


@pytest.mark.parametrize("per_second", [10.0, 300.0, 100_000.0])
def test_measured_example_ends_in_two_workers_of_one_supervisor(per_second: float) -> None:
    assignment = place(measured_example(Separation.ALWAYS, per_second))
    assert list(workers_by_supervisor(assignment, "example").values()) == [2]
    parts = {frozenset(executor.component for executor in inside) for inside in assignment.workers().values()}
    assert parts == {frozenset({"spout", "work", "__acker"}), frozenset({"count"})}


def test_measured_example_ends_in_one_worker_without_separation() -> None:
    assignment = place(measured_example(Separation.NEVER))
    assert list(workers_by_supervisor(assignment, "example").values()) == [1]
    assert network_usage(measured_example().snapshot, assignment) == 0.0


def test_a_good_assignment_is_left_alone() -> None:
    case = measured_example()
    settled = case.in_force(place(case))
    assert place(settled) == settled.snapshot.assignment


def test_a_few_percent_more_traffic_on_one_edge_restart_nothing() -> None:
    case = measured_example()
    settled = case.in_force(place(case))
    for times in (0.9, 1.1, 3.0):
        assert place(with_traffic(settled, times)) == settled.snapshot.assignment


def test_a_supervisor_is_emptied_when_load_falls() -> None:
    case = measured_example()
    executors = case.snapshot.topologies[0].executors
    busy = replace(case, demand=same_demand(case.snapshot.topologies, 400.0))
    spread = place(busy)
    assert len(spread.used_supervisors()) == 2  # 3200 millicores on machines of 1800 within headroom
    quiet = busy.in_force(spread)
    quiet = replace(with_traffic(quiet, 0.25), demand=same_demand(case.snapshot.topologies, 100.0))
    assert len(place(quiet).used_supervisors()) == 1
    assert set(place(quiet).slot_of) == set(executors)


def test_overload_is_relieved_and_one_of_two_workers_goes_on() -> None:
    case = measured_example()
    settled = case.in_force(place(case))
    overloaded = replace(settled, demand=same_demand(case.snapshot.topologies, 250.0))
    relieved = place(overloaded)
    snapshot_, demand, settings = overloaded.snapshot, overloaded.demand, overloaded.settings
    assert overloaded_millicores(snapshot_, snapshot_.assignment, demand, settings) > 0.0
    assert overloaded_millicores(snapshot_, relieved, demand, settings) == 0.0
    restarted = set(restarted_workers(snapshot_.assignment, relieved))
    assert len(restarted & set(snapshot_.assignment.workers())) == 1


def test_what_does_not_fit_is_overloaded_as_little_as_possible() -> None:
    case = measured_example()
    too_much = replace(case, demand=same_demand(case.snapshot.topologies, 900.0))
    excess = overloaded_millicores(too_much.snapshot, place(too_much), too_much.demand, too_much.settings)
    # 8 executors of 900 on three machines of 1800: two each fit, two executors are too much wherever they are.
    assert excess == pytest.approx(2 * 900.0)


def test_only_missing_slots_are_infeasible() -> None:
    one, two = acked_chain("one", ("spout", 1), ("bolt", 1)), acked_chain("two", ("spout", 1), ("bolt", 1))
    machine = Supervisor("s1", "a", (6700,), 1000.0)
    picture = snapshot((one, two), (machine,))
    result = place_adaptive(picture, same_demand((one, two)), placement_settings((one, two)))
    assert result == Infeasible("2 workers are needed (one for each topology) but only 1 slots are free")


def test_separation_yields_when_there_are_not_enough_slots() -> None:
    topology = acked_chain("one", ("spout", 1), ("count", 1), stateful=("count",))
    picture = snapshot((topology,), (Supervisor("s1", "a", (6700,), 1000.0),))
    case = Case(picture, same_demand((topology,)), placement_settings((topology,)))
    assert len(place(case).workers()) == 1


def test_executors_of_a_vanished_supervisor_are_placed_elsewhere_and_the_rest_stays() -> None:
    case = replace(measured_example(), demand=same_demand(measured_example().snapshot.topologies, 400.0))
    settled = case.in_force(place(case))
    lost, kept = settled.snapshot.assignment.used_supervisors()
    left = tuple(machine for machine in settled.snapshot.supervisors if machine.id != lost)
    after = place(replace(settled, snapshot=replace(settled.snapshot, supervisors=left)))
    assert lost not in after.used_supervisors()
    for executor, slot in settled.snapshot.assignment.slot_of.items():
        if slot.supervisor_id == kept:
            assert after.slot_of[executor].supervisor_id == kept


def test_two_chatting_groups_stay_in_their_racks() -> None:
    chains = tuple(acked_chain(name, ("spout", 2), ("bolt", 4)) for name in ("red", "blue"))
    machines = tuple(Supervisor(f"s{n}", f"h{n}", (6700, 6701), 1000.0) for n in range(4))
    rates = {pair: rate for chain in chains for pair, rate in even_traffic(chain, 1000.0).items()}
    picture = snapshot(chains, machines, rates=rates)
    trips = {
        (a.id, b.id): 0.5 if (i < 2) == (j < 2) else 20.0
        for i, a in enumerate(machines)
        for j, b in enumerate(machines)
        if a != b
    }
    picture = replace(picture, distances=replace(picture.distances, round_trip_ms=trips, default_ms=0.5))
    assignment = place(Case(picture, same_demand(chains, 200.0), placement_settings(chains)))
    for name in ("red", "blue"):
        racks = {machine in ("s0", "s1") for machine in workers_by_supervisor(assignment, name)}
        assert len(racks) == 1


@pytest.mark.parametrize(
    ("round_trip_ms", "worker_hop_ms", "workers"),
    [
        (4.0, 0.0, 2),  # hops cost next to nothing: state is worth more
        (4.0, 1.3, 1),
        (100.0, 1.3, 2),  # restarts are priced by the typical round trip
    ],
)
def test_auto_separates_where_state_costs_more_than_hops(
    round_trip_ms: float, worker_hop_ms: float, workers: int
) -> None:
    case = measured_example(Separation.AUTO)
    distances = Distances({}, default_ms=round_trip_ms, worker_hop_ms=worker_hop_ms)
    case = replace(case, snapshot=replace(case.snapshot, distances=distances))
    assert list(workers_by_supervisor(place(case), "example").values()) == [workers]


def test_where_supervisors_have_one_slot_auto_knows_that_kinds_apart_are_a_network_apart() -> None:
    case = measured_example(Separation.AUTO)
    far = replace(case.snapshot, distances=Distances({}, default_ms=100.0, worker_hop_ms=1.3))
    single = replace(far, supervisors=tuple(replace(m, ports=m.ports[:1]) for m in far.supervisors))
    found = [cheaper_together(each, case.settings, prices_of(each, case.settings)) for each in (far, single)]
    assert found == [frozenset(), {"example"}]


def test_auto_keeps_together_what_was_just_submitted() -> None:
    """Nobody knows its traffic yet. Were it placed apart, it would stay so where it would not pay to restart it."""
    case = measured_example(Separation.AUTO)
    new = replace(case.snapshot, assignment=Assignment({}), traffic=TrafficMatrix({}, case.snapshot.traffic.executors))
    assert list(workers_by_supervisor(place(replace(case, snapshot=new)), "example").values()) == [1]


def test_auto_leaves_apart_what_is_apart_where_the_change_does_not_pay() -> None:
    case = measured_example(Separation.AUTO)
    distances = Distances({}, default_ms=4.0, worker_hop_ms=1.3)
    case = replace(case, snapshot=replace(case.snapshot, distances=distances))
    apart = case.in_force(place(case.under(separation=Separation.ALWAYS)))
    assert cheaper_together(apart.snapshot, apart.settings, prices_of(apart.snapshot, apart.settings)) == {"example"}
    assert place(apart) == apart.snapshot.assignment
    quick = replace(apart, settings=replace(apart.settings, restart_seconds=1.0))
    assert len(place(quick).workers()) == 1


def test_a_supervisor_that_answers_less_than_others_is_left() -> None:
    case = settled_on_s1()
    assert place(case) == case.snapshot.assignment
    machines = tuple(replace(m, availability=0.85 if m.id == "s1" else 1.0) for m in case.snapshot.supervisors)
    left = place(replace(case, snapshot=replace(case.snapshot, supervisors=machines)))
    assert left.used_supervisors() in (("s2",), ("s3",))


def test_all_answering_equally_little_is_no_reason_to_move() -> None:
    case = settled_on_s1()
    machines = tuple(replace(machine, availability=0.85) for machine in case.snapshot.supervisors)
    same = replace(case, snapshot=replace(case.snapshot, supervisors=machines))
    assert place(same) == case.snapshot.assignment


def test_declared_memory_is_kept_to_where_it_can_be() -> None:
    """Eight executors of 300 MB: three fit a supervisor of 1,000 MB, so that one would be enough for their CPU."""
    case = measured_example(Separation.NEVER)
    topology = case.snapshot.topologies[0]
    components = tuple(replace(component, declared_memory_mb=300.0) for component in topology.components)
    machines = tuple(replace(machine, memory_mb=1000.0) for machine in case.snapshot.supervisors)
    declared = replace(case.snapshot, topologies=(replace(topology, components=components),), supervisors=machines)
    case = replace(case, snapshot=declared)
    assert overfull_megabytes(declared, place(case)) == 0.0
    too_small = tuple(replace(machine, memory_mb=600.0) for machine in machines)
    least_bad = place(replace(case, snapshot=replace(declared, supervisors=too_small)))
    assert overfull_megabytes(replace(declared, supervisors=too_small), least_bad) == pytest.approx(8 * 300 - 3 * 600)


def settled_on_s1() -> Case:
    case = measured_example(Separation.NEVER)
    slot = WorkerSlot("s1", FIRST_PORT)
    return case.in_force(Assignment(dict.fromkeys(case.snapshot.topologies[0].executors, slot)))


def test_the_same_machine_code_serves_equal_and_measured_distances() -> None:
    """Other types would be compiled at the first plan, for half a minute."""
    equal = measured_example()
    names = [machine.id for machine in equal.snapshot.supervisors]
    trips = {(a, b): 1.0 + at for at, (a, b) in enumerate(permutations(names, 2))}
    measured = replace(equal.snapshot, distances=replace(equal.snapshot.distances, round_trip_ms=trips))
    problems = [
        build_problem(picture, equal.demand, equal.settings, equal.settings.movable)
        for picture in (equal.snapshot, measured)
    ]
    assert [len(problem.zone_ms) for problem in problems] == [1, len(names)]
    type_of: Callable[[object], object] = numba.typeof
    assert len({type_of(search_of(problem)) for problem in problems}) == 1


def _step(search: Search, state: Partition, vertex: int, column: int) -> float:
    return moved(search, state, vertex, column)


step: Callable[[Search, Partition, int, int], float] = cast("Any", numba.njit)(_step)
"""`moved`, which machine code alone can call. Not kept on disk: numba would not see when `moved` changes."""


def laid_out(problem: Problem, rng: np.random.Generator) -> tuple[Search, Partition]:
    """Everyone anywhere, more workers than ports included."""
    search = search_of(problem)
    state = empty_partition(len(problem.executors), search.machines)
    put_all(search, state, rng.integers(0, len(problem.supervisors), len(problem.executors)))
    return search, state


def ranked(case: Case, seed: int) -> Case:
    """The case with another priority for each topology, obstacles included; of odd seeds nobody is held to its CPU."""
    priority = {topology.id: at for at, topology in enumerate(case.snapshot.topologies)}
    resources = ResourceSettings(enforcement=Enforcement.NONE if seed % 2 else Enforcement.EXECUTOR)
    return replace(case, settings=replace(case.settings, priority=priority, resources=resources))


TOO_LITTLE_CPU = 0.7
"""Overload is shared by topologies of different priority."""


@pytest.mark.parametrize("slack", [1.5, TOO_LITTLE_CPU])
@pytest.mark.parametrize("seed", range(12))
def test_costs_kept_move_by_move_are_those_of_the_objective(seed: int, slack: float) -> None:
    case = ranked(burdened(random_case(seed, obstacles=False, slack=slack), seed), seed)
    problem = build_problem(case.snapshot, case.demand, case.settings, frozenset())
    rng = np.random.default_rng(seed)
    search, state = laid_out(problem, rng)
    for row in rng.permutation(len(problem.executors)).tolist():
        before = total_cost(search, state)
        change = step(search, state, row, int(rng.integers(0, len(problem.supervisors))))
        assert total_cost(search, state) == pytest.approx(before + change)
    repair_ports(search, state)
    exact = total(case, to_assignment(problem, state.place, case.snapshot.assignment))
    assert total_cost(search, state) == pytest.approx(exact)


@pytest.mark.parametrize("seed", range(12))
def test_overload_that_obstacles_share_in_counts_by_their_priority(seed: int) -> None:
    case = ranked(random_case(seed, slack=TOO_LITTLE_CPU), seed)
    problem = build_problem(case.snapshot, case.demand, case.settings, frozenset())
    rng = np.random.default_rng(seed)
    search, state = laid_out(problem, rng)
    costs: list[float] = []
    exact: list[float] = []
    for _ in range(2):
        for row in range(len(problem.executors)):
            step(search, state, row, int(rng.integers(0, len(problem.supervisors))))
        repair_ports(search, state)
        costs.append(total_cost(search, state))
        exact.append(total(case, to_assignment(problem, state.place, case.snapshot.assignment)))
    assert costs[1] - costs[0] == pytest.approx(exact[1] - exact[0])


@pytest.mark.parametrize("slack", [1.5, TOO_LITTLE_CPU])
@pytest.mark.parametrize("seed", range(12))
def test_what_refinement_and_kicks_say_that_they_save_is_what_they_save(seed: int, slack: float) -> None:
    case = ranked(burdened(random_case(seed, obstacles=False, slack=slack), seed), seed)
    problem = build_problem(case.snapshot, case.demand, case.settings, frozenset())
    rng = np.random.default_rng(seed)
    search, state = laid_out(problem, rng)
    before = total_cost(search, state)
    saved = refine(search, state, np.ones(len(state.place), dtype=np.bool_))
    after = total_cost(search, state)
    assert saved <= 0.0
    assert after == pytest.approx(before + saved)
    kick_and_settle(search, state, 50, rng)
    assert total_cost(search, state) <= after + 1e-9 * abs(after)


@pytest.mark.parametrize("seed", range(8))
def test_a_worker_is_put_back_when_its_restart_is_worth_more_than_its_moves(seed: int) -> None:
    """No single move does it: the first one who leaves pays for the restart, and only the last one back saves it."""
    case = random_case(seed, obstacles=False).under(separation=Separation.ALWAYS)
    case = case.in_force(place(case))
    problem = build_problem(case.snapshot, case.demand, case.settings, frozenset())
    dear = replace(problem, restart_price=problem.restart_price * 1e6)
    search, state = search_of(dear), empty_partition(len(dear.executors), search_of(dear).machines)
    put_all(search, state, dear.home)
    at_home = total_cost(search, state)
    workers = [np.flatnonzero((dear.home == at) & (dear.group_of == group)) for at, group in _homes_of(dear)]
    largest = max((worker for worker in workers if problem.settled[worker].all()), key=len)
    for vertex in largest[:2].tolist():
        step(search, state, vertex, int(dear.home[vertex] + 1) % len(dear.supervisors))
    assert total_cost(search, state) > at_home
    assert restore_workers(search, state) >= 1
    assert total_cost(search, state) <= at_home + 1e-9 * abs(at_home)


@pytest.mark.parametrize("seed", range(12))
def test_putting_workers_back_never_costs_more(seed: int) -> None:
    case = burdened(random_case(seed, obstacles=False), seed)
    problem = build_problem(case.snapshot, case.demand, case.settings, frozenset())
    search, state = laid_out(problem, np.random.default_rng(seed))
    refine(search, state, np.ones(len(state.place), dtype=np.bool_))
    before = total_cost(search, state)
    restore_workers(search, state)
    assert total_cost(search, state) <= before + 1e-9 * abs(before)


def _homes_of(problem: Problem) -> list[tuple[int, int]]:
    return sorted(set(zip(problem.home.tolist(), problem.group_of.tolist(), strict=True)))


@pytest.mark.parametrize("seed", range(8))
def test_a_worker_without_a_port_is_merged_or_moved(seed: int) -> None:
    case = random_case(seed)
    problem = build_problem(case.snapshot, case.demand, case.settings, frozenset())
    search, state = laid_out(problem, np.random.default_rng(seed))
    assert repair_ports(search, state) == (problem.groups <= int(search.machines.ports.sum()))
    if problem.groups <= int(search.machines.ports.sum()):
        assert (state.workers <= search.machines.ports).all()


@pytest.mark.parametrize("seed", [0, 2, 7, 12, 19, 26, 31, 41])
def test_tiny_cases_come_within_five_percent_of_the_optimum(seed: int) -> None:
    slack = (1.05, 1.2, 1.5, 2.5, 0.8)[seed % 5]
    case = random_case(seed, most_executors=6, most_supervisors=3, slack=slack)
    problem = build_problem(case.snapshot, case.demand, case.settings, frozenset())
    search, state = laid_out(problem, np.random.default_rng(seed))
    best, best_place = np.inf, state.place.copy()
    for columns in product(range(len(problem.supervisors)), repeat=len(problem.executors)):
        for row, column in enumerate(columns):
            step(search, state, row, column)
        if (state.workers <= search.machines.ports).all() and total_cost(search, state) < best:
            best, best_place = total_cost(search, state), state.place.copy()
    optimum = total(case, to_assignment(problem, best_place, case.snapshot.assignment))
    assert total(case, place(case)) <= 1.05 * optimum


def test_a_large_cluster_is_placed_within_its_cpu_and_ports_and_then_left_alone() -> None:
    case = large_case(3000, 120, 12)
    before = case.snapshot.traffic.inter_supervisor(case.snapshot.assignment)
    assignment = place(case)
    assert case.snapshot.traffic.inter_supervisor(assignment) < 0.8 * before
    assert overloaded_millicores(case.snapshot, assignment, case.demand, case.settings) == 0.0
    known = {slot for machine in case.snapshot.supervisors for slot in machine.slots}
    assert set(assignment.slot_of.values()) <= known
    assert place(case.in_force(assignment)) == assignment


def test_where_every_topology_carries_another_load_a_large_cluster_is_not_torn_up() -> None:
    settled = large_case(1500, 150, 30)
    settled = settled.in_force(place(settled))
    factors = np.random.default_rng(1).lognormal(0.0, 0.15, len(settled.snapshot.topologies))
    case = with_load_of_topologies(
        settled, dict(zip((t.id for t in settled.snapshot.topologies), factors, strict=True))
    )
    assignment = place(case)
    assert overloaded_millicores(case.snapshot, case.snapshot.assignment, case.demand, case.settings) > 0.0
    assert overloaded_millicores(case.snapshot, assignment, case.demand, case.settings) == 0.0
    workers = case.snapshot.assignment.workers()
    assert len(restarted_workers(case.snapshot.assignment, assignment)) < 0.75 * len(workers)


def test_two_cores_find_what_one_would(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = make_instance(Scale(1500, 150, distance_spread=0.2))
    case = Case(instance.snapshot, instance.demand, instance.settings)
    on_two = [place(case) for _ in range(3)]
    monkeypatch.setattr(adaptive, "ThreadPoolExecutor", InTurn)
    assert on_two == [place(case)] * 3


class InTurn(futures.Executor):
    """Does all at once when it is asked for, on the only core there is."""

    def __init__(self, max_workers: int) -> None:
        self.max_workers = max_workers

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
        done: futures.Future[Any] = futures.Future()
        done.set_result(work(*args, **kwargs))
        return done


@pytest.mark.parametrize("topology", [4, 20])
def test_after_a_local_change_it_is_enough_to_look_at_those_who_have_reason_to_move(topology: int) -> None:
    settled = large_case(1500, 150, 30)
    settled = settled.in_force(place(settled))
    factors = {topology.id: 1.0 for topology in settled.snapshot.topologies}
    search, problem = searched(
        with_load_of_topologies(settled, factors | {settled.snapshot.topologies[topology].id: 1.3})
    )
    moving = restless(search)
    assert 0.0 < moving.mean() < 0.05
    here, everywhere = settle_from_home(problem, search, 0, moving), settle_from_home(problem, search, 0)
    assert here.total == pytest.approx(everywhere.total, rel=6e-3)


def test_where_those_find_no_room_nearby_all_are_looked_at() -> None:
    """Full to 88%, and a supervisor dies: only whoever has no reason to move can make room."""
    instance = make_instance(Scale(1000, 100, seed=26, use=0.88))
    planned = place_adaptive(instance.snapshot, instance.demand, instance.settings)
    assert isinstance(planned, Assignment)
    after = instance.in_force(planned).without_supervisor()
    search, problem = searched(Case(after.snapshot, after.demand, after.settings))
    here, everywhere = settle_from_home(problem, search, 0, restless(search)), settle_from_home(problem, search, 0)
    assert here.total <= everywhere.total


def searched(case: Case) -> tuple[Search, Problem]:
    problem = build_problem(case.snapshot, case.demand, case.settings, frozenset())
    return search_of(problem), problem


def test_sixty_executors_cross_far_less_than_dealt_out() -> None:
    case = large_case(60, 5, 2)
    before = case.snapshot.traffic.inter_supervisor(case.snapshot.assignment)
    assignment = place(case)
    assert case.snapshot.traffic.inter_supervisor(assignment) < 0.5 * before
    assert overloaded_millicores(case.snapshot, assignment, case.demand, case.settings) == 0.0
