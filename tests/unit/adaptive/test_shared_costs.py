"""Costs topology by topology are those of the whole cluster by the shares that an assignment would bring."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import pytest

from placement_cases import Case, burdened, random_case
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment
from storm_operator.core.placement.objective import cost_seen, see
from storm_operator.core.placement.prices import prices_of
from storm_operator.core.placement.shared_costs import SharedCosts
from storm_operator.core.settings import Enforcement, ResourceSettings
from storm_operator.core.shuffle_shares import ShuffleShares


def shared_case(seed: int) -> Case:
    """Some with too little CPU and memory, some ranked, some with more room wanted than is needed."""
    case = burdened(random_case(seed, most_topologies=3, slack=0.9 if seed % 2 else 1.5), seed)
    priority = {topology.id: n for n, topology in enumerate(case.snapshot.topologies)} if seed % 3 else {}
    needs, rng = case.demand.raw_millicores, random.Random(seed)
    room = {e: need * rng.uniform(1.0, 2.0) for e, need in needs.items()}
    coming = {e: 1.2 * need for e, need in needs.items() if rng.random() < 0.3}
    demand = replace(case.demand, room_millicores=room, coming_millicores=coming) if seed % 4 else case.demand
    resources = ResourceSettings(enforcement=Enforcement.NONE if seed % 2 else Enforcement.EXECUTOR)
    return replace(case, demand=demand, settings=replace(case.settings, priority=priority, resources=resources))


def some_assignment(case: Case, rng: random.Random) -> Assignment:
    """Each executor in one of two workers of its topology on each supervisor, a few nowhere."""
    topologies, machines = case.snapshot.topologies, case.snapshot.supervisors
    slots = {
        topology.id: [machine.slots[at + len(topologies) * k] for machine in machines for k in (0, 1)]
        for at, topology in enumerate(topologies)
    }
    executors = [(e, topology.id) for topology in topologies for e in topology.executors]
    return Assignment({e: rng.choice(slots[of]) for e, of in executors if rng.random() < 0.95})


def plainly(case: Case, shares: ShuffleShares, assignment: Assignment) -> float:
    then, demand = shares.under(assignment)
    prices = prices_of(case.snapshot, case.settings)
    return cost_seen(then, see(then, assignment, demand, case.settings), prices).total


@pytest.mark.parametrize("seed", range(24))
def test_the_total_is_that_of_the_objective(seed: int) -> None:
    case = shared_case(seed)
    shares = ShuffleShares.of(case.snapshot, case.demand, case.settings.movable)
    costs, rng = SharedCosts(shares, case.settings), random.Random(seed)
    tried = [some_assignment(case, rng) for _ in range(6)]
    for one, other in product(tried, tried):
        mixed = {topology.id: rng.choice((one, other)) for topology in case.snapshot.topologies}
        assignment = Assignment({e: s for id_, of in mixed.items() for e, s in of.restricted_to([id_]).slot_of.items()})
        assert costs.total(assignment) == pytest.approx(plainly(case, shares, assignment), rel=1e-9)


@pytest.mark.slow
def test_what_threads_have_no_room_for_counts_as_the_objective_has_it() -> None:
    """Local-or-shuffle, by executors that need nearly a core each already."""
    beyond = 0
    for seed in range(24):
        case = shared_case(seed)
        topologies = tuple(
            replace(topology, edges=tuple(replace(edge, grouping="local_or_shuffle") for edge in topology.edges))
            for topology in case.snapshot.topologies
        )
        needs = dict.fromkeys(case.demand.millicores, 800.0)
        case = replace(case, demand=Demand(needs, needs), snapshot=replace(case.snapshot, topologies=topologies))
        shares = ShuffleShares.of(case.snapshot, case.demand, case.settings.movable)
        assignment = some_assignment(case, random.Random(seed))
        beyond += bool(shares.under(assignment)[1].beyond_thread_millicores)
        total = SharedCosts(shares, case.settings).total(assignment)
        assert total == pytest.approx(plainly(case, shares, assignment), rel=1e-9)
    assert beyond > 10


def test_whom_no_topology_lists_counts_where_he_lives() -> None:
    case = shared_case(2)
    stranger = replace(case.snapshot.topologies[0].executors[0], topology_id="unseen-1")
    at = case.snapshot.supervisors[0].slots[-1]
    there = case.snapshot.assignment.with_moves({stranger: at})
    demand = replace(case.demand, millicores={**case.demand.millicores, stranger: 400.0}, room_millicores={})
    case = replace(case, demand=demand, snapshot=replace(case.snapshot, assignment=there))
    shares = ShuffleShares.of(case.snapshot, case.demand, case.settings.movable)
    costs, rng = SharedCosts(shares, case.settings), random.Random(1)
    one, other = (some_assignment(case, rng).with_moves({stranger: at}) for _ in range(2))
    difference = plainly(case, shares, one) - plainly(case, shares, other)
    assert costs.total(one) - costs.total(other) == pytest.approx(difference, rel=1e-6)


def test_some_of_these_clusters_share_anew_and_run_over() -> None:
    """Else the comparison would say little."""
    anew = over = 0
    for seed in range(24):
        case = shared_case(seed)
        assignment = some_assignment(case, random.Random(seed))
        then, demand = ShuffleShares.of(case.snapshot, case.demand, case.settings.movable).under(assignment)
        seen = see(then, assignment, demand, case.settings)
        anew += then is not case.snapshot
        over += seen.overloaded_millicores > 0.0 and seen.overfull_megabytes > 0.0
    assert anew > 3
    assert over > 5
