"""A small HTTP server on loopback for tests: what it answers is a function of the path."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from urllib.parse import urlsplit

Answer = Callable[[str], tuple[int, bytes]]


@contextmanager
def serving(
    answer: Answer, *, with_query: bool = False, headers: Mapping[str, str] = MappingProxyType({})
) -> Iterator[str]:
    """The URL of a server that answers GET and POST with (status, body), until the block ends.

    The body of a redirection is where it leads. `with_query`: the path comes with what stands behind its `?`.
    `headers` come with each answer.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, body = answer(self.path if with_query else urlsplit(self.path).path)
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", body.decode())
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
