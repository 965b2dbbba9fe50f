"""One name for each Nimbus that Kubernetes knows by several. Pure."""

from __future__ import annotations

import ipaddress

from storm_operator.core.host_and_port import without_brackets

NIMBUS_PORT = 6627
SERVICE_SUFFIXES = (".svc.cluster.local", ".svc")


def nimbus_name(address: str, namespace: str) -> str:
    """`address` (host or host:port) as SERVICE.NAMESPACE:PORT where it is a Service's, else as it is, in small letters.

    A host of one word is a Service of `namespace`, as it is to the pods there. Not so `localhost`, an IP address, and a
    word with a dot at its end, which is no Service's name.
    """
    host, _, port = with_nimbus_port(address).rpartition(":")
    return f"{_host(host.lower(), namespace)}:{port}"


def with_nimbus_port(address: str) -> str:
    """`address` with Nimbus' usual port where it has none; an IPv6 address stands in brackets."""
    return address if ":" in address and not address.endswith("]") else f"{address}:{NIMBUS_PORT}"


def _host(host: str, namespace: str) -> str:
    if host.startswith("["):
        address = without_brackets(host)
        return f"[{ipaddress.ip_address(address)}]" if _is_ip_address(address) else host
    name = host.rstrip(".")
    if "." not in name:
        return host if name == "localhost" or name != host else f"{name}.{namespace}"
    if _is_ip_address(name):
        return name
    for suffix in SERVICE_SUFFIXES:
        service = name.removesuffix(suffix)
        if service != name and "." in service:
            return service
    return name


def means_the_same_everywhere(host: str) -> bool:
    """Whether `host` is no other in a pod than where it was written: no loopback, and no name that may be of a Service.

    A pod looks for names of one word, or of two (POD.SERVICE), in its own namespace first.
    """
    name = host.lower().rstrip(".")
    if _is_ip_address(name):
        address = ipaddress.ip_address(name)
        return not (address.is_loopback or address.is_unspecified)
    is_local = name.startswith("localhost.") or name.endswith(".localhost")
    return not is_local and name.count(".") >= 2


def _is_ip_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
