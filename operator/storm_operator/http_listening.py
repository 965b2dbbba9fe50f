"""Where servers listen: at one address, or at all that the machine has, of IPv6 and IPv4 alike."""

from __future__ import annotations

import socket
import sys
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ALL_ADDRESSES = "::"
"""For an IPv6-only cluster as for others: callers over IPv4 are heard too, and they alone where there is no IPv6."""
ALL_IPV4_ADDRESSES = "0.0.0.0"  # noqa: S104 - what stands for all addresses, where there is no IPv6


class HttpServer(ThreadingHTTPServer):
    """A thread for each connection; OSError when the address cannot be had."""

    daemon_threads = True
    silence_seconds = 60.0
    """Who says or takes nothing for so long is hung up on: each connection keeps a thread."""

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
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

    def handle_error(self, request: object, client_address: object) -> None:
        """A caller that goes away in the middle of an answer is no news; anything else is a bug to be seen."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]
