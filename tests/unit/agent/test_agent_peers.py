from __future__ import annotations

import contextlib
import errno
import random
import socket
import threading
import time
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import pytest

from storm_operator.agent.http_server import Response, serve
from storm_operator.agent.peer_statistics import AVAILABILITY_PROBES, PeerStatistics
from storm_operator.agent.peers import (
    COORDINATE_PATH,
    Answer,
    NoLookup,
    NoSuchPeer,
    Peers,
    coordinate_document,
    parse_coordinate,
    probe_agent,
)
from storm_operator.core.vivaldi import Coordinate


def test_nothing_is_known_before_the_first_probe() -> None:
    assert PeerStatistics().round_trip_seconds is None
    assert PeerStatistics().availability_ratio is None


def test_round_trip_ignores_slow_outliers() -> None:
    statistics = PeerStatistics()
    for sample in (0.002, 0.4, 0.0021, 0.3, 0.0019):
        statistics = statistics.after_answer(sample)
    assert statistics.round_trip_seconds == 0.002


@pytest.mark.parametrize(
    ("samples", "lower_quartile"), [((3, 1, 2, 4), 1), ((3, 1, 2, 4, 5), 2), ((8, 7, 6, 5, 4, 3, 2, 1), 2)]
)
def test_round_trip_is_the_lower_quartile(samples: tuple[int, ...], lower_quartile: int) -> None:
    statistics = PeerStatistics()
    for sample in samples:
        statistics = statistics.after_answer(sample)
    assert statistics.round_trip_seconds == lower_quartile


def test_round_trip_follows_a_lasting_change() -> None:
    statistics = PeerStatistics()
    for _ in range(20):
        statistics = statistics.after_answer(0.002)
    for _ in range(7):
        statistics = statistics.after_answer(0.020)
    assert statistics.round_trip_seconds == 0.020


def test_availability_is_of_the_last_probes_only() -> None:
    statistics = PeerStatistics()
    for _ in range(AVAILABILITY_PROBES * 2):
        statistics = statistics.after_silence()
    for _ in range(AVAILABILITY_PROBES // 4):
        statistics = statistics.after_answer(0.001)
    assert statistics.availability_ratio == 0.25


@pytest.mark.parametrize(
    ("silences", "ratio"),
    [((1,), 1.0), ((12,), 1.0), ((13,), 7 / 20), ((3, 2), 15 / 17), ((1, 1, 1, 1), 16 / 19)],
    ids=["a restart", "a long one", "more than that", "another", "now and then"],
)
def test_one_silence_that_is_over_is_a_restart_and_tells_nothing_of_what_comes(
    silences: tuple[int, ...], ratio: float
) -> None:
    statistics = PeerStatistics()
    for silence in silences:
        statistics = statistics.after_answer(0.001)
        for _ in range(silence):
            statistics = statistics.after_silence()
    for _ in range(20 - len(statistics.answers)):
        statistics = statistics.after_answer(0.001)
    assert statistics.availability_ratio == pytest.approx(ratio)
    assert (statistics.after_silence().availability_ratio or 1.0) < ratio, "one that may go on counts"


def test_round_trip_is_unknown_when_the_peer_has_gone() -> None:
    statistics = PeerStatistics().after_answer(0.001)
    for _ in range(7):
        statistics = statistics.after_silence()
    assert statistics.round_trip_seconds == 0.001, "who leaves some unanswered is no farther away"
    assert statistics.after_silence().round_trip_seconds is None


def test_probes_move_the_coordinate_the_same_way_each_time() -> None:
    def coordinate() -> Coordinate:
        answers = iter([Answer(0.010, Coordinate()), None, Answer(0.012, Coordinate(5, 5, 1, 0.5)), Answer(0.01, None)])
        peers = Peers("a", {"b": ("10.0.0.2", 1)}, random.Random("a"), probe=lambda _: next(answers))
        assert peers.report().coordinate is None
        for _ in range(4):
            peers.probe_one("b")
        assert peers.report().statistics["b"].answers == (True, False, True, True)
        return peers.coordinate()

    assert coordinate() == coordinate() != Coordinate()


def test_coordinate_survives_the_wire() -> None:
    there = Coordinate(1.5, -2.5, 0.25, 0.125)
    assert parse_coordinate(coordinate_document(there)) == there


@pytest.mark.parametrize(
    "document",
    [b"", b"{}", b"[]", b'{"version": 2, "x": 0, "y": 0, "height": 1, "error": 1}',
     b'{"version": 1, "x": NaN, "y": 0, "height": 1, "error": 1}',
     b'{"version": 1, "x": 0, "y": 0, "height": -1, "error": 1}',
     b'{"version": 1, "x": 1e300, "y": 0, "height": 1, "error": 1}',
     b'{"version": 1, "x": 1' + b"0" * 400 + b', "y": 0, "height": 1, "error": 1}', b"[" * 100_000],
)  # fmt: skip
def test_malformed_coordinates_are_unknown(document: bytes) -> None:
    assert parse_coordinate(document) is None


@pytest.mark.slow
def test_a_peer_that_drips_its_answer_is_there_and_keeps_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storm_operator.agent.peers.TIMEOUT_SECONDS", 0.5)
    asked_enough = threading.Event()

    def drip(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection, contextlib.suppress(OSError):
            while not asked_enough.wait(0.02):
                connection.sendall(b"#")

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=drip, args=(server,), daemon=True).start()
        answer = probe_agent(server.getsockname())
        asked_enough.set()
    assert answer is not None
    assert answer.coordinate is None


@pytest.fixture
def port() -> Iterator[int]:
    """That of an agent at 127.0.0.1."""
    document = coordinate_document(Coordinate(1, 2, 3, 0.5))
    server = serve(("127.0.0.1", 0), {COORDINATE_PATH: lambda: Response(HTTPStatus.OK, "application/json", document)})
    try:
        yield int(server.server_address[1])
    finally:
        server.server_close()


def test_the_round_trip_is_that_of_the_connection_without_the_look_up_of_the_name(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_seconds = [0.0]
    look_up = socket.getaddrinfo

    def slow_look_up(_name: str, *given: Any, **named: Any) -> Any:
        now_seconds[0] += 50.0
        unreachable = socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", 1, 0, 0)
        return [unreachable, *look_up("127.0.0.1", *given, **named)]

    monkeypatch.setattr(socket, "getaddrinfo", slow_look_up)
    monkeypatch.setattr(time, "perf_counter", lambda: now_seconds[0])
    assert probe_agent(("storm-supervisor-1.storm", port)) == Answer(0.0, Coordinate(1, 2, 3, 0.5))
    assert now_seconds == [50.0], "the name was looked up, once"


def test_a_peer_without_a_name_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_such_name(*_given: Any, **_named: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_such_name)
    with pytest.raises(NoSuchPeer, match=r"storm-supervisor-7\.storm"):
        probe_agent(("storm-supervisor-7.storm", 9464))


HERE = Answer(0.001, None)
SILENT = None


@pytest.mark.parametrize("name", ["storm-supervisor-0..svc", "s" * 64 + ".storm"])
def test_a_name_that_no_host_can_have_is_that_of_a_peer_that_is_not_there(name: str) -> None:
    with pytest.raises(NoSuchPeer):
        probe_agent((name, 9464))


ABSENT = NoSuchPeer("storm-supervisor-7.storm")


def availability_after(*outcomes: Answer | NoSuchPeer | None) -> float | None:
    """Of a peer whose probes have these outcomes, the first one first."""
    coming = iter(outcomes)

    def probe(_address: object) -> Answer | None:
        outcome = next(coming)
        if isinstance(outcome, NoSuchPeer):
            raise outcome
        return outcome

    peers = Peers("a", {"b": ("storm-supervisor-7.storm", 9464)}, random.Random("a"), probe)
    for _ in outcomes:
        peers.probe_one("b")
    return peers.report().statistics["b"].availability_ratio


def test_a_supervisor_that_is_added_is_not_taken_for_one_that_failed_before_it_was_there() -> None:
    not_yet = [ABSENT] * AVAILABILITY_PROBES
    assert availability_after(*not_yet) is None
    assert availability_after(*not_yet, SILENT) == 0.0, "it is there, and whether it will answer is not known"
    assert availability_after(*not_yet, SILENT, SILENT, HERE) == 1.0
    assert availability_after(SILENT, SILENT, HERE) == 1.0
    assert availability_after(*not_yet, SILENT, HERE, SILENT, SILENT, HERE, SILENT, HERE) == 0.75


def test_a_supervisor_that_went_is_unavailable_until_nobody_remembers_that_it_answered() -> None:
    gone = [ABSENT] * AVAILABILITY_PROBES
    assert availability_after(HERE, ABSENT) == 0.5
    assert availability_after(HERE, ABSENT, HERE, ABSENT, HERE) == 0.75
    assert availability_after(HERE, *gone[1:]) == pytest.approx(1 / AVAILABILITY_PROBES)
    assert availability_after(HERE, *gone, ABSENT) is None
    assert availability_after(HERE, *gone, ABSENT, HERE) == 1.0
    assert availability_after(HERE, *gone, ABSENT, SILENT, HERE) == 1.0, "it comes anew"


@pytest.mark.parametrize("recovery", [HERE, SILENT, ABSENT])
def test_that_names_cannot_be_looked_up_is_said_once_each_time(
    recovery: Answer | NoSuchPeer | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    failure = NoLookup("storm-supervisor-7.storm: Temporary failure")
    coming = iter([failure, failure, failure, recovery, recovery, failure])

    def probe(_address: object) -> Answer | None:
        outcome = next(coming)
        if isinstance(outcome, NoLookup | NoSuchPeer):
            raise outcome
        return outcome

    peers = Peers("a", {"b": ("storm-supervisor-7.storm", 9464)}, random.Random("a"), probe)
    for _ in range(6):
        peers.probe_one("b")
    assert [message.split(" (")[0] for message in caplog.messages] == [
        "cannot look up peers' names",
        "peers' names can be looked up again",
        "cannot look up peers' names",
    ]


def test_one_name_that_cannot_be_looked_up_among_others_that_can_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """As where hosts have their names from /etc/hosts, which lacks one, and no DNS answers."""
    caplog.set_level("INFO")
    lacking = {"b"}

    def probe(address: tuple[str, int]) -> Answer | None:
        if address[0] in lacking:
            raise NoLookup(f"{address[0]}: Temporary failure")
        return HERE

    peers = Peers("a", {name: (name, 9464) for name in "bcd"}, random.Random("a"), probe)
    for lacking_now in ({"b"}, {"b"}, {"b", "d"}, {"d"}, set(), set()):
        lacking.clear()
        lacking |= lacking_now
        for peer in "bcd":
            peers.probe_one(peer)
    assert [message.split(" (")[0] for message in caplog.messages] == [
        "cannot look up peers' names",
        "peers' names can be looked up again",
    ]


@pytest.mark.parametrize(
    "failure",
    [
        socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"),
        OSError(errno.EMFILE, "Too many open files"),  # of this process: what EAI_SYSTEM becomes
    ],
)
def test_while_names_cannot_be_looked_up_nothing_is_learned_of_peers(
    failure: OSError, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_answer(*_given: Any, **_named: Any) -> Any:
        raise failure

    monkeypatch.setattr(socket, "getaddrinfo", no_answer)
    with pytest.raises(NoLookup, match=str(failure.strerror)):
        probe_agent(("storm-supervisor-1.storm", 9464))
    peers = Peers("a", {"b": ("storm-supervisor-1.storm", 9464)}, random.Random("a"))
    for _ in range(3):
        peers.probe_one("b")
    assert peers.report().statistics == {"b": PeerStatistics()}
    (said,) = caplog.messages
    assert said.startswith(f"cannot look up peers' names (storm-supervisor-1.storm: {failure.strerror}")
