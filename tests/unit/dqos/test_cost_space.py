"""The cost space of Cardellini et al., DEBS'15, sections 2.1 and 2.2: Vivaldi's places, springs, the distance."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from builders import supervisors
from storm_operator.core.distances import Distances
from storm_operator.core.placement.cost_space import (
    CostSpace,
    CostWeights,
    cost_space,
    places_in_the_plane,
    surest_places,
)
from storm_operator.core.placement.springs import rest_positions
from storm_operator.core.vivaldi import Coordinate, predicted_round_trip_ms

POINTS = ((0.0, 0.0), (30.0, 0.0), (30.0, 40.0), (0.0, 40.0), (15.0, 20.0))


def true_ms(one: int, other: int) -> float:
    return math.dist(POINTS[one], POINTS[other])


def test_places_converge_on_a_metric_of_the_plane() -> None:
    places = places_in_the_plane(len(POINTS), true_ms, samples=300, seed=3)
    for one, other in permutations(range(len(POINTS)), 2):
        assert predicted_round_trip_ms(places[one], places[other]) == pytest.approx(true_ms(one, other), rel=0.02)
    assert all(place.height == 0.0 for place in places)
    assert max(place.error for place in places) < 0.05


def test_places_depend_on_the_seed_alone() -> None:
    first, again, other = (places_in_the_plane(5, true_ms, samples=20, seed=seed) for seed in (1, 1, 2))
    assert first == again != other


def test_a_node_alone_has_no_peer_to_measure() -> None:
    assert places_in_the_plane(1, true_ms, samples=20, seed=1) == [Coordinate(height=0.0)]


def test_a_run_that_ended_folded_over_itself_is_not_taken() -> None:
    sides = {(0, 1): 10.0, (0, 2): 40.0, (1, 2): 40.0}

    def side_ms(one: int, other: int) -> float:
        return sides[min(one, other), max(one, other)]

    def apart(places: list[Coordinate]) -> float:
        return predicted_round_trip_ms(places[0], places[1])

    assert apart(places_in_the_plane(3, side_ms, samples=100, seed=1)) < 7.0
    assert apart(surest_places(3, side_ms, samples=100, seed=1)) == pytest.approx(10.0, rel=0.02)


def test_latency_is_in_parts_of_the_longest_round_trip() -> None:
    machines = supervisors(3)
    trips = {("s1", "s2"): 10.0, ("s2", "s1"): 10.0, ("s1", "s3"): 40.0, ("s3", "s1"): 40.0}
    trips |= {("s2", "s3"): 40.0, ("s3", "s2"): 40.0}
    space = cost_space(machines, Distances(trips), CostWeights(1.0, 1.0, 1.0), samples=300, seed=1)
    assert math.dist(space.latency[0], space.latency[2]) == pytest.approx(1.0, rel=0.02)
    assert math.dist(space.latency[0], space.latency[1]) == pytest.approx(0.25, rel=0.02)


def test_the_distance_by_hand() -> None:
    """sqrt(2^2 (0.3^2 + 0.4^2) + 10^2 (1 - 0.9)^2 + 0.5^2 0.8^2) = sqrt(1 + 1 + 0.16)."""
    space = CostSpace(np.array([[0.3, 0.4]]), np.array([0.9]), CostWeights(2.0, 10.0, 0.5))
    assert space.distances(np.zeros(2), np.array([0.8]))[0] == pytest.approx(math.sqrt(2.16))


def springs(*links: tuple[int, int, float], size: int = 3) -> sparse.csr_array[np.float64]:
    dense = np.zeros((size, size))
    for a, b, rate in links:
        dense[a, b] = dense[b, a] = rate
    return sparse.csr_array(dense)


def test_a_body_rests_nearer_to_the_stronger_spring() -> None:
    start = np.array([[0.0, 0.0], [9.0, 9.0], [4.0, 0.0]])
    rest = rest_positions(start, np.array([True, False, True]), springs((0, 1, 30.0), (1, 2, 10.0)))
    assert rest[1] == pytest.approx([1.0, 0.0], abs=0.01)
    assert rest[0].tolist() == [0.0, 0.0]
    assert rest[2].tolist() == [4.0, 0.0]


def test_a_chain_of_equal_springs_rests_at_equal_distances() -> None:
    size = 7
    start = np.zeros((size, 2))
    start[-1] = [6.0, 0.0]
    pinned = np.array([at in (0, size - 1) for at in range(size)])
    rest = rest_positions(start, pinned, springs(*((at, at + 1, 10.0) for at in range(size - 1)), size=size))
    assert rest[:, 0] == pytest.approx(np.arange(size), abs=0.03)


@pytest.mark.parametrize("times", [1.0, 1e3, 1e6])
def test_bodies_go_all_the_way_however_much_stronger_the_spring_between_them_is(times: float) -> None:
    start = np.array([[0.0, 0.0], [8.0, 8.0], [8.0, 8.0], [0.0, 6.0]])
    pinned = np.array([True, False, False, True])
    links = ((0, 1, 2.0), (1, 2, 2.0 * times), (2, 3, 2.0))
    rest = rest_positions(start, pinned, springs(*links, size=4))
    share = 1.0 / (2.0 + 1.0 / times)  # in a row of springs each is as long as it is weak
    assert rest[1] == pytest.approx([0.0, 6.0 * share], abs=1e-3)
    assert rest[2] == pytest.approx([0.0, 6.0 * (1.0 - share)], abs=1e-3)


def test_weak_springs_count_beside_strong_ones_of_others() -> None:
    start = np.array([[0.0, 0.0], [9.0, 0.0], [9.0, 9.0], [0.0, 9.0]])
    pinned = np.array([True, False, True, False])
    rest = rest_positions(start, pinned, springs((0, 1, 0.01), (2, 3, 1e6), size=4))
    assert rest[[1, 3]] == pytest.approx(start[[0, 2]], abs=1e-3)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.floats(0.01, 1e4)), max_size=12), st.integers(0, 6))
def test_at_rest_no_force_is_left_and_pinned_bodies_have_not_moved(
    links: list[tuple[int, int, float]], pinned_bodies: int
) -> None:
    start = np.array([[float(at % 3), float(at // 3)] for at in range(6)])
    pinned = np.arange(6) < pinned_bodies
    rates = springs(*((a, b, rate) for a, b, rate in links if a != b), size=6)
    rest = rest_positions(start, pinned, rates)
    constants = rates.toarray().sum(axis=1)
    forces = np.asarray(rates @ rest) - constants[:, None] * rest
    assert np.abs(forces[~pinned]).max(initial=0.0) <= 1e-6 * max(1.0, constants.max())
    stays = pinned | (constants == 0.0)
    assert (rest[stays] == start[stays]).all()


def test_two_free_bodies_meet_and_one_without_springs_stays() -> None:
    start = np.array([[0.0, 0.0], [2.0, 0.0], [5.0, 5.0]])
    rest = rest_positions(start, np.zeros(3, dtype=bool), springs((0, 1, 10.0)))
    assert math.dist(rest[0], rest[1]) < 0.001
    assert rest[2].tolist() == [5.0, 5.0]
