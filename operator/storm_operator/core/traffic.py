"""TrafficMatrix: who sends how many tuples per second to whom.

The matrix alone knows row numbers; everyone else speaks `Executor`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from storm_operator.core.arrays import NOWHERE, Floats, Ints
from storm_operator.core.model import Assignment, Executor, in_order

Place = TypeVar("Place", bound=Hashable)


@dataclass(frozen=True, slots=True)
class PlacedFlows(Generic[Place]):
    """Flows between places, one for each pair of executors: positions in `places`, and tuples per second."""

    places: tuple[Place, ...]
    sources: Ints
    targets: Ints
    per_second: Floats

    def summed(self) -> list[tuple[Place, Place, float]]:
        """Each ordered pair of places that exchange any tuples once, with all their tuples per second."""
        keys, inverse = np.unique(self.sources * len(self.places) + self.targets, return_inverse=True)
        sums = np.bincount(inverse, weights=self.per_second, minlength=len(keys))
        return [
            (self.places[key // len(self.places)], self.places[key % len(self.places)], rate)
            for key, rate in zip(keys.tolist(), sums.tolist(), strict=True)
        ]


class TrafficMatrix:
    """Directed executor-to-executor rates in tuples per second; immutable.

    Rows and columns follow `executors` (sorted). Pairs that are absent are zero *within* what was measured;
    whether everything was measured is `Completeness`' business.
    """

    __slots__ = ("_index", "_rates", "executors")

    def __init__(self, rates: Mapping[tuple[Executor, Executor], float], executors: Iterable[Executor] = ()) -> None:
        named = {executor for pair in rates for executor in pair}
        self.executors: tuple[Executor, ...] = tuple(in_order(named | set(executors)))
        self._index = {executor: row for row, executor in enumerate(self.executors)}
        rows = [self._index[source] for source, _ in rates]
        columns = [self._index[target] for _, target in rates]
        self._rates = _sorted_rows(rows, columns, [float(rate) for rate in rates.values()], len(self.executors))

    @classmethod
    def from_arrays(
        cls, executors: Sequence[Executor], sources: npt.ArrayLike, targets: npt.ArrayLike, rates: npt.ArrayLike
    ) -> TrafficMatrix:
        """The matrix of many pairs at once: `sources` and `targets` are positions in `executors`, which is sorted.

        Rates of a pair that is named more than once add up.
        """
        matrix = cls({}, executors)
        if matrix.executors != tuple(executors):
            raise ValueError("executors must be sorted and each be named once, since positions refer to them")
        matrix._rates = _sorted_rows(sources, targets, rates, len(matrix.executors))
        return matrix

    def rate(self, source: Executor, target: Executor) -> float:
        """Tuples per second from `source` to `target`; 0 for a pair that was not seen."""
        if source not in self._index or target not in self._index:
            return 0.0
        return float(self._rates[self._index[source], self._index[target]])

    def pairs(self) -> Iterator[tuple[Executor, Executor, float]]:
        """All pairs with traffic, in sorted order."""
        sources, targets, rates = self.flows()
        for source, target, rate in zip(sources.tolist(), targets.tolist(), rates.tolist(), strict=True):
            yield self.executors[source], self.executors[target], rate

    def flows(self) -> tuple[Ints, Ints, Floats]:
        """All pairs with traffic as arrays: position of the source in `executors`, of the target, and the rate."""
        coordinates = self._rates.tocoo()
        some = coordinates.data > 0.0
        return (
            coordinates.row[some].astype(np.int64),
            coordinates.col[some].astype(np.int64),
            np.asarray(coordinates.data[some], dtype=np.float64),
        )

    def block(self, sources: Sequence[Executor], targets: Sequence[Executor]) -> Floats:
        """Tuples per second from each of `sources` (rows) to each of `targets` (columns); 0 for pairs not seen."""
        found = np.zeros((len(sources), len(targets)))
        (rows, at_rows), (columns, at_columns) = (self._rows_among(side) for side in (sources, targets))
        found[np.ix_(at_rows, at_columns)] = self._rates[rows][:, columns].toarray()
        return found

    def with_changes(self, blocks: Iterable[tuple[Sequence[Executor], Sequence[Executor], Floats]]) -> TrafficMatrix:
        """The same matrix with other rates between some: (sources, targets, by how much those of `block` change)."""
        parts = [self.flows()]
        for senders, receivers, change in blocks:
            (rows, at_rows), (columns, at_columns) = (self._rows_among(side) for side in (senders, receivers))
            rates = change[np.ix_(at_rows, at_columns)].ravel()
            parts.append((np.repeat(rows, len(columns)), np.tile(columns, len(rows)), rates))
        changed = TrafficMatrix.from_arrays(
            self.executors, *(np.concatenate(side) for side in zip(*parts, strict=True))
        )
        changed._rates.eliminate_zeros()
        return changed

    def _rows_among(self, executors: Sequence[Executor]) -> tuple[Ints, Ints]:
        """The rows of those of `executors` that the matrix has, and their positions in `executors`."""
        found = [(self._index[executor], at) for at, executor in enumerate(executors) if executor in self._index]
        rows, positions = np.array(found, dtype=np.int64).reshape(-1, 2).T
        return rows, positions

    def through(self) -> Floats:
        """Tuples per second that each of `executors` sends and receives, own traffic twice."""
        sent: Floats = np.asarray(self._rates.sum(axis=1), dtype=np.float64).ravel()
        received: Floats = np.asarray(self._rates.sum(axis=0), dtype=np.float64).ravel()
        return sent + received

    def symmetric(self) -> sparse.csr_array[np.float64]:
        """Traffic in both directions summed, with rows as in `executors` (for placement's inner loops)."""
        return sparse.csr_array(self._rates + self._rates.T)

    def row_of(self, executor: Executor) -> int | None:
        return self._index.get(executor)

    def total(self) -> float:
        return float(self._rates.sum())

    def inter_worker(self, assignment: Assignment) -> float:
        """Tuples per second between different slots (of any supervisor)."""
        return self._crossing(assignment.slot_of.get)

    def inter_supervisor(self, assignment: Assignment) -> float:
        """Tuples per second between different supervisors."""
        return self._crossing(_supervisor_in(assignment))

    def by_supervisor(self, assignment: Assignment) -> Mapping[tuple[str, str], float]:
        """Tuples per second for each ordered pair of supervisors that exchange any (own pair included)."""
        flows = self.flows_between(_supervisor_in(assignment))
        return {(source, target): rate for source, target, rate in flows.summed()}

    def flows_between(self, place_of: Callable[[Executor], Place | None]) -> PlacedFlows[Place]:
        """All flows, seen as flows between what `place_of` makes of executors; None leaves an executor's flows out."""
        number: dict[Place, int] = {}
        places = map(place_of, self.executors)
        numbers = np.array(
            [NOWHERE if place is None else number.setdefault(place, len(number)) for place in places], dtype=np.int64
        )
        sources, targets, rates = self.flows()
        a, b = numbers[sources], numbers[targets]
        placed = (a != NOWHERE) & (b != NOWHERE)
        return PlacedFlows(tuple(number), a[placed], b[placed], rates[placed])

    def within(self, topology_id: str) -> TrafficMatrix:
        """The traffic between the executors of one topology."""
        start, end = self.rows_within(topology_id)
        part = TrafficMatrix({}, self.executors[start:end])
        part._rates = self._rates[start:end, start:end]
        return part

    def rows_within(self, topology_id: str) -> tuple[int, int]:
        """The positions in `executors` where those of one topology begin, and where they end."""
        start, end = (bisect_left(self.executors, side, key=_topology_of) for side in (topology_id, topology_id + "\0"))
        return start, end

    def _crossing(self, place_of: Callable[[Executor], Hashable | None]) -> float:
        flows = self.flows_between(place_of)
        return float(flows.per_second[flows.sources != flows.targets].sum())


def _sorted_rows(
    rows: npt.ArrayLike, columns: npt.ArrayLike, rates: npt.ArrayLike, size: int
) -> sparse.csr_array[np.float64]:
    """Same pairs, same matrix: each row sorted by column, whatever the order of the pairs."""
    matrix = sparse.csr_array(
        (
            np.asarray(rates, dtype=np.float64),
            (np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64)),
        ),
        shape=(size, size),
    )
    matrix.sum_duplicates()
    return matrix


def _supervisor_in(assignment: Assignment) -> Callable[[Executor], str | None]:
    def supervisor_of(executor: Executor) -> str | None:
        slot = assignment.slot_of.get(executor)
        return None if slot is None else slot.supervisor_id

    return supervisor_of


def _topology_of(executor: Executor) -> str:
    return executor.topology_id
