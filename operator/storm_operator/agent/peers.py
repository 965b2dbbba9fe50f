"""Probes other supervisors' agents: how far they are, whether they answer, where they think they are.

A probe is one TCP connect, which takes the kernels one round trip whatever the agents are busy with, and then one
short question over it for the peer's coordinate. Looking up the peer's name comes before, and is no part of the round
trip. A name that does not exist is that of a peer that is not there (a pod has its name while it runs); while nobody
can look up names, nothing is learned of peers.

A peer that is not there yet is not one that fails: of a StatefulSet that may still grow, all pods that there may be are
named. How available a peer is counts from its first answer on.
"""

from __future__ import annotations

import json
import logging
import math
import random
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from storm_operator.agent.neighbours import neighbours
from storm_operator.agent.peer_statistics import PeerStatistics
from storm_operator.core.vivaldi import Coordinate, moved_by_sample

PERIOD_SECONDS = 5.0
JITTER = 0.2
TIMEOUT_SECONDS = 1.0
ANSWER_BYTES = 4096
MOST_MS = 1e6
"""Farther away than that is nobody: who followed such a peer would be so far away, too."""
COORDINATE_PATH = "/coordinate"

NO_SUCH_NAME = frozenset({socket.EAI_NONAME, socket.EAI_NODATA})

Address = tuple[str, int]

log = logging.getLogger(__name__)


class NoLookup(Exception):
    """Whether a peer's name exists cannot be told; the message says why."""


class NoSuchPeer(Exception):
    """A peer's name does not exist: nobody is there who could answer."""


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
"""None when the peer does not answer; NoSuchPeer when it is not there, NoLookup when that cannot be told."""


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
        self._unmet = set(self._addresses)
        self._coordinate: Coordinate | None = None
        self._not_looked_up: set[str] = set()
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
        try:
            answer = self._probe(self._addresses[peer])
        except NoLookup as error:
            self._note_no_lookup(peer, error)
            return
        except NoSuchPeer:
            self._note_lookup(peer)
            self._note_absence(peer)
            return
        self._note_lookup(peer)
        if answer is None:
            self._statistics[peer] = self._statistics[peer].after_silence()
            return
        # Until its first answer a peer was on its way up: what it left unanswered then says nothing of how it does.
        before = PeerStatistics() if peer in self._unmet else self._statistics[peer]
        self._unmet.discard(peer)
        known = self._statistics[peer] = before.after_answer(answer.round_trip_seconds)
        smoothed = known.round_trip_seconds
        if answer.coordinate is not None and smoothed:
            angle = self._rng.uniform(0.0, math.tau)
            self._coordinate = moved_by_sample(self.coordinate(), answer.coordinate, smoothed * 1000.0, angle)

    def _note_absence(self, peer: str) -> None:
        """One that answered lately has gone, which is a silence; of any other, nothing is known."""
        known = self._statistics[peer]
        if any(known.answers):
            self._statistics[peer] = known.after_silence()
        else:
            self._statistics[peer] = PeerStatistics()
            self._unmet.add(peer)

    def _note_no_lookup(self, peer: str, error: NoLookup) -> None:
        """Said of the first: when nobody can look up names, they fail one after the other, and all for one reason."""
        if not self._not_looked_up:
            log.warning("cannot look up peers' names (%s): what is known of those stays as it is", error)
        self._not_looked_up.add(peer)

    def _note_lookup(self, peer: str) -> None:
        if peer in self._not_looked_up:
            self._not_looked_up.remove(peer)
            if not self._not_looked_up:
                log.info("peers' names can be looked up again")

    def _run(self) -> None:
        while True:
            for peer in self._addresses:
                pause = PERIOD_SECONDS / len(self._addresses) * self._rng.uniform(1 - JITTER, 1 + JITTER)
                if self._stop.wait(pause):
                    return
                self.probe_one(peer)


def probe_agent(address: Address) -> Answer | None:
    """Connects to another agent and asks for its coordinate; None when it cannot be reached.

    NoSuchPeer when it has no name, NoLookup when whether it has cannot be told.
    """
    for family, numeric in _look_up(address):
        try:
            with socket.socket(family, socket.SOCK_STREAM) as connection:
                connection.settimeout(TIMEOUT_SECONDS)
                started = time.perf_counter()
                connection.connect(numeric)
                return _ask(connection, time.perf_counter() - started)
        except OSError:
            continue
    return None


def _look_up(address: Address) -> list[tuple[socket.AddressFamily, tuple[Any, ...]]]:
    """Family and numeric address of each that the name stands for."""
    try:
        found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # a name with a label that is empty or too long: DNS has none such
        raise NoSuchPeer(address[0]) from error
    except OSError as error:  # not a gaierror alone: looking up takes files, of which there may be no more
        if error.errno in NO_SUCH_NAME:
            raise NoSuchPeer(address[0]) from error
        raise NoLookup(f"{address[0]}: {error.strerror}") from error
    return [(family, numeric) for family, _, _, _, numeric in found]


def _ask(connection: socket.socket, round_trip_seconds: float) -> Answer:
    try:
        connection.sendall(f"GET {COORDINATE_PATH} HTTP/1.0\r\n\r\n".encode())
        answer = _read_to_end(connection)
    except OSError:
        return Answer(round_trip_seconds, None)
    return Answer(round_trip_seconds, parse_coordinate(answer.partition(b"\r\n\r\n")[2]))


def _read_to_end(connection: socket.socket) -> bytes:
    """What has come within a time and a size: a peer that drips would keep all others from being probed."""
    ends_at_seconds = time.monotonic() + TIMEOUT_SECONDS
    answer = b""
    while len(answer) < ANSWER_BYTES and (left_seconds := ends_at_seconds - time.monotonic()) > 0.0:
        connection.settimeout(left_seconds)
        if not (more := connection.recv(ANSWER_BYTES)):
            break
        answer += more
    return answer


def parse_coordinate(document: bytes) -> Coordinate | None:
    """A peer's coordinate (version 1); None when it is malformed: then the sample moves nobody."""
    try:
        fields = json.loads(document)
        if fields["version"] != 1:
            return None
        values = [float(fields[name]) for name in ("x", "y", "height", "error")]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    if not all(abs(value) <= MOST_MS for value in values) or values[2] < 0 or values[3] < 0:
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
