"""The default policy judges and mends what it finds by the shares that it would bring itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import graph_topology, placed, placement_settings, snapshot, supervisors
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Edge, Infeasible
from storm_operator.core.placement.adaptive import place_adaptive
from storm_operator.core.placement.adaptive_shares import place_adaptive_as_shared
from storm_operator.core.placement.objective import cost_seen, overloaded_millicores, see
from storm_operator.core.placement.prices import prices_of
from storm_operator.core.settings import SchedulingSettings, Separation
from storm_operator.core.shuffle_shares import ShuffleShares
from storm_operator.core.snapshot import ClusterSnapshot

WORDS = graph_topology(
    "words",
    {"spout": 4, "split": 4, "count": 4},
    [Edge("spout", "default", "split", "shuffle"), Edge("split", "default", "count", "fields")],
)
SETTINGS = placement_settings([WORDS], scheduling=SchedulingSettings(separation=Separation.NEVER))
NEEDS = {e: {"spout": 80.0, "split": 260.0, "count": 190.0}[e.component] for e in WORDS.executors}
DEMAND = Demand(NEEDS, NEEDS)


def picture() -> ClusterSnapshot:
    """No split is beside a spout, so that each spout feeds all of them."""
    rates = {(a, b): 500.0 for a in WORDS.executors_of("spout") for b in WORDS.executors_of("split")}
    rates |= {(a, b): 2500.0 for a in WORDS.executors_of("split") for b in WORDS.executors_of("count")}
    here = placed(WORDS, {"spout": ["s1", "s2"], "split": ["s3", "s4"], "count": ["s1", "s2", "s3", "s4"]})
    return snapshot([WORDS], supervisors(4, capacity=1280.0), here, rates=rates)


def proposed(seen: ClusterSnapshot, demand: Demand = DEMAND) -> Assignment:
    found = place_adaptive_as_shared(seen, demand, SETTINGS)
    assert isinstance(found, Assignment)
    return found


def total_as_shared(seen: ClusterSnapshot, assignment: Assignment) -> float:
    then, demand = ShuffleShares.of(seen, DEMAND, {"words"}).under(assignment)
    return cost_seen(then, see(then, assignment, demand, SETTINGS), prices_of(seen, SETTINGS)).total


@pytest.mark.slow
def test_no_supervisor_is_filled_by_tuples_that_come_with_the_placement() -> None:
    seen = picture()
    shares = ShuffleShares.of(seen, DEMAND, {"words"})
    plain = place_adaptive(seen, DEMAND, SETTINGS)
    assert isinstance(plain, Assignment)
    as_then = shares.under(plain)
    assert overloaded_millicores(as_then[0], plain, as_then[1], SETTINGS) > 0.0, "else there is nothing to mend"
    found = proposed(seen)
    then, demand = shares.under(found)
    assert overloaded_millicores(then, found, demand, SETTINGS) == 0.0
    assert len(found.used_supervisors()) < 4
    assert total_as_shared(seen, found) < total_as_shared(seen, seen.assignment)


def test_what_it_proposes_it_would_not_change_again() -> None:
    seen = picture()
    found = proposed(seen)
    then, demand = ShuffleShares.of(seen, DEMAND, {"words"}).under(found)
    assert proposed(replace(then, assignment=found), demand) == found


def test_the_assignment_in_force_stays_where_all_that_is_found_is_worse() -> None:
    """A supervisor has room for the spout and one split, but not for all the tuples that it would then get."""
    small = graph_topology("small", {"spout": 1, "split": 2}, [Edge("spout", "default", "split", "shuffle")])
    spout, one, two = small.executors
    here = placed(small, {"spout": "s1", "split": ["s2", "s3"]})
    seen = snapshot([small], supervisors(3, capacity=700.0), here, rates={(spout, one): 1000.0, (spout, two): 1000.0})
    needs = {spout: 50.0, one: 400.0, two: 400.0}
    settings = placement_settings([small])
    assert place_adaptive(seen, Demand(needs, needs), settings) != seen.assignment, "else there is nothing to refuse"
    assert place_adaptive_as_shared(seen, Demand(needs, needs), settings) == seen.assignment


@pytest.mark.parametrize("capacity", [2000.0, 4000.0])
@pytest.mark.parametrize("grouping", ["shuffle", "local_or_shuffle"])
def test_no_bolt_comes_to_need_more_than_its_thread(grouping: str, capacity: float) -> None:
    """Two of four bolts beside the spout would have to take all that local-or-shuffle sends: 1,200 millicores each."""
    work = graph_topology("work", {"spout": 1, "bolt": 4}, [Edge("spout", "default", "bolt", grouping)])
    spout, *bolts = work.executors
    here = placed(work, {"spout": "s1", "bolt": ["s2", "s2", "s3", "s3"]})
    rates = {(spout, bolt): 500.0 for bolt in bolts}
    seen = snapshot([work], supervisors(3, capacity=capacity), here, rates=rates)
    needs = {spout: 100.0} | dict.fromkeys(bolts, 600.0)
    found = place_adaptive_as_shared(seen, Demand(needs, needs), placement_settings([work]))
    assert isinstance(found, Assignment)
    beside = sum(found.slot_of[bolt] == found.slot_of[spout] for bolt in bolts)
    assert beside == 2 if grouping == "shuffle" and capacity == 2000.0 else beside in (0, 3, 4)


def test_nobody_is_left_on_a_supervisor_that_is_gone() -> None:
    """Where nothing runs, nothing costs: what is in force would look cheap."""
    seen = picture()
    alive = replace(seen, supervisors=tuple(replace(s, cpu_capacity_millicores=750.0) for s in seen.supervisors[:3]))
    found = proposed(alive)
    assert set(found.used_supervisors()) <= {supervisor.id for supervisor in alive.supervisors}


def test_executors_of_one_kind_stay_with_their_kind() -> None:
    stateful = graph_topology(
        "words",
        {"spout": 4, "split": 4, "count": 4},
        [Edge("spout", "default", "split", "shuffle"), Edge("split", "default", "count", "fields")],
        stateful=["count"],
    )
    seen = replace(picture(), topologies=(stateful,))
    settings = placement_settings([stateful], scheduling=SchedulingSettings(separation=Separation.ALWAYS))
    found = place_adaptive_as_shared(seen, DEMAND, settings)
    assert isinstance(found, Assignment)
    for inside in found.workers().values():
        assert len({seen.is_stateful(executor) for executor in inside}) == 1


def test_too_few_slots_is_told_as_by_the_search() -> None:
    none = tuple(replace(machine, ports=()) for machine in supervisors(2))
    assert isinstance(place_adaptive_as_shared(replace(picture(), supervisors=none), DEMAND, SETTINGS), Infeasible)


@pytest.mark.parametrize("grouping", ["fields", "all", "none"])
def test_by_keys_it_is_the_plain_search(grouping: str) -> None:
    keyed = tuple(replace(edge, grouping=grouping) for edge in WORDS.edges)
    seen = replace(picture(), topologies=(replace(WORDS, edges=keyed),))
    assert place_adaptive_as_shared(seen, DEMAND, SETTINGS) == place_adaptive(seen, DEMAND, SETTINGS)
