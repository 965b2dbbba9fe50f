"""One Thrift connection to one Nimbus: framed transport, binary protocol, no SASL (Storm's SimpleTransportPlugin)."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import thriftpy2
from thriftpy2.protocol import TCyBinaryProtocolFactory
from thriftpy2.protocol.cybin import ProtocolError  # type: ignore[attr-defined]
from thriftpy2.protocol.exc import TProtocolException
from thriftpy2.thrift import TClient
from thriftpy2.transport import TCyFramedTransportFactory, TSocket, TTransportException

from storm_operator.core.host_and_port import host_and_port, without_brackets
from storm_operator.core.nimbus_name import NIMBUS_PORT

storm_thrift = thriftpy2.load(str(Path(__file__).with_name("storm.thrift")), module_name="storm_thrift")

NO_NIMBUS = (ProtocolError, TProtocolException, SystemError, RecursionError)
"""What thriftpy2 raises of what no Nimbus sends: the last two of a length below zero, and of too deep a struct."""


class ConnectionBroken(Exception):
    """The connection could not be opened, or broke in mid-call (then nobody knows whether the call took effect)."""


@dataclass(frozen=True, slots=True, order=True)
class NimbusAddress:
    """Where a Nimbus listens for Thrift."""

    host: str
    port: int = NIMBUS_PORT

    def __str__(self) -> str:
        return host_and_port(self.host, self.port)

    @classmethod
    def parse(cls, text: str) -> NimbusAddress:
        """From `host` or `host:port`, an IPv6 address in brackets; ValueError for anything else."""
        host, colon, port = (text, "", "") if text.endswith("]") else text.rpartition(":")
        if not colon:
            return cls(without_brackets(text)) if text else _refuse(text)
        if not host or (":" in host and not host.startswith("[")) or not port.isdigit() or not 0 < int(port) < 65536:
            return _refuse(text)
        return cls(without_brackets(host), int(port))


def _refuse(text: str) -> NimbusAddress:
    raise ValueError(f"Nimbus address {text!r}: give host or host:port with a port of 1 to 65535")


class Connection(Protocol):
    """What the client needs of a connection; tests replace it."""

    def call(self, method: str, *args: Any) -> Any: ...

    def close(self) -> None: ...


class ThriftConnection:
    """An open connection, over IPv6 or IPv4. Not thread-safe: one call at a time."""

    def __init__(self, address: NimbusAddress, timeout_seconds: float) -> None:
        try:
            connected = socket.create_connection((address.host, address.port), max(0.001, timeout_seconds))
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            framed = TCyFramedTransportFactory().get_transport(TSocket(sock=connected))  # type: ignore[no-untyped-call]
            protocol = TCyBinaryProtocolFactory().get_protocol(framed)  # type: ignore[no-untyped-call]
            self._client = TClient(storm_thrift.Nimbus, protocol)
        except (OSError, TTransportException, UnicodeError) as error:  # the last of a host name that is none
            raise ConnectionBroken(str(error)) from error

    def call(self, method: str, *args: Any) -> Any:
        """One remote call. Storm's own exceptions pass through; trouble on the way becomes ConnectionBroken."""
        try:
            return getattr(self._client, method)(*args)
        except (OSError, TTransportException, EOFError) as error:
            raise ConnectionBroken(str(error) or type(error).__name__) from error
        except NO_NIMBUS as error:
            raise ConnectionBroken(f"what answers there is no Nimbus: {error}") from error

    def close(self) -> None:
        with contextlib.suppress(OSError, TTransportException):
            self._client.close()
