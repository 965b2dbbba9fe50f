"""Supervisors' host names as people are shown them: in Kubernetes all of a cluster end alike, in 40 characters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import ip_address


def short_names(hosts: Sequence[str]) -> Mapping[str, str]:
    """Each supervisor's host by what stands before its first dot; all by their whole names where two were alike then.

    Addresses stay whole. The page has the same rule, in hosts.js.
    """
    names = [host if _is_address(host) else host.partition(".")[0] for host in hosts]
    is_clear = len(set(names)) == len(names) and all(names)
    return dict(zip(hosts, names if is_clear else hosts, strict=True))


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
