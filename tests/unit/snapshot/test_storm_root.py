"""What is said where Storm is not under the root that was named."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from storm_operator.adapters.storm_cluster import StormCluster
from storm_operator.assembly import ClusterConnection


@pytest.mark.parametrize(
    ("nodes", "named_by", "problems"),
    [
        ({}, [], ["its root"]),
        ({}, ["--storm-root"], ["--storm-root"]),
        ({"/foo/supervisors": b""}, [], []),
    ],
)
def test_a_root_under_which_no_storm_cluster_is_known_is_named(
    nodes: dict[str, bytes], named_by: list[str], problems: list[str]
) -> None:
    client = Mock()
    client.cluster_info.return_value.topologies = []
    client.get_info.return_value = []
    view = StormCluster(client, Mock(get=nodes.get, children=lambda _: []), "/foo", *named_by).read_view({})
    words = "no Storm cluster is known under /foo in ZooKeeper, where /foo/supervisors is not there:"
    assert list(view.problems) == [f"{words} {one} must be Storm's storm.zookeeper.root" for one in problems]


@pytest.mark.parametrize(
    ("given", "root"), [("/storm", "/storm"), ("storm", "/storm"), ("/a/b/", "/a/b"), ("/", ""), ("//a", "/a")]
)
def test_however_its_slashes_are_set_it_is_one_root(given: str, root: str) -> None:
    """Else those that name it differently would both manage the cluster: a lock's place in its queue is a path."""
    assert ClusterConnection(("nimbus:1",), "zookeeper:1", storm_root=given).storm_root == root
