"""Few supervisors with many ports, and topologies that need nearly all of them: a search may not lose a worker."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from builders import chain_topology, even_traffic, placement_settings, same_demand, snapshot, supervisors
from placement_cases import Case, placed_or_fail
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Executor, Topology, WorkerSlot
from storm_operator.core.placement.adaptive import place_adaptive
from storm_operator.core.placement.search.arrays import search_of
from storm_operator.core.placement.search.kicks import kick_and_settle
from storm_operator.core.placement.search.partition_state import Partition, Search, empty_partition
from storm_operator.core.placement.search.problem import build_problem
from storm_operator.core.placement.search.refinement import refine
from storm_operator.core.placement.search.step_prices import put_all, total_cost
from storm_operator.core.settings import Separation

STARTS = 6
KICKS = 100


def crowded(machines: int, ports: int, topologies: int, seed: int) -> Case:
    """Small topologies, half of each stateful, in force on slots dealt at random, no slot shared."""
    rng = random.Random(seed)
    all_topologies = [
        chain_topology(f"t{n}", ("spout", 1), ("count", 2), stateful=("count",)) for n in range(topologies)
    ]
    hosts = supervisors(machines, 8000.0, slots=ports)
    slots = [slot for host in hosts for slot in host.slots]
    rng.shuffle(slots)
    rates = {pair: rate for topology in all_topologies for pair, rate in even_traffic(topology, 50.0).items()}
    in_force = dealt_apart(all_topologies, slots)
    case = Case(
        snapshot(all_topologies, hosts, in_force, rates=rates),
        same_demand(all_topologies, 100.0),
        placement_settings(all_topologies),
    )
    return case.under(separation=Separation.ALWAYS)


def dealt_apart(topologies: list[Topology], slots: list[WorkerSlot]) -> Mapping[Executor, WorkerSlot]:
    """Each topology on slots of its own, as many as there are for each."""
    share = len(slots) // len(topologies)
    return {
        executor: slots[n * share + at % share]
        for n, topology in enumerate(topologies)
        for at, executor in enumerate(topology.executors)
    }


@pytest.mark.parametrize(("machines", "ports", "topologies"), [(2, 6, 6), (2, 5, 10), (3, 12, 34)])
@pytest.mark.parametrize("seed", range(STARTS))
def test_everybody_is_placed_on_ports_that_there_are(machines: int, ports: int, topologies: int, seed: int) -> None:
    case = crowded(machines, ports, topologies, seed)
    found = placed_or_fail(place_adaptive(case.snapshot, case.demand, case.settings))
    there = {slot for host in case.snapshot.supervisors for slot in host.slots}
    assert set(found.slot_of) == {executor for topology in case.snapshot.topologies for executor in topology.executors}
    assert set(found.slot_of.values()) <= there
    assert all(len({executor.topology_id for executor in inside}) == 1 for inside in found.workers().values())


def full_and_overloaded(seed: int, *, ranked: bool) -> tuple[Search, Partition]:
    """Three topologies settled on a supervisor of two ports and one of a single port, mostly with too little CPU."""
    rng = random.Random(seed)
    topologies = [chain_topology(f"t{n}", ("spout", 1), ("work", 1)) for n in range(3)]
    roomy, other = supervisors(2, 1000.0, slots=2)
    needs = {e: float(rng.randint(1, 500)) for topology in topologies for e in topology.executors}
    rates = {pair: rate for topology in topologies for pair, rate in even_traffic(topology, 50.0).items()}
    picture = snapshot(topologies, (roomy, replace(other, ports=other.ports[:1])), rates=rates)
    priority = {topology.id: n for n, topology in enumerate(topologies)} if ranked else {}
    settings = replace(placement_settings(topologies), priority=priority)
    problem = build_problem(picture, Demand(needs, needs), settings, settings.movable)
    search = search_of(problem)
    state = empty_partition(len(problem.executors), search.machines)
    put_all(search, state, (problem.topology_of == 2).astype(np.int64))
    refine(search, state, np.ones(len(state.place), dtype=np.bool_))
    return search, state


@pytest.mark.parametrize("ranked", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_a_supervisor_that_is_closed_and_used_all_the_same_is_no_gain(seed: int, ranked: bool) -> None:
    """No other has a port for whom it ran: what is beyond its room counts once it is open again."""
    search, state = full_and_overloaded(seed, ranked=ranked)
    rng = np.random.default_rng(seed)
    for _ in range(KICKS):
        before = total_cost(search, state)
        kick_and_settle(search, state, 1, rng)
        assert total_cost(search, state) <= before * (1.0 + 1e-9)
