"""What rebalances make of a topology, which Nimbus tells nobody and keeps in ZooKeeper.

Of one that is being rebalanced Nimbus says that it is, and no more: whether it was active before, and will be so again,
and how many executors each component was given last, is at `<storm.zookeeper.root>/storms/<id>`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from storm_operator.adapters.nimbus.connection import storm_thrift
from storm_operator.adapters.nimbus.stored import read_stored
from storm_operator.adapters.zookeeper import Nodes


def will_be_inactive(nodes: Nodes, storm_root: str, topology_id: str) -> bool:
    """Whether the topology is deactivated once its rebalance is over; one that is gone is not."""
    base = _stored_base(nodes, storm_root, topology_id)
    if base is None:
        return False
    states = storm_thrift.TopologyStatus
    after = base.prev_status if base.status == states.REBALANCING else base.status
    return bool(after == states.INACTIVE)


def executor_counts(nodes: Nodes, storm_root: str, topology_id: str) -> Mapping[str, int]:
    """By component, how many executors Nimbus will place; empty where that is not known."""
    base = _stored_base(nodes, storm_root, topology_id)
    return {} if base is None else dict(base.component_executors or {})


def _stored_base(nodes: Nodes, storm_root: str, topology_id: str) -> Any:
    """Thrift's StormBase; None where the topology is gone. Raises MalformedDocument."""
    path = f"storms/{topology_id}"
    content = nodes.get(f"{storm_root}/{path}")
    return None if content is None else read_stored(storm_thrift.StormBase(), content, path)
