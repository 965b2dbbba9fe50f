"""One page of an agent, taken within a time and a size, whoever it is that answers."""

from __future__ import annotations

import base64
import socket
import ssl
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse
from urllib.parse import SplitResult, quote, unquote, urlsplit

from requests.utils import DEFAULT_CA_BUNDLE_PATH

from storm_operator.bounded_reading import READ_BYTES, Deadline, answer_of
from storm_operator.core.short_repr import short_repr

MAXIMUM_BYTES = 64 * 1024 * 1024
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
    deadline = Deadline(timeout_seconds)
    try:
        status, body = _exchange(urlsplit(url), deadline)
    except TimeoutError as error:
        began = "finish its answer" if deadline.has_begun else "answer"
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


def _exchange(url: SplitResult, deadline: Deadline) -> tuple[int, bytes]:
    """Status and body; of one that is not OK, none."""
    host, port = url.hostname or "", url.port or DEFAULT_PORTS.get(url.scheme, 80)
    with (
        socket.create_connection((host, port), deadline.seconds_left()) as plain,
        _secured(plain, url) as connection,
    ):
        asking = HTTPConnection(host, port)
        asking.sock = connection
        asking.request("GET", _target(url), headers={"Connection": "close", "Accept": "text/plain", **_login(url)})
        response = answer_of(connection, deadline, "GET")
        response.begin()
        return response.status, _body(response) if response.status == HTTPStatus.OK else b""


def _body(response: HTTPResponse) -> bytes:
    body = bytearray()
    while part := response.read(READ_BYTES):
        body += part
        if len(body) > MAXIMUM_BYTES:
            raise ScrapeError(f"answered with more than {MAXIMUM_BYTES} bytes")
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
