"""Whether Nimbus leads and sees the supervisors, asked over Thrift, and whether these listen."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import thriftpy2
from thriftpy2.protocol import TBinaryProtocolFactory
from thriftpy2.rpc import client_context
from thriftpy2.thrift import TException
from thriftpy2.transport import TFramedTransportFactory

from storm_operator.local.paths import RESOURCES

TIMEOUT_MS = 3000
_idl = thriftpy2.load(str(RESOURCES / "nimbus-leader.thrift"), module_name="nimbus_leader_thrift")


def registered_supervisors(host: str, port: int) -> frozenset[str] | None:
    """Hosts of the supervisors that the leading Nimbus knows; None while there is no leader that answers."""
    try:
        with _nimbus(host, port) as nimbus:
            if not nimbus.getLeader().isLeader:
                return None
            return frozenset(supervisor.host for supervisor in nimbus.getClusterInfo().supervisors)
    except (OSError, TException, EOFError):
        return None


def listens(host: str, port: int) -> bool:
    """Whether someone accepts connections there: a supervisor registers a moment before it does."""
    try:
        socket.create_connection((host, port), timeout=TIMEOUT_MS / 1000.0).close()
    except OSError:
        return False
    return True


@contextlib.contextmanager
def _nimbus(host: str, port: int) -> Iterator[Any]:
    with client_context(
        _idl.Nimbus,
        host,
        port,
        proto_factory=TBinaryProtocolFactory(),  # type: ignore[no-untyped-call]
        trans_factory=TFramedTransportFactory(),
        socket_timeout=TIMEOUT_MS,
        connect_timeout=TIMEOUT_MS,
    ) as client:
        yield client
