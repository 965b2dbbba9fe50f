"""No supervisor holds more workers than it has ports: those left over are merged or moved, whole."""

from __future__ import annotations

import numpy as np

from storm_operator.core.arrays import NOWHERE
from storm_operator.core.placement.search.compiled import compiled, leaf, spliced
from storm_operator.core.placement.search.partition_state import Partition, Search, members_of, move, worker_at


@compiled
def repair_ports(search: Search, state: Partition) -> bool:
    """Whether every worker has a port in the end; it has when there are at least as many ports as groups."""
    for _ in range(4 * int(np.sum(state.workers)) + 1):
        crowded = NOWHERE
        for column in range(len(state.workers)):
            if state.workers[column] > search.machines.ports[column]:
                crowded = column
                break
        if crowded == NOWHERE:
            return True
        group = _smallest_worker(state, crowded)
        target = _another_place(search, state, crowded, group)
        if target != NOWHERE:
            _move_worker(search, state, crowded, group, target)
        elif not _merge_somewhere(search, state):
            return False
    return False


@leaf
def _smallest_worker(state: Partition, column: int) -> int:
    group, size = NOWHERE, 0
    for at in range(state.worker_group.shape[1]):
        has = state.worker_size[column, at]
        if has and (group == NOWHERE or has < size or (has == size and state.worker_group[column, at] < group)):
            group, size = state.worker_group[column, at], has
    return group


@leaf
def _another_place(search: Search, state: Partition, column: int, group: int) -> int:
    """The roomiest supervisor that runs the group already, else the roomiest with a port left."""
    best, best_key = NOWHERE, -np.inf
    for other in range(len(state.load)):
        runs_it = worker_at(state, other, group) != NOWHERE
        if other == column or not (runs_it or state.workers[other] < search.machines.ports[other]):
            continue
        room = search.machines.room[other] - state.load[other]
        key = room if not runs_it else room + 1e12
        if key > best_key:
            best, best_key = other, key
    return best


@leaf
def _merge_somewhere(search: Search, state: Partition) -> bool:
    """Free a port: merge the smallest worker that has a sister on another supervisor into it."""
    best_column, best_group, best_size, best_target = NOWHERE, NOWHERE, 0, NOWHERE
    for column in range(len(state.load)):
        for at in range(state.worker_group.shape[1]):
            size = state.worker_size[column, at]
            if size == 0 or (best_column != NOWHERE and size >= best_size):
                continue
            for other in range(len(state.load)):
                if other != column and worker_at(state, other, state.worker_group[column, at]) != NOWHERE:
                    best_column, best_group = column, state.worker_group[column, at]
                    best_size, best_target = size, other
                    break
    if best_column == NOWHERE:
        return False
    _move_worker(search, state, best_column, best_group, best_target)
    return True


@spliced
def _move_worker(search: Search, state: Partition, column: int, group: int, target: int) -> None:
    for vertex in members_of(state, column):
        if search.graph.group[vertex] == group:
            move(search, state, vertex, target)
