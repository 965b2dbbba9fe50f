"""Calls to peers, noted as they end: how many, how they went, how long they took."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from storm_operator.adapters.errors import ZooKeeperUnreachable
from storm_operator.adapters.nimbus.connection import Connection, ConnectionBroken, NimbusAddress, ThriftConnection
from storm_operator.adapters.zookeeper import Nodes


class Peer(StrEnum):
    """Whom the operator calls."""

    NIMBUS = "nimbus"
    ZOOKEEPER = "zookeeper"
    KUBERNETES = "kubernetes"
    AGENT = "agent"
    PROMETHEUS = "prometheus"


class CallOutcome(StrEnum):
    """How a call went: REFUSED is an answer, UNREACHABLE is none."""

    OK = "ok"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"


class CallBook(Protocol):
    """Where calls are noted. Safe for threads."""

    def note(self, peer: Peer, verb: str, outcome: CallOutcome, seconds: float) -> None: ...


class NoBook:
    """For those who do not want to know."""

    def note(self, peer: Peer, verb: str, outcome: CallOutcome, seconds: float) -> None:
        """Nothing."""


@contextmanager
def noted(book: CallBook, peer: Peer, verb: str, unreachable: tuple[type[Exception], ...]) -> Iterator[None]:
    """Note the one call made inside; an exception of `unreachable` is no answer, any other is a refusal."""
    started, outcome = time.perf_counter(), CallOutcome.REFUSED
    try:
        yield
        outcome = CallOutcome.OK
    except unreachable:
        outcome = CallOutcome.UNREACHABLE
        raise
    finally:
        book.note(peer, verb, outcome, time.perf_counter() - started)


class NotedConnection:
    """A Thrift connection to Nimbus whose calls are noted; the verbs are Nimbus' own."""

    def __init__(self, address: NimbusAddress, timeout_seconds: float, book: CallBook) -> None:
        self._book = book
        with noted(book, Peer.NIMBUS, "connect", (ConnectionBroken,)):
            self._connection: Connection = ThriftConnection(address, timeout_seconds)

    def call(self, method: str, *args: Any) -> Any:
        with noted(self._book, Peer.NIMBUS, method, (ConnectionBroken,)):
            return self._connection.call(method, *args)

    def close(self) -> None:
        self._connection.close()


@dataclass(frozen=True, slots=True)
class NotedNodes:
    """ZooKeeper nodes whose reads and writes are noted. That there is no such node is an answer, and no refusal."""

    nodes: Nodes
    book: CallBook

    def get(self, path: str) -> bytes | None:
        with self._noted("get"):
            return self.nodes.get(path)

    def put(self, path: str, content: bytes) -> None:
        with self._noted("put"):
            self.nodes.put(path, content)

    def remove(self, path: str) -> None:
        with self._noted("remove"):
            self.nodes.remove(path)

    def children(self, path: str) -> tuple[str, ...]:
        with self._noted("children"):
            return self.nodes.children(path)

    def _noted(self, verb: str) -> AbstractContextManager[None]:
        return noted(self.book, Peer.ZOOKEEPER, verb, (ZooKeeperUnreachable,))
