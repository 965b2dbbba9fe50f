"""How many executors a topology has of which Nimbus has placed none, or not all."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from typing import Any
from unittest.mock import Mock

import pytest
from thriftpy2.utils import serialize

from storm_operator.adapters.nimbus.connection import storm_thrift as thrift
from storm_operator.adapters.nimbus.values import ACTIVE, ClusterInfo, ExecutorSummary, TopologyInfo, TopologySummary
from storm_operator.adapters.storm_cluster import StormCluster

ID = "words-1-1"
NODE = f"/storm/storms/{ID}"
SUBMITTED = ["1-1", "2-3", "4-5"]
REBALANCED = ["1-1", "2-2", "3-3", "4-4", "5-5"]


def submitted() -> Any:
    """A spout, and four tasks of `split` on two executors."""
    one = thrift.ComponentCommon(inputs={}, parallelism_hint=1, json_conf="{}")
    two = thrift.ComponentCommon(inputs={}, parallelism_hint=2, json_conf=json.dumps({"topology.tasks": 4}))
    code = thrift.ComponentObject(serialized_java=b"")
    spouts = {"lines": thrift.SpoutSpec(spout_object=code, common=one)}
    return thrift.StormTopology(spouts=spouts, bolts={"split": thrift.Bolt(bolt_object=code, common=two)})


def stored(counts: Mapping[str, int] | None) -> Mapping[str, bytes]:
    """As Nimbus writes it."""
    status = thrift.TopologyStatus.ACTIVE
    base = thrift.StormBase(name="words", status=status, num_workers=1, component_executors=counts)
    return {NODE: gzip.compress(serialize(base))}


def labels(nodes: Mapping[str, bytes], *placed: tuple[str, int, int]) -> list[str]:
    client = Mock(
        cluster_info=lambda: ClusterInfo((), (), (TopologySummary(ID, "words", ACTIVE, 1, 1, 1, 60, None),)),
        topology_info=lambda _: TopologyInfo(
            ID, "words", ACTIVE, 1, None, tuple(ExecutorSummary(a, b, name, "h", 6700, 1) for name, a, b in placed), {}
        ),
        topology_conf=lambda _: {},
        system_topology=lambda _: submitted(),
    )
    (topology,) = StormCluster(client, Mock(get=nodes.get, children=lambda _: ())).read_view({}).topologies
    return [executor.label for executor in topology.executors]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [(stored({"lines": 1, "split": 4}), REBALANCED), (stored({"lines": 1, "split": 2}), SUBMITTED)],
    ids=["after a rebalance", "before"],
)
def test_where_none_is_placed_those_that_nimbus_will_place_are_taken(
    nodes: Mapping[str, bytes], expected: list[str]
) -> None:
    assert labels(nodes) == expected
    assert labels(nodes, ("lines", 1, 1)) == expected


@pytest.mark.parametrize("nodes", [{}, stored(None)], ids=["no node", "nothing in it"])
def test_where_nimbus_does_not_tell_the_submitted_number_stands(nodes: Mapping[str, bytes]) -> None:
    assert labels(nodes) == SUBMITTED


def test_what_is_placed_goes_before_a_number_that_is_not_in_force_yet() -> None:
    in_part = ("split", 2, 3)
    assert labels(stored({"lines": 1, "split": 4}), in_part) == SUBMITTED
    assert labels({NODE: b"not read"}, ("lines", 1, 1), in_part, ("split", 4, 5)) == SUBMITTED
