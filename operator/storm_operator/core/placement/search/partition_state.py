"""A partition under change, as arrays for machine code: who is where, and what each step would cost.

The costs are those of `objective.py`. Vertices are executors, or clusters of them while a partition is made; a vertex
belongs to one *group*, and the vertices of one group on one supervisor share a worker there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from storm_operator.core.arrays import NOWHERE, Flags, Floats, Ints
from storm_operator.core.placement.search.compiled import inner, leaf

SPARE_WORKERS = 4
"""How many workers a supervisor may hold beyond its ports while a search is on its way, each priced like a disaster. At
least as many as it has ports: who is put anywhere begins such a worker only where its group has none at all, and there
are no more groups than ports."""

WISHES = 4
"""Supervisors that a vertex tries to get onto by an exchange: those that its traffic wants most."""


class Graph(NamedTuple):
    """Who exchanges how many tuples per second with whom: neighbours of `v` are at `starts[v]:starts[v + 1]`."""

    starts: Ints
    neighbours: Ints
    rates: Floats
    bonds: Floats
    """What is saved when the two share a supervisor, in tuple-ms/s, where all supervisors are equally far apart."""
    demand: Floats
    """Millicores."""
    rank: Ints
    """Steps above the lowest priority."""
    memory: Floats
    """Declared MB."""
    share: Floats
    """Tuples per second that are lost with the vertex."""
    group: Ints


class Machines(NamedTuple):
    """What the supervisors offer. Distances are between zones: those of one zone are equally far from all others."""

    room: Floats
    """Millicores that may be filled."""
    taken: Floats
    """Millicores that others fill already."""
    taken_above: Floats
    """[n-th step, supervisor] Of those millicores what is of others above that step of priority."""
    memory: Floats
    """MB that may be filled."""
    loss_ms: Floats
    """What a tuple there costs for the time in which the supervisor does not answer."""
    is_risky: Flags
    """Whether it answers less than most: single vertices look everywhere for another place."""
    ports: Ints
    in_use: Flags
    """Used by others anyway."""
    zone: Ints
    zone_ms: Floats
    """[zone, zone], the same both ways."""


class Tariff(NamedTuple):
    """What things cost, in tuple-ms/s. Gains below `smallest_gain` are rounding: a search would run in circles."""

    overloaded_millicore: float
    overfull_megabyte: float
    supervisor: float
    between_workers_ms: float
    missing_port: float
    smallest_gain: float
    has_restarts: bool
    """Whether moves may save restarts: without, putting a vertex somewhere never saves anything but network."""
    has_memory: bool
    """Whether anybody declares memory; else nothing is added up."""
    rank_steps: Floats
    """How much more a millicore counts that those above each step of priority go short of; none if all are alike."""
    are_held: bool
    """Whether who outranks others is served before them; else all bear an overload alike."""


class Homes(NamedTuple):
    """Where everyone lives in force, and which workers need no restart if they stay as they are."""

    home: Ints
    settled: Flags
    """Whether the vertex belongs to the worker that its group could keep at its home."""
    restart_price: Floats
    worker_group: Ints
    """[supervisor, n-th worker in force]"""
    worker_size: Ints


class Partition(NamedTuple):
    """The state. `first`, `after`, `before` link the vertices of each supervisor; workers are [supervisor, n-th]."""

    place: Ints
    inside: Floats
    """The bonds of each vertex with those on its supervisor."""
    load: Floats
    above: Floats
    """[n-th step, supervisor] Of `load` what is of vertices above that step of priority."""
    memory: Floats
    size: Ints
    first: Ints
    after: Ints
    before: Ints
    worker_group: Ints
    worker_size: Ints
    worker_settled: Ints
    worker_price: Floats
    workers: Ints


class Pull(NamedTuple):
    """Scratch: how much one vertex exchanges with each supervisor; only `touched` entries are not zero."""

    tuples: Floats
    saved: Floats
    """The bonds with those there."""
    nearby: Floats
    """What the traffic with those there in other workers would cost; this and the rest only with several zones."""
    by_zone: Floats
    from_zone: Floats
    """What the traffic would cost from each zone, or from those looked at."""
    touched: Ints
    zones: Ints
    zone_count: Ints
    nearer: Floats
    """What the network of each vertex costs more on the supervisor that exchanges are looked for."""
    nearer_as_of: Ints
    """When that was found out: it holds until `as_of`, which counts, changes."""
    as_of: Ints
    wished: Ints
    """[vertex, n-th] On which supervisors its network would save most when it was looked at last, best first."""
    wished_saves: Floats
    """By how much the network costs less there (< 0)."""


class Search(NamedTuple):
    """All that stays the same while a partition changes, and the scratch for it."""

    graph: Graph
    machines: Machines
    tariff: Tariff
    homes: Homes
    pull: Pull


def empty_partition(vertices: int, machines: Machines) -> Partition:
    """Nobody is anywhere."""
    columns, most_ports = len(machines.room), int(machines.ports.max(initial=0))
    shape = (columns, most_ports + max(SPARE_WORKERS, most_ports))
    return Partition(
        place=np.full(vertices, NOWHERE, dtype=np.int64),
        inside=np.zeros(vertices),
        load=np.zeros(columns),
        above=np.zeros_like(machines.taken_above),
        memory=np.zeros(columns),
        size=np.zeros(columns, dtype=np.int64),
        first=np.full(columns, NOWHERE, dtype=np.int64),
        after=np.full(vertices, NOWHERE, dtype=np.int64),
        before=np.full(vertices, NOWHERE, dtype=np.int64),
        worker_group=np.full(shape, NOWHERE, dtype=np.int64),
        worker_size=np.zeros(shape, dtype=np.int64),
        worker_settled=np.zeros(shape, dtype=np.int64),
        worker_price=np.zeros(shape),
        workers=np.zeros(columns, dtype=np.int64),
    )


@leaf
def fits(search: Search, state: Partition, vertex: int, column: int) -> bool:
    """Whether the CPU and the memory of `vertex` find room on `column`."""
    if state.load[column] + search.graph.demand[vertex] > search.machines.room[column]:
        return False
    return state.memory[column] + search.graph.memory[vertex] <= search.machines.memory[column]


@leaf
def is_too_full(search: Search, state: Partition, column: int) -> bool:
    """Whether `column` has more to bear than it should, of CPU or of memory."""
    machines = search.machines
    return state.load[column] > machines.room[column] or state.memory[column] > machines.memory[column]


@leaf
def worker_at(state: Partition, column: int, group: int) -> int:
    """Which worker of `column` runs `group`; NOWHERE when none does."""
    for at in range(state.worker_group.shape[1]):
        if state.worker_group[column, at] == group:
            return at
    return NOWHERE


@leaf
def _bind(search: Search, state: Partition, vertex: int, sign: float) -> None:
    """Count the bonds of `vertex` with those beside it, or count them off."""
    graph, column = search.graph, state.place[vertex]
    for edge in range(graph.starts[vertex], graph.starts[vertex + 1]):
        other = graph.neighbours[edge]
        if state.place[other] == column:
            state.inside[other] += sign * graph.bonds[edge]
            state.inside[vertex] += sign * graph.bonds[edge]


@leaf
def put(search: Search, state: Partition, vertex: int, column: int) -> None:
    """Put `vertex`, which is nowhere, on `column`."""
    homes, group = search.homes, search.graph.group[vertex]
    state.place[vertex] = column
    state.load[column] += search.graph.demand[vertex]
    for step in range(search.graph.rank[vertex]):
        state.above[step, column] += search.graph.demand[vertex]
    state.memory[column] += search.graph.memory[vertex]
    state.size[column] += 1
    first = state.first[column]
    state.after[vertex], state.before[vertex] = first, NOWHERE
    if first != NOWHERE:
        state.before[first] = vertex
    state.first[column] = vertex
    _bind(search, state, vertex, 1.0)
    at = worker_at(state, column, group)
    if at == NOWHERE:
        at = worker_at(state, column, NOWHERE)
        state.worker_group[column, at] = group
        state.workers[column] += 1
    state.worker_size[column, at] += 1
    state.worker_price[column, at] += homes.restart_price[vertex]
    if homes.settled[vertex] and homes.home[vertex] == column:
        state.worker_settled[column, at] += 1


@leaf
def take(search: Search, state: Partition, vertex: int) -> None:
    """Take `vertex` off where it is."""
    homes, column = search.homes, state.place[vertex]
    _bind(search, state, vertex, -1.0)
    state.place[vertex] = NOWHERE
    state.inside[vertex] = 0.0
    state.load[column] -= search.graph.demand[vertex]
    for step in range(search.graph.rank[vertex]):
        state.above[step, column] -= search.graph.demand[vertex]
    state.memory[column] -= search.graph.memory[vertex]
    state.size[column] -= 1
    if state.size[column] == 0:
        state.load[column] = 0.0  # no rounding is left behind
        state.above[:, column] = 0.0
        state.memory[column] = 0.0
    after, before = state.after[vertex], state.before[vertex]
    if before == NOWHERE:
        state.first[column] = after
    else:
        state.after[before] = after
    if after != NOWHERE:
        state.before[after] = before
    at = worker_at(state, column, search.graph.group[vertex])
    state.worker_size[column, at] -= 1
    state.worker_price[column, at] -= homes.restart_price[vertex]
    if homes.settled[vertex] and homes.home[vertex] == column:
        state.worker_settled[column, at] -= 1
    if state.worker_size[column, at] == 0:
        state.worker_group[column, at] = NOWHERE
        state.worker_price[column, at] = 0.0
        state.workers[column] -= 1


@leaf
def move(search: Search, state: Partition, vertex: int, column: int) -> None:
    """Put `vertex`, wherever it is, on `column`."""
    take(search, state, vertex)
    put(search, state, vertex, column)


@leaf
def put_back(search: Search, state: Partition, place: Ints) -> None:
    """Everybody to `place`, where all have been together before.

    All who are elsewhere leave first: a supervisor that those who have yet to go share with those who come back may
    have no worker left for these.
    """
    for vertex in range(len(place)):
        if state.place[vertex] != place[vertex] and state.place[vertex] != NOWHERE:
            take(search, state, vertex)
    for vertex in range(len(place)):
        if state.place[vertex] == NOWHERE:
            put(search, state, vertex, place[vertex])


@inner
def members_of(state: Partition, column: int) -> Ints:
    """The vertices on `column`."""
    members = np.zeros(state.size[column], dtype=np.int64)
    vertex = state.first[column]
    for at in range(len(members)):
        members[at] = vertex
        vertex = state.after[vertex]
    return members
