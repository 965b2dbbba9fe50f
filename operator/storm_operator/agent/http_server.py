"""The agent's HTTP: `/metrics` for scrapers, `/healthz` for probes, `/coordinate` for the other agents."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import NamedTuple

from storm_operator.http_listening import HttpServer

POLL_SECONDS = 3600.0  # how often the accept loop wakes for nothing; the process' end stops it


class Response(NamedTuple):
    """What a page answers."""

    status: HTTPStatus
    content_type: str
    body: bytes


Page = Callable[[], Response]


class _Server(HttpServer):
    request_queue_size = 64
    silence_seconds = 5.0


def serve(address: tuple[str, int], pages: Mapping[str, Page]) -> HttpServer:
    """Serves `pages` by path in threads of their own; OSError when the address cannot be had."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.get(self.path.partition("?")[0])
            response = page() if page else Response(HTTPStatus.NOT_FOUND, "text/plain", b"no such page\n")
            self.send_response_only(response.status)
            self.send_header("Content-Type", response.content_type)
            self.send_header("Content-Length", str(len(response.body)))
            self.end_headers()
            self.wfile.write(response.body)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - as in the base class
            """Scrapes come every few seconds: not worth a line each."""

    server = _Server(address, Handler)
    threading.Thread(target=server.serve_forever, args=(POLL_SECONDS,), name="http", daemon=True).start()
    return server
