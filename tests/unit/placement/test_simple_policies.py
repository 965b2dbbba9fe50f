"""The simple families of the digest: each rule on a cluster where the answer can be told by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from builders import chain_topology, placement_settings, same_demand, slot, snapshot, supervisors
from placement_cases import Case, placed_or_fail
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Topology, WorkerSlot
from storm_operator.core.placement.registry import POLICIES
from storm_operator.core.placement.smooth_turns import SmoothTurns

DUE = 1020.0
NOT_DUE = 1010.0
WITH_A_PERIOD = ("dynamic-weighted-round-robin", "nearest-load-first", "shortest-job-first")
STATIC = ("least-task-first", "random", "round-robin", "weighted-round-robin")


def case_of(
    executors: int, *millicores: float | None, tasks_per_executor: int = 1, busy: Mapping[str, float] | None = None
) -> Case:
    """Spouts of 100 millicores each and nobody placed yet; `busy` is measured CPU by supervisor."""
    topology = chain_topology("t", ("spout", executors), tasks_per_executor=tasks_per_executor)
    machines = tuple(
        replace(machine, cpu_capacity_millicores=capacity)
        for machine, capacity in zip(supervisors(len(millicores)), millicores, strict=True)
    )
    picture = replace(snapshot((topology,), machines, supervisor_cpu=busy), taken_at_seconds=DUE)
    return Case(picture, same_demand((topology,), 100.0), placement_settings((topology,)))


def order(name: str, case: Case) -> str:
    """Supervisors' numbers in the order of tasks, e.g. `1212`."""
    assignment = placed_or_fail(POLICIES[name](case.snapshot, case.demand, case.settings))
    movable = [e for e in sorted(assignment.slot_of) if e.topology_id in case.settings.movable]
    return "".join(assignment.slot_of[executor].supervisor_id.removeprefix("s") for executor in movable)


def with_obstacle(case: Case, executors: int, at: WorkerSlot) -> Case:
    other: Topology = chain_topology("other", ("spout", executors))
    return replace(
        case,
        snapshot=replace(
            case.snapshot,
            topologies=(*case.snapshot.topologies, other),
            assignment=case.snapshot.assignment.with_moves(dict.fromkeys(other.executors, at)),
        ),
        demand=Demand(
            {**case.demand.millicores, **dict.fromkeys(other.executors, 100.0)}, dict(case.demand.raw_millicores)
        ),
    )


def test_round_robin_goes_over_all_supervisors_and_again() -> None:
    assert order("round-robin", case_of(7, 1000, 1000, 1000)) == "1231231"


def test_round_robin_passes_over_a_supervisor_without_a_slot() -> None:
    case = case_of(4, 1000, 1000, 1000)
    full = replace(case.snapshot.supervisors[1], ports=())
    machines = (case.snapshot.supervisors[0], full, case.snapshot.supervisors[2])
    assert order("round-robin", replace(case, snapshot=replace(case.snapshot, supervisors=machines))) == "1313"


def test_random_follows_its_seed() -> None:
    case = case_of(300, 1000, 1000, 1000)
    first, again, other = (order("random", case.under(parameters=(("seed", seed),))) for seed in (1.0, 1.0, 2.0))
    assert first == again
    assert first != other
    assert all(75 <= first.count(number) <= 125 for number in "123")


def test_random_leaves_others_alone_when_a_topology_goes() -> None:
    case = case_of(9, 1000, 1000)
    more = chain_topology("a", ("spout", 5))
    both = replace(
        case,
        snapshot=replace(case.snapshot, topologies=(more, *case.snapshot.topologies)),
        settings=placement_settings((more, *case.snapshot.topologies)),
    )
    assert order("random", both)[5:] == order("random", case)


def test_weighted_round_robin_gives_turns_by_capacity() -> None:
    assert order("weighted-round-robin", case_of(8, 3000, 1000)) == "11211121"
    assert order("weighted-round-robin", case_of(4, None, None)) == "1212"
    # Unknown capacity counts as the smallest known one.
    unknown = order("weighted-round-robin", case_of(10, 3000, 1000, None))
    assert [unknown.count(number) for number in "123"] == [6, 2, 2]


def test_smooth_turns_are_in_proportion_and_spread() -> None:
    turns = SmoothTurns()
    drawn = "".join(turns.next_of({"a": 5.0, "b": 1.0, "c": 1.0}) for _ in range(14))
    assert drawn == "aabacaa" * 2


def test_dynamic_weights_follow_the_load() -> None:
    idle = case_of(6, 1000, 1000)
    assert sorted(order("dynamic-weighted-round-robin", idle)) == list("111222")
    assert order("dynamic-weighted-round-robin", case_of(6, 1000, 1000, busy={"s1": 900.0})).count("1") == 1
    first_is_heavy = dict(idle.demand.millicores) | {idle.snapshot.topologies[0].executors[0]: 700.0}
    heavy = order("dynamic-weighted-round-robin", replace(idle, demand=Demand(first_is_heavy, first_is_heavy)))
    assert (heavy[0], heavy.count("1"), heavy.count("2")) == ("1", 2, 4)
    # What the movable executors use themselves is no load of others.
    own = case_of(6, 1000, 1000, busy={"s1": 600.0})
    on_first = dict.fromkeys(own.snapshot.topologies[0].executors, slot("s1"))
    alone = order("dynamic-weighted-round-robin", own.in_force(Assignment(on_first)))
    assert alone == order("dynamic-weighted-round-robin", idle)


def test_least_task_first_counts_tasks_and_not_capacity() -> None:
    assert order("least-task-first", case_of(4, 100, 10_000)) == "1212"
    assert order("least-task-first", with_obstacle(case_of(6, 1000, 1000), 2, slot("s1"))) == "221212"
    wide = with_obstacle(case_of(3, 1000, 1000, tasks_per_executor=3), 4, slot("s1"))
    assert order("least-task-first", wide) == "221"


def test_shortest_job_first_takes_short_jobs_first_to_where_they_are_done_first() -> None:
    case = case_of(4, 1000, 1000)
    executors = case.snapshot.topologies[0].executors
    jobs = dict(zip(executors, (400.0, 100.0, 300.0, 200.0), strict=True))
    # 100 to s1, 200 to s2, 300 to s1 (400 there), 400 to s2 (600 there).
    assert order("shortest-job-first", replace(case, demand=Demand(jobs, jobs))) == "2112"
    # A supervisor that is three times as fast has done three such jobs when the other has done one.
    assert order("shortest-job-first", case_of(4, 3000, 1000)) == "1112"


def test_shortest_job_first_does_not_see_what_else_runs_there() -> None:
    assert order("shortest-job-first", case_of(4, 1000, 1000, busy={"s1": 900.0})) == "1212"


def test_nearest_load_first_fills_up_to_the_average() -> None:
    assert order("nearest-load-first", case_of(6, 1000, 1000, 1000)) == "123123"
    # Loads 0.5, 0.2, 0: the average is 0.23, and s2 is nearest to it, then s3 as the only one below 0.27; now s2 is at
    # the average of 0.3, and after that s3 is below it alone.
    assert order("nearest-load-first", case_of(5, 1000, 1000, 1000, busy={"s1": 500.0, "s2": 200.0})) == "23233"
    assert order("nearest-load-first", case_of(5, 1000, 1000, 1000, busy={"s1": 500.0, "s3": 200.0})) == "32322"


@pytest.mark.parametrize("name", WITH_A_PERIOD)
def test_those_that_go_by_load_keep_still_between_their_periods(name: str) -> None:
    case = case_of(6, 1000, 1000)
    all_on_one = dict.fromkeys(case.snapshot.topologies[0].executors, slot("s2"))
    case = case.in_force(Assignment(all_on_one))
    assert order(name, case.at(NOT_DUE)) == "222222"
    assert order(name, case) != "222222"
    del all_on_one[case.snapshot.topologies[0].executors[0]]
    assert order(name, case.in_force(Assignment(all_on_one)).at(NOT_DUE)) != "222222"
    assert order(name, case.under(parameters=(("reschedule_seconds", 10.0),)).at(NOT_DUE)) != "222222"


@pytest.mark.parametrize("name", STATIC)
def test_the_others_give_the_same_answer_whatever_the_time_and_the_load(name: str) -> None:
    case = case_of(6, 1000, 1000, 1000)
    first = POLICIES[name](case.snapshot, case.demand, case.settings)
    assert isinstance(first, Assignment)
    later = replace(case.in_force(first).at(NOT_DUE), demand=same_demand(case.snapshot.topologies, 700.0))
    assert POLICIES[name](later.snapshot, later.demand, later.settings) == first


@pytest.mark.parametrize("name", [*WITH_A_PERIOD, *STATIC])
def test_the_last_free_slot_is_kept_for_the_topology_that_has_none(name: str) -> None:
    """Two topologies, two supervisors with a slot each: neither may take both."""
    first, second = chain_topology("a", ("spout", 3)), chain_topology("b", ("spout", 3))
    picture = replace(snapshot((first, second), supervisors(2, slots=1)), taken_at_seconds=DUE)
    demand = same_demand((first, second), 100.0)
    assignment = placed_or_fail(POLICIES[name](picture, demand, placement_settings((first, second))))
    assert set(assignment.slot_of) == {*first.executors, *second.executors}
    assert len(assignment.workers()) == 2
