"""Servers are reached over IPv6 and IPv4 alike, or IPv4 alone, and held by no silence, nor by many callers."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from threading import Event, Semaphore, Thread

import pytest
import requests

from loopbacks import BOTH_LOOPBACKS
from storm_operator.agent.http_server import serve
from storm_operator.agent.options import DEFAULT_LISTEN, parse_address
from storm_operator.console.api import Api
from storm_operator.console.server import serve_page
from storm_operator.core.host_and_port import host_and_port
from storm_operator.http_listening import ALL_ADDRESSES, HttpServer
from storm_operator.kube.health import serve_health
from storm_operator.operator_metrics import OperatorMetrics, RunMode

PATIENCE_SECONDS = 30.0


@contextmanager
def ending(server: HttpServer) -> Iterator[HttpServer]:
    try:
        yield server
    finally:
        server.server_close()


def status_at(host: str, server: HttpServer, path: str) -> int:
    return requests.get(f"http://{host_and_port(host, server.server_port)}{path}", timeout=5).status_code


@pytest.mark.parametrize("host", BOTH_LOOPBACKS)
def test_health_is_told_over_both(host: str) -> None:
    with ending(serve_health(0, str)) as server:
        assert status_at(host, server, "/healthz") == 200


@pytest.mark.parametrize("host", BOTH_LOOPBACKS)
def test_metrics_are_told_over_both(host: str) -> None:
    with ending(OperatorMetrics(RunMode.KUBERNETES).serve(0)) as server:
        assert status_at(host, server, "/metrics") == 200


@pytest.mark.parametrize("host", BOTH_LOOPBACKS)
def test_page_is_shown_over_both(host: str) -> None:
    with ending(serve_page(Api(dict), ALL_ADDRESSES, 0)) as server:
        assert status_at(host, server, "/") == 200


def test_agents_listen_at_all_addresses_if_not_told_otherwise() -> None:
    assert parse_address("--listen", DEFAULT_LISTEN) == (ALL_ADDRESSES, 9464)


def test_without_ipv6_all_addresses_are_those_of_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    with ending(HttpServer((ALL_ADDRESSES, 0), BaseHTTPRequestHandler)) as server:
        assert server.socket.family is socket.AF_INET
        socket.create_connection(("127.0.0.1", server.server_port), 5).close()


def test_one_address_is_that_alone() -> None:
    with ending(HttpServer(("127.0.0.1", 0), BaseHTTPRequestHandler)) as server:
        assert server.socket.getsockname()[0] == "127.0.0.1"


SERVERS: dict[str, Callable[[], HttpServer]] = {
    "health": lambda: serve_health(0, str),
    "metrics": lambda: OperatorMetrics(RunMode.KUBERNETES).serve(0),
    "page": lambda: serve_page(Api(dict), ALL_ADDRESSES, 0),
    "agent": lambda: serve((ALL_ADDRESSES, 0), {}),
}


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize("said", [b"", b"GET /healthz HTTP/1.1\r\n"], ids=["nothing", "half a request"])
def test_who_falls_silent_is_hung_up_on(name: str, said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    with ending(SERVERS[name]()) as server:
        monkeypatch.setattr(server, "silence_seconds", 0.05)
        with socket.create_connection(("127.0.0.1", server.server_port), PATIENCE_SECONDS) as caller:
            caller.sendall(said)
            assert caller.recv(1) == b"", "closed, without an answer to what was not asked"


def test_agents_hang_up_sooner_than_others() -> None:
    waits = {}
    for name, opened in SERVERS.items():
        with ending(opened()) as server:
            waits[name] = server.silence_seconds
    assert waits == {"health": 60.0, "metrics": 60.0, "page": 60.0, "agent": 5.0}


@pytest.mark.parametrize("name", SERVERS)
def test_who_keeps_connections_open_keeps_nobody_else_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HttpServer, "most_connections", 2)
    with ending(SERVERS[name]()) as server, ExitStack() as idle:
        longest, *others = (
            idle.enter_context(socket.create_connection(("127.0.0.1", server.server_port), PATIENCE_SECONDS))
            for _ in range(2)
        )
        assert status_at("127.0.0.1", server, "/healthz" if name != "page" else "/") < 500
        assert longest.recv(1) == b"", "hung up on, for another"
        for caller in others:
            caller.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert caller.recv(5) == b"HTTP/", "still served"


def test_while_all_that_there_may_be_are_answered_the_next_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HttpServer, "most_connections", 2)
    answering, may_end = Semaphore(0), Event()

    class Busy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answering.release()
            may_end.wait(PATIENCE_SECONDS)
            with suppress(OSError):
                self.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n")

        def log_message(self, *_: object) -> None:
            pass

    with ending(HttpServer(("127.0.0.1", 0), Busy)) as server, ThreadPoolExecutor(3) as callers:
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        asked = [callers.submit(status_at, "127.0.0.1", server, "/") for _ in range(2)]
        assert all(answering.acquire(timeout=PATIENCE_SECONDS) for _ in range(2))
        next_one = callers.submit(status_at, "127.0.0.1", server, "/")
        assert not answering.acquire(timeout=0.3), "a third thread"
        may_end.set()
        assert next_one.result() == 200
        assert any(one.exception() for one in asked), "hung up on for it"
        server.shutdown()
