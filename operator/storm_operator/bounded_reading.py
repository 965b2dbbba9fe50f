"""An answer that must be there as a whole by a time, whoever it is that answers.

Libraries bound the silence between two bytes: a server that sends its headers one byte after the other, or says `100
Continue` for ever, would keep them for ever, and with them everything that waits for its answer.
"""

from __future__ import annotations

import io
import socket
import time
from http.client import HTTPResponse
from typing import Any, cast

import requests
from requests.adapters import HTTPAdapter

READ_BYTES = 64 * 1024


class Deadline:
    """When all of an answer must be there; `has_begun`: some of it is."""

    def __init__(self, seconds: float) -> None:
        self._ends_at = time.monotonic() + seconds
        self.has_begun = False

    def has_passed(self) -> bool:
        return time.monotonic() >= self._ends_at

    def seconds_left(self) -> float:
        """TimeoutError when there are none."""
        left = self._ends_at - time.monotonic()
        if left <= 0.0:
            raise TimeoutError
        return left


def answer_of(connection: socket.socket, deadline: Deadline, method: str | None = None) -> HTTPResponse:
    """What `connection` answers to a request; reading it raises TimeoutError at the deadline.

    A silence that the connection itself has a time-out for still ends it sooner.
    """
    return HTTPResponse(cast("socket.socket", _Incoming(connection, deadline)), method=method)


def session_until(deadline: Deadline) -> requests.Session:
    """A session of `requests` whose answers must be there by then, those of redirections and proxies together."""
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, _Adapter(deadline))
    return session


class _Incoming(io.RawIOBase):
    """What a connection receives, as `http.client` reads it: to the end, though it may have closed the socket."""

    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        self._connection = connection
        self._received = connection.makefile("rb", buffering=0)
        self._deadline = deadline
        self._silence_seconds = connection.gettimeout()

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self, READ_BYTES)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._deadline.seconds_left()
        self._connection.settimeout(left if self._silence_seconds is None else min(left, self._silence_seconds))
        received = self._received.readinto(buffer)
        self._deadline.has_begun |= bool(received)
        return received

    def close(self) -> None:
        self._received.close()
        super().close()


class _Adapter(HTTPAdapter):
    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self._bound(self.poolmanager)

    def proxy_manager_for(self, proxy: Any, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **kwargs)
        self._bound(manager)
        return manager

    def _bound(self, manager: Any) -> None:
        """Let the manager's connections read their answers by the deadline; all else about them is as it was."""

        def answered(connection: socket.socket, *, method: str | None = None) -> HTTPResponse:
            return answer_of(connection, self._deadline, method)

        own = {"response_class": staticmethod(answered)}
        manager.pool_classes_by_scheme = {
            scheme: type(pool.__name__, (pool,), {"ConnectionCls": type("Connection", (pool.ConnectionCls,), own)})
            for scheme, pool in manager.pool_classes_by_scheme.items()
        }
