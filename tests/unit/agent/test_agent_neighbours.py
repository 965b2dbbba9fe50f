"""Each agent of a large cluster probes a few peers, so that all together know the network."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Mapping, Sequence

import networkx
import pytest

from storm_operator.agent.neighbours import MOST_NEIGHBOURS, neighbours
from storm_operator.core.vivaldi import Coordinate, moved_by_sample, predicted_round_trip_ms


def pods(count: int) -> list[str]:
    return [f"storm-supervisor-{ordinal}.storm" for ordinal in range(count)]


def graph(names: list[str], running: int | None = None) -> dict[str, tuple[str, ...]]:
    """The neighbours of each that runs, of those that run."""
    there = names[:running]
    return {
        own: tuple(peer for peer in neighbours(own, [name for name in names if name != own]) if peer in there)
        for own in there
    }


def linked(probes: Mapping[str, Sequence[str]]) -> networkx.Graph[str]:
    return networkx.Graph([(own, peer) for own, peers in probes.items() for peer in peers])


@pytest.mark.parametrize("count", [1, 2, 10, MOST_NEIGHBOURS + 1])
def test_a_small_cluster_probes_every_pair(count: int) -> None:
    for own, peers in graph(pods(count)).items():
        assert set(peers) == set(pods(count)) - {own}


@pytest.mark.parametrize("count", [*range(MOST_NEIGHBOURS + 2, 2 * MOST_NEIGHBOURS + 3), 99, 128, 1000])
def test_each_of_a_larger_cluster_probes_as_many(count: int) -> None:
    names = pods(count)
    for own in (names[0], names[count // 3], names[-1]):
        assert len(set(neighbours(own, names)) - {own}) == MOST_NEIGHBOURS


@pytest.mark.parametrize("count", [MOST_NEIGHBOURS + 2, 35, 64, 65, 500])
def test_a_pair_is_probed_from_both_sides(count: int) -> None:
    probes = graph(pods(count))
    assert all(own in probes[peer] and peer != own for own, peers in probes.items() for peer in peers)


def test_any_two_are_few_steps_apart() -> None:
    assert networkx.diameter(linked(graph(pods(500)))) <= 5


def test_a_stateful_set_that_is_not_full_grown_is_connected() -> None:
    probes = graph(pods(1000), running=40)
    assert networkx.is_connected(linked(probes))
    assert min(map(len, probes.values())) >= 7


def test_the_order_in_which_peers_are_named_means_nothing() -> None:
    names = pods(100)
    assert neighbours(names[3], names) == neighbours(names[3], [*reversed(names[:3]), *names[4:]])


def test_coordinates_from_neighbours_tell_pairs_that_nobody_measured() -> None:
    """Three zones of 200 supervisors, probes with 10% noise: a pair's distance is not just the typical one."""
    rng = random.Random(7)
    names = pods(200)
    zone_of = {name: rng.randrange(3) for name in names}
    between_ms = {(0, 1): 1.2, (0, 2): 2.9, (1, 2): 2.1}

    def true_ms(a: str, b: str) -> float:
        low, high = sorted((zone_of[a], zone_of[b]))
        return 0.3 if low == high else between_ms[low, high]

    probes = graph(names)
    places = dict.fromkeys(names, Coordinate())
    for _ in range(15):
        for own, peers in probes.items():
            for peer in peers:
                sample_ms = true_ms(own, peer) * math.exp(rng.gauss(0.0, 0.1))
                places[own] = moved_by_sample(places[own], places[peer], sample_ms, rng.uniform(0.0, math.tau))
    typical_ms = statistics.median(true_ms(own, peer) for own, peers in probes.items() for peer in peers)
    unmeasured = [(a, b) for a in names for b in names if a < b and b not in probes[a]]
    by_places = [abs(predicted_round_trip_ms(places[a], places[b]) / true_ms(a, b) - 1.0) for a, b in unmeasured]
    by_typical = [abs(typical_ms / true_ms(a, b) - 1.0) for a, b in unmeasured]
    assert statistics.median(by_places) < 0.1
    assert statistics.median(by_typical) > 0.3
    assert statistics.median(place.error for place in places.values()) < 0.2
