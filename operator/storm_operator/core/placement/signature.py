"""The one signature that every placement policy has."""

from __future__ import annotations

from typing import Protocol

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Infeasible
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot


class PlacementPolicy(Protocol):
    """Where should each executor live?

    Returns an assignment of every executor of every topology in the snapshot (those of topologies that are not
    movable keep their slot), or `Infeasible` with the rule that cannot be kept. Pure and deterministic.
    """

    def __call__(
        self, snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings
    ) -> Assignment | Infeasible: ...
