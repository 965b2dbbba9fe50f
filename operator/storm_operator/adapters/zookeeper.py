"""A ZooKeeper session whose every operation is bounded in time and that reconnects by itself.

Operations are whole reads and whole writes of one node, so that repeating one after a lost connection is harmless.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import (
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NodeExistsError,
    NoNodeError,
    OperationTimeoutError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import KazooRetry

from storm_operator.adapters.errors import AdapterError, MalformedDocument, ZooKeeperUnreachable

# kazoo reports every failed attempt to connect; the errors raised here say what matters, once.
logging.getLogger("kazoo").setLevel(logging.CRITICAL + 1)

LARGEST_NODE_BYTES = 1_000_000  # ZooKeeper's jute.maxbuffer is 1 MiB by default; beyond it the connection just breaks
LONGEST_RECONNECT_PAUSE_SECONDS = 2
LOOK_SECONDS = 0.2
"""While a connection is waited for, so often is looked whether that is still wanted."""
SERVERS_KEYS = "storm.zookeeper.servers and storm.zookeeper.port"
CONNECTION_TROUBLE = (ConnectionLoss, SessionExpiredError, OperationTimeoutError, KazooTimeoutError)


class Nodes(Protocol):
    """What documents need of ZooKeeper; tests replace it with a dictionary. Raises ZooKeeperUnreachable."""

    def get(self, path: str) -> bytes | None:
        """The node's content; None when there is no such node."""

    def put(self, path: str, content: bytes) -> None:
        """Writes the node, with its parents when they are missing."""

    def remove(self, path: str) -> None:
        """Removes the node if it is there."""

    def children(self, path: str) -> tuple[str, ...]:
        """Names under the node, sorted; empty when there is no such node."""


class ZooKeeperSession:
    """Nodes of a real ZooKeeper. Thread-safe.

    `servers` is `host:port,host:port`. Nothing is asked before the first operation, which waits for the connection;
    no operation takes longer than `timeout_seconds`. Lost sessions are replaced in the background. `named_by` is what
    the address was read from, for errors. `on_connected` is called in another thread after each (re)connection. Once
    `gives_up`, no connection is waited for.
    """

    def __init__(
        self,
        servers: str,
        *,
        timeout_seconds: float = 10.0,
        session_timeout_seconds: float = 10.0,
        named_by: str = SERVERS_KEYS,
        on_connected: Callable[[], None] = lambda: None,
        gives_up: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._servers = servers
        self._timeout = timeout_seconds
        self._named_by = named_by
        self._on_connected = on_connected
        self._gives_up = gives_up
        self._clock = clock
        self._connected = threading.Event()
        self._lock = threading.Lock()
        self._started = False
        self._client = KazooClient(
            hosts=servers,
            timeout=session_timeout_seconds,
            connection_retry=KazooRetry(max_tries=-1, max_delay=LONGEST_RECONNECT_PAUSE_SECONDS),
        )
        self._client.add_listener(self._on_state)

    def get(self, path: str) -> bytes | None:
        try:
            content, _ = self._run(f"read {path}", lambda: self._client.get_async(path))
        except NoNodeError:
            return None
        return bytes(content)

    def put(self, path: str, content: bytes) -> None:
        if len(content) > LARGEST_NODE_BYTES:
            raise MalformedDocument(
                f"{path} would be {len(content)} bytes; a ZooKeeper node holds at most {LARGEST_NODE_BYTES}"
            )
        what = f"write {path}"
        try:
            self._run(what, lambda: self._client.set_async(path, content))
        except NoNodeError:
            try:
                self._run(what, lambda: self._client.create_async(path, content, makepath=True))
            except NodeExistsError:  # somebody else, or our own attempt whose answer was lost
                self._run(what, lambda: self._client.set_async(path, content))

    def remove(self, path: str) -> None:
        try:
            self._run(f"remove {path}", lambda: self._client.delete_async(path))
        except NoNodeError:
            return

    def children(self, path: str) -> tuple[str, ...]:
        try:
            return tuple(sorted(self._run(f"list {path}", lambda: self._client.get_children_async(path))))
        except NoNodeError:
            return ()

    def enqueue(self, path: str, content: bytes) -> str:
        """Adds a node that ends with the session, named `path` and a number higher than all before; its path.

        Repeated after a lost answer it may leave two.
        """

        def start() -> Any:
            return self._client.create_async(path, content, ephemeral=True, sequence=True, makepath=True)

        return str(self._run(f"write {path}", start))

    def close(self) -> None:
        """Ends the session; the object cannot be used again."""
        with self._lock:
            if self._started:
                try:
                    self._client.stop()
                    self._client.close()
                except KazooException:
                    pass  # it was not connected: nothing to end

    def _run(self, what: str, start: Callable[[], Any]) -> Any:
        """The result of one asynchronous kazoo operation, repeated while the connection is in trouble."""
        self._start()
        deadline = self._clock() + self._timeout
        trouble = "no server answers"
        while self._is_connected_by(deadline):
            try:
                return start().get(timeout=max(deadline - self._clock(), 0.001))
            except CONNECTION_TROUBLE as error:
                trouble = type(error).__name__
                # The state listener runs in another thread: give it the chance to see what we saw.
                time.sleep(0.05)
            except (NoNodeError, NodeExistsError):
                raise
            except ConnectionClosedError as error:
                raise ZooKeeperUnreachable(f"cannot {what}: the ZooKeeper session is closed") from error
            except KazooException as error:
                reason = str(error) or type(error).__name__
                raise AdapterError(f"ZooKeeper {self._servers} refuses to {what}: {reason}") from error
        waited = "so far" if self._clock() < deadline else f"within {self._timeout:g} s"
        raise ZooKeeperUnreachable(
            f"cannot {what}: ZooKeeper {self._servers} did not answer {waited} ({trouble}); check "
            f"that it runs, and that its address is right in {self._named_by}"
        )

    def _is_connected_by(self, deadline: float) -> bool:
        while (left := deadline - self._clock()) > 0:
            if self._connected.wait(min(left, LOOK_SECONDS)):
                return True
            if self._gives_up():
                return False
        return False

    def _start(self) -> None:
        with self._lock:
            if not self._started:
                self._started = True
                self._client.start_async()

    def _on_state(self, state: str) -> None:
        if state == KazooState.CONNECTED:
            self._connected.set()
            self._on_connected()
        else:
            self._connected.clear()
