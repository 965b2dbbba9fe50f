"""Which topologies are deactivated: also one that is being rebalanced, as long as it was before."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from unittest.mock import Mock

import pytest
from thriftpy2.utils import serialize

from storm_operator.adapters.errors import MalformedDocument
from storm_operator.adapters.nimbus.connection import storm_thrift
from storm_operator.adapters.nimbus.values import ClusterInfo, TopologySummary
from storm_operator.adapters.storm_cluster import StormCluster

ID = "words-1-1"
STATES = storm_thrift.TopologyStatus


def stored(status: int, before: int | None = None) -> Mapping[str, bytes]:
    """As Nimbus writes it."""
    base = storm_thrift.StormBase(name="words", status=status, num_workers=1, prev_status=before)
    return {f"/storm/storms/{ID}": gzip.compress(serialize(base))}


def storm(status: str, nodes: Mapping[str, bytes]) -> StormCluster:
    summaries = (TopologySummary(ID, "words", status, 1, 1, 1, 60, None),)
    client = Mock(cluster_info=lambda: ClusterInfo((), (), summaries))
    return StormCluster(client, Mock(get=nodes.get))


def deactivated(status: str, nodes: Mapping[str, bytes]) -> frozenset[str]:
    return storm(status, nodes).deactivated((ID,))


@pytest.mark.parametrize(
    ("nodes", "is_so"),
    [
        (stored(STATES.REBALANCING, STATES.INACTIVE), True),
        (stored(STATES.REBALANCING, STATES.ACTIVE), False),
        (stored(STATES.INACTIVE), True),
        (stored(STATES.ACTIVE, STATES.INACTIVE), False),
        ({}, False),
    ],
    ids=["deactivated before", "active before", "over, and deactivated", "over, and active", "gone"],
)
def test_one_that_is_being_rebalanced_is_what_it_will_be_after_that(nodes: Mapping[str, bytes], is_so: bool) -> None:
    assert deactivated("REBALANCING", nodes) == (frozenset({ID}) if is_so else frozenset())


@pytest.mark.parametrize(("status", "is_so"), [("INACTIVE", True), ("ACTIVE", False), ("KILLED", False)])
def test_of_others_nimbus_says_it(status: str, is_so: bool) -> None:
    assert deactivated(status, {}) == (frozenset({ID}) if is_so else frozenset())


@pytest.mark.parametrize(("status", "is_so"), [("REBALANCING", True), ("ACTIVE", False), ("INACTIVE", False)])
def test_nimbus_says_which_are_being_rebalanced(status: str, is_so: bool) -> None:
    assert storm(status, {}).being_rebalanced((ID, "other-1-1")) == (frozenset({ID}) if is_so else frozenset())
    assert storm(status, {}).being_rebalanced(("other-1-1",)) == frozenset()


def test_what_another_delegate_wrote_is_refused_with_its_place() -> None:
    with pytest.raises(MalformedDocument, match=f"storms/{ID} in ZooKeeper is not a Thrift StormBase"):
        deactivated("REBALANCING", {f"/storm/storms/{ID}": b"{}"})
