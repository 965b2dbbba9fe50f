"""Cardellini et al., DEBS'15: the MAPE loops, and the two experiments of section 4."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import pytest

from builders import chain_topology, even_traffic, placed, placement_settings, same_demand, snapshot, supervisors
from placement_cases import Case, acked_chain, placed_or_fail, random_case
from storm_operator.core.distances import Distances
from storm_operator.core.model import Assignment, Component, ComponentKind, Edge, Infeasible
from storm_operator.core.placement.dqos import pinned_components, place_dqos
from storm_operator.core.traffic import TrafficMatrix

PIPELINE = chain_topology(
    "pipe", ("source", 1), ("op1", 1), ("op2", 1), ("op3", 1), ("op4", 1), ("op5", 1), ("consumer", 1)
)
ALIKE: Mapping[str, float] = dict.fromkeys((f"s{n}" for n in range(1, 9)), 0.99999)
IN_TURN = {component.name: f"s{n}" for n, component in enumerate(PIPELINE.components, start=1)}


def experiment(
    where: Mapping[str, str] = IN_TURN,
    availability: Mapping[str, float] = ALIKE,
    stressed: Mapping[str, float] | None = None,
    now_seconds: float = 1200.0,
    period_seconds: float = 30.0,
    **parameters: float,
) -> Case:
    """Section 4: source, five operators, consumer at 10 tuples/s on 8 nodes of 2 slots, 1 to 8 ms apart on a line."""
    machines = tuple(replace(machine, availability=availability[machine.id]) for machine in supervisors(8, slots=2))
    picture = snapshot((PIPELINE,), machines, placed(PIPELINE, where), rates=even_traffic(PIPELINE, 10.0))
    trips = {(a.id, b.id): float(abs(int(a.id[1:]) - int(b.id[1:]))) for a in machines for b in machines if a != b}
    busy = {machine.id: (stressed or {}).get(machine.id, 100.0) for machine in machines}
    picture = replace(
        picture,
        distances=Distances(trips, default_ms=3.0),
        supervisor_cpu_millicores=busy,
        taken_at_seconds=now_seconds,
        period_seconds=period_seconds,
    )
    case = Case(picture, same_demand((PIPELINE,), 50.0), placement_settings((PIPELINE,)))
    return case.under(parameters=tuple(sorted(parameters.items())))


def place(case: Case) -> Assignment:
    return placed_or_fail(place_dqos(case.snapshot, case.demand, case.settings))


def home(assignment: Assignment, component: str) -> str:
    return assignment.slot_of[PIPELINE.executors_of(component)[0]].supervisor_id


def homes(assignment: Assignment) -> dict[str, str]:
    return {component.name: home(assignment, component.name) for component in PIPELINE.components}


def settled(case: Case, periods: int) -> Assignment:
    """What is in force after so many periods of 30 s, each plan being applied at once, under the same load."""
    for number in range(periods):
        later = replace(case.snapshot, taken_at_seconds=1200.0 + 30.0 * number, assignment=place(case))
        case = replace(case, snapshot=later)
    return case.snapshot.assignment


def availability_of(case: Case, assignment: Assignment) -> float:
    return math.prod(case.snapshot.supervisor(name).availability for name in set(homes(assignment).values()))


def test_first_experiment_operators_leave_the_node_whose_availability_falls() -> None:
    case = experiment(
        availability={**ALIKE, "s3": 0.85}, latency_weight=1, availability_weight=10, utilisation_weight=0
    )
    assert availability_of(case, case.snapshot.assignment) < 0.86
    after = settled(case, 20)
    assert "s3" not in homes(after).values()
    assert availability_of(case, after) > 0.9999
    assert (home(after, "source"), home(after, "consumer")) == ("s1", "s7")


def test_without_the_weight_of_availability_they_have_no_reason_to() -> None:
    case = experiment(availability={**ALIKE, "s3": 0.85}, availability_weight=0, utilisation_weight=0)
    assert place(case) == case.snapshot.assignment


def test_second_experiment_operators_leave_stressed_nodes_for_lightly_loaded_ones() -> None:
    where = {**IN_TURN, "op2": "s3", "op3": "s3", "op4": "s3"}
    stress = {"s3": 1000.0, "s4": 1000.0, "s8": 1000.0}  # one that runs three operators and two free ones
    case = experiment(where, stressed=stress, latency_weight=1, availability_weight=0, utilisation_weight=0.5)
    after = settled(case, 20)
    assert not set(stress) & set(homes(after).values())


@pytest.mark.slow
def test_the_loops_come_to_rest_and_network_usage_has_fallen() -> None:
    scattered = {**IN_TURN, "op1": "s8", "op2": "s2", "op3": "s8", "op4": "s1", "op5": "s5"}
    case = experiment(scattered, utilisation_weight=0)
    after = settled(case, 20)
    assert settled(case.in_force(after), 8) == after

    def ms(assignment: Assignment) -> float:
        steps = list(homes(assignment).values())
        return sum(abs(int(a[1:]) - int(b[1:])) for a, b in pairwise(steps))

    assert ms(after) < 0.5 * ms(case.snapshot.assignment)


def test_a_bolt_goes_towards_the_peer_with_more_traffic() -> None:
    chain = chain_topology("pull", ("source", 1), ("bolt", 1), ("consumer", 1))
    source, bolt, consumer = chain.executors
    for rates, wanted in (((90.0, 10.0), "s1"), ((10.0, 90.0), "s3")):
        picture = snapshot(
            (chain,),
            supervisors(3),
            placed(chain, {"source": "s1", "bolt": "s2", "consumer": "s3"}),
            rates={(source, bolt): rates[0], (bolt, consumer): rates[1]},
        )
        picture = replace(
            picture,
            taken_at_seconds=1200.0,
            period_seconds=30.0,
            distances=Distances({(a, b): 5.0 for a in ("s1", "s2", "s3") for b in ("s1", "s2", "s3") if a != b}),
        )
        case = Case(picture, same_demand((chain,), 1.0), placement_settings((chain,)))
        assert place(case).slot_of[bolt].supervisor_id == wanted


def test_two_bolts_that_exchange_most_do_not_hold_each_other_back() -> None:
    """One file a second, ten thousand lines of it, one sum a second: both bolts go where file and sum are."""
    together = {component.name: "s1" for component in PIPELINE.components}
    case = experiment({**together, "op3": "s8", "op4": "s8"}, utilisation_weight=0)
    rates = even_traffic(PIPELINE, 1.0)
    rates[PIPELINE.executors_of("op3")[0], PIPELINE.executors_of("op4")[0]] = 10_000.0
    case = replace(case, snapshot=replace(case.snapshot, traffic=TrafficMatrix(rates)))
    assert homes(settled(case, 4)) == together


def test_producers_consumers_and_named_components_are_pinned_and_ackers_are_not() -> None:
    topology = acked_chain("t", ("spout", 1), ("middle", 2), ("last", 1))
    assert pinned_components(topology, ()) == {"spout", "last"}
    assert pinned_components(topology, ("middle", "elsewhere")) == {"spout", "middle", "last"}


def test_a_metrics_consumer_takes_no_consumers_place() -> None:
    """Storm subscribes it to all components, so that no other bolt is one that no bolt subscribes to."""
    taker = "__metrics_org.apache.storm.metric.LoggingMetricsConsumer"
    topology = replace(
        PIPELINE,
        components=(*PIPELINE.components, Component(taker, ComponentKind.BOLT, 1)),
        edges=(*PIPELINE.edges, *(Edge(part.name, "__metrics", taker, "shuffle") for part in PIPELINE.components)),
    )
    assert pinned_components(topology, ()) == {"source", "consumer"}
    assert pinned_components(topology, (taker,)) == {"source", "consumer", taker}


def test_pinned_components_stay_on_a_bad_node_and_unknown_ones_are_refused() -> None:
    case = experiment(availability={**ALIKE, "s3": 0.5})
    assert home(settled(case, 2), "op2") != "s3"
    assert home(settled(case.under(pinned_components=("op2",)), 2), "op2") == "s3"
    wrong = case.under(pinned_components=("op9",))
    answer = place_dqos(wrong.snapshot, wrong.demand, wrong.settings)
    assert isinstance(answer, Infeasible)
    assert "pinnedComponents names op9, which no topology under these settings has; there are consumer" in answer.reason


@pytest.mark.parametrize("seed", range(20))
def test_whatever_the_cluster_pinned_executors_stay_and_no_loop_moves_more_than_it_may(seed: int) -> None:
    case = random_case(seed, slack=2.5).under(parameters=(("analyze_distance", 0.0), ("migration_gain", 0.0)))
    case = replace(case, snapshot=replace(case.snapshot, taken_at_seconds=1200.0, period_seconds=30.0))
    before, after = case.snapshot.assignment.slot_of, place(case).slot_of
    moved = [executor for executor in before if after[executor] != before[executor]]
    pinned = {(topology.id, name) for topology in case.snapshot.topologies for name in pinned_components(topology, ())}
    assert not [executor for executor in moved if (executor.topology_id, executor.component) in pinned]
    assert max(Counter(before[executor].supervisor_id for executor in moved).values(), default=0) <= 1


def test_each_loop_moves_one_executor_and_neighbours_of_a_moved_one_stay() -> None:
    where = {**IN_TURN, "op1": "s3", "op2": "s3", "op3": "s3", "op4": "s3"}
    case = experiment(where, {**ALIKE, "s3": 0.5})

    def moved(case: Case) -> list[str]:
        before, after = homes(case.snapshot.assignment), homes(place(case))
        return [name for name in before if after[name] != before[name]]

    assert moved(case) == ["op1"]
    assert moved(experiment(where, {**ALIKE, "s3": 0.5}, moves_per_loop=4)) == ["op1", "op3"]


def test_a_supervisors_loop_comes_once_in_thirty_seconds_each_at_its_own_time() -> None:
    """Eight loops 3.75 s apart: that of s3 comes 7.5 s after every multiple of 30."""
    bad = {**ALIKE, "s3": 0.5}
    cases = {
        seconds: experiment(availability=bad, now_seconds=float(seconds), period_seconds=5.0)
        for seconds in range(1200, 1260, 5)
    }
    moves_at = [seconds for seconds, case in cases.items() if place(case) != case.snapshot.assignment]
    assert moves_at == [1210, 1240]


@pytest.mark.parametrize(
    ("name", "value"), [("analyze_distance", 50.0), ("migration_gain", 50.0), ("availability_weight", 0.0)]
)
def test_thresholds_hold_executors_where_they_are(name: str, value: float) -> None:
    case = experiment(availability={**ALIKE, "s3": 0.5})
    case = case.under(parameters=((name, value), ("utilisation_weight", 0.0)))
    assert place(case) == case.snapshot.assignment


def test_only_a_supervisor_with_a_worker_of_the_topology_or_a_free_slot_is_a_target() -> None:
    case = experiment(availability={**ALIKE, "s3": 0.5}, utilisation_weight=0)
    target = home(place(case), "op2")
    other = chain_topology("other", ("x", 1), ("y", 1))
    full = {**case.snapshot.assignment.slot_of, **placed(other, {"x": f"{target}:6700", "y": f"{target}:6701"})}
    kept = {e: s for e, s in full.items() if e.topology_id == "other" or s.supervisor_id != target}
    kept |= placed(PIPELINE, {name: "s1" for name, at in IN_TURN.items() if at == target})
    blocked = replace(case.snapshot, topologies=(PIPELINE, other), assignment=Assignment(kept))
    after = placed_or_fail(place_dqos(blocked, case.demand, case.settings))
    assert home(after, "op2") not in (target, "s3")


def test_executors_of_a_lost_supervisor_get_a_place_at_once() -> None:
    case = experiment(now_seconds=1201.0, period_seconds=0.5)
    assert place(case) == case.snapshot.assignment  # no loop is due
    survivors = tuple(machine for machine in case.snapshot.supervisors if machine.id != "s3")
    lost = replace(case, snapshot=replace(case.snapshot, supervisors=survivors))
    after = place(lost)
    changed = [e for e in after.slot_of if after.slot_of[e] != case.snapshot.assignment.slot_of[e]]
    assert [executor.component for executor in changed] == ["op2"]
