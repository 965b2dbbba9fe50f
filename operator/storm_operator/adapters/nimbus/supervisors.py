"""Live supervisors with their slot ports.

Nimbus' Thrift interface tells how many slots a supervisor has, not which ports. The supervisors themselves write the
ports to ZooKeeper, `<storm.zookeeper.root>/supervisors/<id>`, where Nimbus reads them too: a Thrift SupervisorInfo
in binary protocol, gzipped (`storm.meta.serialization.delegate`). The node vanishes with its supervisor's session.
"""

from __future__ import annotations

import gzip
from typing import Any

from thriftpy2.utils import deserialize

from storm_operator.adapters.errors import MalformedDocument
from storm_operator.adapters.nimbus.connection import storm_thrift
from storm_operator.adapters.zookeeper import Nodes
from storm_operator.core.model import Supervisor

DEFAULT_STORM_ROOT = "/storm"
GZIP_MAGIC = b"\x1f\x8b"


def read_supervisors(nodes: Nodes, storm_root: str = DEFAULT_STORM_ROOT) -> tuple[Supervisor, ...]:
    """All live supervisors, sorted by id. Their CPU capacity is None: Storm only knows what was declared."""
    folder = f"{storm_root}/supervisors"
    found = ((supervisor_id, nodes.get(f"{folder}/{supervisor_id}")) for supervisor_id in nodes.children(folder))
    # A node that is gone again between the listing and the read belongs to a supervisor that has just died.
    return tuple(supervisor_from(supervisor_id, content) for supervisor_id, content in found if content is not None)


def supervisor_from(supervisor_id: str, content: bytes) -> Supervisor:
    """Pure: what a supervisor wrote about itself, as a value. MalformedDocument when it is something else."""
    try:
        plain = gzip.decompress(content) if content.startswith(GZIP_MAGIC) else content
        info: Any = deserialize(storm_thrift.SupervisorInfo(), plain)
    except Exception as error:  # fed with foreign bytes, gzip and thriftpy2 raise almost anything
        raise _malformed(supervisor_id, str(error)) from error
    if not info.hostname:
        raise _malformed(supervisor_id, "no hostname")
    return Supervisor(supervisor_id, info.hostname, tuple(sorted(info.meta or ())))


def _malformed(supervisor_id: str, reason: str) -> MalformedDocument:
    return MalformedDocument(
        f"supervisors/{supervisor_id} in ZooKeeper is not a Thrift SupervisorInfo ({reason}); "
        "storm.meta.serialization.delegate must be Storm's (gzipped) Thrift delegate"
    )
