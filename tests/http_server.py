"""A small HTTP server on loopback for tests: what it answers is a function of the path."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from urllib.parse import urlsplit

Answer = Callable[[str], tuple[int, bytes]]
Sent = Callable[[], Iterable[bytes]]


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
            usual = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8", "Content-Length": str(len(body))}
            for name, value in {**usual, **headers}.items():
                self.send_header(name, value)
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


@contextmanager
def speaking(parts: Sent, pause_seconds: float = 0.0) -> Iterator[str]:
    """The URL of a server that sends `parts` to each who asks, until they go away."""
    ended = threading.Event()

    def speak(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            for part in parts():
                if ended.wait(pause_seconds):
                    return
                connection.sendall(part)

    def accept(server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                threading.Thread(target=speak, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, args=(server,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            ended.set()
            server.shutdown(socket.SHUT_RDWR)
