"""Where metrics are asked for, as command lines give it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from storm_operator.core.server_url import checked_url, without_userinfo


def parse_agents(texts: Sequence[str]) -> Mapping[str, str]:
    """URL of the metrics by supervisor host, from `host=url` texts; `/metrics` is meant when the URL has no path."""
    targets: dict[str, str] = {}
    for text in texts:
        host, equals, url = text.partition("=")
        if not equals or not host:
            raise ValueError(
                f"--agent is {without_userinfo(text)!r}: expected HOST=URL, e.g. 10.77.0.11=http://10.77.0.11:9464"
            )
        if host in targets:
            raise ValueError(f"--agent names the host {host} twice: expected each supervisor once")
        checked = checked_url("--agent", url)
        targets[host] = checked if urlsplit(checked).path not in ("", "/") else checked.rstrip("/") + "/metrics"
    return targets
