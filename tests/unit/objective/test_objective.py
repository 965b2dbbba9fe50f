from __future__ import annotations

from dataclasses import replace

import pytest

from builders import chain_topology, placed, placement_settings, same_demand, slot, snapshot, supervisors
from placement_cases import Case, measured_example
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.distances import Distances
from storm_operator.core.model import Assignment, Executor, ExecutorLoad, Supervisor, WorkerSlot
from storm_operator.core.placement.objective import Cost, cost_of, restart_cost, restarted_workers
from storm_operator.core.placement.prices import prices_of
from storm_operator.core.settings import ObjectiveWeights
from storm_operator.core.traffic import TrafficMatrix

WORDS = chain_topology("words", ("spout", 1), ("count", 1), stateful=("count",))
SPOUT, COUNT = WORDS.executors


def two_executors(at_spout: str, at_count: str, *, per_second: float = 300.0, machines: int = 2) -> Case:
    picture = snapshot(
        (WORDS,),
        supervisors(machines),
        placed(WORDS, {"spout": at_spout, "count": at_count}),
        rates={(SPOUT, COUNT): per_second},
    )
    return Case(picture, same_demand((WORDS,), 300.0), placement_settings((WORDS,)))


def cost_in_force(case: Case) -> Cost:
    return cost_of(case.snapshot, case.snapshot.assignment, case.demand, case.settings)


def test_network_is_rate_times_distance() -> None:
    assert cost_in_force(two_executors("s1", "s2")).network == pytest.approx(300.0 * 4.0)
    assert cost_in_force(two_executors("s1:6700", "s1:6701")).network == pytest.approx(300.0 * 0.1)
    assert cost_in_force(two_executors("s1", "s1")).network == 0.0


def test_whatever_leaves_its_worker_is_serialised() -> None:
    def network(at_spout: str, at_count: str) -> float:
        case = two_executors(at_spout, at_count)
        distances = replace(case.snapshot.distances, worker_hop_ms=1.3)
        return cost_in_force(replace(case, snapshot=replace(case.snapshot, distances=distances))).network

    assert network("s1:6700", "s1:6701") == pytest.approx(300.0 * (1.3 + 0.1))
    assert network("s1", "s2") == pytest.approx(300.0 * (1.3 + 4.0))
    assert network("s1", "s1") == 0.0


def test_unmeasured_pair_counts_as_typical() -> None:
    case = two_executors("s1", "s2")
    unknown = replace(case, snapshot=replace(case.snapshot, distances=Distances({}, default_ms=2.5, worker_hop_ms=0.5)))
    assert cost_in_force(unknown).network == pytest.approx(300.0 * (2.5 + 0.5))


def test_the_assignment_in_force_costs_no_restarts() -> None:
    assert cost_in_force(two_executors("s1", "s2")).restarts == 0.0


def test_all_supervisors_in_use_cost_one_typical_round_trip_on_every_tuple() -> None:
    one, two = two_executors("s1", "s1"), two_executors("s1", "s2")
    assert cost_in_force(one).supervisors == pytest.approx(300.0 * 4.0)
    assert cost_in_force(two).supervisors == pytest.approx(300.0 * 4.0)
    merged = two.snapshot.assignment.with_moves({COUNT: slot("s1:6701")})
    assert cost_of(two.snapshot, merged, two.demand, two.settings).supervisors == pytest.approx(300.0 * 4.0 / 2)


def test_overload_is_demand_beyond_headroom() -> None:
    case = two_executors("s1", "s1").under(headroom_fraction=0.5)
    # 600 millicores on 1000 with headroom 0.5: 100 too much, each at the price of all traffic once over the network.
    assert cost_in_force(case).overload == pytest.approx(100.0 * 300.0 * 4.0)


def test_overload_is_told_by_the_room_and_not_by_what_is_given() -> None:
    case = two_executors("s1", "s1").under(headroom_fraction=0.5)
    given = dict.fromkeys(WORDS.executors, 400.0)
    assert cost_in_force(replace(case, demand=Demand(given, dict.fromkeys(given, 200.0)))).overload == 0.0
    roomy = Demand(given, dict.fromkeys(given, 200.0), dict.fromkeys(given, 300.0))
    assert cost_in_force(replace(case, demand=roomy)).overload == pytest.approx(100.0 * 300.0 * 4.0)
    assert cost_in_force(replace(case, demand=roomy.of_now())).overload == 0.0


def test_what_workers_need_beside_their_executors_is_no_room() -> None:
    case = two_executors("s1", "s1").under(headroom_fraction=0.75)
    assert cost_in_force(case).overload == 0.0  # 600 of 750 millicores
    loads = dict.fromkeys(WORDS.executors, ExecutorLoad(cpu_millicores=200.0))
    measured = replace(case.snapshot, loads=loads, supervisor_cpu_millicores={"s1": 600.0, "s2": 5.0})
    # Supervisors use 1.5 times what executors use: 500 of the 750 millicores are theirs.
    assert cost_in_force(replace(case, snapshot=measured)).overload == pytest.approx(100.0 * 300.0 * 4.0)


def test_a_supervisor_that_does_not_always_answer_loses_tuples() -> None:
    case = two_executors("s1", "s2").under(weights=ObjectiveWeights(tuple_lost=100.0))
    first, second = case.snapshot.supervisors
    machines = (replace(first, availability=0.85), second)
    # Half of the 300 tuples/s counts at either end; a lost one costs 100 round trips of 4 ms.
    assert cost_in_force(replace(case, snapshot=replace(case.snapshot, supervisors=machines))).losses == pytest.approx(
        150.0 * 0.15 * 100.0 * 4.0
    )
    assert cost_in_force(case).losses == 0.0


def test_declared_memory_beyond_what_a_supervisor_declares_is_overload() -> None:
    case = two_executors("s1", "s1")
    components = tuple(replace(component, declared_memory_mb=300.0) for component in WORDS.components)
    machines = tuple(replace(machine, memory_mb=512.0) for machine in case.snapshot.supervisors)
    declared = replace(case.snapshot, topologies=(replace(WORDS, components=components),), supervisors=machines)
    assert cost_in_force(replace(case, snapshot=declared)).overload == pytest.approx(88.0 * 300.0 * 4.0)
    apart = replace(declared, assignment=Assignment(placed(WORDS, {"spout": "s1", "count": "s2"})))
    assert cost_in_force(replace(case, snapshot=apart)).overload == 0.0


def test_unknown_capacity_counts_as_the_smallest_known() -> None:
    case = two_executors("s1", "s1")
    machines = (Supervisor("s1", "a", (6700,), None), Supervisor("s2", "b", (6700,), 500.0))
    assert cost_in_force(replace(case, snapshot=replace(case.snapshot, supervisors=machines))).overload > 0.0


def test_no_known_capacity_is_no_limit() -> None:
    case = two_executors("s1", "s1")
    machines = tuple(replace(machine, cpu_capacity_millicores=None) for machine in case.snapshot.supervisors)
    assert cost_in_force(replace(case, snapshot=replace(case.snapshot, supervisors=machines))).overload == 0.0


def test_restart_is_spread_over_the_plans_life() -> None:
    case = two_executors("s1", "s2")
    target = case.snapshot.assignment.with_moves({SPOUT: slot("s2")})
    # Both live in the restarted worker: all 300 tuples/s disturbed for 8 of 300 s at 10 round trips of 4 ms, and
    # half of them again since the stateful end loses its state.
    expected = 300.0 * 8.0 / 300.0 * 4.0 * (10.0 + 10.0 / 2)
    assert restart_cost(case.snapshot, case.snapshot.assignment, target, case.settings) == pytest.approx(expected)
    assert cost_of(case.snapshot, target, case.demand, case.settings).restarts == pytest.approx(expected)
    longer = case.under(expected_life_seconds=600.0)
    assert restart_cost(longer.snapshot, longer.snapshot.assignment, target, longer.settings) == pytest.approx(
        expected / 2
    )


def test_a_worker_that_only_starts_disturbs_nothing() -> None:
    case = two_executors("s1", "s2")
    unplaced = case.in_force(Assignment({SPOUT: slot("s1")}))
    target = Assignment({SPOUT: slot("s1"), COUNT: slot("s2")})
    assert restart_cost(unplaced.snapshot, unplaced.snapshot.assignment, target, unplaced.settings) == 0.0


def test_restarted_workers_are_those_whose_executors_change() -> None:
    base = Assignment({SPOUT: slot("s1"), COUNT: slot("s2")})
    assert restarted_workers(base, base) == ()
    assert restarted_workers(base, base.with_moves({COUNT: slot("s1")})) == (slot("s1"),)
    assert restarted_workers(base, base.with_moves({COUNT: slot("s2:6701")})) == (slot("s2:6701"),)


def test_an_idle_worker_is_cheap_but_not_free_to_restart() -> None:
    idle = two_executors("s1", "s2", per_second=0.0)
    busy = two_executors("s1", "s2", per_second=300.0)
    assert prices_of(idle.snapshot, idle.settings).restart_of[SPOUT] > 0.0
    assert prices_of(idle.snapshot, idle.settings).restart_of[SPOUT] < (
        prices_of(busy.snapshot, busy.settings).restart_of[SPOUT] / 100
    )


@pytest.mark.parametrize("times", [1 / 30, 1000 / 3])
def test_all_parts_grow_with_the_traffic_so_that_no_weight_has_to_be_tuned_to_it(times: float) -> None:
    small = measured_example()
    machine = small.snapshot.supervisors[0]
    target = Assignment({e: WorkerSlot(machine.id, machine.ports[e.component == "count"]) for e in executors(small)})
    rates = {(a, b): rate * times for a, b, rate in small.snapshot.traffic.pairs()}
    large = replace(small, snapshot=replace(small.snapshot, traffic=TrafficMatrix(rates)))
    for assignment in (small.snapshot.assignment, target):
        before = cost_of(small.snapshot, assignment, small.demand, small.settings)
        after = cost_of(large.snapshot, assignment, large.demand, large.settings)
        assert after.network == pytest.approx(before.network * times)
        assert after.supervisors == pytest.approx(before.supervisors * times)
        assert after.restarts == pytest.approx(before.restarts * times)


def test_measured_example_costs_thousands_and_repays_in_minutes() -> None:
    case = measured_example()
    machine = case.snapshot.supervisors[0]
    target = Assignment({e: WorkerSlot(machine.id, machine.ports[e.component == "count"]) for e in executors(case)})
    before = cost_in_force(case)
    after = cost_of(case.snapshot, target, case.demand, case.settings)
    assert 1000.0 < before.network < 10_000.0
    payback = after.restarts * case.settings.scheduling.expected_life_seconds / (before.network - after.network)
    assert 30.0 < payback < 300.0


def executors(case: Case) -> tuple[Executor, ...]:
    return case.snapshot.topologies[0].executors
