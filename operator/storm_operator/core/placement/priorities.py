"""Too little CPU for all: what overload counts by the priority of the topologies that share in it. Pure.

Where executors are held to their CPU, the highest priority on a supervisor is served first (`served_first`): who
outranks others goes short only of what it and its like need beyond the supervisor. Where nobody is held, all who are
on a supervisor that is too small bear a part of the overload, as they need CPU. What one goes short counts
`RANK_FACTOR` times as much for each step up in priority; steps are between the different priorities that there are,
however far apart.
Where all have the same priority, or all is carried, nothing changes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from storm_operator.core.arrays import Floats

RANK_FACTOR = 10.0
"""So many millicores may go short for one of the next higher priority not to."""


def ranks_of(priority: Mapping[str, int]) -> Mapping[str, int]:
    """Steps above the lowest priority, by topology id; 0 for those without any, which the mapping has not."""
    ranks = {value: rank for rank, value in enumerate(sorted(set(priority.values())))}
    return {topology_id: ranks[value] for topology_id, value in priority.items()}


def rank_steps(priority: Mapping[str, int]) -> Floats:
    """How much more a millicore counts that the rank 1, 2, ... and those above it go short of."""
    steps = max(0, len(set(priority.values())) - 1)
    return (RANK_FACTOR - 1.0) * RANK_FACTOR ** np.arange(steps, dtype=np.float64)


def outranking_millicores(
    wanted_millicores: Mapping[str, Mapping[str, float]],
    room_millicores: Mapping[str, float],
    priority: Mapping[str, int],
    *,
    are_held: bool,
) -> float:
    """What overload counts beyond its own millicores, summed over supervisors.

    `wanted_millicores` is by topology what it wants of each supervisor; `room_millicores` is what executors may fill of
    each supervisor, by id. `are_held`: whether executors are held to their CPU.
    """
    ranks, steps = ranks_of(priority), rank_steps(priority)
    # Of each supervisor what all want, then what those of rank 1 and more want, of 2 and more, ...
    wanted: dict[str, Floats] = {}
    for topology_id, needs in wanted_millicores.items():
        for at, need in needs.items():
            wanted.setdefault(at, np.zeros(len(steps) + 1))[: ranks.get(topology_id, 0) + 1] += need
    total = 0.0
    for at in sorted(wanted.keys() & room_millicores.keys()):
        everyone, above = wanted[at][0], wanted[at][1:]
        excess = everyone - room_millicores[at]
        if excess > 0.0:
            short = np.maximum(above - room_millicores[at], 0.0) if are_held else above * (excess / everyone)
            total += float(steps @ short)
    return total


def are_ranked(priority: Mapping[str, int]) -> bool:
    """Whether there are different priorities: else overload counts alike for all."""
    return len(set(priority.values())) > 1
