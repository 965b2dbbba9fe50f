"""TrafficMatrix: who sends how many tuples per second to whom.

The matrix alone knows row numbers; everyone else speaks `Executor`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
from scipy import sparse

from storm_operator.core.model import Assignment, Executor, WorkerSlot

PlaceOf = Callable[[WorkerSlot], Hashable]


class TrafficMatrix:
    """Directed executor-to-executor rates in tuples per second; immutable.

    Rows and columns follow `executors` (sorted). Pairs that are absent are zero *within* what was measured;
    whether everything was measured is `Completeness`' business.
    """

    __slots__ = ("_index", "_rates", "executors")

    def __init__(self, rates: Mapping[tuple[Executor, Executor], float], executors: Iterable[Executor] = ()) -> None:
        named = {executor for pair in rates for executor in pair}
        self.executors: tuple[Executor, ...] = tuple(sorted(named | set(executors)))
        self._index = {executor: row for row, executor in enumerate(self.executors)}
        pairs = sorted(rates)
        rows = [self._index[source] for source, _ in pairs]
        columns = [self._index[target] for _, target in pairs]
        size = len(self.executors)
        self._rates = sparse.csr_array(
            ([float(rates[pair]) for pair in pairs], (rows, columns)), shape=(size, size), dtype=np.float64
        )

    def rate(self, source: Executor, target: Executor) -> float:
        """Tuples per second from `source` to `target`; 0 for a pair that was not seen."""
        if source not in self._index or target not in self._index:
            return 0.0
        return float(self._rates[self._index[source], self._index[target]])

    def pairs(self) -> Iterator[tuple[Executor, Executor, float]]:
        """All pairs with traffic, in sorted order."""
        coordinates = self._rates.tocoo()
        order = np.lexsort((coordinates.col, coordinates.row))
        for at in order:
            rate = float(coordinates.data[at])
            if rate > 0.0:
                yield self.executors[int(coordinates.row[at])], self.executors[int(coordinates.col[at])], rate

    def symmetric(self) -> sparse.csr_array[np.float64]:
        """Traffic in both directions summed, with rows as in `executors` (for placement's inner loops)."""
        return sparse.csr_array(self._rates + self._rates.T)

    def row_of(self, executor: Executor) -> int | None:
        return self._index.get(executor)

    def total(self) -> float:
        return float(self._rates.sum())

    def inter_worker(self, assignment: Assignment) -> float:
        """Tuples per second between different slots (of any supervisor)."""
        return self._crossing(assignment, lambda slot: slot)

    def inter_supervisor(self, assignment: Assignment) -> float:
        """Tuples per second between different supervisors."""
        return self._crossing(assignment, lambda slot: slot.supervisor_id)

    def by_supervisor(self, assignment: Assignment) -> Mapping[tuple[str, str], float]:
        """Tuples per second for each ordered pair of supervisors that exchange any (own pair included)."""
        sums: dict[tuple[str, str], float] = {}
        for source, target, rate in self.pairs():
            a, b = assignment.slot_of.get(source), assignment.slot_of.get(target)
            if a is not None and b is not None:
                key = (a.supervisor_id, b.supervisor_id)
                sums[key] = sums.get(key, 0.0) + rate
        return sums

    def _crossing(self, assignment: Assignment, place: PlaceOf) -> float:
        total = 0.0
        for source, target, rate in self.pairs():
            a, b = assignment.slot_of.get(source), assignment.slot_of.get(target)
            if a is not None and b is not None and place(a) != place(b):
                total += rate
        return total

    def to_array(self) -> npt.NDArray[np.float64]:
        """A dense copy, rows and columns as in `executors`."""
        return np.asarray(self._rates.todense(), dtype=np.float64)
