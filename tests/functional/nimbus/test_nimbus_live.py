"""A real topology on a real cluster, through every call that the operator makes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from storm_operator.adapters.errors import (
    NimbusUnreachable,
    RebalanceInProgress,
    RebalanceRefused,
    TopologyNotAlive,
)
from storm_operator.adapters.nimbus.assignment import read_assignment
from storm_operator.adapters.nimbus.client import NimbusClient
from storm_operator.adapters.nimbus.rebalanced import executor_counts
from storm_operator.adapters.nimbus.supervisors import DEFAULT_STORM_ROOT, read_supervisors
from storm_operator.adapters.nimbus.topology import read_topology_with_findings, topology_from
from storm_operator.adapters.nimbus.values import ACTIVE, INACTIVE, REBALANCING
from storm_operator.adapters.storm_cluster import StormCluster
from storm_operator.adapters.submission import JarSubmission, StormClientHome, submit_jar
from storm_operator.adapters.zookeeper import ZooKeeperSession
from storm_operator.core.model import ACKER_COMPONENT, ComponentKind, Edge
from storm_operator.core.topology_spec import StatefulSpec
from storm_operator.local.cluster import LocalCluster

pytestmark = pytest.mark.functional
NAME = "nimbus-live"
EXECUTORS = 10
STORMS_DEFAULT_MEMORY_MB = 4096.0
PATIENCE_SECONDS = 240.0


def eventually(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not within {PATIENCE_SECONDS:g} s: {what}"
        time.sleep(0.3)


@pytest.fixture(scope="module")
def topology_id(storm_cluster: LocalCluster, many_kinds_jar: Path) -> Iterator[str]:
    """ManyKinds with every kind of bolt, all executors placed."""
    host, port = storm_cluster.nimbus
    client = NimbusClient([f"{host}:{port}"], patience_seconds=PATIENCE_SECONDS)
    home = StormClientHome(storm_cluster.storm_home, storm_cluster.conf_dir)
    if client.cluster_info().topology_named(NAME) is None:  # a first try may have submitted it
        assert submit_jar(JarSubmission(many_kinds_jar, "ManyKinds", (NAME, "all")), home).topology_names == (NAME,)
    running = client.cluster_info().topology_named(NAME)
    assert running is not None
    # Nimbus' own count is of placed executors alone, so it cannot tell when all are.
    eventually(lambda: len(client.topology_info(running.id).executors) == EXECUTORS, "all executors placed")
    yield running.id
    client.kill(NAME)
    eventually(lambda: all(each.name != NAME for each in client.cluster_info().topologies), "the name is free again")


def test_supervisors_with_their_real_ports(
    storm_cluster: LocalCluster, client: NimbusClient, session: ZooKeeperSession
) -> None:
    supervisors = read_supervisors(session)
    assert {each.host: each.ports for each in supervisors} == {
        machine.host: machine.ports for machine in storm_cluster.machines
    }
    assert {each.memory_mb for each in supervisors} == {STORMS_DEFAULT_MEMORY_MB}
    summaries = client.cluster_info().supervisors
    assert [(each.id, each.total_slots) for each in summaries] == [(each.id, len(each.ports)) for each in supervisors]


def test_the_leader_and_its_configuration(storm_cluster: LocalCluster, client: NimbusClient) -> None:
    leader = client.wait_until_ready()
    assert leader.is_leader
    assert (leader.host, leader.port) == storm_cluster.nimbus
    assert client.nimbus_conf()["nimbus.thrift.port"] == storm_cluster.nimbus[1]


def test_a_topology_is_read_whole(client: NimbusClient, topology_id: str) -> None:
    reading = read_topology_with_findings(client, topology_id)
    kinds = {each.name: (each.kind, each.tasks) for each in reading.topology.components}
    assert kinds == {
        "$checkpointspout": (ComponentKind.SPOUT, 1),
        ACKER_COMPONENT: (ComponentKind.ACKER, 1),
        "keyed": (ComponentKind.BOLT, 2),
        "late": (ComponentKind.BOLT, 1),
        "numbers": (ComponentKind.SPOUT, 1),
        "pass": (ComponentKind.BOLT, 3),
        "sum": (ComponentKind.BOLT, 1),
        "window": (ComponentKind.BOLT, 1),
    }
    assert {each.component for each in reading.findings if each.stateful} == {"keyed", "sum", "window"}
    declared = {
        (each.name, each.declared_memory_mb, each.declared_cpu_millicores) for each in reading.topology.components
    }
    assert {each for each in declared if each[1:] != (None, None)} == {("pass", 112.0, 300.0)}
    assert reading.topology.num_workers == 2
    user_edges = {edge for edge in reading.topology.edges if edge.stream == "default"}
    assert user_edges == {
        Edge("numbers", "default", "pass", "shuffle"),
        Edge("pass", "default", "keyed", "fields"),
        Edge("pass", "default", "window", "global"),
        Edge("pass", "default", "sum", "all"),
        Edge("keyed", "default", "late", "local_or_shuffle"),
    }


def test_executors_that_storm_has_not_placed_are_computed_as_storm_does(client: NimbusClient, topology_id: str) -> None:
    info = client.topology_info(topology_id)
    unplaced = replace(info, executors=())
    computed = topology_from(client.system_topology(topology_id), unplaced, StatefulSpec(), 2).topology.executors
    placed = {(each.task_start, each.task_end, each.component) for each in info.executors}
    assert {(each.task_start, each.task_end, each.component) for each in computed} == placed


def test_the_assignment_names_slots_of_living_supervisors(
    client: NimbusClient, session: ZooKeeperSession, topology_id: str
) -> None:
    supervisors = read_supervisors(session)
    expected = read_topology_with_findings(client, topology_id).topology.executors
    slots = {slot for supervisor in supervisors for slot in supervisor.slots}

    def all_up() -> bool:
        reading = read_assignment(client, [topology_id, "gone-1-1"], supervisors)
        assert tuple(sorted(reading.assignment.slot_of)) == expected
        assert set(reading.assignment.slot_of.values()) <= slots
        assert reading.homeless == ()
        return set(reading.worker_uptime_seconds) == set(reading.assignment.slot_of.values())

    eventually(all_up, "every worker has sent a heartbeat")


def test_activation_and_rebalance(client: NimbusClient, session: ZooKeeperSession, topology_id: str) -> None:
    storm = StormCluster(client, session)

    def status() -> str:
        return client.topology_info(topology_id).status

    # One that is being rebalanced, as by a first try, cannot be deactivated.
    eventually(lambda: status() in (ACTIVE, INACTIVE), "no rebalance is under way")
    client.deactivate(NAME)
    assert status() == INACTIVE
    client.activate(NAME)
    assert status() == ACTIVE
    assert storm.deactivated((topology_id,)) == frozenset()
    client.deactivate(NAME)
    client.rebalance(NAME, wait_seconds=5)
    assert (status(), storm.deactivated((topology_id,))) == (REBALANCING, frozenset({topology_id}))
    eventually(lambda: status() == INACTIVE, "the rebalance is over, and it is deactivated as before")
    client.activate(NAME)
    client.rebalance(NAME, wait_seconds=10)
    assert (status(), storm.deactivated((topology_id,))) == (REBALANCING, frozenset())
    for refused in (client.rebalance, client.activate, client.deactivate):
        with pytest.raises(RebalanceInProgress, match="being rebalanced already"):
            refused(NAME)
    eventually(lambda: status() == ACTIVE, "the rebalance is over")
    with pytest.raises(RebalanceRefused, match="Invalid component nothing"):
        client.rebalance(NAME, executors={"nothing": 2})
    client.rebalance(NAME, executors={"pass": 3})

    def passes() -> list[str]:
        executors = read_topology_with_findings(client, topology_id).topology.executors_of("pass")
        return [executor.label for executor in executors]

    eventually(lambda: status() == ACTIVE and passes() == ["7-7", "8-8", "9-9"], "three executors of pass")
    assert executor_counts(session, DEFAULT_STORM_ROOT, topology_id)["pass"] == 3


def test_calls_survive_a_killed_nimbus(storm_cluster: LocalCluster, client: NimbusClient, topology_id: str) -> None:
    placed = client.topology_info(topology_id).executors
    storm_cluster.kill_nimbus()
    # Not once may the topology seem dead, or without executors, which Nimbus itself says for some seconds.
    assert len(client.topology_info(topology_id, patience_seconds=PATIENCE_SECONDS).executors) == len(placed)
    client.activate(NAME, patience_seconds=PATIENCE_SECONDS)
    assert client.wait_until_ready(patience_seconds=PATIENCE_SECONDS).is_leader


def test_what_does_not_run_is_not_alive(client: NimbusClient) -> None:
    with pytest.raises(TopologyNotAlive, match="no topology 'nothing-1-1' runs on Nimbus"):
        client.topology_info("nothing-1-1")
    with pytest.raises(TopologyNotAlive, match="no topology 'nothing' runs on Nimbus"):
        client.kill("nothing")


def test_a_peer_that_is_no_nimbus(storm_cluster: LocalCluster) -> None:
    with pytest.raises(NimbusUnreachable, match=storm_cluster.zookeeper):
        NimbusClient([storm_cluster.zookeeper], call_timeout_seconds=2.0, patience_seconds=1.0).cluster_info()
