"""What becomes of a topology that is being rebalanced: Nimbus says of it that it is, and no more.

Whether it was active before, and will be so again, Nimbus keeps in ZooKeeper, `<storm.zookeeper.root>/storms/<id>`.
"""

from __future__ import annotations

from storm_operator.adapters.nimbus.connection import storm_thrift
from storm_operator.adapters.nimbus.stored import read_stored
from storm_operator.adapters.zookeeper import Nodes


def will_be_inactive(nodes: Nodes, storm_root: str, topology_id: str) -> bool:
    """Whether the topology is deactivated once its rebalance is over; one that is gone is not."""
    path = f"storms/{topology_id}"
    content = nodes.get(f"{storm_root}/{path}")
    if content is None:
        return False
    base = read_stored(storm_thrift.StormBase(), content, path)
    states = storm_thrift.TopologyStatus
    after = base.prev_status if base.status == states.REBALANCING else base.status
    return bool(after == states.INACTIVE)
