"""Too little CPU for all: what overload counts by the priority of the topologies that share in it. Pure.

Executors on a supervisor that is too small share its CPU as they need it, so each bears a part of the overload. That
part counts `RANK_FACTOR` times as much for each step up in priority; steps are between the different priorities that
there are, however far apart. Where all have the same priority, or all is carried, nothing changes.
"""

from __future__ import annotations

from collections.abc import Mapping

from storm_operator.core.model import Executor

RANK_FACTOR = 10.0
"""So many millicores may go short for one of the next higher priority not to."""


def weight_of_topologies(priority: Mapping[str, int]) -> Mapping[str, float]:
    """How much overload counts for each topology; the lowest priority, and those without any, count once."""
    ranks = {value: rank for rank, value in enumerate(sorted(set(priority.values())))}
    return {topology_id: RANK_FACTOR ** ranks[value] for topology_id, value in priority.items()}


def outranking_millicores(
    wanted_millicores: Mapping[str, Mapping[str, float]],
    room_millicores: Mapping[str, float],
    priority: Mapping[str, int],
) -> float:
    """What overload counts beyond its own millicores, summed over supervisors.

    `wanted_millicores` is by topology what it wants of each supervisor; `room_millicores` is what executors may fill of
    each supervisor, by id.
    """
    weights = weight_of_topologies(priority)
    wanted: dict[str, float] = {}
    weighted: dict[str, float] = {}
    for topology_id, needs in wanted_millicores.items():
        for at, need in needs.items():
            wanted[at] = wanted.get(at, 0.0) + need
            weighted[at] = weighted.get(at, 0.0) + need * (weights.get(topology_id, 1.0) - 1.0)
    total = 0.0
    for at in sorted(wanted.keys() & room_millicores.keys()):
        excess = wanted[at] - room_millicores[at]
        if excess > 0.0:
            total += excess * weighted[at] / wanted[at]
    return total


def outranking_needs(
    needs_millicores: Mapping[Executor, float], priority: Mapping[str, int]
) -> Mapping[Executor, float]:
    """What each executor's need counts on top where all of it goes short; those that count once are absent."""
    if not are_ranked(priority):
        return {}
    weights = weight_of_topologies(priority)
    counting = {topology_id: weight - 1.0 for topology_id, weight in weights.items() if weight > 1.0}
    return {e: need * counting[e.topology_id] for e, need in needs_millicores.items() if e.topology_id in counting}


def are_ranked(priority: Mapping[str, int]) -> bool:
    """Whether there are different priorities: else overload counts alike for all."""
    return len(set(priority.values())) > 1
