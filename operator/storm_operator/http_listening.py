"""Where servers listen: at one address, or at all that the machine has, of IPv6 and IPv4 alike."""

from __future__ import annotations

import socket
import sys
import threading
from collections import OrderedDict
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ALL_ADDRESSES = "::"
"""For an IPv6-only cluster as for others: callers over IPv4 are heard too, and they alone where there is no IPv6."""
ALL_IPV4_ADDRESSES = "0.0.0.0"  # noqa: S104 - what stands for all addresses, where there is no IPv6
HANG_UP_SECONDS = 1.0
"""Whoever is hung up on has gone by then, or another is hung up on, too."""


class HttpServer(ThreadingHTTPServer):
    """A thread for each connection; OSError when the address cannot be had."""

    daemon_threads = True
    silence_seconds = 60.0
    """Who says or takes nothing for so long is hung up on: each connection keeps a thread."""

    most_connections = 256
    """At once. For one more, who has been connected longest is hung up on: idle callers are to keep no probe out."""

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._free = threading.BoundedSemaphore(self.most_connections)
        self._open: OrderedDict[socket.socket, None] = OrderedDict()
        host, port = address
        if host == ALL_ADDRESSES and not socket.has_dualstack_ipv6():
            host = ALL_IPV4_ADDRESSES
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), handler)

    def server_bind(self) -> None:
        if self.address_family == socket.AF_INET6:
            with suppress(OSError):  # some systems keep the families apart: then it is IPv6 alone
                self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        connection.settimeout(self.silence_seconds)
        return connection, address

    def process_request(self, request: Any, client_address: Any) -> None:
        """In a thread of its own, once there may be one: until then nobody else is let in, either."""
        patience_seconds = 0.0
        while not self._free.acquire(timeout=patience_seconds):
            self._hang_up_on_the_longest()
            patience_seconds = HANG_UP_SECONDS
        self._open[request] = None
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._end(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._end(request)

    def _hang_up_on_the_longest(self) -> None:
        with suppress(KeyError, OSError):  # it has ended meanwhile
            longest, _ = self._open.popitem(last=False)
            longest.shutdown(socket.SHUT_RDWR)

    def _end(self, request: socket.socket) -> None:
        self._open.pop(request, None)
        self._free.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """A caller that goes away in the middle of an answer is no news; anything else is a bug to be seen."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]
