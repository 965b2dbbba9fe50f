"""Put workers back as they are in force, where what that saves of restarts is more than their moves had saved.

The first move out of a worker pays for its restart and the others follow for nothing; so no single move back saves
anything, only all of them together: those who left come home, those who came leave, others make way and settle.
"""

from __future__ import annotations

import numpy as np

from storm_operator.core.arrays import NOWHERE, Flags, Ints
from storm_operator.core.placement.search.compiled import compiled, inner, leaf, spliced
from storm_operator.core.placement.search.partition_state import (
    Partition,
    Search,
    is_too_full,
    members_of,
    put_back,
    worker_at,
)
from storm_operator.core.placement.search.refinement import refine
from storm_operator.core.placement.search.step_prices import cheapest, moved, wake

MOST_FAILURES = 40
MOST_EDGES_SETTLED = 6000
"""With more neighbours in all each attempt is judged as it is, and the rest settles at the end: it takes too long."""


@compiled
def restore_workers(search: Search, state: Partition) -> int:
    """Try the workers in force that are changed, those least changed first, until too many in a row are not worth it.

    How many were put back.
    """
    homes = search.homes
    width = homes.worker_group.shape[1]
    residents = np.argsort(homes.home, kind="mergesort")
    first = np.searchsorted(homes.home[residents], np.arange(len(state.load) + 1))
    changes = np.zeros(len(state.load) * width, dtype=np.int64)
    for at in range(len(changes)):
        changes[at] = _changes(search, state, at // width, homes.worker_group[at // width, at % width])
    best, awake = state.place.copy(), np.zeros(len(state.place), dtype=np.bool_)
    restored, failures = 0, 0
    for at in np.argsort(changes, kind="mergesort"):
        column, group = at // width, homes.worker_group[at // width, at % width]
        if _changes(search, state, column, group) == 0:
            continue
        delta = _restore(search, state, awake, column, group, residents[first[column] : first[column + 1]])
        if len(search.graph.neighbours) <= MOST_EDGES_SETTLED:
            delta += refine(search, state, awake)
        if delta < -search.tariff.smallest_gain:
            best[:] = state.place
            restored += 1
            failures = 0
            continue
        put_back(search, state, best)
        failures += 1
        if failures == MOST_FAILURES:
            break
    if restored:
        refine(search, state, awake)
    return restored


@leaf
def _changes(search: Search, state: Partition, column: int, group: int) -> int:
    """How many vertices have left the worker in force or joined it."""
    homes = search.homes
    if group == NOWHERE:
        return 0
    size = 0
    for at in range(homes.worker_group.shape[1]):
        if homes.worker_group[column, at] == group:
            size = homes.worker_size[column, at]
    at = worker_at(state, column, group)
    if at == NOWHERE:
        return size
    return state.worker_size[column, at] + size - 2 * state.worker_settled[column, at]


@spliced
def _restore(search: Search, state: Partition, awake: Flags, column: int, group: int, residents: Ints) -> float:
    homes, graph = search.homes, search.graph
    delta = 0.0
    for vertex in members_of(state, column):
        if graph.group[vertex] == group and not (homes.settled[vertex] and homes.home[vertex] == column):
            delta += _send_away(search, state, awake, vertex, column)
    for vertex in residents:
        if graph.group[vertex] == group and homes.settled[vertex] and state.place[vertex] != column:
            wake(search, awake, vertex)
            delta += moved(search, state, vertex, column)
    for vertex in members_of(state, column):
        if not is_too_full(search, state, column):
            break
        if graph.group[vertex] != group:
            delta += _send_away(search, state, awake, vertex, column)
    return delta


@inner
def _send_away(search: Search, state: Partition, awake: Flags, vertex: int, column: int) -> float:
    target, _ = cheapest(search, state, vertex, column)
    if target == NOWHERE:
        return 0.0
    wake(search, awake, vertex)
    change = moved(search, state, vertex, target)
    other = state.first[target]
    while other != NOWHERE and is_too_full(search, state, target):
        awake[other] = True
        other = state.after[other]
    return change
