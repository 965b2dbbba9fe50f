"""Where metrics are asked for, as command lines give it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit


def parse_agents(texts: Sequence[str]) -> Mapping[str, str]:
    """URL of the metrics by supervisor host, from `host=url` texts; `/metrics` is meant when the URL has no path."""
    targets: dict[str, str] = {}
    for text in texts:
        host, equals, url = text.partition("=")
        if not equals or not host:
            raise ValueError(f"--agent is {text!r}: expected HOST=URL, e.g. 10.77.0.11=http://10.77.0.11:9464")
        if host in targets:
            raise ValueError(f"--agent names the host {host} twice: expected each supervisor once")
        checked = checked_url("--agent", url)
        targets[host] = checked if urlsplit(checked).path not in ("", "/") else checked.rstrip("/") + "/metrics"
    return targets


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
