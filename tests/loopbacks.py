"""This machine's own addresses, for tests of what must be reached over IPv4 and over IPv6."""

from __future__ import annotations

import socket

import pytest


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


BOTH_LOOPBACKS = [
    "127.0.0.1",
    pytest.param("::1", marks=pytest.mark.skipif(not has_ipv6(), reason="no IPv6 on this machine")),
]
