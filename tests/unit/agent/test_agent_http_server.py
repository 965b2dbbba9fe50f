from __future__ import annotations

from http import HTTPStatus

import pytest
import requests

from loopbacks import BOTH_LOOPBACKS
from storm_operator.agent.http_server import Response, serve
from storm_operator.core.host_and_port import host_and_port


@pytest.mark.parametrize("address", BOTH_LOOPBACKS)
def test_pages_are_served_at_addresses_of_both_families(address: str) -> None:
    server = serve((address, 0), {"/healthz": lambda: Response(HTTPStatus.OK, "text/plain", b"ok\n")})
    try:
        answer = requests.get(f"http://{host_and_port(address, server.server_port)}/healthz", timeout=5)
        assert (answer.status_code, answer.text) == (200, "ok\n")
    finally:
        server.server_close()
