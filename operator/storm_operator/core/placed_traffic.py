"""The traffic of a snapshot under an assignment: who of those that exchange tuples share a worker, a supervisor, and
how far the others are apart. Arrays, one row for each pair of executors, so that a large cluster is weighed at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from storm_operator.core.arrays import NOWHERE, Floats, Ints
from storm_operator.core.distances import Distances
from storm_operator.core.model import Assignment
from storm_operator.core.traffic import TrafficMatrix

Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PlacedTraffic:
    """The pairs of executors that exchange tuples and both have a place; all arrays alike in length.

    `sources` and `targets` are positions in the traffic matrix' executors. `round_trip_ms` is as `Distances.between`
    has it, but 0 within one supervisor: what is paid between two workers there is asked for with each figure.
    `slots` has a number for the slot of each executor of the matrix, `NOWHERE` without one.
    """

    sources: Ints
    targets: Ints
    per_second: Floats
    same_worker: Truths
    same_supervisor: Truths
    round_trip_ms: Floats
    slots: Ints

    def within(self, wanted: Truths) -> PlacedTraffic:
        """The part between executors that are wanted; one truth for each executor of the traffic matrix."""
        chosen = wanted[self.sources] & wanted[self.targets]
        if chosen.all():
            return self
        return PlacedTraffic(
            self.sources[chosen],
            self.targets[chosen],
            self.per_second[chosen],
            self.same_worker[chosen],
            self.same_supervisor[chosen],
            self.round_trip_ms[chosen],
            self.slots,
        )

    def between_ms(self, between_workers_ms: float) -> Floats:
        """The round trip of each pair: 0 inside a worker, `between_workers_ms` between two of one supervisor."""
        return np.where(self.same_supervisor & ~self.same_worker, between_workers_ms, self.round_trip_ms)

    def network_usage(self, between_workers_ms: float) -> float:
        """Tuples per second times round trip, summed, in tuple-ms/s."""
        return float(self.per_second @ self.between_ms(between_workers_ms))

    def inter_worker(self) -> float:
        """Tuples per second between different slots (of any supervisor)."""
        return float(self.per_second[~self.same_worker].sum())

    def inter_supervisor(self) -> float:
        """Tuples per second between different supervisors."""
        return float(self.per_second[~self.same_supervisor].sum())


def place_traffic(traffic: TrafficMatrix, distances: Distances, assignment: Assignment) -> PlacedTraffic:
    """`traffic` between the executors that `assignment` places."""
    slot_of_row, supervisor_of_slot, supervisor_ids = _numbered(traffic, assignment)
    sources, targets, per_second = traffic.flows()
    placed = (slot_of_row[sources] != NOWHERE) & (slot_of_row[targets] != NOWHERE)
    if not placed.all():
        sources, targets, per_second = sources[placed], targets[placed], per_second[placed]
    a, b = slot_of_row[sources], slot_of_row[targets]
    here, there = supervisor_of_slot[a], supervisor_of_slot[b]
    round_trips_ms = _round_trips_ms(distances, supervisor_ids, here, there)
    return PlacedTraffic(sources, targets, per_second, a == b, here == there, round_trips_ms, slot_of_row)


def rows_of_topologies(traffic: TrafficMatrix, topology_ids: Iterable[str]) -> Truths:
    """Which executors of the traffic matrix belong to one of the topologies."""
    wanted = frozenset(topology_ids)
    return np.array([executor.topology_id in wanted for executor in traffic.executors], dtype=np.bool_)


def _numbered(traffic: TrafficMatrix, assignment: Assignment) -> tuple[Ints, Ints, list[str]]:
    """The slot's number for each executor of the matrix, the supervisor's number for each slot, its id for each."""
    slots: dict[tuple[str, int], int] = {}
    numbers = [
        NOWHERE if slot is None else slots.setdefault((slot.supervisor_id, slot.port), len(slots))
        for slot in map(assignment.slot_of.get, traffic.executors)
    ]
    supervisors: dict[str, int] = {}
    of_slot = [supervisors.setdefault(supervisor_id, len(supervisors)) for supervisor_id, _ in slots]
    return np.array(numbers, dtype=np.int64), np.array(of_slot, dtype=np.int64), list(supervisors)


def _round_trips_ms(distances: Distances, supervisor_ids: Sequence[str], here: Ints, there: Ints) -> Floats:
    """Between the supervisors of each pair, 0 within one; each pair of supervisors is looked up once."""
    if not distances.round_trip_ms and not distances.places:
        return np.where(here == there, 0.0, distances.typical_ms)
    count = len(supervisor_ids)
    keys, inverse = np.unique(here * count + there, return_inverse=True)
    a, b = keys // count, keys % count
    pairs_ms = distances.pairs_ms(tuple(supervisor_ids), a, b) + distances.worker_hop_ms
    return np.where(a == b, 0.0, pairs_ms)[inverse]
