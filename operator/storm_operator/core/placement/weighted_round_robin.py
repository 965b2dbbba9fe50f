"""Weighted round robin: "Adaptive scheduling algorithms for Storm clusters" (a digest, in Chinese), list 1, 3.

Each node has a weight by its performance and resources, and gets tasks in proportion: the weight is the supervisor's
CPU capacity. Movable topologies are placed as after a `storm rebalance`, anew; the answer stays the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Executor, Infeasible
from storm_operator.core.placement.capacity import cpu_capacities
from storm_operator.core.placement.one_by_one import executors_in_order, place_one_by_one
from storm_operator.core.placement.smooth_turns import SmoothTurns
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

NAME = "weighted-round-robin"


def place_weighted_round_robin(
    snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings
) -> Assignment | Infeasible:
    """Every movable executor in turn, supervisors weighted by capacity; demand plays no part."""
    weights = cpu_capacities(snapshot)
    turns = SmoothTurns()

    def next_in_turn(_: Executor, candidates: Sequence[str]) -> str:
        return turns.next_of({at: weights[at] for at in candidates})

    return place_one_by_one(snapshot, settings, executors_in_order(snapshot, settings), next_in_turn)
