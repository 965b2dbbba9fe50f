"""Round robin: "Adaptive scheduling algorithms for Storm clusters" (a digest, in Chinese), list 1, 1.

Tasks go to the nodes in turn, until each has one, and again from the first: executors by task, supervisors by id.
Unlike `even`, which deals out over as many workers as the topology asked for, it goes over all supervisors. Movable
topologies are placed as after a `storm rebalance`, anew; the answer stays the same.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Executor, Infeasible
from storm_operator.core.placement.one_by_one import executors_in_order, place_one_by_one
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

NAME = "round-robin"


def place_round_robin(
    snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings
) -> Assignment | Infeasible:
    """Every movable executor on the next supervisor; demand plays no part."""
    last = ""

    def next_in_turn(_: Executor, candidates: Sequence[str]) -> str:
        nonlocal last
        last = candidates[bisect_right(candidates, last) % len(candidates)]
        return last

    return place_one_by_one(snapshot, settings, executors_in_order(snapshot, settings), next_in_turn)
