"""What each step of a partition costs, and what all of it costs: the objective of `objective.py` in machine code."""

from __future__ import annotations

import numpy as np

from storm_operator.core.arrays import NOWHERE, Flags, Ints
from storm_operator.core.placement.search.compiled import compiled, leaf
from storm_operator.core.placement.search.partition_state import Partition, Search, put, take, worker_at
from storm_operator.core.placement.search.restart_prices import change_of_restarts, is_settled_on, restarts_due
from storm_operator.core.placement.search.survey import forget, look_everywhere, network_anywhere, network_at, survey


@leaf
def outranking_overload(search: Search, state: Partition, column: int, coming: int, leaving: int) -> float:
    """Millicores that the overload of `column` counts on top for priority, as `outranking_millicores` has it.

    With `coming` there, which is not, and without `leaving`, which is; each may be NOWHERE, for none.
    """
    graph, machines, tariff = search.graph, search.machines, search.tariff
    load = state.load[column]
    load += graph.demand[coming] if coming != NOWHERE else 0.0
    load -= graph.demand[leaving] if leaving != NOWHERE else 0.0
    excess, wanted = load - machines.room[column], load + machines.taken[column]
    if excess <= 0.0 or wanted <= 0.0:
        return 0.0
    # A supervisor that a kick has closed lacks more than is wanted of it.
    capacity, part = max(wanted - excess, 0.0), min(excess / wanted, 1.0)
    total = 0.0
    for step in range(len(tariff.rank_steps)):
        above = state.above[step, column] + machines.taken_above[step, column]
        if coming != NOWHERE and graph.rank[coming] > step:
            above += graph.demand[coming]
        if leaving != NOWHERE and graph.rank[leaving] > step:
            above -= graph.demand[leaving]
        total += tariff.rank_steps[step] * (max(above - capacity, 0.0) if tariff.are_held else part * above)
    return total


@leaf
def overload_cost(search: Search, state: Partition, column: int) -> float:
    """What the overload of `column` costs as it is, by millicores and by priority."""
    overload = max(state.load[column] - search.machines.room[column], 0.0)
    if len(search.tariff.rank_steps):
        overload += outranking_overload(search, state, column, NOWHERE, NOWHERE)
    return overload * search.tariff.overloaded_millicore


@leaf
def change_of_outranking(search: Search, state: Partition, column: int, coming: int, leaving: int) -> float:
    """How much more that is than now."""
    after = outranking_overload(search, state, column, coming, leaving)
    return after - outranking_overload(search, state, column, NOWHERE, NOWHERE)


@leaf
def burden_of_adding(search: Search, state: Partition, vertex: int, column: int) -> float:
    """What more CPU and memory than `column` has cost with `vertex` on it, and what is lost when it does not answer."""
    graph, machines, tariff = search.graph, search.machines, search.tariff
    excess = state.load[column] - machines.room[column]
    cost = (max(excess + graph.demand[vertex], 0.0) - max(excess, 0.0)) * tariff.overloaded_millicore
    if len(tariff.rank_steps):
        cost += change_of_outranking(search, state, column, vertex, NOWHERE) * tariff.overloaded_millicore
    if tariff.has_memory:
        excess = state.memory[column] - machines.memory[column]
        cost += (max(excess + graph.memory[vertex], 0.0) - max(excess, 0.0)) * tariff.overfull_megabyte
    return cost + graph.share[vertex] * machines.loss_ms[column]


@leaf
def burden_of_removing(search: Search, state: Partition, vertex: int) -> float:
    """The same for taking `vertex` off where it is."""
    graph, machines, tariff = search.graph, search.machines, search.tariff
    column = state.place[vertex]
    excess = state.load[column] - machines.room[column]
    cost = (max(excess - graph.demand[vertex], 0.0) - max(excess, 0.0)) * tariff.overloaded_millicore
    if len(tariff.rank_steps):
        cost += change_of_outranking(search, state, column, NOWHERE, vertex) * tariff.overloaded_millicore
    if tariff.has_memory:
        excess = state.memory[column] - machines.memory[column]
        cost += (max(excess - graph.memory[vertex], 0.0) - max(excess, 0.0)) * tariff.overfull_megabyte
    return cost - graph.share[vertex] * machines.loss_ms[column]


@leaf
def cost_of_adding(search: Search, state: Partition, vertex: int, column: int) -> float:
    """Everything but the network, for putting `vertex`, which is not there, on `column`.

    Less than 0 only at its home, where it may make a worker what it is in force.
    """
    graph, machines, tariff = search.graph, search.machines, search.tariff
    cost = burden_of_adding(search, state, vertex, column)
    if state.size[column] == 0 and not machines.in_use[column]:
        cost += tariff.supervisor
    group = graph.group[vertex]
    if worker_at(state, column, group) == NOWHERE:
        if state.workers[column] >= state.worker_group.shape[1]:
            return np.inf
        if state.workers[column] >= machines.ports[column]:
            cost += tariff.missing_port
    settled = is_settled_on(search.homes, vertex, column)
    return cost + change_of_restarts(search, state, column, group, 1, settled, search.homes.restart_price[vertex])


@leaf
def cost_of_removing(search: Search, state: Partition, vertex: int) -> float:
    """Everything but the network, for taking `vertex` off where it is; mostly negative."""
    graph, machines, tariff = search.graph, search.machines, search.tariff
    column = state.place[vertex]
    cost = burden_of_removing(search, state, vertex)
    if state.size[column] == 1 and not machines.in_use[column]:
        cost -= tariff.supervisor
    group = graph.group[vertex]
    size = state.worker_size[column, worker_at(state, column, group)]
    if size == 1 and state.workers[column] > machines.ports[column]:
        cost -= tariff.missing_port
    settled = is_settled_on(search.homes, vertex, column)
    return cost + change_of_restarts(search, state, column, group, -1, -settled, -search.homes.restart_price[vertex])


@leaf
def cost_of_replacing(search: Search, state: Partition, leaving: int, coming: int, column: int) -> float:
    """What restarts and missing ports cost more where `coming` takes the place of `leaving` on `column`."""
    group, price, ports = search.graph.group, search.homes.restart_price, search.machines.ports[column]
    settled_out, settled_in = is_settled_on(search.homes, leaving, column), is_settled_on(search.homes, coming, column)
    left, joined = group[leaving], group[coming]
    if left == joined:
        settled, dearer = settled_in - settled_out, price[coming] - price[leaving]
        return change_of_restarts(search, state, column, left, 0, settled, dearer)
    cost = change_of_restarts(search, state, column, left, -1, -settled_out, -price[leaving])
    cost += change_of_restarts(search, state, column, joined, 1, settled_in, price[coming])
    workers = state.workers[column]
    after = workers + int(worker_at(state, column, joined) == NOWHERE)
    after -= int(state.worker_size[column, worker_at(state, column, left)] == 1)
    return cost + (max(after - ports, 0) - max(workers - ports, 0)) * search.tariff.missing_port


@compiled
def put_all(search: Search, state: Partition, place: Ints) -> None:
    """Put every vertex where `place` says, as far as it does and a worker can be begun there."""
    for vertex in range(len(place)):
        column = place[vertex]
        if column != NOWHERE and cost_of_adding(search, state, vertex, column) != np.inf:
            put(search, state, vertex, column)


@leaf
def distance(search: Search, state: Partition, vertex: int, other: int) -> float:
    """Milliseconds between two vertices where they are."""
    here, there = state.place[vertex], state.place[other]
    if here != there:
        return search.machines.zone_ms[search.machines.zone[here], search.machines.zone[there]]
    return 0.0 if search.graph.group[vertex] == search.graph.group[other] else search.tariff.between_workers_ms


@compiled
def total_cost(search: Search, state: Partition) -> float:
    """Network, overload, losses, supervisors in use, restarts and missing ports of the whole partition."""
    machines, tariff = search.machines, search.tariff
    network, rest = 0.0, 0.0
    for vertex in range(len(state.place)):
        rest += search.graph.share[vertex] * machines.loss_ms[state.place[vertex]]
        for edge in range(search.graph.starts[vertex], search.graph.starts[vertex + 1]):
            network += search.graph.rates[edge] * distance(search, state, vertex, search.graph.neighbours[edge]) / 2.0
    for column in range(len(state.load)):
        rest += overload_cost(search, state, column)
        if tariff.has_memory:
            rest += max(state.memory[column] - machines.memory[column], 0.0) * tariff.overfull_megabyte
        rest += max(state.workers[column] - machines.ports[column], 0) * tariff.missing_port
        if state.size[column] and not machines.in_use[column]:
            rest += tariff.supervisor
        rest += restarts_due(search, state, column)
    return network + rest


@leaf
def wake(search: Search, awake: Flags, vertex: int) -> None:
    """`vertex` has moved: it and its neighbours are to be looked at again."""
    awake[vertex] = True
    for edge in range(search.graph.starts[vertex], search.graph.starts[vertex + 1]):
        awake[search.graph.neighbours[edge]] = True


@leaf
def moved(search: Search, state: Partition, vertex: int, column: int) -> float:
    """Move `vertex` from where it is to `column`, if a worker can be begun there; the change of the total."""
    adding = cost_of_adding(search, state, vertex, column)
    if adding == np.inf or state.place[vertex] == column:
        return 0.0
    found = survey(search, state, vertex)
    network = network_at(search, column) - network_at(search, state.place[vertex])
    forget(search, found)
    delta = network + adding + cost_of_removing(search, state, vertex)
    take(search, state, vertex)
    put(search, state, vertex, column)
    return delta


@leaf
def cheapest(search: Search, state: Partition, vertex: int, but: int) -> tuple[int, float]:
    """The supervisor other than `but` on which `vertex` costs least, and how much; NOWHERE when there is none."""
    found, home = survey(search, state, vertex), search.homes.home[vertex]
    look_everywhere(search)
    best, best_cost = NOWHERE, np.inf
    for column in range(len(state.load)):
        cost = network_anywhere(search, column)
        if column == but or (cost >= best_cost and column != home):
            continue
        cost += cost_of_adding(search, state, vertex, column)
        if cost < best_cost:
            best, best_cost = column, cost
    forget(search, found)
    return best, best_cost
