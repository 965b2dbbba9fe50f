"""One topology that cannot be read, as its conf is none: only that one is left alone, and the reason told."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from unittest.mock import Mock

import pytest
from thriftpy2.utils import serialize

from storm_operator.adapters.errors import NimbusError
from storm_operator.adapters.nimbus.client import NimbusClient
from storm_operator.adapters.nimbus.connection import storm_thrift as thrift
from storm_operator.adapters.nimbus.values import ACTIVE, ClusterInfo, ExecutorSummary, TopologyInfo, TopologySummary
from storm_operator.adapters.storm_cluster import StormCluster
from storm_operator.core.lifecycle import FINGERPRINT_KEY
from storm_operator.core.model import WorkerSlot

FINE, BAD = "fine-1-1", "bad-2-2"
PORTS = {FINE: 6700, BAD: 6701}
SUPERVISOR = serialize(thrift.SupervisorInfo(time_secs=1, hostname="h", meta=[6700, 6701, 6702]))
NESTED = '{"a":' + "[" * 100_000
LONG_NUMBER = '{"a":' + "1" * 5_000 + "}"


def storm(
    monkeypatch: pytest.MonkeyPatch, confs: Mapping[str, str], component_conf: str = "{}", nimbus_conf: str = "{}"
) -> StormCluster:
    """Each topology is a spout with one executor on a slot of its own."""

    def topology(topology_id: str) -> object:
        json_conf = component_conf if topology_id == BAD else "{}"
        common = thrift.ComponentCommon(inputs={}, parallelism_hint=1, json_conf=json_conf)
        spout = thrift.SpoutSpec(spout_object=thrift.ComponentObject(serialized_java=b""), common=common)
        return thrift.StormTopology(spouts={"lines": spout}, bolts={})

    def info(topology_id: str) -> TopologyInfo:
        placed = ExecutorSummary(1, 1, "lines", "h", PORTS[topology_id], 1)
        return TopologyInfo(topology_id, topology_id.partition("-")[0], ACTIVE, 1, None, (placed,), {})

    summaries = tuple(TopologySummary(one, one.partition("-")[0], ACTIVE, 1, 1, 1, 60, None) for one in PORTS)
    answers: dict[str, Callable[..., str]] = {
        "getTopologyConf": lambda one: confs.get(one, "{}"),
        "getNimbusConf": lambda: nimbus_conf,
    }
    client = NimbusClient(["localhost:6627"])
    monkeypatch.setattr(client, "_call", lambda method, *about, **_: answers[method](*about))
    monkeypatch.setattr(client, "cluster_info", lambda: ClusterInfo((), (), summaries))
    monkeypatch.setattr(client, "topology_info", info)
    monkeypatch.setattr(client, "system_topology", topology)
    return StormCluster(client, Mock(get=lambda _: SUPERVISOR, children=lambda _: ("s1",)))


@pytest.mark.parametrize("conf", ["no JSON", "[]", NESTED, LONG_NUMBER])
def test_conf_that_is_none_leaves_its_topology_alone_and_the_others_managed(
    monkeypatch: pytest.MonkeyPatch, conf: str
) -> None:
    cluster = storm(monkeypatch, {BAD: conf, FINE: json.dumps({FINGERPRINT_KEY: "f"})})
    view = cluster.read_view({})
    assert [topology.id for topology in view.topologies] == [FINE]
    assert [supervisor.ports for supervisor in view.supervisors] == [(6700, 6702)]
    assert set(view.assignment.slot_of.values()) == {WorkerSlot("s1", 6700)}
    (problem,) = view.problems
    assert problem.startswith("bad: it is not managed, since Nimbus' answer to getTopologyConf ")
    fine, bad = sorted(cluster.running(), key=lambda one: one.name != "fine")
    assert (fine.fingerprint, fine.unreadable) == ("f", "")
    assert (bad.fingerprint, f"bad: {bad.unreadable}") == (None, problem)


@pytest.mark.parametrize("conf", ["no JSON", NESTED, '{"topology.tasks": "two"}'])
def test_conf_of_a_component_that_is_none_leaves_its_topology_alone(monkeypatch: pytest.MonkeyPatch, conf: str) -> None:
    cluster = storm(monkeypatch, {}, conf)
    view = cluster.read_view({})
    assert [topology.id for topology in view.topologies] == [FINE]
    (problem,) = view.problems
    assert problem.startswith("bad: it is not managed, since component lines: ")
    assert [f"bad: {one.unreadable}" for one in cluster.running() if one.unreadable] == [problem]


def test_conf_of_nimbus_that_is_none_makes_no_topology_one_that_is_not_managed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NimbusError, match="getNimbusConf is not JSON"):
        storm(monkeypatch, {}, nimbus_conf="no JSON").read_view({})
