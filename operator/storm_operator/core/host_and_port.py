"""A host and a port as one text and back: an IPv6 address stands in brackets. Pure."""

from __future__ import annotations


def host_and_port(host: str, port: int | str) -> str:
    """As in a URL."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def without_brackets(host: str) -> str:
    """The address that is connected to, or listened on."""
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host
