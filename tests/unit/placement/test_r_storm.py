"""R-Storm, Middleware'15: Algorithms 2 to 4; memory hard, CPU soft, network distance to the reference node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from builders import chain_topology, graph_topology, placement_settings, same_demand, snapshot, supervisors
from placement_cases import Case, acked_chain, placed_or_fail
from storm_operator.core.distances import Distances
from storm_operator.core.model import Assignment, Edge, Infeasible, Topology
from storm_operator.core.placement.r_storm import component_order, place_r_storm, task_order


def case_of(
    topology: Topology,
    *,
    memory_mb: tuple[float | None, ...] = (4096.0, 4096.0),
    millicores: tuple[float, ...] = (1000.0, 1000.0),
    distances: Mapping[tuple[str, str], float] | None = None,
    **parameters: float,
) -> Case:
    machines = tuple(
        replace(machine, memory_mb=memory, cpu_capacity_millicores=cpu)
        for machine, memory, cpu in zip(supervisors(len(memory_mb)), memory_mb, millicores, strict=True)
    )
    picture = snapshot((topology,), machines)
    if distances is not None:
        both_ways = {**distances, **{(b, a): ms for (a, b), ms in distances.items()}}
        picture = replace(picture, distances=Distances(both_ways))
    case = Case(picture, same_demand((topology,)), placement_settings((topology,)))
    return case.under(parameters=tuple(sorted(parameters.items())))


def declaring(topology: Topology, component: str, **declared: float) -> Topology:
    components = tuple(
        replace(each, **{f"declared_{name}": amount for name, amount in declared.items()})  # type: ignore[arg-type]
        if each.name == component
        else each
        for each in topology.components
    )
    return replace(topology, components=components)


def place(case: Case) -> Assignment:
    return placed_or_fail(place_r_storm(case.snapshot, case.demand, case.settings))


def counts(assignment: Assignment) -> dict[str, int]:
    found: dict[str, int] = {}
    for slot in assignment.slot_of.values():
        found[slot.supervisor_id] = found.get(slot.supervisor_id, 0) + 1
    return found


def test_components_come_breadth_first_from_the_spouts() -> None:
    edges = [
        Edge(source, "default", target, "shuffle")
        for source, target in (
            ("spout", "left"),
            ("spout", "right"),
            ("left", "deep"),
            ("right", "sink"),
            ("deep", "sink"),
        )
    ]
    diamond = graph_topology("diamond", {"deep": 1, "left": 1, "right": 1, "sink": 1, "spout": 1}, edges)
    assert component_order(diamond) == ("spout", "left", "right", "deep", "sink")


def test_storms_own_components_come_last() -> None:
    assert component_order(acked_chain("t", ("z", 1), ("a", 1))) == ("z", "a", "__acker")


def test_tasks_are_one_of_each_component_in_turn() -> None:
    chain = chain_topology("chain", ("spout", 1), ("split", 3), ("count", 2))
    names = [executor.component for executor in task_order(chain)]
    assert names == ["spout", "split", "count", "split", "count", "split"]
    assert sorted(task_order(chain)) == list(chain.executors)


def test_tasks_fill_the_reference_node_and_neighbours_share_it() -> None:
    # Ten tasks of Storm's default, 10% of a core, fill one supervisor of a core; the other two go on.
    chain = chain_topology("chain", ("spout", 4), ("split", 4), ("count", 4))
    assignment = place(case_of(chain))
    assert counts(assignment) == {"s1": 10, "s2": 2}
    on_second = {e.component for e, slot in assignment.slot_of.items() if slot.supervisor_id == "s2"}
    assert on_second == {"split", "count"}


def test_the_reference_node_is_the_one_with_most_resources() -> None:
    pair = chain_topology("pair", ("spout", 1), ("bolt", 1))
    far = {("s1", "s2"): 10.0, ("s1", "s3"): 10.0, ("s2", "s3"): 10.0}
    case = case_of(
        pair, memory_mb=(1000.0, 2000.0, 1000.0), millicores=(1000.0,) * 3, distances=far, network_weight=1e6
    )
    assert place(case).used_supervisors() == ("s2",)


def test_of_other_nodes_the_nearest_to_the_reference_node_is_taken() -> None:
    chain = chain_topology("chain", ("spout", 6), ("bolt", 6))
    distances = {("s1", "s2"): 10.0, ("s1", "s3"): 1.0, ("s2", "s3"): 10.0}
    case = case_of(chain, memory_mb=(4096.0,) * 3, millicores=(1000.0,) * 3, distances=distances)
    assert counts(place(case)) == {"s1": 10, "s3": 2}


@pytest.mark.parametrize(
    ("memory", "millicores"), [((4096.0, 4096.0), (1000.0, 200.0)), ((4096.0, 200.0), (1000.0, 1000.0))]
)
def test_without_the_network_the_node_that_fits_closest_is_taken(
    memory: tuple[float, float], millicores: tuple[float, float]
) -> None:
    single = chain_topology("single", ("spout", 1))
    case = case_of(single, memory_mb=memory, millicores=millicores, network_weight=0.0)
    assert place(case).used_supervisors() == ("s2",)


def test_memory_is_a_hard_constraint() -> None:
    chain = declaring(chain_topology("chain", ("spout", 2), ("bolt", 2)), "bolt", memory_mb=1000.0)
    assignment = place(case_of(chain, memory_mb=(1300.0, 1300.0), millicores=(10_000.0, 10_000.0)))
    bolts = [assignment.slot_of[executor].supervisor_id for executor in chain.executors_of("bolt")]
    assert sorted(bolts) == ["s1", "s2"]


def test_memory_that_is_nowhere_is_a_value_with_a_reason() -> None:
    chain = declaring(chain_topology("chain", ("spout", 1), ("bolt", 2)), "bolt", memory_mb=1000.0)
    case = case_of(chain, memory_mb=(1200.0, 500.0))
    assert place_r_storm(case.snapshot, case.demand, case.settings) == Infeasible(
        "executor 3-3 of chain needs 1000 MB of memory; no supervisor with a slot for it has more than 500 MB left"
    )


@pytest.mark.parametrize(("others", "most"), [(100.0, 400), (900.0, 0)])
def test_memory_that_is_left_is_told_of_supervisors_with_a_slot(others: float, most: int) -> None:
    """s1 has memory and no slot; another topology declares 100 of the 500 MB of s2, or more than there are."""
    other = declaring(chain_topology("other", ("spout", 1)), "spout", memory_mb=others)
    chain = declaring(chain_topology("chain", ("spout", 1)), "spout", memory_mb=600.0)
    case = case_of(chain, memory_mb=(8000.0, 500.0))
    first, second = case.snapshot.supervisors
    picture = snapshot((chain, other), (replace(first, ports=()), second), {other.executors[0]: second.slots[0]})
    assert place_r_storm(picture, case.demand, case.settings) == Infeasible(
        f"executor 1-1 of chain needs 600 MB of memory; no supervisor with a slot for it has more than {most} MB left"
    )


def test_cpu_is_a_soft_constraint() -> None:
    chain = declaring(chain_topology("chain", ("spout", 4), ("bolt", 4)), "bolt", cpu_millicores=900.0)
    assignment = place(case_of(chain))
    bolts = [assignment.slot_of[executor].supervisor_id for executor in chain.executors_of("bolt")]
    assert sorted(bolts) == ["s1", "s1", "s2", "s2"]  # 4 x 900 on 2 x 1000: too much, but as little as can be on each


@pytest.mark.parametrize("memory", [(None, None), (None, 4096.0)])
def test_memory_that_nobody_declares_stops_nothing(memory: tuple[float | None, ...]) -> None:
    chain = chain_topology("chain", ("spout", 2), ("bolt", 2))
    assert set(place(case_of(chain, memory_mb=memory)).slot_of) == set(chain.executors)


@pytest.mark.parametrize(
    "declared", [{"memory_mb": 4000.0, "cpu_millicores": 0.0}, {"memory_mb": 0.0, "cpu_millicores": 950.0}]
)
def test_what_obstacles_declare_is_taken(declared: dict[str, float]) -> None:
    other = declaring(chain_topology("other", ("spout", 1)), "spout", **declared)
    chain = chain_topology("chain", ("spout", 1), ("bolt", 1))
    case = case_of(chain)
    held = {other.executors[0]: case.snapshot.supervisors[0].slots[0]}
    picture = replace(case.snapshot, topologies=(chain, other), assignment=Assignment(held))
    assignment = place(replace(case, snapshot=picture))
    assert {slot.supervisor_id for e, slot in assignment.slot_of.items() if e not in held} == {"s2"}


def test_declared_and_not_measured_cpu_counts() -> None:
    chain = chain_topology("chain", ("spout", 6), ("bolt", 6))
    case = case_of(chain)
    busier = replace(case, demand=same_demand((chain,), 900.0))
    assert place(busier) == place(case)
    assert counts(place(case_of(chain, cpu_millicores=150.0))) == {"s1": 6, "s2": 6}
