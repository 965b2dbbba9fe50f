"""Nimbus takes commands by name; whose name it is may have changed since it was read."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from storm_operator.adapters.errors import TopologyNotAlive
from storm_operator.adapters.nimbus.values import ACTIVE, KILLED, ClusterInfo, TopologySummary
from storm_operator.adapters.storm_cluster import StormCluster

OLD, NEW = "words-1-1", "words-2-2"
COMMANDS = ("rebalance", "activate", "deactivate")


@dataclass
class Nimbus:
    """Stands for the client; `told` has what Nimbus was told to do, with the id of whom it did it to."""

    status_by_id: dict[str, str]
    told: list[tuple[str, str]] = field(default_factory=list)

    def cluster_info(self) -> ClusterInfo:
        summaries = (TopologySummary(i, "words", status, 1, 1, 1, 60, None) for i, status in self.status_by_id.items())
        return ClusterInfo((), (), tuple(summaries))

    def rebalance(self, name: str) -> None:
        self._do("rebalance", name)

    def activate(self, name: str) -> None:
        self._do("activate", name)

    def deactivate(self, name: str) -> None:
        self._do("deactivate", name)

    def _do(self, command: str, name: str) -> None:
        self.told += [(command, topology.id) for topology in self.cluster_info().topologies if topology.name == name]


@pytest.mark.parametrize("command", COMMANDS)
def test_topology_is_commanded_by_its_name(command: str) -> None:
    nimbus = Nimbus({OLD: ACTIVE})
    getattr(StormCluster(nimbus, nodes=None), command)(OLD)  # type: ignore[arg-type]
    assert nimbus.told == [(command, OLD)]


@pytest.mark.parametrize("now", [{NEW: ACTIVE}, {OLD: KILLED}, {}], ids=["submitted anew", "being killed", "gone"])
@pytest.mark.parametrize("command", COMMANDS)
def test_command_for_a_topology_that_has_ended_reaches_no_other_of_its_name(command: str, now: dict[str, str]) -> None:
    nimbus = Nimbus({OLD: ACTIVE})
    storm = StormCluster(nimbus, nodes=None)  # type: ignore[arg-type]
    storm.activate(OLD)
    nimbus.told.clear()
    nimbus.status_by_id = now
    with pytest.raises(TopologyNotAlive, match=OLD):
        getattr(storm, command)(OLD)
    assert nimbus.told == []
