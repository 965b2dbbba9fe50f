"""T-Storm, ICDCS'14: Algorithm 1 (order, three constraints, least inter-node traffic), estimates and triggers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from builders import (
    chain_topology,
    component_load,
    history,
    placed,
    placement_settings,
    same_demand,
    snapshot,
    supervisors,
)
from placement_cases import Case, placed_or_fail
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Executor
from storm_operator.core.placement.t_storm import place_t_storm
from storm_operator.core.snapshot import LoadPeriod
from storm_operator.core.traffic import TrafficMatrix

BETWEEN_SCHEDULES = 1020.0
AT_A_SCHEDULE = 1200.0
PAIRS = chain_topology("pairs", ("spout", 3), ("bolt", 3))
S1, S2, S3, B1, B2, B3 = PAIRS.executors
STREAMS = {(S1, B1): 100.0, (S2, B2): 50.0, (S3, B3): 10.0}


def case_at(
    seconds: float = AT_A_SCHEDULE,
    *,
    rates: dict[tuple[Executor, Executor], float] | None = None,
    machines: int = 3,
    capacity: float = 10_000.0,
    slot_of: Sequence[str] = (),
    **parameters: float,
) -> Case:
    picture = snapshot(
        (PAIRS,),
        supervisors(machines, capacity=capacity),
        placed(PAIRS, {"spout": list(slot_of), "bolt": list(slot_of)}) if slot_of else {},
        rates=STREAMS if rates is None else rates,
    )
    picture = replace(picture, taken_at_seconds=seconds)
    case = Case(picture, same_demand((PAIRS,), 100.0), placement_settings((PAIRS,)))
    return case.under(parameters=tuple(sorted(parameters.items())))


def place(case: Case) -> Assignment:
    return placed_or_fail(place_t_storm(case.snapshot, case.demand, case.settings))


def by_supervisor(assignment: Assignment) -> dict[str, str]:
    """Executors' first tasks by supervisor, e.g. `{"s1": "14"}`."""
    found: dict[str, str] = {}
    for executor in sorted(assignment.slot_of):
        at = assignment.slot_of[executor].supervisor_id
        found[at] = found.get(at, "") + str(executor.task_start)
    return found


def test_executors_with_traffic_meet_and_gamma_one_uses_every_node_evenly() -> None:
    assert by_supervisor(place(case_at(gamma=1.0))) == {"s1": "14", "s2": "25", "s3": "36"}


@pytest.mark.parametrize(("gamma", "nodes"), [(1.0, 3), (1.5, 2), (3.0, 1)])
def test_a_larger_gamma_takes_fewer_nodes(gamma: float, nodes: int) -> None:
    assert len(place(case_at(gamma=gamma)).used_supervisors()) == nodes


def test_the_default_gamma_leaves_30_percent_of_the_nodes_idle() -> None:
    wide = chain_topology("wide", ("spout", 20), ("bolt", 20))
    picture = replace(snapshot((wide,), supervisors(10, 10_000.0)), taken_at_seconds=AT_A_SCHEDULE)
    placement = place_t_storm(picture, same_demand((wide,), 100.0), placement_settings((wide,)))
    assert len(placed_or_fail(placement).used_supervisors()) == 7


@pytest.mark.parametrize(("executors", "machines", "most"), [(49, 10, 7), (49, 5, 14), (40, 10, 6)])
def test_no_node_has_more_than_gamma_times_its_even_share(executors: int, machines: int, most: int) -> None:
    # 4.9 / 0.7 is 7, and not a rounding error more; 4 / 0.7 is 5.7, which is rounded up.
    wide = chain_topology("wide", ("spout", executors))
    picture = replace(snapshot((wide,), supervisors(machines, 10_000.0)), taken_at_seconds=AT_A_SCHEDULE)
    found = placed_or_fail(place_t_storm(picture, same_demand((wide,), 100.0), placement_settings((wide,))))
    assert max(len(inside) for inside in found.workers().values()) == most


def test_the_executor_with_most_traffic_is_placed_first() -> None:
    # In the order of tasks S1 and S2 would share s1 and shut B2 out.
    rates = {(S2, B2): 100.0, (S1, B1): 1.0, (S3, B3): 1.0}
    assert by_supervisor(place(case_at(gamma=1.0, rates=rates)))["s1"] == "25"


def test_no_node_carries_more_than_its_capacity() -> None:
    # 250 * 0.9 = 225 millicores hold two executors of 100, whatever gamma allows.
    assert by_supervisor(place(case_at(gamma=3.0, capacity=250.0))) == {"s1": "14", "s2": "25", "s3": "36"}


def test_traffic_counts_before_consolidation() -> None:
    # S1 and B1 fill most of s1, S2 only fits on s2; B2 would fit on s1, where more executors are.
    heavy = {S1: 700.0, S2: 700.0}
    case = case_at(capacity=1000.0, gamma=3.0)
    case = replace(case, demand=Demand(dict(case.demand.millicores) | heavy, dict(case.demand.raw_millicores) | heavy))
    assert by_supervisor(place(case)) == {"s1": "134", "s2": "256"}


def test_gamma_yields_where_capacity_would_not_be_kept_and_load_is_evened_out_where_nothing_is() -> None:
    small = case_at(gamma=1.0, machines=2, capacity=1000.0)
    machines = (replace(small.snapshot.supervisors[0], cpu_capacity_millicores=200.0), small.snapshot.supervisors[1])
    uneven = replace(small, snapshot=replace(small.snapshot, supervisors=machines))
    assert by_supervisor(place(uneven)) == {"s1": "1", "s2": "23456"}
    star = {(S1, other): rate for other, rate in ((S2, 50.0), (S3, 40.0), (B1, 30.0), (B2, 20.0), (B3, 10.0))}
    drawn = replace(uneven, snapshot=replace(uneven.snapshot, traffic=TrafficMatrix(star)))
    assert by_supervisor(place(drawn)) == {"s1": "1", "s2": "23456"}
    assert {len(tasks) for tasks in by_supervisor(place(case_at(capacity=10.0))).values()} == {2}


def test_a_topology_has_one_worker_on_a_node() -> None:
    assert len(place(case_at(gamma=3.0)).workers()) == 1


def test_nothing_moves_between_schedules() -> None:
    case = case_at(BETWEEN_SCHEDULES, slot_of=("s1", "s2", "s2"))
    assert place(case) == case.snapshot.assignment
    assert place(case.at(AT_A_SCHEDULE)) != case.snapshot.assignment


@pytest.mark.parametrize(("cpu", "moves"), [(9000.0, True), (8999.0, False)])
def test_an_overloaded_node_waits_for_no_schedule(cpu: float, moves: bool) -> None:
    case = case_at(BETWEEN_SCHEDULES, slot_of=("s1", "s2", "s2"))
    busy = (LoadPeriod(BETWEEN_SCHEDULES, 10.0, {}, {"s1": cpu}),)
    case = replace(case, snapshot=replace(case.snapshot, history=busy))
    assert (place(case) != case.snapshot.assignment) == moves


def test_an_executor_without_a_place_waits_for_no_schedule() -> None:
    assert set(place(case_at(BETWEEN_SCHEDULES)).slot_of) == set(PAIRS.executors)


@pytest.mark.parametrize(("alpha", "together"), [(0.0, "14"), (0.9, "25")])
def test_a_spike_of_traffic_counts_by_the_weight_of_the_past(alpha: float, together: str) -> None:
    """Two bolts, each with a spout: the newest period has a spike on the way to the first one."""
    spiky = replace(PAIRS.components[1], name="spiky")
    topology = replace(
        PAIRS,
        components=(*PAIRS.components, spiky),
        executors=(S1, S2, replace(B1, component="spiky"), B2),
    )
    periods = history(
        "pairs",
        {
            "spiky": [component_load(10.0), component_load(10.0), component_load(100.0)],
            "bolt": [component_load(50.0), component_load(50.0), component_load(50.0)],
        },
    )
    rates = {(S1, topology.executors[2]): 100.0, (S2, B2): 50.0}
    picture = snapshot((topology,), supervisors(2, 10_000.0), rates=rates, periods=periods)
    case = Case(
        replace(picture, taken_at_seconds=AT_A_SCHEDULE),
        same_demand((topology,), 100.0),
        placement_settings((topology,)),
    )
    # The busiest pair comes first: to s1.
    assert by_supervisor(place(case.under(parameters=(("alpha", alpha), ("gamma", 1.0)))))["s1"] == together
