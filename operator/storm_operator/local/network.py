"""Network namespaces, one per machine, whose only interface leads to the switch. Needs root.

Names tell which cluster they belong to, so that `remove_network` finds everything without a list.
"""

from __future__ import annotations

import ipaddress
import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import psutil

from storm_operator.local.namespaces import NAMED
from storm_operator.local.spec import ClusterLayout, LocalClusterError, LocalClusterSpec, namespace_of
from storm_operator.local.state_file import readable_layouts
from storm_operator.local.switch import MTU, SwitchConfig, SwitchPort, even_delays, mac_address, write_config

MACHINE_DEVICE = "eth0"
LONGEST_SOCKET_PATH = 107
ANSWER_SECONDS = 5.0
SYSTEM_DEVICES = Path("/sys/class/net")
NO_MACHINES_ADDRESSES = tuple(map(ipaddress.IPv4Network, ("0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/4")))
"""The kernel lets an interface have them, but sends nothing there: this machine itself, loopback, multicast."""
USUAL_SUBNETS = (LocalClusterSpec().subnet, "172.29.77.0/24", "192.168.177.0/24")


def host_device(cluster: str) -> str:
    return f"so-{cluster}"


def create_network(layout: ClusterLayout) -> None:
    """Namespaces, TAP devices and addresses; the switch itself is a daemon that attaches to the devices."""
    check_socket_path(layout.switch_socket)
    namespaces = [machine.namespace for machine in layout.machines if machine.namespace]
    _ip([f"netns add {name}" for name in namespaces])
    addresses = [layout.host, *(machine.host for machine in layout.machines)]
    _ip(_device_commands(host_device(layout.spec.name), 0, addresses))
    for port, namespace in enumerate(namespaces, start=1):
        _ip(["link set lo up", *_device_commands(MACHINE_DEVICE, port, addresses)], namespace)
    write_switch_config(layout, even_delays(len(addresses), layout.spec.one_way_delay_ms))


def why_no_networks() -> str | None:
    """Why the kernel lets no machine have a network of its own, as root of a container may find; None where it does.

    That is tried, once, and nothing stays of the trial.
    """
    trial = namespace_of("Trial", str(os.getpid()))  # no cluster's name has a capital
    try:
        _ip([f"netns add {trial}"])
        _ip([f"tuntap add dev {MACHINE_DEVICE} mode tap vnet_hdr"], trial)
    except LocalClusterError as reason:
        return f"machines can have no networks of their own here: {' '.join(str(reason).split())}"
    finally:
        if (NAMED / trial).exists():
            _ip([f"netns delete {trial}"])
    return None


def write_switch_config(layout: ClusterLayout, delays_ms: Mapping[tuple[int, int], float]) -> None:
    """What a (re)started switch begins with."""
    write_config(layout.switch_config, _switch_config(layout, delays_ms))


def _switch_config(layout: ClusterLayout, delays_ms: Mapping[tuple[int, int], float]) -> SwitchConfig:
    ports = [SwitchPort(host_device(layout.spec.name), None)]
    ports += [SwitchPort(MACHINE_DEVICE, machine.namespace) for machine in layout.machines]
    return SwitchConfig(tuple(ports), layout.switch_socket, delays_ms)


def _device_commands(device: str, port: int, addresses: list[str]) -> list[str]:
    """One TAP device with its address, and everybody else's MAC address as known, so that nobody asks by ARP.

    But for who still sends to an address of an earlier cluster, and has asked already: that answer is replaced.
    """
    return [
        f"tuntap add dev {device} mode tap vnet_hdr",
        f"link set {device} address {mac_address(port)} mtu {MTU} addrgenmode none up",
        f"address add {addresses[port]}/24 dev {device}",
        *(
            f"neighbour replace {address} lladdr {mac_address(other)} dev {device} nud permanent"
            for other, address in enumerate(addresses)
            if other != port
        ),
    ]


def remove_network(cluster: str) -> None:
    """Delete what `create_network` made for the cluster of this name, whoever made it and however far it came."""
    prefix = namespace_of(cluster, "")
    if NAMED.is_dir():
        for entry in sorted(NAMED.iterdir()):
            if entry.name.startswith(prefix):
                _delete("netns", entry)
    device = SYSTEM_DEVICES / host_device(cluster)
    if device.exists():
        _delete("link", device)


def _delete(kind: str, there: Path) -> None:
    try:
        _ip([f"{kind} delete {there.name}"])
    except LocalClusterError:
        if there.exists():  # else somebody who sweeps the same cluster was faster
            raise


def change_delays(layout: ClusterLayout, delays_ms: Mapping[tuple[int, int], float]) -> None:
    """Give the running switch a new delay matrix, with which a restarted one begins, too.

    By a file, of which the switch is told: of many machines a matrix is larger than a message can be.
    """
    fresh = layout.switch_config.with_suffix(".new")
    try:
        write_config(fresh, _switch_config(layout, delays_ms))
        _ask_switch(layout, {"config": str(fresh)})
        fresh.replace(layout.switch_config)
    finally:
        fresh.unlink(missing_ok=True)


def _ask_switch(layout: ClusterLayout, request: Mapping[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
        client.bind(str(Path(folder) / "client"))
        client.settimeout(ANSWER_SECONDS)
        try:
            client.sendto(json.dumps(request).encode(), str(layout.switch_socket))
            answer = json.loads(client.recv(65536))
        except OSError as reason:
            raise LocalClusterError(f"the switch of cluster {layout.spec.name!r} does not answer: {reason}") from reason
    if not answer["ok"]:
        raise LocalClusterError(answer["error"])


def check_subnet(spec: LocalClusterSpec) -> None:
    """Refuse what the machines cannot have, and what would cut this machine off: its own address, or a gateway's.

    Where that is nobody says of all networks: it mostly is the first address, or the last. Of a large network around
    the cluster's the rest goes on.
    """
    network = spec.network()
    if any(network.overlaps(other) for other in NO_MACHINES_ADDRESSES):
        raise LocalClusterError(f"subnet: {spec.subnet!r} must be one in which machines can have addresses")
    for interface, addresses in psutil.net_if_addrs().items():
        for address in addresses:
            if address.family != socket.AF_INET or interface == host_device(spec.name):
                continue
            own = ipaddress.IPv4Interface(f"{address.address}/{address.netmask or 32}")
            needed = {own.ip, own.network.network_address + 1, own.network.broadcast_address - 1}
            if any(one in network for one in needed):
                raise LocalClusterError(
                    f"subnet: {spec.subnet!r} has addresses that {own.network} needs, the network of this machine's "
                    f"interface {interface}; `local up --subnet` with another"
                )


def free_subnet(cluster: str) -> str:
    """One that this machine's networks and other clusters leave to `cluster`; the most usual one where none is left.

    Clusters are asked too: where their machines share the loopback interface no network of this machine shows them.
    """
    others = {layout.spec.subnet for layout in readable_layouts() if layout.spec.name != cluster}
    free = (subnet for subnet in USUAL_SUBNETS if subnet not in others and _is_free(subnet, cluster))
    return next(free, USUAL_SUBNETS[0])


def _is_free(subnet: str, cluster: str) -> bool:
    try:
        check_subnet(LocalClusterSpec(name=cluster, subnet=subnet))
    except LocalClusterError:
        return False
    return True


def check_socket_path(path: Path) -> None:
    if len(os.fsencode(path)) > LONGEST_SOCKET_PATH:
        raise LocalClusterError(
            f"work_dir: {path} is too long: a socket's path has at most {LONGEST_SOCKET_PATH} bytes"
        )


def _ip(commands: list[str], namespace: str | None = None) -> None:
    program = ["ip", "-n", namespace] if namespace else ["ip"]
    done = subprocess.run(
        [*program, "-batch", "-"], input="\n".join(commands), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        begun = "; ".join(commands[:3]) + ("; …" if len(commands) > 3 else "")
        raise LocalClusterError(f"{' '.join(program)} {begun}: {done.stderr.strip()}")
