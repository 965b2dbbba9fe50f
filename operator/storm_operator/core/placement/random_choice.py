"""Random: "Adaptive scheduling algorithms for Storm clusters" (a digest, in Chinese), list 1, 2.

Each task goes to a random node. The seed is a parameter, and each executor draws for itself: the answer stays the same
from period to period, and another topology that comes or goes changes nothing while there are free slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Executor, Infeasible
from storm_operator.core.placement.one_by_one import executors_in_order, place_one_by_one
from storm_operator.core.placement.parameters import Parameter, read_parameters
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

NAME = "random"

PARAMETERS = {"seed": Parameter(0.0, 0.0, 2.0**53, "whole number that the choice follows from", is_whole=True)}


def place_at_random(snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings) -> Assignment | Infeasible:
    """Every movable executor on a supervisor drawn at random; demand plays no part."""
    seed = int(read_parameters(NAME, PARAMETERS, settings.scheduling.parameters)["seed"])

    def drawn(executor: Executor, candidates: Sequence[str]) -> str:
        digest = blake2b(f"{seed} {executor.topology_id} {executor.task_start}".encode(), digest_size=8).digest()
        return candidates[int.from_bytes(digest) % len(candidates)]

    return place_one_by_one(snapshot, settings, executors_in_order(snapshot, settings), drawn)
