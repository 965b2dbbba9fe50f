"""How far supervisors are from each other, as zones: those of one zone are equally far from all others.

Where nobody measured there is one zone; where agents measured each other hardly any two distances are the same, and
each supervisor is a zone of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from storm_operator.core.arrays import Floats, Ints
from storm_operator.core.distances import Distances


@dataclass(frozen=True, slots=True)
class Zones:
    """`zone_of` is by supervisor, `between_ms` by zone and zone: what a tuple pays from one supervisor to another."""

    zone_of: Ints
    between_ms: Floats


def zones_of(distances: Distances, supervisors: tuple[str, ...]) -> Zones:
    """The zones of `supervisors`; a pair measured in both directions counts as the mean of the two."""
    if not _is_any_known(distances, supervisors):
        return Zones(np.zeros(len(supervisors), dtype=np.int64), np.full((1, 1), distances.typical_ms))
    matrix = _both_ways_ms(distances, supervisors)
    zone_of = _alike(matrix)
    members = [int(np.argmax(zone_of == zone)) for zone in range(int(zone_of.max()) + 1)]
    return Zones(zone_of, matrix[members][:, members] + distances.worker_hop_ms)


def _is_any_known(distances: Distances, supervisors: tuple[str, ...]) -> bool:
    known = set(supervisors)
    is_any_placed = len(known & distances.places.coordinate_of.keys()) > 1
    return is_any_placed or any(a in known and b in known for a, b in distances.round_trip_ms)


def _both_ways_ms(distances: Distances, supervisors: tuple[str, ...]) -> Floats:
    """[supervisor, supervisor]; the diagonal is the distance to the nearest other one."""
    matrix = distances.matrix_ms(supervisors)
    matrix = (matrix + matrix.T) / 2.0
    np.fill_diagonal(matrix, np.inf)
    np.fill_diagonal(matrix, matrix.min(axis=1) if len(supervisors) > 1 else 0.0)
    return matrix


def _alike(matrix: Floats) -> Ints:
    """Which rows are the same, numbered as they come."""
    numbers: dict[bytes, int] = {}
    return np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in matrix], dtype=np.int64)
