"""One Thrift connection to one Nimbus: framed transport, binary protocol, no SASL (Storm's SimpleTransportPlugin)."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import thriftpy2
from thriftpy2.protocol import TCyBinaryProtocolFactory
from thriftpy2.protocol.cybin import ProtocolError  # type: ignore[attr-defined]
from thriftpy2.protocol.exc import TProtocolException
from thriftpy2.rpc import make_client
from thriftpy2.transport import TCyFramedTransportFactory, TTransportException

from storm_operator.core.nimbus_name import NIMBUS_PORT

storm_thrift = thriftpy2.load(str(Path(__file__).with_name("storm.thrift")), module_name="storm_thrift")


class ConnectionBroken(Exception):
    """The connection could not be opened, or broke in mid-call (then nobody knows whether the call took effect)."""


@dataclass(frozen=True, slots=True, order=True)
class NimbusAddress:
    """Where a Nimbus listens for Thrift."""

    host: str
    port: int = NIMBUS_PORT

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> NimbusAddress:
        """From `host` or `host:port`; ValueError for anything else."""
        host, colon, port = text.rpartition(":")
        if not colon:
            return cls(text) if text else _refuse(text)
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            return _refuse(text)
        return cls(host, int(port))


def _refuse(text: str) -> NimbusAddress:
    raise ValueError(f"Nimbus address {text!r}: give host or host:port with a port of 1 to 65535")


class Connection(Protocol):
    """What the client needs of a connection; tests replace it."""

    def call(self, method: str, *args: Any) -> Any: ...

    def close(self) -> None: ...


class ThriftConnection:
    """An open connection. Not thread-safe: one call at a time."""

    def __init__(self, address: NimbusAddress, timeout_seconds: float) -> None:
        try:
            self._client = make_client(
                storm_thrift.Nimbus,
                address.host,
                address.port,
                proto_factory=TCyBinaryProtocolFactory(),  # type: ignore[no-untyped-call]
                trans_factory=TCyFramedTransportFactory(),
                timeout=max(1, round(timeout_seconds * 1000)),
            )
        except (OSError, TTransportException) as error:
            raise ConnectionBroken(str(error)) from error

    def call(self, method: str, *args: Any) -> Any:
        """One remote call. Storm's own exceptions pass through; trouble on the way becomes ConnectionBroken."""
        try:
            return getattr(self._client, method)(*args)
        except (OSError, TTransportException, EOFError) as error:
            raise ConnectionBroken(str(error) or type(error).__name__) from error
        except (ProtocolError, TProtocolException) as error:
            raise ConnectionBroken(f"what answers there is no Nimbus: {error}") from error

    def close(self) -> None:
        with contextlib.suppress(OSError, TTransportException):
            self._client.close()
