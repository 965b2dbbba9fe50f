"""Steps of the local search that exchange: two executors, or everything on two supervisors."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy import sparse

from storm_operator.core.placement.layout import Layout, smallest_gain
from storm_operator.core.placement.problem import NOWHERE, Floats

LONGEST_CHAIN = 6
MOST_PUSHES = 40
CELLS_TO_PUSH = 40_000
"""A push prices every move of every executor: in large clusters only those who want to move most get one."""


def swap_executors(layout: Layout) -> bool:
    """Exchange two executors where a full supervisor keeps one from moving alone."""
    swapped = False
    for row, target in _kept_out(layout):
        at = int(layout.place[row])
        if at != target:
            swapped |= _swap_with_best(layout, row, at, target)
    return swapped


def push_executors(layout: Layout) -> bool:
    """Move an executor to a full supervisor that it wants, others making room one after the other."""
    pushed = False
    affordable = min(MOST_PUSHES, 1 + CELLS_TO_PUSH // max(1, layout.network.size))
    for row, target in _kept_out(layout)[:affordable]:
        if layout.place[row] != target:
            pushed |= layout.attempt(partial(_push, layout, row, target))
    return pushed


def _kept_out(layout: Layout) -> list[tuple[int, int]]:
    """Executors that would cost less on a supervisor that is too full for them, those who want it most first."""
    problem = layout.problem
    rows = np.arange(len(layout.place))
    saved = layout.network[rows, layout.place][:, None] - layout.network
    full = layout.load[None, :] + problem.demand[:, None] > problem.usable[None, :]
    saved = np.where(full, saved, 0.0)
    saved[rows, layout.place] = 0.0
    most = saved.max(axis=1)
    order = np.argsort(-most, kind="stable")[: np.count_nonzero(most > 0.0)]
    return [(int(row), int(np.argmax(saved[row]))) for row in order]


def _push(layout: Layout, row: int, target: int) -> bool:
    if not layout.move_all([row], target):
        return False
    moved = {row}
    for _ in range(LONGEST_CHAIN):
        deltas = layout.all_deltas()
        deltas[list(moved)] = np.inf
        other, to = np.unravel_index(int(np.argmin(deltas)), deltas.shape)
        if deltas[other, to] >= 0.0:
            break
        layout.move(int(other), int(to))
        moved.add(int(other))
    return True


def _swap_with_best(layout: Layout, row: int, at: int, target: int) -> bool:
    """Swap `row` with the executor of `target` that makes the pair cheapest by network and CPU, if any does."""
    problem = layout.problem
    others = np.flatnonzero(layout.place == target)
    if not len(others):
        return False
    start, end = problem.traffic.indptr[row], problem.traffic.indptr[row + 1]
    between = np.zeros(len(layout.place))
    between[problem.traffic.indices[start:end]] = problem.traffic.data[start:end]
    network = (
        layout.network[others, at]
        - layout.network[others, target]
        + 2 * between[others] * problem.distance_ms[at, target]
    )
    network += layout.network[row, target] - layout.network[row, at]
    given = problem.demand[row] - problem.demand[others]
    excess_at, excess_target = layout.load[at] - problem.usable[at], layout.load[target] - problem.usable[target]
    overload = np.maximum(excess_at - given, 0.0) + np.maximum(excess_target + given, 0.0)
    overload -= max(excess_at, 0.0) + max(excess_target, 0.0)
    gain = -(network + overload * problem.overload_price)
    best = int(np.argmax(gain))
    if gain[best] <= smallest_gain(0.0):
        return False
    return layout.attempt(partial(_swap, layout, row, int(others[best]), at, target))


def _swap(layout: Layout, a: int, b: int, column_of_a: int, column_of_b: int) -> bool:
    layout.move(a, NOWHERE)
    return layout.move_all([b], column_of_a) and layout.move_all([a], column_of_b)


def swap_supervisors(layout: Layout) -> bool:
    """Exchange everything movable on two supervisors where that shortens the ways between them and the others."""
    problem = layout.problem
    swapped = False
    between = _traffic_between_supervisors(layout)
    for a in range(len(problem.supervisors)):
        for b in range(a + 1, len(problem.supervisors)):
            if not layout.executors_on[a] and not layout.executors_on[b]:
                continue
            delta = _delta_of_exchange(layout, between, a, b) - _restarts_saved_at_most(layout, a, b)
            if delta < 0.0 and layout.attempt(partial(_exchange, layout, a, b)):
                swapped = True
                between = _traffic_between_supervisors(layout)
    return swapped


def _traffic_between_supervisors(layout: Layout) -> Floats:
    size, columns = len(layout.place), len(layout.load)
    where = sparse.csr_array((np.ones(size), (np.arange(size), layout.place)), shape=(size, columns))
    return np.asarray((where.T @ layout.problem.traffic @ where).todense(), dtype=np.float64)


def _delta_of_exchange(layout: Layout, between: Floats, a: int, b: int) -> float:
    """Change of network and overload; restarts left out."""
    problem = layout.problem
    others = np.ones(len(layout.load), dtype=np.bool_)
    others[[a, b]] = False
    farther = problem.distance_ms[b, others] - problem.distance_ms[a, others]
    network = float((between[a, others] - between[b, others]) @ farther)
    moved = layout.load - problem.fixed_load
    excess = layout.load - problem.usable
    change = float(moved[b] - moved[a])
    overload = max(excess[a] + change, 0.0) + max(excess[b] - change, 0.0) - max(excess[a], 0.0) - max(excess[b], 0.0)
    return network + float(overload) * problem.overload_price


def _restarts_saved_at_most(layout: Layout, a: int, b: int) -> float:
    """Only workers that could be those in force on the other supervisor have a restart to save."""
    size, count, price = layout.problem.settled_size, layout.count, layout.price_in
    to_a = (size[:, a] > 0) & (size[:, a] == count[:, b])
    to_b = (size[:, b] > 0) & (size[:, b] == count[:, a])
    return float(price[to_a, b].sum() + price[to_b, a].sum())


def _exchange(layout: Layout, a: int, b: int) -> bool:
    on_a, on_b = (np.flatnonzero(layout.place == column).tolist() for column in (a, b))
    for row in on_a:
        layout.move(row, NOWHERE)
    return layout.move_all(on_b, a) and layout.move_all(on_a, b)
