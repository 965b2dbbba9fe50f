"""How far supervisors are from each other, and workers of one supervisor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain, repeat

import numpy as np

from storm_operator.core.arrays import NOWHERE, Floats, Ints
from storm_operator.core.model import WorkerSlot, read_only
from storm_operator.core.network_places import NO_PLACES, NetworkPlaces

DEFAULT_LOOPBACK_ROUND_TRIP_MS = 0.1

MEASURED_WORKER_HOP_MS = 1.3
"""What leaving a worker costs beside the network, there and back: serialising, queueing for the network's threads,
being flushed and read. Measured on real workers: 0.67 ms a way (docs/explanation/separation.md); 0.47 to 0.74 where the
simulator was calibrated."""


@dataclass(frozen=True, slots=True)
class Distances:
    """Round trips between places, in milliseconds.

    `round_trip_ms` is keyed by (supervisor_id, supervisor_id) and symmetric by construction of its maker;
    `loopback_ms` is the network between two workers of one supervisor. Pairs that nobody measured are as far as
    their `places` are, and `default_ms` (the median of those that were measured, or 1.0) where these are unknown.
    `are_assumed`: nobody measured any, and what is told to people is unknown; decisions take `default_ms` all the same.
    Whatever leaves its worker pays `worker_hop_ms` beside: two workers exchange bytes, not objects, wherever they are.
    """

    round_trip_ms: Mapping[tuple[str, str], float]
    loopback_ms: float = DEFAULT_LOOPBACK_ROUND_TRIP_MS
    default_ms: float = 1.0
    worker_hop_ms: float = MEASURED_WORKER_HOP_MS
    places: NetworkPlaces = NO_PLACES
    are_assumed: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "round_trip_ms", read_only(self.round_trip_ms))

    def between(self, a: WorkerSlot, b: WorkerSlot) -> float:
        """Milliseconds between two slots, all counted: 0 inside a worker."""
        if a == b:
            return 0.0
        return self.worker_hop_ms + self.between_supervisors(a.supervisor_id, b.supervisor_id)

    def between_supervisors(self, a: str, b: str) -> float:
        """Milliseconds of network between two supervisors by id: loopback within one."""
        if a == b:
            return self.loopback_ms
        measured = self.round_trip_ms.get((a, b))
        return measured if measured is not None else self.places.round_trip_ms(a, b, self.default_ms)

    def pairs_ms(self, supervisors: tuple[str, ...], here: Ints, there: Ints) -> Floats:
        """The same for pairs by their positions in `supervisors`; of one with itself it means nothing."""
        estimates = self.places.round_trips_ms(supervisors, here, there, self.default_ms)
        ids_here, ids_there = (map(supervisors.__getitem__, ends.tolist()) for ends in (here, there))
        found = map(self.round_trip_ms.get, zip(ids_here, ids_there, strict=True), estimates.tolist())
        return np.fromiter(found, dtype=np.float64, count=len(here))

    def matrix_ms(self, supervisors: tuple[str, ...]) -> Floats:
        """Network between all of them, [supervisor, supervisor]; the diagonal means nothing."""
        everyone = np.arange(len(supervisors))
        matrix = self.places.round_trips_ms(supervisors, everyone[:, None], everyone[None, :], self.default_ms)
        number_of = {supervisor: number for number, supervisor in enumerate(supervisors)}
        # Nothing but C in these loops: where agents probe all their peers, hundreds of them are 100,000 distances.
        ends = map(number_of.get, chain.from_iterable(self.round_trip_ms), repeat(NOWHERE))
        pairs = np.fromiter(ends, dtype=np.int64, count=2 * len(self.round_trip_ms)).reshape(-1, 2)
        measured_ms = np.fromiter(self.round_trip_ms.values(), dtype=np.float64, count=len(pairs))
        listed = (pairs != NOWHERE).all(axis=1)
        matrix[pairs[listed, 0], pairs[listed, 1]] = measured_ms[listed]
        return matrix

    def longest_ms(self, supervisors: tuple[str, ...]) -> float:
        """The longest way between any two of them; 0 where there are no two."""
        matrix = self.matrix_ms(supervisors)
        np.fill_diagonal(matrix, 0.0)
        return float(matrix.max(initial=0.0))

    @property
    def between_workers_ms(self) -> float:
        """What a tuple pays between two workers of one supervisor."""
        return self.worker_hop_ms + self.loopback_ms

    @property
    def typical_ms(self) -> float:
        """What a tuple typically pays between two supervisors."""
        return self.worker_hop_ms + self.default_ms
