"""What each step of a partition costs, and what all of it costs: the objective of `objective.py` in machine code."""

from __future__ import annotations

import numpy as np

from storm_operator.core.arrays import NOWHERE, Flags, Ints
from storm_operator.core.placement.search.compiled import compiled, leaf
from storm_operator.core.placement.search.partition_state import Homes, Partition, Search, put, take, worker_at


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
def outranking_overload(search: Search, column: int, load: float, outranking: float) -> float:
    """Millicores that the overload of `column` with `load` counts on top for priority: all who are there bear it."""
    machines = search.machines
    excess, wanted = load - machines.room[column], load + machines.taken[column]
    if excess <= 0.0 or wanted <= 0.0:
        return 0.0
    # A supervisor that a kick has closed lacks more than is wanted of it.
    return min(excess / wanted, 1.0) * (outranking + machines.taken_outranking[column])


@leaf
def change_of_outranking(search: Search, state: Partition, column: int, demand: float, outranking: float) -> float:
    """How much more that is with so much more on `column`."""
    before, ranked = state.load[column], state.outranking[column]
    after = outranking_overload(search, column, before + demand, ranked + outranking)
    return after - outranking_overload(search, column, before, ranked)


@leaf
def burden_of_adding(search: Search, state: Partition, vertex: int, column: int) -> float:
    """What more CPU and memory than `column` has cost with `vertex` on it, and what is lost when it does not answer."""
    graph, machines, tariff = search.graph, search.machines, search.tariff
    excess = state.load[column] - machines.room[column]
    cost = (max(excess + graph.demand[vertex], 0.0) - max(excess, 0.0)) * tariff.overloaded_millicore
    if tariff.has_ranks:
        change = change_of_outranking(search, state, column, graph.demand[vertex], graph.outranking[vertex])
        cost += change * tariff.overloaded_millicore
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
    if tariff.has_ranks:
        change = change_of_outranking(search, state, column, -graph.demand[vertex], -graph.outranking[vertex])
        cost += change * tariff.overloaded_millicore
    if tariff.has_memory:
        excess = state.memory[column] - machines.memory[column]
        cost += (max(excess - graph.memory[vertex], 0.0) - max(excess, 0.0)) * tariff.overfull_megabyte
    return cost - graph.share[vertex] * machines.loss_ms[column]


@leaf
def cost_of_adding(search: Search, state: Partition, vertex: int, column: int) -> float:
    """Everything but the network, for putting `vertex`, which is not there, on `column`.

    Less than 0 only at its home, where it may make a worker what it is in force.
    """
    graph, machines, tariff, homes = search.graph, search.machines, search.tariff, search.homes
    cost = burden_of_adding(search, state, vertex, column)
    if state.size[column] == 0 and not machines.in_use[column]:
        cost += tariff.supervisor
    price, settled = homes.restart_price[vertex], homes.settled[vertex] and homes.home[vertex] == column
    group = graph.group[vertex]
    at = worker_at(state, column, group)
    if at == NOWHERE:
        if state.workers[column] >= state.worker_group.shape[1]:
            return np.inf
        if state.workers[column] >= machines.ports[column]:
            cost += tariff.missing_port
        return cost + worker_restart(homes, column, group, 1, int(settled), price)
    size, was_settled = state.worker_size[column, at], state.worker_settled[column, at]
    was_price = state.worker_price[column, at]
    cost -= worker_restart(homes, column, group, size, was_settled, was_price)
    return cost + worker_restart(homes, column, group, size + 1, was_settled + int(settled), was_price + price)


@leaf
def cost_of_removing(search: Search, state: Partition, vertex: int) -> float:
    """Everything but the network, for taking `vertex` off where it is; mostly negative."""
    graph, machines, tariff, homes = search.graph, search.machines, search.tariff, search.homes
    column = state.place[vertex]
    cost = burden_of_removing(search, state, vertex)
    if state.size[column] == 1 and not machines.in_use[column]:
        cost -= tariff.supervisor
    price, settled = homes.restart_price[vertex], homes.settled[vertex] and homes.home[vertex] == column
    group = graph.group[vertex]
    at = worker_at(state, column, group)
    size, was_settled = state.worker_size[column, at], state.worker_settled[column, at]
    was_price = state.worker_price[column, at]
    if size == 1 and state.workers[column] > machines.ports[column]:
        cost -= tariff.missing_port
    cost -= worker_restart(homes, column, group, size, was_settled, was_price)
    return cost + worker_restart(homes, column, group, size - 1, was_settled - int(settled), was_price - price)


@compiled
def put_all(search: Search, state: Partition, place: Ints) -> None:
    """Put every vertex where `place` says, as far as it does and a worker can be begun there."""
    for vertex in range(len(place)):
        column = place[vertex]
        if column != NOWHERE and cost_of_adding(search, state, vertex, column) != np.inf:
            put(search, state, vertex, column)


@leaf
def survey(search: Search, state: Partition, vertex: int) -> int:
    """Fill the scratch for `vertex`; the number of supervisors touched. `forget` empties it again."""
    graph, pull = search.graph, search.pull
    found = 0
    for edge in range(graph.starts[vertex], graph.starts[vertex + 1]):
        column = state.place[graph.neighbours[edge]]
        if column == NOWHERE:
            continue
        if pull.tuples[column] == 0.0:
            pull.touched[found] = column
            found += 1
        pull.tuples[column] += graph.rates[edge]
        pull.saved[column] += graph.bonds[edge]
    if len(search.machines.zone_ms) > 1:
        _survey_zones(search, state, vertex)
    return found


@leaf
def _survey_zones(search: Search, state: Partition, vertex: int) -> None:
    """Where supervisors are not equally far apart, what `vertex` exchanges with each zone counts as well."""
    graph, machines, pull = search.graph, search.machines, search.pull
    zones = 0
    for edge in range(graph.starts[vertex], graph.starts[vertex + 1]):
        other = graph.neighbours[edge]
        column = state.place[other]
        if column == NOWHERE:
            continue
        zone, rate = machines.zone[column], graph.rates[edge]
        if pull.by_zone[zone] == 0.0:
            pull.zones[zones] = zone
            zones += 1
        pull.by_zone[zone] += rate
        if graph.group[other] != graph.group[vertex]:
            pull.nearby[column] += rate * search.tariff.between_workers_ms
    pull.zone_count[0] = zones


@leaf
def network_at(search: Search, column: int) -> float:
    """What the traffic of the surveyed vertex would cost with it on `column`; only differences mean anything."""
    machines, pull = search.machines, search.pull
    if len(machines.zone_ms) == 1:
        return -pull.saved[column]
    zone = machines.zone[column]
    cost = pull.nearby[column] - pull.tuples[column] * machines.zone_ms[zone, zone]
    for at in range(pull.zone_count[0]):
        cost += pull.by_zone[pull.zones[at]] * machines.zone_ms[zone, pull.zones[at]]
    return cost


@leaf
def look_everywhere(search: Search) -> None:
    """After a survey: find out for `network_anywhere`, which then answers as `network_at` does, and at once."""
    machines, pull = search.machines, search.pull
    zones = len(machines.zone_ms)
    if zones == 1:
        return
    pull.from_zone[:] = 0.0
    for at in range(pull.zone_count[0]):
        there = pull.zones[at]
        rate = pull.by_zone[there]
        for zone in range(zones):
            pull.from_zone[zone] += rate * machines.zone_ms[there, zone]


@leaf
def network_anywhere(search: Search, column: int) -> float:
    machines, pull = search.machines, search.pull
    if len(machines.zone_ms) == 1:
        return -pull.saved[column]
    zone = machines.zone[column]
    return pull.nearby[column] - pull.tuples[column] * machines.zone_ms[zone, zone] + pull.from_zone[zone]


@leaf
def forget(search: Search, found: int) -> None:
    """Empty the scratch after a survey that touched `found` supervisors."""
    pull = search.pull
    for at in range(found):
        pull.saved[pull.touched[at]] = 0.0
        pull.tuples[pull.touched[at]] = 0.0
        pull.nearby[pull.touched[at]] = 0.0
    for at in range(pull.zone_count[0]):
        pull.by_zone[pull.zones[at]] = 0.0
    pull.zone_count[0] = 0


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
        rest += max(state.load[column] - machines.room[column], 0.0) * tariff.overloaded_millicore
        if tariff.has_ranks:
            outranking = outranking_overload(search, column, state.load[column], state.outranking[column])
            rest += outranking * tariff.overloaded_millicore
        if tariff.has_memory:
            rest += max(state.memory[column] - machines.memory[column], 0.0) * tariff.overfull_megabyte
        rest += max(state.workers[column] - machines.ports[column], 0) * tariff.missing_port
        if state.size[column] and not machines.in_use[column]:
            rest += tariff.supervisor
        for at in range(state.worker_group.shape[1]):
            if state.worker_group[column, at] != NOWHERE:
                rest += worker_restart(
                    search.homes,
                    column,
                    state.worker_group[column, at],
                    state.worker_size[column, at],
                    state.worker_settled[column, at],
                    state.worker_price[column, at],
                )
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
