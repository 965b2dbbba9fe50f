"""A multilevel partition of the executors onto supervisors, as a fresh start for the local search.

Coarsening by heavy-edge matching, greedy growth onto supervisors within their CPU, and refinement at each level on
the way back (the scheme of Karypis and Kumar, SIAM J. Sci. Comput. 20(1), 1998). Deterministic: rows break ties.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from storm_operator.core.placement.problem import NOWHERE, Floats, Ints, Problem

CLUSTERS_PER_SUPERVISOR = 4
LARGEST_CLUSTER = 0.25
"""No cluster may need more than this share of the largest supervisor: bigger ones pack badly."""
REFINEMENT_PASSES = 4


@dataclass(frozen=True, slots=True)
class Level:
    """One graph of the hierarchy; `parent_of` maps its vertices to those of the next coarser one."""

    traffic: sparse.csr_array[np.float64]
    demand: Floats
    parent_of: Ints


def partition(problem: Problem) -> Ints:
    """A supervisor for each executor, regardless of where it lives now and of slots."""
    if not len(problem.executors):
        return np.zeros(0, dtype=np.int64)
    levels, traffic, demand = _coarsen(problem)
    place = _grow(problem, traffic, demand)
    _refine(problem, traffic, demand, place)
    for level in reversed(levels):
        place = place[level.parent_of]
        _refine(problem, level.traffic, level.demand, place)
    return place


def _coarsen(problem: Problem) -> tuple[list[Level], sparse.csr_array[np.float64], Floats]:
    traffic, demand = problem.traffic, problem.demand
    enough = max(8, CLUSTERS_PER_SUPERVISOR * len(problem.supervisors))
    room = problem.usable - problem.fixed_load
    limit = LARGEST_CLUSTER * float(room.max(initial=0.0))
    levels: list[Level] = []
    while len(demand) > enough:
        parent_of = _match(traffic, demand, limit)
        size = int(parent_of.max()) + 1
        if size > 0.9 * len(demand):
            break
        levels.append(Level(traffic, demand, parent_of))
        merge = sparse.csr_array((np.ones(len(demand)), (parent_of, np.arange(len(demand)))), shape=(size, len(demand)))
        traffic = sparse.csr_array(merge @ traffic @ merge.T)
        traffic.setdiag(0.0)
        traffic.eliminate_zeros()
        demand = np.asarray(merge @ demand, dtype=np.float64)
    return levels, traffic, demand


def _match(traffic: sparse.csr_array[np.float64], demand: Floats, limit: float) -> Ints:
    """Pair each vertex with the unpaired neighbour that it exchanges most with, lightest vertices first."""
    parent_of = np.full(len(demand), NOWHERE, dtype=np.int64)
    weight: Floats = np.asarray(traffic.sum(axis=1), dtype=np.float64).ravel()
    next_parent = 0
    for vertex in np.lexsort((np.arange(len(demand)), weight)).tolist():
        if parent_of[vertex] != NOWHERE:
            continue
        neighbours, rates = _row(traffic, vertex)
        free = (parent_of[neighbours] == NOWHERE) & (neighbours != vertex)
        free &= demand[neighbours] + demand[vertex] <= limit
        if free.any():
            mate = int(neighbours[free][np.argmax(rates[free])])
            parent_of[mate] = next_parent
        parent_of[vertex] = next_parent
        next_parent += 1
    return parent_of


def _grow(problem: Problem, traffic: sparse.csr_array[np.float64], demand: Floats) -> Ints:
    """Fill one supervisor after the other with what is most connected to it, the next one being near those in use."""
    place = np.full(len(demand), NOWHERE, dtype=np.int64)
    room = problem.usable - problem.fixed_load
    pull = np.zeros(len(demand))
    for column in _filling_order(problem, room):
        pull[:] = 0.0
        while True:
            fits = (place == NOWHERE) & (demand <= room[column])
            if not fits.any():
                break
            candidates = np.flatnonzero(fits)
            chosen = int(candidates[np.lexsort((candidates, -demand[candidates], -pull[candidates]))[0]])
            place[chosen] = column
            room[column] -= demand[chosen]
            neighbours, rates = _row(traffic, chosen)
            pull[neighbours] += rates
    for vertex in np.flatnonzero(place == NOWHERE).tolist():
        column = int(np.argmax(room))
        place[vertex] = column
        room[column] -= demand[vertex]
    return place


def _filling_order(problem: Problem, room: Floats) -> list[int]:
    """Roomiest first among those in use anyway; each next one is the closest to those before it, for its room."""
    left = [at for at in range(len(room)) if problem.free_ports[at]]
    if not left:
        return []
    order = [min(left, key=lambda at: (not problem.fixed_in_use[at], -room[at], at))]
    while len(order) < len(left):
        rest = [at for at in left if at not in order]
        order.append(
            min(
                rest,
                key=lambda at: (
                    float(problem.distance_ms[at, order].mean()),
                    not problem.fixed_in_use[at],
                    -room[at],
                    at,
                ),
            )
        )
    return order


def _refine(problem: Problem, traffic: sparse.csr_array[np.float64], demand: Floats, place: Ints) -> None:
    """Move vertices of this level to cheaper supervisors (network, overload, use), a few passes, in place."""
    distance = problem.distance_ms.copy()
    np.fill_diagonal(distance, 0.0)
    load = problem.fixed_load + np.bincount(place, weights=demand, minlength=len(problem.usable))
    count = np.bincount(place, minlength=len(problem.usable))
    closed = np.array([np.inf if not ports else 0.0 for ports in problem.free_ports])
    for _ in range(REFINEMENT_PASSES):
        moved = False
        for vertex in range(len(demand)):
            at = int(place[vertex])
            neighbours, rates = _row(traffic, vertex)
            load[at] -= demand[vertex]
            count[at] -= 1
            excess = load - problem.usable
            overload = np.maximum(excess + demand[vertex], 0.0) - np.maximum(excess, 0.0)
            unused = (count == 0) & ~problem.fixed_in_use
            cost = rates @ distance[place[neighbours]] + overload * problem.overload_price
            cost = cost + unused * problem.supervisor_price + closed
            best = int(np.argmin(cost))
            if cost[best] >= cost[at] - 1e-9 * (1.0 + abs(float(cost[at]))):
                best = at
            moved |= best != at
            place[vertex] = best
            load[best] += demand[vertex]
            count[best] += 1
        if not moved:
            return


def _row(traffic: sparse.csr_array[np.float64], vertex: int) -> tuple[Ints, Floats]:
    start, end = int(traffic.indptr[vertex]), int(traffic.indptr[vertex + 1])
    return (
        np.asarray(traffic.indices[start:end], dtype=np.int64),
        np.asarray(traffic.data[start:end], dtype=np.float64),
    )
