"""Addresses of servers, as command lines give them."""

from __future__ import annotations

from urllib.parse import urlsplit

LONGEST_LABEL = 63


def is_host(host: str) -> bool:
    """Whether it can be the name of a host, or an address; of an IPv6 address it is said without a look."""
    labels = host.removesuffix(".").split(".")
    return ":" in host or all(0 < len(label) <= LONGEST_LABEL for label in labels)


def checked_url(option: str, url: str) -> str:
    """`url`; ValueError, with the option's name, when it is none of a server."""
    try:
        parts = urlsplit(url)
        usable = (
            parts.scheme in ("http", "https")
            and is_host(parts.hostname or "")
            and (parts.port is None or parts.port > 0)
        )
    except ValueError:
        usable = False
    if not usable:
        raise ValueError(f"{option} is {url!r}: expected a URL such as http://10.77.0.11:9464")
    return url
