from __future__ import annotations

import math
import random
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_operator.core.vivaldi import (
    INITIAL_ERROR,
    MAXIMUM_ERROR,
    MINIMUM_HEIGHT_MS,
    Coordinate,
    moved_by_sample,
    predicted_round_trip_ms,
)

coordinates = st.builds(
    Coordinate,
    x=st.floats(-1e3, 1e3),
    y=st.floats(-1e3, 1e3),
    height=st.floats(MINIMUM_HEIGHT_MS, 1e3),
    error=st.floats(0, MAXIMUM_ERROR),
)


def test_distance_is_plane_plus_heights() -> None:
    assert predicted_round_trip_ms(Coordinate(0, 0, 1, 1), Coordinate(3, 4, 2, 1)) == 8.0


def test_one_step_by_hand() -> None:
    """w = 0.5, distance 5 + 2 = 7, sample error 7/14 = 0.5, step 0.25 * 0.5 * 7 = 0.875 along (3, 4, 2) / 7."""
    moved = moved_by_sample(Coordinate(3, 4, 1, 1), Coordinate(0, 0, 1, 1), 14.0, angle=0.0)
    assert moved.x == pytest.approx(3 + 0.875 * 3 / 7)
    assert moved.y == pytest.approx(4 + 0.875 * 4 / 7)
    assert moved.height == pytest.approx(1 + 0.875 * 2 / 7)
    assert moved.error == pytest.approx(0.5 * 0.125 + 1 * (1 - 0.125))


def test_nodes_at_the_same_place_go_apart_by_the_angle() -> None:
    moved = moved_by_sample(Coordinate(), Coordinate(), 10.0, angle=math.pi / 2)
    assert moved.x == pytest.approx(0.0)
    assert moved.y > 0


def test_sure_node_is_hardly_moved_by_an_unsure_one() -> None:
    sure, unsure = Coordinate(10, 0, 1, 0.01), Coordinate(0, 0, 1, 1.0)
    assert abs(moved_by_sample(sure, unsure, 30.0, 0.0).x - 10) < 0.06
    assert abs(moved_by_sample(unsure, sure, 30.0, 0.0).x) > 3


def test_round_trip_must_be_above_zero() -> None:
    with pytest.raises(ValueError, match="round_trip_ms is 0"):
        moved_by_sample(Coordinate(), Coordinate(), 0.0, 0.0)


@given(coordinates, coordinates, st.floats(0.01, 1e4), st.floats(0, math.tau))
def test_stays_finite_and_in_bounds(own: Coordinate, peer: Coordinate, round_trip_ms: float, angle: float) -> None:
    moved = moved_by_sample(own, peer, round_trip_ms, angle)
    assert all(math.isfinite(value) for value in (moved.x, moved.y, moved.height))
    assert moved.height >= MINIMUM_HEIGHT_MS
    assert 0 <= moved.error <= MAXIMUM_ERROR


def test_a_cluster_of_two_sites_finds_its_distances() -> None:
    """Three supervisors at each of two sites 20 ms apart, 1 ms within a site; noise of 5%."""
    rng = random.Random(7)
    site = {name: name[0] for name in ("a1", "a2", "a3", "b1", "b2", "b3")}

    def true_ms(one: str, other: str) -> float:
        return 1.0 if site[one] == site[other] else 20.0

    places = {name: Coordinate() for name in site}
    for _ in range(300):
        for one, other in permutations(site, 2):
            sample = true_ms(one, other) * rng.uniform(0.95, 1.05)
            places[one] = moved_by_sample(places[one], places[other], sample, rng.uniform(0, math.tau))
    for one, other in permutations(site, 2):
        predicted = predicted_round_trip_ms(places[one], places[other])
        assert predicted == pytest.approx(true_ms(one, other), rel=0.25)
    assert max(place.error for place in places.values()) < INITIAL_ERROR / 4


def test_nodes_without_a_height_may_stay_in_the_plane() -> None:
    flat = Coordinate(3, 4, height=0.0)
    assert moved_by_sample(flat, Coordinate(height=0.0), 10.0, 0.0, least_height_ms=0.0).height == 0.0
    assert moved_by_sample(flat, Coordinate(height=0.0), 10.0, 0.0).height == MINIMUM_HEIGHT_MS
