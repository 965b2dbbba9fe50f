"""What the network of one vertex would cost on each supervisor: asked of its neighbours once, then told for any.

`survey` fills the scratch, `look_around` or `look_everywhere` prepares quick answers, `forget` empties it.
"""

from __future__ import annotations

from storm_operator.core.arrays import NOWHERE
from storm_operator.core.placement.search.compiled import leaf
from storm_operator.core.placement.search.partition_state import Partition, Search


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
def look_around(search: Search) -> None:
    """As `look_everywhere`, for the supervisors of the zones that the surveyed vertex exchanges tuples with.

    Distances of both ways are the same, and looked up once: most of the time the memory is waited for.
    """
    zone_ms, pull = search.machines.zone_ms, search.pull
    if len(zone_ms) == 1:
        return
    for at in range(pull.zone_count[0]):
        here = pull.zones[at]
        rate, cost = pull.by_zone[here], pull.by_zone[here] * zone_ms[here, here]
        for before in range(at):
            there = pull.zones[before]
            cost += pull.by_zone[there] * zone_ms[here, there]
            pull.from_zone[there] += rate * zone_ms[here, there]
        pull.from_zone[here] = cost


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
