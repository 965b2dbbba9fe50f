"""Live supervisors with their slot ports.

Nimbus' Thrift interface tells how many slots a supervisor has, not which ports. The supervisors themselves write the
ports to ZooKeeper, `<storm.zookeeper.root>/supervisors/<id>`, where Nimbus reads them too: a SupervisorInfo,
see `stored`. The node vanishes with its supervisor's session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from storm_operator.adapters.nimbus.connection import NimbusAddress, storm_thrift
from storm_operator.adapters.nimbus.stored import malformed, read_stored
from storm_operator.adapters.zookeeper import Nodes
from storm_operator.core.host_and_port import host_and_port
from storm_operator.core.model import Supervisor

DEFAULT_STORM_ROOT = "/storm"
MEMORY_RESOURCE = "memory.mb"


def storm_root(text: str) -> str:
    """`storm.zookeeper.root`, however its slashes are set, as the one beginning that all paths below it have.

    Paths are compared with those that ZooKeeper tells, which begin with a slash and have none twice.
    """
    return "".join(f"/{part}" for part in text.split("/") if part)


def zookeeper_of(nimbus_conf: Mapping[str, Any]) -> tuple[str, str]:
    """Pure: Storm's ZooKeeper, `host:port,host:port`, and the `storm.zookeeper.root` there, as a Nimbus has them."""
    port = nimbus_conf.get("storm.zookeeper.port", 2181)
    servers = nimbus_conf.get("storm.zookeeper.servers") or ()
    root = storm_root(str(nimbus_conf.get("storm.zookeeper.root") or DEFAULT_STORM_ROOT))
    return ",".join(host_and_port(str(server), port) for server in servers), root


def read_supervisors(nodes: Nodes, storm_root: str = DEFAULT_STORM_ROOT) -> tuple[Supervisor, ...]:
    """All live supervisors, sorted by id, with the memory that they declare.

    Their CPU capacity is None: Storm only knows what was declared, and agents measure it. One that lost its disk, and
    its id with it, is told of by both ids until the session of the former ends: of two that have a host and a slot in
    common the one that began later lives.
    """
    told = [
        (supervisor_id, _info_from(supervisor_id, content)) for supervisor_id, content in _entries(nodes, storm_root)
    ]
    latest_first = sorted(told, key=lambda one: _began_at_seconds(one[1]), reverse=True)
    taken: set[tuple[str, int]] = set()
    living = []
    for supervisor in (_supervisor(supervisor_id, info) for supervisor_id, info in latest_first):
        slots = [(supervisor.host, port) for port in supervisor.ports]
        if taken.isdisjoint(slots):
            taken.update(slots)
            living.append(supervisor)
    return tuple(sorted(living, key=lambda one: one.id))


def read_thrift_addresses(nodes: Nodes, storm_root: str = DEFAULT_STORM_ROOT) -> Mapping[str, NimbusAddress]:
    """Where live supervisors take calls, by id; a supervisor that does not tell its port is left out."""
    found = {}
    for supervisor_id, content in _entries(nodes, storm_root):
        info = _info_from(supervisor_id, content)
        if info.server_port:
            found[supervisor_id] = NimbusAddress(info.hostname, info.server_port)
    return found


def supervisor_from(supervisor_id: str, content: bytes) -> Supervisor:
    """Pure: what a supervisor wrote about itself, as a value. MalformedDocument when it is something else."""
    return _supervisor(supervisor_id, _info_from(supervisor_id, content))


def _supervisor(supervisor_id: str, info: Any) -> Supervisor:
    return Supervisor(
        supervisor_id,
        info.hostname,
        tuple(sorted(set(info.meta or ()))),
        memory_mb=(info.resources_map or {}).get(MEMORY_RESOURCE),
    )


def _began_at_seconds(info: Any) -> int:
    return int(info.time_secs - (info.uptime_secs or 0))


def _entries(nodes: Nodes, storm_root: str) -> Iterator[tuple[str, bytes]]:
    folder = f"{storm_root}/supervisors"
    for supervisor_id in nodes.children(folder):
        content = nodes.get(f"{folder}/{supervisor_id}")
        # A node that is gone again between the listing and the read belongs to a supervisor that has just died.
        if content is not None:
            yield supervisor_id, content


def _info_from(supervisor_id: str, content: bytes) -> Any:
    path = f"supervisors/{supervisor_id}"
    info = read_stored(storm_thrift.SupervisorInfo(), content, path)
    if not info.hostname:
        raise malformed(info, path, "no hostname")
    return info
