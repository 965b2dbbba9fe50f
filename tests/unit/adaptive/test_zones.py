"""Supervisors that are equally far from all others are one zone to the search, whoever measured what."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from storm_operator.core.distances import Distances
from storm_operator.core.network_places import NetworkPlaces
from storm_operator.core.placement.search.zones import zones_of
from storm_operator.core.vivaldi import Coordinate

HOP_MS = 1.0
NAMES = ("a1", "a2", "b1", "b2")


def distances(round_trip_ms: dict[tuple[str, str], float], default_ms: float = 5.0) -> Distances:
    return Distances(round_trip_ms, default_ms=default_ms, worker_hop_ms=HOP_MS)


def test_nobody_measured() -> None:
    zones = zones_of(distances({}), NAMES)
    assert zones.zone_of.tolist() == [0, 0, 0, 0]
    assert zones.between_ms.tolist() == [[5.0 + HOP_MS]]


def test_what_strangers_measured_is_no_distance_of_ours() -> None:
    zones = zones_of(distances({("x", "y"): 1.0, ("y", "x"): 1.0, ("a1", "x"): 2.0}), NAMES)
    assert zones.between_ms.tolist() == [[5.0 + HOP_MS]]


def test_two_racks_are_two_zones() -> None:
    near = {(a, b): 2.0 for a, b in permutations(NAMES, 2) if a[0] == b[0]}
    zones = zones_of(distances(near), NAMES)
    assert zones.zone_of.tolist() == [0, 0, 1, 1]
    assert zones.between_ms.tolist() == [[2.0 + HOP_MS, 5.0 + HOP_MS], [5.0 + HOP_MS, 2.0 + HOP_MS]]


def test_where_no_two_distances_are_the_same_each_is_a_zone() -> None:
    rng = np.random.default_rng(1)
    measured = {pair: float(rng.uniform(1.0, 2.0)) for pair in permutations(NAMES, 2)}
    zones = zones_of(distances(measured), NAMES)
    assert sorted(zones.zone_of.tolist()) == [0, 1, 2, 3]
    for (one, a), (other, b) in permutations(enumerate(NAMES), 2):
        both_ways = (measured[a, b] + measured[b, a]) / 2.0
        there = zones.between_ms[zones.zone_of[one], zones.zone_of[other]]
        assert there == pytest.approx(both_ways + HOP_MS)


def test_pairs_that_nobody_measured_are_as_far_as_their_places() -> None:
    places = NetworkPlaces({name: Coordinate(x, 0.0, 0.5) for name, x in zip(NAMES, (0.0, 1.0, 8.0, 9.0), strict=True)})
    measured = {("a1", "b1"): 7.0, ("b1", "a1"): 7.5}
    zones = zones_of(Distances(measured, default_ms=5.0, worker_hop_ms=HOP_MS, places=places), NAMES)
    between_ms = zones.between_ms[zones.zone_of][:, zones.zone_of] - HOP_MS
    np.fill_diagonal(between_ms, 0.0)
    expected = [[0.0, 2.0, 7.25, 10.0], [2.0, 0.0, 8.0, 9.0], [7.25, 8.0, 0.0, 2.0], [10.0, 9.0, 2.0, 0.0]]
    assert between_ms == pytest.approx(np.array(expected))


@pytest.mark.parametrize("names", [(), ("a1",)])
def test_nobody_is_far_from_nobody(names: tuple[str, ...]) -> None:
    assert len(zones_of(distances({("a1", "a1"): 1.0}), names).zone_of) == len(names)
    places = NetworkPlaces({"a1": Coordinate(), "x": Coordinate()})
    assert len(zones_of(Distances({}, places=places), names).zone_of) == len(names)
