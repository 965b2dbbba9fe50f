"""Assignments relayed from Nimbus to supervisors, byte by byte, against peers that speak frames."""

from __future__ import annotations

import contextlib
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator

import pytest

from storm_operator.adapters.nimbus.connection import NimbusAddress
from storm_operator.adapters.nimbus.relay import RelayFailed, call_raw, relay_assignments, string_argument

ASSIGNMENTS = b"\x0d\x00\x01\x0b\x0c\x00\x00\x00\x00\x00"  # a SupervisorAssignments with an empty map
VERSION_1 = 0x80010000
REPLY, EXCEPTION = 2, 3
VOID = b"\x00"


class Peer:
    """A Thrift server that answers every call with what `answer` makes of method and arguments."""

    def __init__(self, answer: Callable[[str, bytes], tuple[int, bytes]]) -> None:
        self.heard: list[tuple[str, bytes]] = []
        self.answer = answer

    def reply(self, message: bytes) -> bytes:
        (length,) = struct.unpack(">i", message[4:8])
        method, arguments = message[8 : 8 + length].decode(), message[12 + length :]
        self.heard.append((method, arguments))
        kind, result = self.answer(method, arguments)
        name = method.encode()
        return struct.pack(">Ii", VERSION_1 | kind, len(name)) + name + struct.pack(">i", 0) + result


@contextlib.contextmanager
def listening(peer: Peer) -> Iterator[NimbusAddress]:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            (length,) = struct.unpack(">i", self.rfile.read(4))
            reply = peer.reply(self.rfile.read(length))
            self.wfile.write(struct.pack(">i", len(reply)) + reply)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield NimbusAddress(*server.server_address[:2])  # type: ignore[arg-type]
        server.shutdown()
        thread.join()


def nimbus() -> Peer:
    return Peer(lambda _, __: (REPLY, b"\x0c\x00\x00" + ASSIGNMENTS + b"\x00"))


def supervisor() -> Peer:
    return Peer(lambda _, __: (REPLY, VOID))


def test_what_nimbus_answers_is_what_the_supervisor_is_given() -> None:
    asked, told = nimbus(), supervisor()
    with listening(asked) as leader, listening(told) as address:
        assert relay_assignments(leader, {"id-1": address}) == {"id-1"}
    assert asked.heard == [("getSupervisorAssignments", string_argument("id-1"))]
    assert told.heard == [("sendSupervisorAssignments", b"\x0c\x00\x01" + ASSIGNMENTS + b"\x00")]


@pytest.mark.parametrize(
    "gone",
    [NimbusAddress("127.0.0.1", 1), NimbusAddress("storm..example", 6628)],
    ids=["deaf", "no host's name"],
)
def test_a_supervisor_out_of_reach_keeps_nobody_else_from_hearing(gone: NimbusAddress) -> None:
    told = supervisor()
    with listening(nimbus()) as leader, listening(told) as address:
        assert relay_assignments(leader, {"dead": gone, "id-1": address}, timeout_seconds=1.0) == {"id-1"}


@pytest.mark.parametrize("refusal", [(EXCEPTION, b"\x00"), (REPLY, b"\x0c\x00\x01\x00\x00")])
def test_a_nimbus_that_refuses_gives_nothing_to_pass_on(refusal: tuple[int, bytes]) -> None:
    told = supervisor()
    with listening(Peer(lambda _, __: refusal)) as leader, listening(told) as address:
        assert relay_assignments(leader, {"id-1": address}) == frozenset()
    assert told.heard == []


def test_a_supervisor_that_refuses_has_not_been_told() -> None:
    not_authorized = b"\x0c\x00\x01\x0b\x00\x01\x00\x00\x00\x02no\x00\x00"  # AuthorizationException("no"), declared
    refusing, told = Peer(lambda _, __: (REPLY, not_authorized)), supervisor()
    with listening(nimbus()) as leader, listening(refusing) as deaf, listening(told) as address:
        taken = relay_assignments(leader, {"refusing": deaf, "id-1": address})
    assert taken == {"id-1"}
    assert len(refusing.heard) == 1


def test_nobody_to_tell() -> None:
    assert relay_assignments(NimbusAddress("127.0.0.1", 1), {}) == frozenset()


def test_a_peer_that_hangs_up_is_named() -> None:
    class HangsUp(socketserver.BaseRequestHandler):
        pass

    with socketserver.TCPServer(("127.0.0.1", 0), HangsUp) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        host, port = server.server_address[:2]
        with pytest.raises(RelayFailed, match=f"{port} does not answer getLeader"):
            call_raw(NimbusAddress(str(host), port), "getLeader", VOID, 1.0)
        thread.join()
