"""GET /healthz: 200 while all is well, else 503 with the reason."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from http.server import ThreadingHTTPServer

import pytest
import requests

from storm_operator.kube.health import serve_health


class Health:
    def __init__(self) -> None:
        self.problem = ""
        self.server: ThreadingHTTPServer = serve_health(0, lambda: self.problem, "127.0.0.1")

    def get(self, path: str) -> tuple[int, str]:
        answer = requests.get(f"http://127.0.0.1:{self.server.server_port}{path}", timeout=10)
        return answer.status_code, answer.text


@pytest.fixture(scope="module")
def server() -> Iterator[Health]:
    health = Health()
    yield health
    health.server.socket.shutdown(socket.SHUT_RD)  # wakes it up: it looks for its end twice a second only
    health.server.shutdown()
    health.server.server_close()


@pytest.fixture
def health(server: Health) -> Health:
    server.problem = ""
    return server


def test_all_is_well(health: Health) -> None:
    assert health.get("/healthz") == (200, "ok")


def test_problem_is_told_as_it_is_now(health: Health) -> None:
    health.problem = "the loop of nimbus:6627 has ended"
    assert health.get("/healthz") == (503, "the loop of nimbus:6627 has ended")
    health.problem = ""
    assert health.get("/healthz") == (200, "ok")


def test_nothing_else_is_served(health: Health) -> None:
    status, text = health.get("/metrics")
    assert status != 200
    assert text == "only /healthz is served"
