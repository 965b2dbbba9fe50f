"""How far the supervisors of an instance are from each other: as nobody, racks, or agents know it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import permutations

import numpy as np

from storm_operator.agent.neighbours import neighbours
from storm_operator.core.distances import Distances
from storm_operator.core.network_places import NetworkPlaces
from storm_operator.core.vivaldi import Coordinate, moved_by_sample

SAME_ZONE_MS, OTHER_ZONE_MS = 1.0, 4.0
ROUNDS_OF_PROBES = 15


def known_distances(names: Sequence[str], zones: int) -> Distances:
    """Between `zones` of equally many supervisors; nobody measured where there is one zone."""
    if zones == 1:
        return Distances({}, default_ms=SAME_ZONE_MS)
    near = {(names[a], names[b]): SAME_ZONE_MS for a, b in permutations(range(len(names)), 2) if a % zones == b % zones}
    return Distances(near, default_ms=OTHER_ZONE_MS)


def measured_distances(names: Sequence[str], zones: int, spread: float, rng: np.random.Generator) -> Distances:
    """As agents measure: each pair of neighbours its own round trip, `spread` the standard deviation of its logarithm;
    of all others the agents' places tell, however sure these are."""
    if len(names) < 2:
        return known_distances(names, zones)
    at = {name: number for number, name in enumerate(names)}
    probes = {own: neighbours(own, (name for name in names if name != own)) for own in names}
    round_trip_ms: dict[tuple[str, str], float] = {}
    for own, peers in probes.items():
        for peer in peers:
            if own < peer:
                typical_ms = SAME_ZONE_MS if at[own] % zones == at[peer] % zones else OTHER_ZONE_MS
                round_trip_ms[own, peer] = typical_ms * math.exp(rng.normal(0.0, spread))
                round_trip_ms[peer, own] = round_trip_ms[own, peer]
    measured = list(round_trip_ms.values())
    places = NetworkPlaces(_places(probes, round_trip_ms, rng), min(measured))
    return Distances(round_trip_ms, default_ms=float(np.median(measured)), places=places)


def _places(
    probes: Mapping[str, Sequence[str]], round_trip_ms: Mapping[tuple[str, str], float], rng: np.random.Generator
) -> dict[str, Coordinate]:
    """Where the agents are after about a minute."""
    places = dict.fromkeys(probes, Coordinate())
    for _ in range(ROUNDS_OF_PROBES):
        for own, peers in probes.items():
            for peer, angle in zip(peers, rng.uniform(0.0, math.tau, len(peers)).tolist(), strict=True):
                places[own] = moved_by_sample(places[own], places[peer], round_trip_ms[own, peer], angle)
    return places
