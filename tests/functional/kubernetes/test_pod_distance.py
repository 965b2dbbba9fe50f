"""Pods that are as if far from each other, in namespaces of the test's own; needs root."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kube_cluster.node.network import ip_commands
from kube_cluster.node.pod_distance import DEVICE, distance_between
from storm_operator.local.namespaces import inside_namespace

ONE_WAY_MS = 40.0
NODE = f"distance-{os.getpid()}"
NEAR, FAR, OTHER = (f"10.9.{number}.2" for number in (1, 2, 3))
PODS = {address: f"{NODE}-{number}" for number, address in enumerate((NEAR, FAR, OTHER))}
ANSWER_SECONDS = 20.0

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="NO POD DISTANCE: network namespaces need root")


@pytest.fixture
def node() -> Iterator[str]:
    """A namespace that forwards between three others, each with a link of its own to it."""
    try:
        ip_commands([f"netns add {name}" for name in (NODE, *PODS.values())])
        for number, (address, pod) in enumerate(PODS.items()):
            gateway = f"{address.rpartition('.')[0]}.1"
            ip_commands([f"link add pod{number} netns {NODE} type veth peer name eth0 netns {pod}"])
            ip_commands([f"address add {gateway}/24 dev pod{number}", f"link set pod{number} up"], NODE)
            inside = [f"address add {address}/24 dev eth0", "link set eth0 up", f"route add default via {gateway}"]
            ip_commands(inside, pod)
        with inside_namespace(NODE):
            Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
        yield NODE
    finally:
        for name in (NODE, *PODS.values()):
            subprocess.run(["ip", "netns", "delete", name], check=False)


@contextmanager
def echo_at(address: str) -> Iterator[int]:
    """The port of one who sends back each datagram that comes to the pod of this address."""
    with inside_namespace(PODS[address]):
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with server:
        server.bind((address, 0))

        def answer() -> None:
            for _ in range(2):
                data, sender = server.recvfrom(100)
                server.sendto(data, sender)

        threading.Thread(target=answer, daemon=True).start()
        yield server.getsockname()[1]


def round_trip_ms(target: str) -> float:
    """How long a datagram from NEAR to the pod of `target` and back is under way, once neighbours are known."""
    with inside_namespace(PODS[NEAR]):
        client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with client, echo_at(target) as port:
        client.settimeout(ANSWER_SECONDS)
        took = 0.0
        for _ in range(2):
            began = time.monotonic()
            client.sendto(b"there", (target, port))
            assert client.recv(100) == b"there"
            took = time.monotonic() - began
        return took * 1000.0


def packets_led_apart() -> int:
    """So many packets have been given to the device's reader."""
    return int(json.loads(shown("-json", "-s", "link", "show", DEVICE))[0]["stats64"]["tx"]["packets"])


def shown(*words: str) -> str:
    """What `ip` shows of the node's network."""
    return subprocess.run(["ip", "-n", NODE, *words], capture_output=True, text=True, check=True).stdout


def test_what_goes_between_the_pods_takes_its_time_and_nothing_else_does(node: str) -> None:
    with distance_between([NEAR, FAR], ONE_WAY_MS, node):
        assert round_trip_ms(FAR) >= 2 * ONE_WAY_MS
        led_apart = packets_led_apart()
        assert led_apart >= 4  # there and back, twice
        round_trip_ms(OTHER)
        assert packets_led_apart() == led_apart


def test_nothing_is_left_of_it(node: str) -> None:
    before = shown("rule")
    with distance_between([NEAR, FAR], ONE_WAY_MS, node):
        pass
    round_trip_ms(FAR)
    assert shown("rule") == before
    assert DEVICE not in shown("-brief", "link")
