"""One page of an agent, taken within a time and a size, whoever it is that answers.

Libraries bound the silence between two bytes: an agent that sends headers one byte after the other, or says `100
Continue` for ever, would keep them for ever, and with them everything that waits for all agents.
"""

from __future__ import annotations

import base64
import io
import socket
import ssl
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any, cast
from urllib.parse import SplitResult, quote, unquote, urlsplit

from requests.utils import DEFAULT_CA_BUNDLE_PATH

from storm_operator.core.short_repr import short_repr

MAXIMUM_BYTES = 64 * 1024 * 1024
READ_BYTES = 64 * 1024
DEFAULT_PORTS: Mapping[str, int] = {"http": 80, "https": 443}
LEFT_AS_THEY_ARE = "%/?&=~:@!$'()*+,;#[]"


class ScrapeError(Exception):
    """An agent did not give metrics; the message says why, without the agent's name."""


class NoAnswer(ScrapeError):
    """It did not answer, or not in time."""


def fetch_text(url: str, timeout_seconds: float) -> str:
    """GET `url`; ScrapeError when it does not answer in time, answers with an error, or never stops talking.

    Redirections are not followed, nor is a proxy asked: agents are beside us.
    """
    taken = _Taken(timeout_seconds)
    try:
        status, body = _exchange(urlsplit(url), taken)
    except TimeoutError as error:
        began = "finish its answer" if taken.bytes else "answer"
        raise NoAnswer(f"did not {began} within {timeout_seconds:g} s") from error
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "strerror", None) or short_repr(str(error))
        raise NoAnswer(f"did not answer: {type(error).__name__}: {reason}") from error
    if status != HTTPStatus.OK:
        raise ScrapeError(f"answered {status} instead of 200")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ScrapeError("answered with something that is not UTF-8 text") from error


class _Taken:
    """What of the time and of the size is used."""

    def __init__(self, seconds: float) -> None:
        self._ends_at = time.monotonic() + seconds
        self.bytes = 0

    def seconds_left(self) -> float:
        """TimeoutError when there are none."""
        left = self._ends_at - time.monotonic()
        if left <= 0.0:
            raise TimeoutError
        return left

    def add(self, received: int) -> None:
        self.bytes += received
        if self.bytes > MAXIMUM_BYTES:
            raise ScrapeError(f"answered with more than {MAXIMUM_BYTES} bytes")


class _Incoming(io.RawIOBase):
    """What a connection receives, as `http.client` reads it."""

    def __init__(self, connection: socket.socket, taken: _Taken) -> None:
        self._connection = connection
        self._taken = taken

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self, READ_BYTES)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._connection.settimeout(self._taken.seconds_left())
        received = self._connection.recv_into(buffer)
        self._taken.add(received)
        return received


def _exchange(url: SplitResult, taken: _Taken) -> tuple[int, bytes]:
    """Status and body; of one that is not OK, none."""
    host, port = url.hostname or "", url.port or DEFAULT_PORTS.get(url.scheme, 80)
    with (
        socket.create_connection((host, port), taken.seconds_left()) as plain,
        _secured(plain, url) as connection,
    ):
        asking = HTTPConnection(host, port)
        asking.sock = connection
        asking.request("GET", _target(url), headers={"Connection": "close", "Accept": "text/plain", **_login(url)})
        response = HTTPResponse(cast("socket.socket", _Incoming(connection, taken)), method="GET")
        response.begin()
        return response.status, _body(response) if response.status == HTTPStatus.OK else b""


def _body(response: HTTPResponse) -> bytes:
    body = bytearray()
    while part := response.read(READ_BYTES):
        body += part
    if response.length:
        raise HTTPException(f"it broke off {response.length} bytes before its end")
    return bytes(body)


def _secured(plain: socket.socket, url: SplitResult) -> AbstractContextManager[socket.socket]:
    if url.scheme == "http":
        return nullcontext(plain)
    return ssl.create_default_context(cafile=DEFAULT_CA_BUNDLE_PATH).wrap_socket(plain, server_hostname=url.hostname)


def _target(url: SplitResult) -> str:
    return quote(f"{url.path or '/'}{'?' if url.query else ''}{url.query}", safe=LEFT_AS_THEY_ARE)


def _login(url: SplitResult) -> Mapping[str, str]:
    if not url.username and not url.password:
        return {}
    login = f"{unquote(url.username or '')}:{unquote(url.password or '')}"
    return {"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}
