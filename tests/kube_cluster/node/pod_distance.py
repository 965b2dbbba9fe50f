"""Pods as if each had a machine of its own: what goes between them is under way for a while, though they share a node.

Packets between two of the given addresses are led over a TUN device, whose reader (`python -m
kube_cluster.node.pod_distance NAMESPACE MILLISECONDS`) holds each of them back. Many kernels lack netem. All else goes
its usual way, also between these pods and others.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kube_cluster.lifecycle import PACKAGES
from kube_cluster.node.network import ip_commands
from storm_operator.local.namespaces import inside_namespace
from storm_operator.local.switch import IFF_NO_PI, TUNSETIFF

DEVICE = "pod-distance"
TABLE = 100
READY = "ready"
LARGEST_PACKET = 65536
MOST_PACKETS_PER_READ = 64

IFF_TUN = 0x0001


@contextmanager
def distance_between(addresses: Sequence[str], one_way_ms: float, namespace: str) -> Iterator[None]:
    """As long as the body runs, the IP `addresses` are `one_way_ms` from each other in the network `namespace`."""
    ip_commands([f"tuntap add {DEVICE} mode tun", f"link set {DEVICE} up"], namespace)
    try:
        with _holding_back(namespace, one_way_ms), _led_there(addresses, namespace):
            yield
    finally:
        ip_commands([f"link delete {DEVICE}"], namespace)


@contextmanager
def _holding_back(namespace: str, one_way_ms: float) -> Iterator[None]:
    """The reader, a process of its own that ends with its standard input: also when this process is killed."""
    command = (sys.executable, "-m", "kube_cluster.node.pod_distance", namespace, str(one_way_ms))
    with subprocess.Popen(command, cwd=PACKAGES, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            if process.stdout.readline().strip() != READY:
                raise OSError(f"nobody holds packets back in {namespace}: {' '.join(command)} ended")
            yield
        finally:
            process.stdin.close()


@contextmanager
def _led_there(addresses: Sequence[str], namespace: str) -> Iterator[None]:
    """What comes back from the device is delivered; what comes from one of the addresses goes to it for the others."""
    routes = [f"route add {address} dev {DEVICE} table {TABLE}" for address in addresses]
    rules = [f"iif {DEVICE} lookup main pref {TABLE - 1}"]
    rules += [f"from {address} lookup {TABLE} pref {TABLE}" for address in addresses]
    ip_commands([*routes, *(f"rule add {rule}" for rule in rules)], namespace)
    try:
        yield
    finally:
        ip_commands([f"rule delete {rule}" for rule in reversed(rules)], namespace)


def open_device(namespace: str) -> int:
    """Attach to the device; the file descriptor works from any namespace afterwards."""
    with inside_namespace(namespace):
        descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
    return descriptor


def hold_back(device: int, ended: int, seconds: float) -> None:
    """Give each packet back `seconds` after it came, in order, until `ended` can be read or is closed."""
    waiting: deque[tuple[float, bytes]] = deque()
    while True:
        pause = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        readable = select.select((device, ended), (), (), pause)[0]
        if ended in readable:
            return
        now = time.monotonic()
        if device in readable:
            waiting.extend((now + seconds, packet) for packet in _packets(device))
        while waiting and waiting[0][0] <= now:
            with contextlib.suppress(OSError):  # a device that is full drops packets, as a wire would
                os.write(device, waiting.popleft()[1])


def _packets(device: int) -> Iterator[bytes]:
    for _ in range(MOST_PACKETS_PER_READ):
        try:
            yield os.read(device, LARGEST_PACKET)
        except BlockingIOError:
            return


def main(namespace: str, one_way_ms: float) -> None:
    device = open_device(namespace)
    sys.stdout.write(f"{READY}\n")
    sys.stdout.flush()
    hold_back(device, sys.stdin.fileno(), one_way_ms / 1000.0)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
