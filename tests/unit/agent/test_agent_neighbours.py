"""Each agent of a large cluster probes a few peers, so that all together know the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import networkx
import numpy as np
import pytest
from plan.distances import OTHER_ZONE_MS, SAME_ZONE_MS, measured_distances

from storm_operator.agent.neighbours import MOST_NEIGHBOURS, neighbours


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


@pytest.mark.slow
@pytest.mark.parametrize("count", [MOST_NEIGHBOURS + 2, 35, 64, 65, 500])
def test_a_pair_is_probed_from_both_sides(count: int) -> None:
    probes = graph(pods(count))
    assert all(own in probes[peer] and peer != own for own, peers in probes.items() for peer in peers)


@pytest.mark.slow
def test_any_two_are_few_steps_apart() -> None:
    assert networkx.diameter(linked(graph(pods(500)))) <= 5


@pytest.mark.slow
def test_a_stateful_set_that_is_not_full_grown_is_connected() -> None:
    probes = graph(pods(1000), running=40)
    assert networkx.is_connected(linked(probes))
    assert min(map(len, probes.values())) >= 7


def test_the_order_in_which_peers_are_named_means_nothing() -> None:
    names = pods(100)
    assert neighbours(names[3], names) == neighbours(names[3], [*reversed(names[:3]), *names[4:]])


@pytest.mark.slow
def test_coordinates_from_neighbours_tell_pairs_that_nobody_measured() -> None:
    """Three zones of 200 supervisors, distances with 10% noise: a pair's distance is not just the typical one."""
    names = tuple(pods(200))
    distances = measured_distances(names, zones=3, spread=0.1, rng=np.random.default_rng(7))
    at = np.arange(len(names))
    true_ms = np.where(at[:, None] % 3 == at[None, :] % 3, SAME_ZONE_MS, OTHER_ZONE_MS)
    measured = np.array([[(a, b) in distances.round_trip_ms for b in names] for a in names])
    unmeasured = ~measured & (at[:, None] != at[None, :])
    by_places = np.abs(distances.matrix_ms(names) / true_ms - 1.0)[unmeasured]
    by_typical = np.abs(distances.default_ms / true_ms - 1.0)[unmeasured]
    assert np.median(by_places) < 0.1
    assert by_places.mean() < 0.1 < 0.3 < by_typical.mean()
    assert np.median([place.error for place in distances.places.coordinate_of.values()]) < 0.2
