"""GET /healthz: 200 while all is well, else 503 with the reason, so that the kubelet starts the operator anew."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler

from storm_operator.http_listening import ALL_ADDRESSES, HttpServer

Problem = Callable[[], str]


def serve_health(port: int, problem: Problem, host: str = ALL_ADDRESSES) -> HttpServer:
    """Answer in a thread of its own; `problem` is asked each time and is empty when there is none."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            words = problem() if self.path == "/healthz" else "only /healthz is served"
            content = (words or "ok").encode()
            self.send_response(200 if not words else 503)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class' name
            """A probe every few seconds is no news."""

    server = HttpServer((host, port), Handler)
    threading.Thread(target=server.serve_forever, name="health", daemon=True).start()
    return server
