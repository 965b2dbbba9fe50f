"""One question, asked of one pair, of many, of all: the same answer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_operator.core.distances import Distances
from storm_operator.core.network_places import NetworkPlaces
from storm_operator.core.vivaldi import Coordinate

NAMES = ("a", "b", "c", "d", "e")
AMOUNTS = st.floats(0.0, 100.0) | st.integers(0, 100)  # as files have them
PLACES = st.builds(Coordinate, st.floats(-50.0, 50.0), st.floats(-50.0, 50.0), AMOUNTS)
EVERY_DISTANCES = st.builds(
    Distances,
    st.dictionaries(st.tuples(st.sampled_from((*NAMES, "stranger")), st.sampled_from(NAMES)), AMOUNTS),
    default_ms=AMOUNTS,
    places=st.builds(NetworkPlaces, st.dictionaries(st.sampled_from((*NAMES, "stranger")), PLACES), AMOUNTS),
)


@pytest.mark.slow
@given(EVERY_DISTANCES)
def test_one_pair_many_and_all(distances: Distances) -> None:
    ends = [(a, b) for a in range(len(NAMES)) for b in range(len(NAMES)) if a != b]
    one_by_one = [distances.between_supervisors(NAMES[a], NAMES[b]) for a, b in ends]
    here, there = np.array(ends).T
    np.testing.assert_allclose(distances.pairs_ms(NAMES, here, there), one_by_one)
    np.testing.assert_allclose(distances.matrix_ms(NAMES)[here, there], one_by_one)
    assert distances.longest_ms(NAMES) == pytest.approx(max(one_by_one))


def test_what_was_measured_counts_and_then_places_and_then_the_typical() -> None:
    places = NetworkPlaces({"a": Coordinate(0.0, 0.0, 1.0), "b": Coordinate(3.0, 4.0, 1.0)}, least_ms=0.5)
    distances = Distances({("a", "c"): 2.0, ("c", "a"): 2.0}, default_ms=9.0, places=places)
    assert distances.between_supervisors("a", "c") == 2.0
    assert distances.between_supervisors("a", "b") == 7.0
    assert distances.between_supervisors("b", "c") == 9.0
    assert distances.between_supervisors("a", "a") == distances.loopback_ms
