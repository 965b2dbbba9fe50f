"""A placement under change: who is where, and what the next move would cost, kept up to date move by move.

Costs are those of `objective.py`, incrementally: pricing all moves of one executor takes one vector operation per
part of the objective, and a move updates only the executors that exchange tuples with the one that moved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from storm_operator.core.placement.problem import NOWHERE, Floats, Ints, Problem

SMALLEST_GAIN = 1e-6
"""As a share of the total: smaller gains are rounding, and would let a search run in circles."""


def smallest_gain(total: float) -> float:
    return SMALLEST_GAIN * (1.0 + abs(total))


class Layout:
    """Mutable; `place` holds the supervisor of each executor, or NOWHERE. Never share `place`: copy it."""

    def __init__(self, problem: Problem) -> None:
        size, columns = len(problem.executors), len(problem.supervisors)
        self.problem = problem
        self.place: Ints = np.full(size, NOWHERE, dtype=np.int64)
        self.load: Floats = problem.fixed_load.copy()
        self.network: Floats = np.zeros((size, columns))
        """What each executor's own traffic would cost on each supervisor, the others staying where they are."""
        self.count: Ints = np.zeros((problem.groups, columns), dtype=np.int64)
        self.executors_on: Ints = np.zeros(columns, dtype=np.int64)
        self.workers_on: Ints = np.zeros(columns, dtype=np.int64)
        self.price_in: Floats = np.zeros((problem.groups, columns))
        self.settled_in: Ints = np.zeros((problem.groups, columns), dtype=np.int64)
        self._ports: Ints = np.array([len(ports) for ports in problem.free_ports], dtype=np.int64)
        self._to: Floats = problem.distance_ms
        indptr, indices, data = problem.traffic.indptr, problem.traffic.indices, problem.traffic.data
        bounds = list(zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True))
        self._neighbours = [np.asarray(indices[a:b], dtype=np.int64) for a, b in bounds]
        self._rates = [np.asarray(data[a:b], dtype=np.float64) for a, b in bounds]
        self._kin = [problem.group_of[rows] == problem.group_of[at] for at, rows in enumerate(self._neighbours)]
        self._nothing: Floats = np.zeros(columns)
        self._journal: list[tuple[int, int]] = []

    def deltas(self, row: int) -> Floats:
        """Change of the total for putting executor `row` on each supervisor; inf where no slot is left."""
        at = int(self.place[row])
        total = self.network[row] + self._overload_if_added(row) + self._supervisor_if_added()
        total += self._restart_if_added(row)
        group = self.problem.group_of[row]
        total[(self.count[group] == 0) & (self.workers_on >= self._ports)] = np.inf
        if at != NOWHERE:
            total += self._delta_of_removal(row, at)
            total[at] = 0.0
        return np.asarray(total, dtype=np.float64)

    def all_deltas(self) -> Floats:
        """`deltas` of every executor at once; all must be placed."""
        problem = self.problem
        rows, groups, at = np.arange(len(self.place)), problem.group_of, self.place
        demand, price = problem.demand, problem.restart_price
        excess = self.load - problem.usable
        overload = np.maximum(excess, 0.0)
        intact = (problem.settled_size == self.count) & (problem.settled_size == self.settled_in)
        restarts = np.where(intact, 0.0, self.price_in)

        total = self.network + (np.maximum(excess + demand[:, None], 0.0) - overload) * problem.overload_price
        total += self._supervisor_if_added()
        added = (self.price_in - restarts)[groups] + price[:, None]
        back = problem.settled & (problem.home != NOWHERE) & self._completes(groups, problem.home)
        added[back, problem.home[back]] = -restarts[groups[back], problem.home[back]]
        total += added
        total[(self.count == 0)[groups] & (self.workers_on >= self._ports)] = np.inf

        own = problem.settled & (problem.home == at)
        left, settled = self.count[groups, at] - 1, self.settled_in[groups, at] - own
        size = problem.settled_size[groups, at]
        after = np.where((size == left) & (size == settled), 0.0, self.price_in[groups, at] - price)
        relief = (np.maximum(excess[at] - demand, 0.0) - overload[at]) * problem.overload_price
        emptied = ((self.executors_on[at] == 1) & ~problem.fixed_in_use[at]) * problem.supervisor_price
        total += (relief - self.network[rows, at] - emptied + after - restarts[groups, at])[:, None]
        total[rows, at] = 0.0
        return np.asarray(total, dtype=np.float64)

    def _completes(self, groups: Ints, columns: Ints) -> npt.NDArray[np.bool_]:
        size = self.problem.settled_size[groups, columns]
        complete = (self.count[groups, columns] + 1 == size) & (self.settled_in[groups, columns] + 1 == size)
        return np.asarray(complete, dtype=np.bool_)

    def move(self, row: int, to: int) -> None:
        """Put executor `row` on supervisor `to` (NOWHERE takes it out)."""
        at = int(self.place[row])
        if at == to:
            return
        self._journal.append((row, at))
        group = int(self.problem.group_of[row])
        neighbours, rates, kin = self._neighbours[row], self._rates[row], self._kin[row]
        change = self._nothing
        for column, sign in ((at, -1.0), (to, 1.0)):
            if column != NOWHERE:
                self._count_in(row, group, column, int(sign))
                change = change + sign * self._to[column]
                if kin.any():
                    self.network[neighbours[kin], column] -= sign * rates[kin] * self._to[column, column]
        self.network[neighbours] += rates[:, None] * change
        self.place[row] = to

    def attempt(self, step: Callable[[], bool]) -> bool:
        """Do `step`; undo it unless it could be done in full and made the total smaller."""
        before = self.total()
        mark = len(self._journal)
        if step() and self.total() < before - smallest_gain(before):
            return True
        while len(self._journal) > mark:
            row, at = self._journal.pop()
            self.move(row, at)
            self._journal.pop()
        return False

    def move_all(self, rows: Sequence[int], target: int) -> bool:
        """Move `rows` to `target`; False (and nothing undone) when a slot is missing for one of them."""
        for row in rows:
            group = self.problem.group_of[row]
            if self.count[group, target] == 0 and self.workers_on[target] >= self._ports[target]:
                return False
            self.move(row, target)
        return True

    def move_to_best(self, row: int, forbidden: Sequence[int] = ()) -> bool:
        """Move `row` to where it costs least outside of `forbidden`; False when no slot is left."""
        deltas = self.deltas(row)
        deltas[list(forbidden)] = np.inf
        best = int(np.argmin(deltas))
        if not np.isfinite(deltas[best]):
            return False
        self.move(row, best)
        return True

    def members(self, group: int, column: int) -> Ints:
        return np.flatnonzero((self.problem.group_of == group) & (self.place == column)).astype(np.int64)

    def traffic_among(self, rows: Sequence[int]) -> float:
        """Tuples per second between `rows`, each pair counted from both ends."""
        chosen = np.zeros(len(self.place), dtype=np.bool_)
        chosen[rows] = True
        return sum(float(self._rates[row][chosen[self._neighbours[row]]].sum()) for row in rows)

    def restart_cost_of(self, group: int, column: int) -> float:
        """What the worker of `group` on `column` costs in restarts: nothing when it is as it was."""
        return 0.0 if self._intact(group, column) else float(self.price_in[group, column])

    def total(self) -> float:
        """The objective, without the constant that obstacles add to the network."""
        problem = self.problem
        placed = self.place != NOWHERE
        rows = np.flatnonzero(placed)
        network = float(self.network[rows, self.place[rows]].sum()) / 2.0
        overload = float(np.maximum(self.load - problem.usable, 0.0).sum()) * problem.overload_price
        in_use = int(((self.executors_on > 0) | problem.fixed_in_use).sum()) * problem.supervisor_price
        intact = (self.settled_in == problem.settled_size) & (self.count == problem.settled_size)
        return network + overload + in_use + float(self.price_in[~intact].sum())

    def _count_in(self, row: int, group: int, column: int, sign: int) -> None:
        problem = self.problem
        before = self.count[group, column]
        self.count[group, column] += sign
        self.workers_on[column] += int(self.count[group, column] > 0) - int(before > 0)
        self.executors_on[column] += sign
        self.load[column] += sign * problem.demand[row]
        self.price_in[group, column] += sign * problem.restart_price[row]
        if problem.settled[row] and problem.home[row] == column:
            self.settled_in[group, column] += sign

    def _overload_if_added(self, row: int) -> Floats:
        excess = self.load - self.problem.usable
        added = np.maximum(excess + self.problem.demand[row], 0.0) - np.maximum(excess, 0.0)
        return np.asarray(added * self.problem.overload_price, dtype=np.float64)

    def _supervisor_if_added(self) -> Floats:
        empty = (self.executors_on == 0) & ~self.problem.fixed_in_use
        return np.asarray(empty * self.problem.supervisor_price, dtype=np.float64)

    def _restart_if_added(self, row: int) -> Floats:
        problem = self.problem
        group = int(problem.group_of[row])
        size, count, settled = problem.settled_size[group], self.count[group], self.settled_in[group]
        intact = (size == count) & (size == settled)
        price = self.price_in[group]
        added = np.where(intact, price, 0.0) + problem.restart_price[row]
        home = int(problem.home[row])
        if problem.settled[row] and count[home] + 1 == size[home] == settled[home] + 1:
            added[home] = -price[home]
        return np.asarray(added, dtype=np.float64)

    def _delta_of_removal(self, row: int, at: int) -> float:
        problem = self.problem
        group = int(problem.group_of[row])
        excess = float(self.load[at] - problem.usable[at])
        relief = (max(excess - float(problem.demand[row]), 0.0) - max(excess, 0.0)) * problem.overload_price
        emptied = self.executors_on[at] == 1 and not problem.fixed_in_use[at]
        before = self.restart_cost_of(group, at)
        own = bool(problem.settled[row]) and int(problem.home[row]) == at
        left = int(self.count[group, at]) - 1
        size, settled = int(problem.settled_size[group, at]), int(self.settled_in[group, at]) - int(own)
        unchanged_after = size == left == settled
        after = 0.0 if unchanged_after else float(self.price_in[group, at] - problem.restart_price[row])
        supervisor = problem.supervisor_price if emptied else 0.0
        return -float(self.network[row, at]) + relief - supervisor + after - before

    def _intact(self, group: int, column: int) -> bool:
        size = self.problem.settled_size[group, column]
        return bool(size == self.count[group, column] == self.settled_in[group, column])
