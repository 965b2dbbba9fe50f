"""Local search on a partition of any size: single moves, and exchanges of two where room is short.

Only vertices that something changed for are looked at again, so that a pass over a settled partition costs next to
nothing (the boundary idea of Fiduccia and Mattheyses, DAC'82, with gains taken greedily).
"""

from __future__ import annotations

import numpy as np

from storm_operator.core.arrays import NOWHERE, Flags, Floats, Ints
from storm_operator.core.placement.search.compiled import compiled, leaf, spliced
from storm_operator.core.placement.search.partition_state import Partition, Search, is_too_full, members_of, move
from storm_operator.core.placement.search.restart_prices import least_restart, restarts_due
from storm_operator.core.placement.search.step_prices import (
    change_of_outranking,
    cost_of_adding,
    cost_of_removing,
    cost_of_replacing,
    wake,
)
from storm_operator.core.placement.search.survey import (
    forget,
    look_around,
    look_everywhere,
    network_anywhere,
    network_at,
    survey,
)

MOST_ROUNDS = 4
MOST_PASSES = 8
RELIEF_TRIED = 64
"""From an overloaded supervisor exchanges with all others are tried, unless there are more."""


@compiled
def refine(search: Search, state: Partition, awake: Flags) -> float:
    """Lower the cost until no move and no exchange of those `awake` does; by how much (<= 0). All sleep then."""
    to_exchange = awake.copy()
    delta = 0.0
    for _ in range(MOST_ROUNDS):
        change = _move_all(search, state, awake, to_exchange)
        change += _exchange_all(search, state, awake, to_exchange)
        if change == 0.0:
            break
        delta += change
    awake[:] = False
    return delta


@leaf
def _move_all(search: Search, state: Partition, to_move: Flags, to_exchange: Flags) -> float:
    delta = 0.0
    for _ in range(MOST_PASSES):
        before = delta
        for vertex in range(len(state.place)):
            if to_move[vertex]:
                to_move[vertex] = False
                column, change = best_move(search, state, vertex)
                if column != NOWHERE:
                    move(search, state, vertex, column)
                    wake(search, to_move, vertex)
                    wake(search, to_exchange, vertex)
                    delta += change
        if delta == before:
            break
    return delta


@spliced
def _exchange_all(search: Search, state: Partition, to_move: Flags, to_exchange: Flags) -> float:
    delta = 0.0
    bonds_with = np.zeros(len(state.place))
    for column in range(len(state.load)):
        counted = np.zeros(0, dtype=np.int64)
        search.pull.as_of[0] += 1
        for vertex in members_of(state, column):
            if not to_exchange[vertex] or state.place[vertex] != column:
                continue
            to_exchange[vertex] = False
            if not len(counted):
                counted = members_of(state, column)
                _count_bonds(search, counted, bonds_with, 1.0)
            if to_move[vertex]:  # something has changed for it since it was looked at
                best_move(search, state, vertex)
            partner, change = _exchange(search, state, vertex, bonds_with)
            if partner != NOWHERE:
                _count_bonds(search, counted, bonds_with, 0.0)
                counted = counted[:0]
                search.pull.as_of[0] += 1
                for one in (vertex, partner):
                    wake(search, to_move, one)
                    wake(search, to_exchange, one)
                delta += change
        _count_bonds(search, counted, bonds_with, 0.0)
    return delta


@leaf
def _count_bonds(search: Search, members: Ints, bonds_with: Floats, factor: float) -> None:
    """Add the bonds that each vertex has with `members` to `bonds_with`, or (factor 0) set those of theirs to 0."""
    graph = search.graph
    for vertex in members:
        for edge in range(graph.starts[vertex], graph.starts[vertex + 1]):
            other = graph.neighbours[edge]
            bonds_with[other] = (bonds_with[other] + graph.bonds[edge]) * factor


@leaf
def best_move(search: Search, state: Partition, vertex: int) -> tuple[int, float]:
    """Where `vertex` costs least, and the change of the total, if it falls; else NOWHERE. Notes its wishes, too.

    Looks at the supervisors that it exchanges tuples with and its home; at all of them when it must leave an
    overload or a supervisor that answers too little.
    """
    at, home, pull = state.place[vertex], search.homes.home[vertex], search.pull
    found = survey(search, state, vertex)
    here = network_at(search, at)
    pull.wished[vertex], pull.wished_saves[vertex] = NOWHERE, 0.0
    look_around(search)
    for candidate in range(found):
        column = pull.touched[candidate]
        if column != at:
            _wish(search, vertex, column, network_anywhere(search, column) - here)
    gain = cost_of_removing(search, state, vertex) - here
    best, best_delta = NOWHERE, -search.tariff.smallest_gain
    everywhere = is_too_full(search, state, at) or state.workers[at] > search.machines.ports[at]
    everywhere = everywhere or search.machines.is_risky[at]
    if everywhere:
        look_everywhere(search)
    candidates = len(state.load) if everywhere else found + 1
    for candidate in range(candidates):
        if everywhere:
            column = candidate
        elif candidate < found:
            column = pull.touched[candidate]
        else:
            column = home
        if column in (at, NOWHERE):
            continue
        is_known = everywhere or candidate < found
        delta = gain + (network_anywhere(search, column) if is_known else network_at(search, column))
        if delta >= best_delta and column != home:
            continue  # adding costs something, or nothing
        delta += cost_of_adding(search, state, vertex, column)
        if delta < best_delta:
            best, best_delta = column, delta
    forget(search, found)
    return best, best_delta


@leaf
def _exchange(search: Search, state: Partition, vertex: int, bonds_with: Floats) -> tuple[int, float]:
    """Exchange `vertex`, whose wishes are known, with another where both together gain.

    Whom with, or NOWHERE, and the change of the total.
    """
    if is_too_full(search, state, state.place[vertex]) and len(state.load) <= RELIEF_TRIED:
        return _exchange_with_anybody(search, state, vertex, bonds_with)
    pull = search.pull
    for choice in range(pull.wished.shape[1]):
        column, saved = pull.wished[vertex, choice], pull.wished_saves[vertex, choice]
        if column != NOWHERE and _may_pay(search, state, vertex, column, saved):
            partner, change = _exchange_with_best(search, state, vertex, column, saved, bonds_with)
            if partner != NOWHERE:
                return partner, change
    return NOWHERE, 0.0


@leaf
def _exchange_with_anybody(search: Search, state: Partition, vertex: int, bonds_with: Floats) -> tuple[int, float]:
    at, partner, change = state.place[vertex], NOWHERE, 0.0
    found = survey(search, state, vertex)
    look_everywhere(search)
    here = network_anywhere(search, at)
    for column in range(len(state.load)):
        if column != at and partner == NOWHERE:
            saved = network_anywhere(search, column) - here
            partner, change = _exchange_with_best(search, state, vertex, column, saved, bonds_with)
    forget(search, found)
    return partner, change


@leaf
def _wish(search: Search, vertex: int, column: int, saves: float) -> None:
    """Keep `column` among those wished for, sorted, if `vertex` saves more there than on one of them."""
    wished, saved = search.pull.wished, search.pull.wished_saves
    at = wished.shape[1] - 1
    if saves >= saved[vertex, at]:
        return
    while at > 0 and saved[vertex, at - 1] > saves:
        saved[vertex, at], wished[vertex, at] = saved[vertex, at - 1], wished[vertex, at - 1]
        at -= 1
    saved[vertex, at], wished[vertex, at] = saves, column


@leaf
def _may_pay(search: Search, state: Partition, vertex: int, column: int, saved: float) -> bool:
    """Whether to exchange `vertex` with anyone of `column` can pay: its worker restarts if that is the one in force."""
    machines, tariff, at = search.machines, search.tariff, state.place[vertex]
    if len(tariff.rank_steps) or not tariff.has_restarts:
        return True
    if state.workers[at] > machines.ports[at] or state.workers[column] > machines.ports[column]:
        return True
    overload = max(state.load[at] - machines.room[at], 0.0) + max(state.load[column] - machines.room[column], 0.0)
    # The other may gain as much; one that gained more would be tried as `vertex`.
    least = 2.0 * saved - overload * tariff.overloaded_millicore + least_restart(search, state, vertex)
    if least < -tariff.smallest_gain:
        return True
    return least - restarts_due(search, state, at) - restarts_due(search, state, column) < -tariff.smallest_gain


@leaf
def _exchange_with_best(
    search: Search, state: Partition, vertex: int, column: int, saved: float, bonds_with: Floats
) -> tuple[int, float]:
    """Exchange `vertex`, whose network changes by `saved` on `column`, with whom of there it pays best."""
    demand, room, price = search.graph.demand, search.machines.room, search.tariff.overloaded_millicore
    at, single_zone = state.place[vertex], len(search.machines.zone_ms) == 1
    best, best_network, best_delta = NOWHERE, 0.0, -search.tariff.smallest_gain
    excess_at, excess_there = state.load[at] - room[at], state.load[column] - room[column]
    overload = max(excess_at, 0.0) + max(excess_there, 0.0)
    other = state.first[column]
    while other != NOWHERE:
        given = demand[vertex] - demand[other]
        shift = (max(excess_at - given, 0.0) + max(excess_there + given, 0.0) - overload) * price
        if len(search.tariff.rank_steps):
            change = change_of_outranking(search, state, at, other, vertex)
            shift += (change + change_of_outranking(search, state, column, vertex, other)) * price
        if saved + shift < best_delta:
            network = saved + (state.inside[other] - bonds_with[other] if single_zone else min(saved, 0.0))
            if network + shift < best_delta:
                shift += cost_of_replacing(search, state, vertex, other, at)
                shift += cost_of_replacing(search, state, other, vertex, column)
            if network + shift < best_delta and not single_zone:
                network = saved + _nearer(search, state, other, at, column)
            if network + shift < best_delta:
                network += 2.0 * _apart(search, vertex, other, at, column)
            if network + shift < best_delta:
                best, best_delta, best_network = other, network + shift, network
        other = state.after[other]
    if best == NOWHERE:
        return NOWHERE, 0.0
    change = _carry_out(search, state, vertex, best, best_network)
    return (best, change) if change < 0.0 else (NOWHERE, 0.0)


@leaf
def _carry_out(search: Search, state: Partition, vertex: int, other: int, network: float) -> float:
    """Exchange the two if that pays with everything counted; the change of the total, 0 when it does not."""
    at, column = state.place[vertex], state.place[other]
    delta = network + cost_of_removing(search, state, vertex) + cost_of_adding(search, state, vertex, column)
    if delta == np.inf:
        return 0.0
    move(search, state, vertex, column)
    delta += cost_of_removing(search, state, other) + cost_of_adding(search, state, other, at)
    if delta < -search.tariff.smallest_gain:
        move(search, state, other, at)
        return delta
    move(search, state, vertex, at)
    return 0.0


@leaf
def _nearer(search: Search, state: Partition, vertex: int, column: int, than: int) -> float:
    """What the network of `vertex` costs more on `column`, the one that exchanges are looked for, than on `than`.

    The same vertices are asked for by all of `column`, so that what was found out is kept while nobody moves.
    """
    graph, pull = search.graph, search.pull
    if pull.nearer_as_of[vertex] != pull.as_of[0]:
        network = 0.0
        for edge in range(graph.starts[vertex], graph.starts[vertex + 1]):
            other = graph.neighbours[edge]
            there = state.place[other]
            if there != NOWHERE:
                strangers = graph.group[vertex] != graph.group[other]
                network += graph.rates[edge] * (
                    _way(search, column, there, strangers) - _way(search, than, there, strangers)
                )
        pull.nearer[vertex] = network
        pull.nearer_as_of[vertex] = pull.as_of[0]
    return float(pull.nearer[vertex])


@leaf
def _way(search: Search, column: int, other: int, strangers: bool) -> float:
    """Milliseconds from `column` to `other`, for vertices of the same group or of two."""
    if column != other:
        return search.machines.zone_ms[search.machines.zone[column], search.machines.zone[other]]
    return search.tariff.between_workers_ms if strangers else 0.0


@leaf
def _apart(search: Search, vertex: int, other: int, column: int, another: int) -> float:
    """What moving both ends counts too much: an exchange leaves the two as far from each other as they were."""
    graph, machines = search.graph, search.machines
    for edge in range(graph.starts[vertex], graph.starts[vertex + 1]):
        if graph.neighbours[edge] == other:
            near = 0.0 if graph.group[vertex] == graph.group[other] else search.tariff.between_workers_ms
            return graph.rates[edge] * (machines.zone_ms[machines.zone[column], machines.zone[another]] - near)
    return 0.0
