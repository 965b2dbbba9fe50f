from __future__ import annotations

import socket
from http import HTTPStatus

import pytest
import requests

from storm_operator.agent.http_server import Response, serve


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("127.0.0.1", "127.0.0.1"),
        pytest.param("::1", "[::1]", marks=pytest.mark.skipif(not has_ipv6(), reason="no IPv6 on this machine")),
    ],
)
def test_pages_are_served_at_addresses_of_both_families(address: str, host: str) -> None:
    server = serve((address, 0), {"/healthz": lambda: Response(HTTPStatus.OK, "text/plain", b"ok\n")})
    try:
        answer = requests.get(f"http://{host}:{server.server_address[1]}/healthz", timeout=5)
        assert (answer.status_code, answer.text) == (200, "ok\n")
    finally:
        server.server_close()
