"""A layer-2 switch in user space: `python -m storm_operator.local.switch CONFIG_FILE`.

It joins TAP devices, one per emulated machine and one on the host, and holds each frame back for as long as the
delay matrix says (many kernels lack netem). Port 0 is the host: no delay to or from it.

Cheap in CPU because frames come and go in bulk: the devices pass whole TCP segments of up to 64 kB (virtio header,
offloads on), the sender's checksum is never computed, and frames that come close together share a wake-up.
"""

from __future__ import annotations

import contextlib
import fcntl
import heapq
import json
import math
import os
import select
import socket
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from storm_operator.local.namespaces import inside_namespace

MTU = 9000
VIRTIO_HEADER = 10
LARGEST_FRAME = 65536 + 64
MOST_FRAMES_PER_READ = 64
TICK_SECONDS = 0.00025
"""Least time between two rounds while any pair is delayed: frames that come close together share a wake-up."""

TUNSETIFF = 0x400454CA
TUNSETOFFLOAD = 0x400454D0
IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
OFFLOAD_CHECKSUM, OFFLOAD_TCP4, OFFLOAD_TCP6, OFFLOAD_ECN = 0x01, 0x02, 0x04, 0x08


@dataclass(frozen=True, slots=True)
class SwitchPort:
    """One TAP device. Ports are numbered by their place in the list; the device's MAC address ends in the number."""

    device: str
    namespace: str | None


@dataclass(frozen=True, slots=True)
class SwitchConfig:
    """`delays_ms[(a, b)]` is the one-way delay from port a to port b; a pair that is absent has none."""

    ports: tuple[SwitchPort, ...]
    control_socket: Path
    delays_ms: Mapping[tuple[int, int], float]


# Read into one buffer and copy out: a 64 kB allocation for each small frame would cost more than the rest.
_buffer = memoryview(bytearray(LARGEST_FRAME))
_buffers = [_buffer]


def mac_address(port: int) -> str:
    """Locally administered, unicast, and its last byte is the port: the switch has nothing to learn."""
    return f"02:00:00:00:00:{port:02x}"


def even_delays(ports: int, one_way_ms: float) -> dict[tuple[int, int], float]:
    """The same delay between any two machines, none to and from the host (port 0)."""
    machines = range(1, ports)
    return {(a, b): one_way_ms for a in machines for b in machines if a != b}


def write_config(path: Path, config: SwitchConfig) -> None:
    path.write_text(
        json.dumps(
            {
                "ports": [{"device": port.device, "namespace": port.namespace} for port in config.ports],
                "control_socket": str(config.control_socket),
                "delays_ms": [[a, b, ms] for (a, b), ms in sorted(config.delays_ms.items())],
            }
        )
    )


def read_config(path: Path) -> SwitchConfig:
    plain = json.loads(path.read_text())
    return SwitchConfig(
        ports=tuple(SwitchPort(**port) for port in plain["ports"]),
        control_socket=Path(plain["control_socket"]),
        delays_ms={(a, b): ms for a, b, ms in plain["delays_ms"]},
    )


class DelayLine:
    """Frames on their way, by the moment at which they are due. Frames between two ports keep their order."""

    def __init__(self, ports: int, delays_ms: Mapping[tuple[int, int], float]) -> None:
        self._ports = ports
        self._due: list[tuple[float, int, int, bytes]] = []
        self._count = 0
        self._seconds: list[list[float]] = []
        self.set_delays(delays_ms)

    def set_delays(self, delays_ms: Mapping[tuple[int, int], float]) -> None:
        """A new matrix for frames that arrive from now on; ValueError where a delay is none."""
        if not all(0.0 <= ms < math.inf for ms in delays_ms.values()):
            raise ValueError("a delay must be a number of 0 or more")
        every = range(self._ports)
        self._seconds = [[delays_ms.get((a, b), 0.0) / 1000.0 for b in every] for a in every]
        self.delays_anything = any(ms > 0.0 for ms in delays_ms.values())

    def accept(self, now: float, source: int, frame: bytes) -> None:
        """Take in a frame (with its virtio header) that arrived at `source`."""
        target = frame[VIRTIO_HEADER + 5]
        if frame[VIRTIO_HEADER] & 1:
            for port in range(self._ports):
                if port != source:
                    self._push(now, source, port, frame)
        elif target < self._ports and target != source:
            self._push(now, source, target, frame)

    def _push(self, now: float, source: int, target: int, frame: bytes) -> None:
        delay = self._seconds[source][target]
        self._count += 1
        heapq.heappush(self._due, (now + delay, self._count, target, frame))

    def next_due(self) -> float | None:
        return self._due[0][0] if self._due else None

    def take_due(self, now: float) -> list[tuple[int, bytes]]:
        """Target port and frame of everything that is due, in order."""
        taken = []
        due = self._due
        while due and due[0][0] <= now:
            _, _, target, frame = heapq.heappop(due)
            taken.append((target, frame))
        return taken


def open_port(port: SwitchPort) -> int:
    """Attach to a TAP device that exists already; the file descriptor works from any namespace afterwards."""
    with inside_namespace(port.namespace):
        descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        request = struct.pack("16sH22x", port.device.encode(), IFF_TAP | IFF_NO_PI | IFF_VNET_HDR)
        fcntl.ioctl(descriptor, TUNSETIFF, request)
    fcntl.ioctl(descriptor, TUNSETOFFLOAD, OFFLOAD_CHECKSUM | OFFLOAD_TCP4 | OFFLOAD_TCP6 | OFFLOAD_ECN)
    return descriptor


class Control:
    """Answers one JSON object per datagram: `{"config": FILE}` replaces the matrix by that of the file."""

    def __init__(self, path: Path, line: DelayLine) -> None:
        self._line = line
        path.unlink(missing_ok=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))

    def answer(self) -> None:
        message, sender = self.socket.recvfrom(65536)
        try:
            self._line.set_delays(read_config(Path(json.loads(message)["config"])).delays_ms)
            reply = {"ok": True}
        except (OSError, ValueError, KeyError, TypeError) as reason:
            reply = {"ok": False, "error": f"not a delay matrix: {reason}"}  # type: ignore[dict-item]
        if sender:
            with contextlib.suppress(OSError):  # whoever asked waits no longer: no reason to drop what is on its way
                self.socket.sendto(json.dumps(reply).encode(), sender)


def run(config: SwitchConfig) -> None:
    """Forward frames until killed."""
    descriptors = [open_port(port) for port in config.ports]
    port_of = {descriptor: port for port, descriptor in enumerate(descriptors)}
    line = DelayLine(len(descriptors), config.delays_ms)
    control = Control(config.control_socket, line)
    watched: Sequence[int] = [*descriptors, control.socket.fileno()]
    clock = time.monotonic
    while True:
        due = line.next_due()
        # select, not epoll: its timeout has microseconds, epoll's only milliseconds.
        readable = select.select(watched, (), (), None if due is None else max(0.0, due - clock()))[0]
        now = clock()
        for descriptor in readable:
            port = port_of.get(descriptor)
            if port is None:
                control.answer()
            else:
                _read_frames(descriptor, port, line, now)
        for target, frame in line.take_due(clock()):
            _write_frame(descriptors[target], frame)
        if line.delays_anything:
            time.sleep(max(0.0, now + TICK_SECONDS - clock()))


def _read_frames(descriptor: int, port: int, line: DelayLine, now: float) -> None:
    for _ in range(MOST_FRAMES_PER_READ):
        try:
            size = os.readv(descriptor, _buffers)
        except BlockingIOError:
            return
        line.accept(now, port, bytes(_buffer[:size]))


def _write_frame(descriptor: int, frame: bytes) -> None:
    try:
        os.write(descriptor, frame)
    except OSError:
        # A device that is down or full drops frames, as a wire would; TCP sends them again.
        return


if __name__ == "__main__":
    run(read_config(Path(sys.argv[1])))
