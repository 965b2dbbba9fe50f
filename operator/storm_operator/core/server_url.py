"""Addresses of servers, as command lines give them."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

LONGEST_LABEL = 63
USERINFO = re.compile(r"^([^/@]*//)?.*@", re.DOTALL)
"""Of what is no URL, as where the password has a / in it: up to the last @."""


def is_host(host: str) -> bool:
    """Whether it can be the name of a host, or an address; of an IPv6 address it is said without a look."""
    labels = host.removesuffix(".").split(".")
    return ":" in host or all(0 < len(label) <= LONGEST_LABEL for label in labels)


def is_loopback(host: str) -> bool:
    """Whether it names this very machine, whatever DNS says."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def proxies_to(url: str) -> dict[str, str] | None:
    """Of `requests`. None: those of the environment, behind which others may be; nobody else's loopback is ours."""
    return {"http": "", "https": ""} if is_loopback(urlsplit(url).hostname or "") else None


def check_address(option: str, text: str, address: str, example: str) -> None:
    """ValueError, with the option's name and all of its text, when `address` is no host with a port."""
    host, _, port = address.rpartition(":")
    if not is_host(host) or not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(f"{option}: {text!r} must be HOST:PORT, such as {example}")


def check_zookeeper(option: str, text: str) -> None:
    """ValueError, with the option's name, when `text` is not the addresses of a ZooKeeper's servers.

    A path may follow, below which everything is.
    """
    servers, _, _ = text.partition("/")
    for address in servers.split(","):
        check_address(option, text, address, "zookeeper.example:2181, several with commas between them")


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
        raise ValueError(f"{option} is {without_userinfo(url)!r}: expected a URL such as http://10.77.0.11:9464")
    return url


def without_userinfo(url: str) -> str:
    """`url` as messages say it, which many may read: without the name and the password that it may begin with."""
    try:
        parts = urlsplit(url)
        is_url = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_url = False
    if is_url:
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return USERINFO.sub(lambda found: found[1] or "", url)
