"""Probes other supervisors' agents: how far they are, whether they answer, where they think they are.

A probe is one TCP connect, which takes the kernels one round trip whatever the agents are busy with, and then one
short question over it for the peer's coordinate.
"""

from __future__ import annotations

import json
import math
import random
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from storm_operator.agent.neighbours import neighbours
from storm_operator.agent.peer_statistics import PeerStatistics
from storm_operator.core.vivaldi import Coordinate, moved_by_sample

PERIOD_SECONDS = 5.0
JITTER = 0.2
TIMEOUT_SECONDS = 1.0
ANSWER_BYTES = 4096
COORDINATE_PATH = "/coordinate"

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a probe brought back; `coordinate` is None when the peer did not tell it."""

    round_trip_seconds: float
    coordinate: Coordinate | None


@dataclass(frozen=True, slots=True)
class PeerReport:
    """All that is known of the neighbours; `coordinate` is this agent's own, None before its first sample."""

    statistics: Mapping[str, PeerStatistics]
    coordinate: Coordinate | None


Probe = Callable[[Address], Answer | None]


class Peers:
    """Probes each neighbour about every five seconds, one after the other, spread over that time."""

    def __init__(
        self, own: str, addresses: Mapping[str, Address], rng: random.Random, probe: Probe | None = None
    ) -> None:
        """`own` is this agent's host; of `addresses`, those of its peers by host, its neighbours are probed."""
        self._addresses = {peer: addresses[peer] for peer in neighbours(own, addresses)}
        self._rng = rng
        self._probe = probe or probe_agent
        self._statistics = {peer: PeerStatistics() for peer in self._addresses}
        self._coordinate: Coordinate | None = None
        self._stop = threading.Event()

    def start(self) -> None:
        if self._addresses:
            threading.Thread(target=self._run, name="peers", daemon=True).start()

    def stop(self) -> None:
        self._stop.set()

    def report(self) -> PeerReport:
        return PeerReport(dict(self._statistics), self._coordinate)

    def coordinate(self) -> Coordinate:
        """This agent's own coordinate, as its peers ask for it."""
        return self._coordinate or Coordinate()

    def probe_one(self, peer: str) -> None:
        """One probe of `peer`, and what follows from it."""
        answer = self._probe(self._addresses[peer])
        if answer is None:
            self._statistics[peer] = self._statistics[peer].after_silence()
            return
        known = self._statistics[peer] = self._statistics[peer].after_answer(answer.round_trip_seconds)
        smoothed = known.round_trip_seconds
        if answer.coordinate is not None and smoothed:
            angle = self._rng.uniform(0.0, math.tau)
            self._coordinate = moved_by_sample(self.coordinate(), answer.coordinate, smoothed * 1000.0, angle)

    def _run(self) -> None:
        while True:
            for peer in self._addresses:
                pause = PERIOD_SECONDS / len(self._addresses) * self._rng.uniform(1 - JITTER, 1 + JITTER)
                if self._stop.wait(pause):
                    return
                self.probe_one(peer)


def probe_agent(address: Address) -> Answer | None:
    """Connects to another agent and asks for its coordinate; None when it cannot be reached."""
    started = time.perf_counter()
    try:
        connection = socket.create_connection(address, timeout=TIMEOUT_SECONDS)
    except OSError:
        return None
    round_trip_seconds = time.perf_counter() - started
    with connection:
        try:
            connection.sendall(f"GET {COORDINATE_PATH} HTTP/1.0\r\n\r\n".encode())
            answer = _read_to_end(connection)
        except OSError:
            return Answer(round_trip_seconds, None)
    return Answer(round_trip_seconds, parse_coordinate(answer.partition(b"\r\n\r\n")[2]))


def _read_to_end(connection: socket.socket) -> bytes:
    answer = b""
    while len(answer) < ANSWER_BYTES and (more := connection.recv(ANSWER_BYTES)):
        answer += more
    return answer


def parse_coordinate(document: bytes) -> Coordinate | None:
    """A peer's coordinate (version 1); None when it is malformed: then the sample moves nobody."""
    try:
        fields = json.loads(document)
        if fields["version"] != 1:
            return None
        values = [float(fields[name]) for name in ("x", "y", "height", "error")]
    except (ValueError, KeyError, TypeError):
        return None
    if not all(math.isfinite(value) for value in values) or values[2] < 0 or values[3] < 0:
        return None
    return Coordinate(*values)


def coordinate_document(coordinate: Coordinate) -> bytes:
    fields = {
        "version": 1,
        "x": coordinate.x,
        "y": coordinate.y,
        "height": coordinate.height,
        "error": coordinate.error,
    }
    return json.dumps(fields).encode()
