"""A first partition: supervisors are filled one after the other, each with what pulls most to what it has already.

Greedy graph growing (Karypis and Kumar, SIAM J. Sci. Comput. 20(1), 1998) onto supervisors of given room and ports.
"""

from __future__ import annotations

import numpy as np

from storm_operator.core.arrays import NOWHERE, Floats, Ints
from storm_operator.core.placement.search.compiled import compiled, inner, leaf
from storm_operator.core.placement.search.partition_state import Partition, Search, fits, put, worker_at
from storm_operator.core.placement.search.step_prices import cost_of_adding

SEEDS_LOOKED_AT = 64


@compiled
def grow(search: Search, state: Partition, columns: Ints, seeds: Ints) -> None:
    """Place every vertex: supervisors in the order of `columns`, begun with the next of `seeds`.

    What fits nowhere goes to where it costs least, network left out.
    """
    pull = np.zeros(len(seeds))
    border = np.zeros(0, dtype=np.int64)
    next_seed = 0
    for column in columns:
        border = _fill(search, state, column, seeds[next_seed:], border, pull)
        while next_seed < len(seeds) and state.place[seeds[next_seed]] != NOWHERE:
            next_seed += 1
    for vertex in seeds:
        if state.place[vertex] == NOWHERE:
            put(search, state, vertex, _cheapest(search, state, vertex))


@inner
def _fill(search: Search, state: Partition, column: int, seeds: Ints, border: Ints, pull: Floats) -> Ints:
    """Fill `column` with what fits; its border: who of the others exchanges tuples with it."""
    graph = search.graph
    reached = np.zeros(len(pull), dtype=np.int64)
    count = 0
    while True:
        chosen = _strongest(search, state, pull, reached[:count], column)
        if chosen == NOWHERE:
            chosen = _largest(search, state, border, column)
        if chosen == NOWHERE:
            chosen = _next_seed(search, state, seeds, column)
        if chosen == NOWHERE:
            break
        put(search, state, chosen, column)
        for edge in range(graph.starts[chosen], graph.starts[chosen + 1]):
            other = graph.neighbours[edge]
            if state.place[other] == NOWHERE:
                if pull[other] == 0.0:
                    reached[count] = other
                    count += 1
                pull[other] += graph.rates[edge]
    for at in range(count):
        pull[reached[at]] = 0.0
    return reached[:count].copy()


@leaf
def _fits(search: Search, state: Partition, vertex: int, column: int) -> bool:
    if state.place[vertex] != NOWHERE or not fits(search, state, vertex, column):
        return False
    if state.workers[column] < search.machines.ports[column]:
        return True
    return worker_at(state, column, search.graph.group[vertex]) != NOWHERE


@leaf
def _strongest(search: Search, state: Partition, pull: Floats, reached: Ints, column: int) -> int:
    """Who of those reached, and fits, exchanges most with what is there."""
    chosen = NOWHERE
    for vertex in reached:
        if (
            chosen == NOWHERE or pull[vertex] > pull[chosen] or (pull[vertex] == pull[chosen] and vertex < chosen)
        ) and _fits(search, state, vertex, column):
            chosen = vertex
    return chosen


@leaf
def _largest(search: Search, state: Partition, border: Ints, column: int) -> int:
    """Who of the neighbours of the supervisor filled before fits and needs most."""
    demand, chosen = search.graph.demand, NOWHERE
    for vertex in border:
        if (chosen == NOWHERE or demand[vertex] > demand[chosen]) and _fits(search, state, vertex, column):
            chosen = vertex
    return chosen


@leaf
def _next_seed(search: Search, state: Partition, seeds: Ints, column: int) -> int:
    looked_at = 0
    for vertex in seeds:
        if state.place[vertex] == NOWHERE:
            if _fits(search, state, vertex, column):
                return vertex
            looked_at += 1
            if looked_at == SEEDS_LOOKED_AT:
                break
    return NOWHERE


@leaf
def _cheapest(search: Search, state: Partition, vertex: int) -> int:
    best, best_cost = 0, np.inf
    for column in range(len(search.machines.room)):
        cost = cost_of_adding(search, state, vertex, column)
        if cost < best_cost:
            best, best_cost = column, cost
    return best
