"""Addresses of HTTP servers, as command lines give them."""

from __future__ import annotations

from urllib.parse import urlsplit


def checked_url(option: str, url: str) -> str:
    """`url`; ValueError, with the option's name, when it is none of a server."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable:
        raise ValueError(f"{option} is {url!r}: expected a URL such as http://10.77.0.11:9464")
    return url
