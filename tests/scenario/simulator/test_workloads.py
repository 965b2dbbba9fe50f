"""The papers' workloads: their shape, and that they are the topologies of examples/workloads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator_scene import cluster, machines, played
from storm_operator.simulator.model import Costs, SimulatedTopology
from storm_operator.simulator.workloads import (
    fields_shares,
    grand_challenge_query1,
    http_monitor,
    java_hash,
    reference_chain,
    source_to_consumer,
    word_count,
)

EXECUTORS = {
    "wordcount": {"sentences": 1, "split": 2, "count": 2},
    "http-monitor": {
        "requests": 1,
        "retrieve": 2,
        **{name: 2 for part in ("country", "isp", "prefix") for name in (part, f"stat-{part}")},
        "alarm": 1,
    },
    "reference-chain": {
        "spout1": 4,
        "simple2": 3,
        "stateful3": 2,
        "simple4": 3,
        "stateful5": 2,
        "simple6": 3,
        "ack7": 3,
    },
    "grand-challenge-query1": {"sensor": 8, "speed": 4, "analysis": 2},
}


@pytest.mark.parametrize("topology", [word_count(), http_monitor(), reference_chain(), grand_challenge_query1()])
def test_executors_are_those_of_the_java_topologies(topology: SimulatedTopology) -> None:
    assert {c.name: c.executors for c in topology.components} == EXECUTORS[topology.name]


@pytest.mark.parametrize(
    "topology",
    [
        word_count(50.0),
        http_monitor(50.0),
        reference_chain(50.0),
        grand_challenge_query1(50.0),
        source_to_consumer(50.0, cpu_ms=0.1),
    ],
)
def test_each_runs_and_completes_what_it_begins(topology: SimulatedTopology) -> None:
    _, snapshot = played(cluster(topology, costs=Costs()), 10.0, warm_up=2.0)
    rates = snapshot.rates[topology.id]
    assert rates.acked_per_second == pytest.approx(50.0, rel=0.02)
    assert rates.failed_per_second == 0.0


def test_tasks_are_numbered_as_storm_does_by_name_with_ackers_first() -> None:
    topology = word_count(parallelism={"split": 2, "count": 3}, ackers=2).as_topology()
    assert [(e.component, e.task_start) for e in topology.executors] == [
        ("__acker", 1),
        ("__acker", 2),
        ("count", 3),
        ("count", 4),
        ("count", 5),
        ("sentences", 6),
        ("split", 7),
        ("split", 8),
    ]


def test_the_chain_of_an_even_number_of_stages_ends_in_ack_too() -> None:
    assert [c.name for c in reference_chain(stages=4).components] == ["spout1", "simple2", "stateful3", "ack4"]


@pytest.mark.parametrize("stages", [100, 501])
def test_a_chain_of_any_length_takes_as_long_as_all_of_its_stages(stages: int) -> None:
    costs = {"simple": 1.0, "stateful": 1.0, "ack": 1.0}
    topology = reference_chain(1.0, stages, dict.fromkeys(("spout", *costs), 1), costs)
    model = replace(cluster(topology), supervisors=machines(1, 64_000.0))
    latency = played(model, 20.0)[1].rates[topology.id].latency
    assert latency is not None
    assert latency.mean_ms == pytest.approx(stages - 1.0, rel=0.03)


@pytest.mark.parametrize(
    ("text", "expected"), [("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", -(2**31))]
)
def test_java_hash(text: str, expected: int) -> None:
    assert java_hash(text) == expected


def test_fields_shares_follow_the_hash_and_add_up() -> None:
    assert fields_shares(["a", "b"], [3.0, 1.0], 2) == (0.75, 0.25)  # (31 + 97) % 2 and (31 + 98) % 2
    skewed = fields_shares([f"word{n}" for n in range(1000)], [1.0 / (n + 1) for n in range(1000)], 4)
    assert sum(skewed) == pytest.approx(1.0)
    assert max(skewed) > 0.3


def test_shares_that_do_not_fit_the_tasks_are_refused() -> None:
    with pytest.raises(ValueError, match="one for each of the 3 tasks"):
        played(cluster(_with_wrong_shares()), 1.0)


def _with_wrong_shares() -> SimulatedTopology:
    topology = word_count(parallelism={"count": 3})
    return replace(topology, edges=(topology.edges[0], replace(topology.edges[1], shares=(0.5, 0.5))))
