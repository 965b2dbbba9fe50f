"""Topologies that were killed and have time to finish: nobody's to manage, and nobody else's slots."""

from __future__ import annotations

from unittest.mock import Mock

from thriftpy2.utils import serialize

from storm_operator.adapters.nimbus.connection import storm_thrift
from storm_operator.adapters.nimbus.values import (
    ACTIVE,
    KILLED,
    ClusterInfo,
    ExecutorSummary,
    TopologyInfo,
    TopologySummary,
)
from storm_operator.adapters.storm_cluster import StormCluster


def cluster(status: str) -> StormCluster:
    """One supervisor with two ports; the topology's only executor is on the first."""
    written = serialize(storm_thrift.SupervisorInfo(time_secs=1, hostname="host-1", meta=[6700, 6701]))
    nodes = Mock(get=lambda _: written, children=lambda _: ("s1",))
    summary = TopologySummary("old-1-1", "old", status, 1, 1, 1, 60, None)
    executor = ExecutorSummary(1, 1, "spout", "host-1", 6700, 60)
    client = Mock()
    client.cluster_info.return_value = ClusterInfo((), (), (summary,))
    client.topology_info.return_value = TopologyInfo("old-1-1", "old", status, 60, None, (executor,), {})
    client.topology_conf.return_value = {}
    client.system_topology.return_value = storm_thrift.StormTopology(spouts={}, bolts={})
    return StormCluster(client, nodes)


def test_slots_in_which_killed_topologies_finish_are_not_there_to_be_had() -> None:
    view = cluster(KILLED).read_view({})
    assert (view.topologies, dict(view.assignment.slot_of)) == ((), {})
    assert [supervisor.ports for supervisor in view.supervisors] == [(6701,)]


def test_slots_of_topologies_that_run_are_ports_of_their_supervisors() -> None:
    view = cluster(ACTIVE).read_view({})
    assert len(view.assignment.slot_of) == 1
    assert [supervisor.ports for supervisor in view.supervisors] == [(6700, 6701)]


def test_only_what_nimbus_has_no_more_has_ended() -> None:
    assert cluster(KILLED).not_ended(("old-1-1", "older-1-1")) == {"old-1-1"}
