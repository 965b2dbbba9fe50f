"""What it costs that a worker is not the one in force: all who are to live in it wait until it has started."""

from __future__ import annotations

from storm_operator.core.arrays import NOWHERE
from storm_operator.core.placement.search.compiled import leaf
from storm_operator.core.placement.search.partition_state import Homes, Partition, Search, worker_at


@leaf
def worker_restart(homes: Homes, column: int, group: int, size: int, settled: int, price: float) -> float:
    """What it costs that this worker, of so many vertices, is not the one in force; 0 when it is."""
    if size == 0:
        return 0.0
    if settled == size:
        for at in range(homes.worker_group.shape[1]):
            if homes.worker_group[column, at] == group and homes.worker_size[column, at] == size:
                return 0.0
    return price


@leaf
def is_settled_on(homes: Homes, vertex: int, column: int) -> int:
    """1 where `vertex` would be in the worker on `column` that its group could keep, else 0."""
    return int(homes.settled[vertex] and homes.home[vertex] == column)


@leaf
def change_of_restarts(
    search: Search, state: Partition, column: int, group: int, size: int, settled: int, price: float
) -> float:
    """What its restart costs more where the worker of `group` on `column` has so many vertices more (or, < 0, less)."""
    homes, at = search.homes, worker_at(state, column, group)
    if at == NOWHERE:
        return worker_restart(homes, column, group, size, settled, price)
    was, was_settled, was_price = (
        state.worker_size[column, at],
        state.worker_settled[column, at],
        state.worker_price[column, at],
    )
    after = worker_restart(homes, column, group, was + size, was_settled + settled, was_price + price)
    return after - worker_restart(homes, column, group, was, was_settled, was_price)


@leaf
def least_restart(search: Search, state: Partition, vertex: int) -> float:
    """What it costs at least that `vertex` leaves its worker, whoever else comes or goes: its restart, if in force."""
    homes, column, group = search.homes, state.place[vertex], search.graph.group[vertex]
    at = worker_at(state, column, group)
    size, price = state.worker_size[column, at], state.worker_price[column, at]
    if size == 1 or worker_restart(homes, column, group, size, state.worker_settled[column, at], price) != 0.0:
        return 0.0
    return price - homes.restart_price[vertex]


@leaf
def restarts_due(search: Search, state: Partition, column: int) -> float:
    """What the restarts of the workers on `column` cost as they are: no step there can save more of them."""
    due = 0.0
    for at in range(state.worker_group.shape[1]):
        if state.worker_group[column, at] != NOWHERE:
            due += worker_restart(
                search.homes,
                column,
                state.worker_group[column, at],
                state.worker_size[column, at],
                state.worker_settled[column, at],
                state.worker_price[column, at],
            )
    return due
