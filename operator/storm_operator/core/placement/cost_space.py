"""The cost space of Cardellini et al., DEBS'15, section 2.1: two dimensions of latency, availability, utilisation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from storm_operator.core.arrays import Floats
from storm_operator.core.distances import Distances
from storm_operator.core.model import Supervisor
from storm_operator.core.vivaldi import Coordinate, moved_by_sample

LEAST_ROUND_TRIP_MS = 0.001
RUNS = 3


@dataclass(frozen=True, slots=True)
class CostWeights:
    """w_l, w_a and w_u of section 2.2."""

    latency: float
    availability: float
    utilisation: float


@dataclass(frozen=True, slots=True)
class CostSpace:
    """Where supervisors (rows) are: latency coordinates in parts of the longest round trip, and availability, 0..1."""

    latency: Floats
    availability: Floats
    weights: CostWeights

    def distances(self, place: Floats, utilisation: Floats) -> Floats:
        """d(P_i, P_j) of section 2.2 from P_i = (`place`, 1, 0), an operator's virtual one, to every supervisor."""
        weights = self.weights
        squares: Floats = (
            weights.latency**2 * np.sum((self.latency - place) ** 2, axis=1)
            + weights.availability**2 * (1.0 - self.availability) ** 2
            + weights.utilisation**2 * utilisation**2
        )
        return squares**0.5


def cost_space(
    machines: Sequence[Supervisor], distances: Distances, weights: CostWeights, *, samples: int, seed: int
) -> CostSpace:
    """The cost space of `machines`; pairs that nobody measured count as `Distances` has them."""

    def round_trip_ms(one: int, other: int) -> float:
        return max(distances.between_supervisors(machines[one].id, machines[other].id), LEAST_ROUND_TRIP_MS)

    places = surest_places(len(machines), round_trip_ms, samples=samples, seed=seed)
    longest = max(distances.longest_ms(tuple(machine.id for machine in machines)), LEAST_ROUND_TRIP_MS)
    return CostSpace(
        latency=np.array([(place.x, place.y) for place in places]).reshape(len(machines), 2) / longest,
        availability=np.array([machine.availability for machine in machines]),
        weights=weights,
    )


def surest_places(
    count: int, round_trip_ms: Callable[[int, int], float], *, samples: int, seed: int
) -> list[Coordinate]:
    """Of a few runs of Vivaldi the one whose nodes are surest of their places: a run can end folded over itself."""
    runs = (places_in_the_plane(count, round_trip_ms, samples=samples, seed=seed + run) for run in range(RUNS))
    return min(runs, key=lambda places: sum(place.error for place in places))


def places_in_the_plane(
    count: int, round_trip_ms: Callable[[int, int], float], *, samples: int, seed: int
) -> list[Coordinate]:
    """Vivaldi's places for nodes 0..`count` - 1, without heights: distances are round trips (above 0) nearly enough.

    Every node measures `samples` peers, one at random each time, as agents do over minutes. The same `seed` gives the
    same places.
    """
    places = [Coordinate(height=0.0)] * count
    if count < 2:
        return places
    rng = np.random.default_rng(seed)
    steps = rng.integers(1, count, size=(samples, count)).tolist()
    angles = rng.uniform(0.0, math.tau, size=(samples, count)).tolist()
    for step, angle in zip(steps, angles, strict=True):
        for own in range(count):
            peer = (own + step[own]) % count
            trip = round_trip_ms(own, peer)
            places[own] = moved_by_sample(places[own], places[peer], trip, angle[own], least_height_ms=0.0)
    return places
