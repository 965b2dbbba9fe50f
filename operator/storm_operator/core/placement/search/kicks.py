"""Iterated local search (Lourenco, Martin, Stuetzle, 2003): disturb, settle again, keep what is cheaper.

Steps of one executor cannot pass through what costs more, however much is gained behind it. Each kick does at once what
takes several such steps: executors that talk are scattered, two supervisors or two workers change places, a supervisor
is closed, a worker that restarts is put back as it was.
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
    put,
    put_back,
    take,
)
from storm_operator.core.placement.search.refinement import refine
from storm_operator.core.placement.search.step_prices import cheapest, cost_of_removing, moved, overload_cost, wake
from storm_operator.core.placement.search.survey import forget, network_at, survey

KINDS = 6
MOST_KICKS = 4
MOST_SCATTERED = 4
MOST_REBUILT = 3
CLOSED_MILLICORES = 1e9
"""How much a closed supervisor counts as overloaded: anything put there is overload, too."""


@compiled
def kick_and_settle(search: Search, state: Partition, patience: int, rng: np.random.Generator) -> None:
    """Kick until `patience` kicks in a row were in vain, or MOST_KICKS times it; those in vain are undone."""
    best = state.place.copy()
    awake = np.zeros(len(best), dtype=np.bool_)
    in_vain = 0
    for _ in range(MOST_KICKS * patience):
        delta = _kick(search, state, awake, rng)
        if delta == np.inf:
            awake[:] = False
        else:
            delta += refine(search, state, awake)
        in_vain += 1
        if delta < -search.tariff.smallest_gain:
            best[:] = state.place
            in_vain = 0
        else:
            put_back(search, state, best)
        if in_vain == patience:
            break


@spliced
def _kick(search: Search, state: Partition, awake: Flags, rng: np.random.Generator) -> float:
    """What the kick costs; infinite when some of those taken off found no worker anywhere, and are nowhere."""
    kind = _one_of(rng, KINDS)
    column, other = _used_column(state, rng), _one_of(rng, len(state.load))
    if kind == 0:
        return _scatter(search, state, awake, rng)
    if kind == 1 or column == other:
        return _rebuild(search, state, awake, rng, column)
    if kind == 2:
        return _without(search, state, awake, rng, column)
    if kind == 3:
        return _exchange_contents(search, state, awake, column, other)
    if kind == 4:
        return _exchange_workers(search, state, awake, rng, column, other)
    return _restore(search, state, awake, rng, column)


@inner
def _one_of(rng: np.random.Generator, count: int) -> int:
    """A number from 0 to `count` - 1."""
    return int(rng.integers(0, count))


@inner
def _used_column(state: Partition, rng: np.random.Generator) -> int:
    """The supervisor of a random vertex."""
    return state.place[_one_of(rng, len(state.place))]


@leaf
def _send(search: Search, state: Partition, awake: Flags, vertex: int, column: int) -> float:
    """Move `vertex`, whatever it costs; what it does."""
    wake(search, awake, vertex)
    change = moved(search, state, vertex, column)
    if is_too_full(search, state, column):
        _wake_crowd(state, awake, column)
    return change


@leaf
def _wake_crowd(state: Partition, awake: Flags, column: int) -> None:
    """Where CPU is short, anyone may have to leave, not only who came last."""
    vertex = state.first[column]
    while vertex != NOWHERE:
        awake[vertex] = True
        vertex = state.after[vertex]


@spliced
def _scatter(search: Search, state: Partition, awake: Flags, rng: np.random.Generator) -> float:
    """A few vertices that talk to one another go somewhere, each to where one of the others was or to anywhere."""
    graph = search.graph
    vertex = _one_of(rng, len(state.place))
    delta = 0.0
    for _ in range(rng.integers(2, MOST_SCATTERED + 1)):
        target = _used_column(state, rng) if rng.random() < 0.5 else _one_of(rng, len(state.load))
        delta += _send(search, state, awake, vertex, target)
        degree = graph.starts[vertex + 1] - graph.starts[vertex]
        if degree:
            vertex = graph.neighbours[graph.starts[vertex] + _one_of(rng, degree)]
        else:
            vertex = _one_of(rng, len(state.place))
    return delta


@inner
def _rebuild(search: Search, state: Partition, awake: Flags, rng: np.random.Generator, column: int) -> float:
    """Everything on `column` and one or two others is taken off and put back one by one, roughly the largest first."""
    members = members_of(state, column)
    delta = _take_off(search, state, members)
    for _ in range(rng.integers(1, MOST_REBUILT)):
        other = _one_of(rng, len(state.load))
        more = members_of(state, other)
        delta += _take_off(search, state, more)
        members = np.concatenate((members, more))
    hurry = search.graph.demand[members] * (0.5 + rng.random(len(members)))
    return delta + _place_again(search, state, awake, members[np.argsort(-hurry)], NOWHERE)


@inner
def _take_off(search: Search, state: Partition, members: Ints) -> float:
    delta = 0.0
    for vertex in members:
        found = survey(search, state, vertex)
        delta += cost_of_removing(search, state, vertex) - network_at(search, state.place[vertex])
        forget(search, found)
        take(search, state, vertex)
    return delta


@inner
def _place_again(search: Search, state: Partition, awake: Flags, members: Ints, but: int) -> float:
    """Each in turn to where it costs least, though not on `but`; infinite when there is no such place for one."""
    delta = 0.0
    for vertex in members:
        target, cost = cheapest(search, state, vertex, but)
        if target == NOWHERE:
            return np.inf
        put(search, state, vertex, target)
        wake(search, awake, vertex)
        delta += cost
    return delta


@spliced
def _without(search: Search, state: Partition, awake: Flags, rng: np.random.Generator, column: int) -> float:
    """Rebuild, and settle, as if `column` could take nothing; where no other has a port, it takes some all the same."""
    room = search.machines.room[column]
    members = members_of(state, column)
    delta = _take_off(search, state, members) - overload_cost(search, state, column)
    search.machines.room[column] = -CLOSED_MILLICORES
    delta += _place_again(search, state, awake, members, column)
    other = _one_of(rng, len(state.load))
    if delta != np.inf and other != column:
        delta += _rebuild(search, state, awake, rng, other)
    if delta != np.inf:
        delta += refine(search, state, awake)
    search.machines.room[column] = room
    for vertex in members_of(state, column):
        counted = 1.0 + search.tariff.rank_steps[: search.graph.rank[vertex]].sum()
        # All that it needs counted as overload, whatever room there is.
        delta -= counted * search.graph.demand[vertex] * search.tariff.overloaded_millicore
    return delta + overload_cost(search, state, column)


@spliced
def _exchange_contents(search: Search, state: Partition, awake: Flags, column: int, other: int) -> float:
    here, there = members_of(state, column), members_of(state, other)
    delta = 0.0
    for vertex in here:
        delta += _send(search, state, awake, vertex, other)
    for vertex in there:
        delta += _send(search, state, awake, vertex, column)
    return delta


@spliced
def _exchange_workers(
    search: Search, state: Partition, awake: Flags, rng: np.random.Generator, column: int, other: int
) -> float:
    """A worker of each change places; where `other` runs none, the worker of `column` just goes there."""
    here, there = members_of(state, column), members_of(state, other)
    group = search.graph.group[here[_one_of(rng, len(here))]]
    delta = 0.0
    if len(there) and rng.random() < 0.7:
        back = search.graph.group[there[_one_of(rng, len(there))]]
        for vertex in there:
            if search.graph.group[vertex] == back:
                delta += _send(search, state, awake, vertex, column)
    for vertex in here:
        if search.graph.group[vertex] == group:
            delta += _send(search, state, awake, vertex, other)
    return delta


@spliced
def _restore(search: Search, state: Partition, awake: Flags, rng: np.random.Generator, column: int) -> float:
    """One of the workers in force on `column` as it is in force: all its vertices there, no others of its group."""
    homes = search.homes
    at = _one_of(rng, homes.worker_group.shape[1])
    group = homes.worker_group[column, at]
    if group == NOWHERE:
        return 0.0
    delta = 0.0
    for vertex in range(len(state.place)):
        if search.graph.group[vertex] != group:
            continue
        belongs = homes.settled[vertex] and homes.home[vertex] == column
        if belongs:
            delta += _send(search, state, awake, vertex, column)
        elif state.place[vertex] == column:
            target = _used_column(state, rng)
            if target == column:
                target, _ = cheapest(search, state, vertex, column)
            if target != NOWHERE:
                delta += _send(search, state, awake, vertex, target)
    return delta
