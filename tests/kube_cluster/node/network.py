"""The node's network: a namespace, linked to this machine by a veth pair. Needs root.

The host reaches the node, its pods and its services by routes, so that a test may talk to any of them.
"""

from __future__ import annotations

import json
import subprocess
import zlib
from collections.abc import Iterable
from ipaddress import IPv4Network
from pathlib import Path

from kube_cluster.errors import KubeClusterError
from kube_cluster.layout import KubeLayout, mark_of
from storm_operator.local.namespaces import NAMED, inside_namespace

NODE_DEVICE = "eth0"
BLOCKS = range(200, 250)


def host_device(cluster: str) -> str:
    return f"kc-{cluster}"


def free_block(cluster: str) -> int:
    """The block of addresses, 10.BLOCK.0.0/16, that the cluster gets; no route of this machine leads into it."""
    routes = [route["dst"] for route in json.loads(_run(["ip", "-json", "route"]))]
    return choose_block(cluster, [IPv4Network(route) for route in routes if route != "default"])


def choose_block(cluster: str, routed: Iterable[IPv4Network]) -> int:
    """A block that overlaps none of the networks; each name begins to look at a place of its own."""
    routed = tuple(routed)
    start = zlib.crc32(cluster.encode()) % len(BLOCKS)
    blocks: list[int] = [*BLOCKS[start:], *BLOCKS[:start]]
    for block in blocks:
        wanted = IPv4Network(f"10.{block}.0.0/16")
        if not any(wanted.overlaps(network) for network in routed):
            return block
    raise KubeClusterError(f"no free address block: this machine routes all of 10.{BLOCKS[0]} to 10.{BLOCKS[-1]}")


def create_network(layout: KubeLayout) -> None:
    """Namespace, link, addresses, routes."""
    namespace, device = layout.mark, host_device(layout.name)
    ip_commands([f"netns add {namespace}", f"link add {device} type veth peer name {NODE_DEVICE} netns {namespace}"])
    ip_commands(
        [
            f"address add {layout.host_ip}/24 dev {device}",
            f"link set {device} up",
            f"route add {layout.pod_subnet} via {layout.node_ip}",
            f"route add {layout.service_subnet} via {layout.node_ip}",
        ]
    )
    ip_commands(
        [
            "link set lo up",
            f"address add {layout.node_ip}/24 dev {NODE_DEVICE}",
            f"link set {NODE_DEVICE} up",
            f"route add default via {layout.host_ip}",
        ],
        namespace,
    )
    with inside_namespace(namespace):
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def remove_network(cluster: str) -> None:
    """Delete what `create_network` made for the cluster of this name, however far it came."""
    if Path("/sys/class/net", host_device(cluster)).exists():
        ip_commands([f"link delete {host_device(cluster)}"])
    if (NAMED / mark_of(cluster)).exists():
        ip_commands([f"netns delete {mark_of(cluster)}"])


def ip_commands(commands: list[str], namespace: str | None = None) -> None:
    """Carry out commands of `ip`, in a named network namespace. Raises KubeClusterError at the first that fails."""
    where = ["-n", namespace] if namespace else []
    _run(["ip", *where, "-batch", "-"], "\n".join(commands))


def _run(command: list[str], text: str | None = None) -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise KubeClusterError(f"{' '.join(command)}: {done.stderr.strip()} ({text})")
    return done.stdout
