"""Put the parts of a fresh partition where most of their executors live already, so that few workers restart."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from storm_operator.core.arrays import NOWHERE, Ints
from storm_operator.core.placement.search.problem import Problem


def relabel(problem: Problem, place: Ints) -> Ints:
    """`place` with its parts permuted over the supervisors: the greatest overlaps with the homes first, if they fit.

    Overlap is counted in restart prices, so that busy and stateful executors weigh most. A part that does not fit a
    supervisor's CPU and memory, or finds no port there, is not put on it unless the partition did; nor is it put back
    on one that answers less than most.
    """
    columns = len(problem.supervisors)
    demand = np.bincount(place, weights=problem.demand, minlength=columns)
    memory = np.bincount(place, weights=problem.memory, minlength=columns)
    workers = _workers_of(place, problem.group_of, columns)
    room = problem.usable - problem.fixed_load
    memory_room = problem.usable_memory - problem.fixed_memory
    ports = np.array([len(free) for free in problem.free_ports])
    is_risky = problem.is_risky
    label = np.full(columns, NOWHERE, dtype=np.int64)
    taken = np.zeros(columns, dtype=np.bool_)
    for part, home in _by_overlap(problem, place, columns):
        fits = demand[part] <= room[home] + 1e-9 and memory[part] <= memory_room[home] + 1e-9
        fits = fits and workers[part] <= ports[home] and not is_risky[home]
        if label[part] == NOWHERE and not taken[home] and (fits or part == home):
            label[part] = home
            taken[home] = True
    homeless = [part for part in np.unique(place).tolist() if label[part] == NOWHERE]
    for part in sorted(homeless, key=lambda part: (-demand[part], part)):
        # Its own supervisor fits; else the tightest free one that does, else the roomiest.
        free = np.flatnonzero(~taken)
        enough = (demand[part] <= room[free] + 1e-9) & (memory[part] <= memory_room[free] + 1e-9)
        fit = free[enough & (workers[part] <= ports[free])]
        home = part if not taken[part] else (fit[np.argmin(room[fit])] if len(fit) else free[np.argmax(room[free])])
        label[part] = home
        taken[home] = True
    return label[place]


def _by_overlap(problem: Problem, place: Ints, columns: int) -> list[tuple[int, int]]:
    known = np.flatnonzero(problem.home != NOWHERE)
    weights = problem.restart_price[known] + 1e-9
    overlap = sparse.coo_array((weights, (place[known], problem.home[known])), shape=(columns, columns)).tocsr().tocoo()
    order = np.lexsort((overlap.col, overlap.row, overlap.row != overlap.col, -overlap.data))
    return list(zip(overlap.row[order].tolist(), overlap.col[order].tolist(), strict=True))


def _workers_of(place: Ints, group_of: Ints, columns: int) -> Ints:
    pairs = np.unique(np.stack((place, group_of)), axis=1)
    return np.bincount(pairs[0], minlength=columns)
