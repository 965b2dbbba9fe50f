"""Take everything off lightly loaded supervisors, where that costs less than the supervisors do.

No single move can empty a supervisor, since each alone costs more than it saves: all are tried as one, and undone when
their sum does not pay.
"""

from __future__ import annotations

import numpy as np

from storm_operator.core.arrays import NOWHERE, Flags
from storm_operator.core.placement.search.compiled import compiled, leaf, spliced
from storm_operator.core.placement.search.partition_state import Partition, Search, fits, members_of, move
from storm_operator.core.placement.search.step_prices import cost_of_adding, cost_of_removing, wake
from storm_operator.core.placement.search.survey import forget, network_at, survey

MOST_FAILURES = 40


@compiled
def empty_supervisors(search: Search, state: Partition, awake: Flags) -> int:
    """Try the least loaded supervisors in turn, until too many in a row could not be emptied; how many could.

    Marks those as `awake` for whom something changed.
    """
    emptied, failures = 0, 0
    for column in np.argsort(state.load, kind="mergesort"):
        if state.size[column] == 0 or search.machines.in_use[column]:
            continue
        if _empty(search, state, column, awake):
            emptied += 1
            failures = 0
        else:
            failures += 1
            if failures == MOST_FAILURES:
                break
    return emptied


@spliced
def _empty(search: Search, state: Partition, column: int, awake: Flags) -> bool:
    members = members_of(state, column)
    delta = 0.0
    for at in np.argsort(-search.graph.demand[members], kind="mergesort"):
        to, change = _elsewhere_in_use(search, state, members[at])
        delta += change
        if to == NOWHERE:
            break
        move(search, state, members[at], to)
    if delta < -search.tariff.smallest_gain:
        for vertex in members:
            wake(search, awake, vertex)
        return True
    for vertex in members:
        if state.place[vertex] != column:
            move(search, state, vertex, column)
    return False


@leaf
def _elsewhere_in_use(search: Search, state: Partition, vertex: int) -> tuple[int, float]:
    """Where in use anyway, with room, `vertex` costs least, and what it costs more there; (NOWHERE, inf) if nowhere."""
    machines, at = search.machines, state.place[vertex]
    found = survey(search, state, vertex)
    leaving = cost_of_removing(search, state, vertex) - network_at(search, at)
    best, best_delta = NOWHERE, np.inf
    for column in range(len(state.load)):
        if column == at or (state.size[column] == 0 and not machines.in_use[column]):
            continue
        if not fits(search, state, vertex, column):
            continue
        delta = leaving + network_at(search, column)
        if delta < best_delta or search.tariff.has_restarts:
            delta += cost_of_adding(search, state, vertex, column)
            if delta < best_delta:
                best, best_delta = column, delta
    forget(search, found)
    return best, best_delta
