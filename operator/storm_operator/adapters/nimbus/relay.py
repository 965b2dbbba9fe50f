"""Hands supervisors their assignments at once, where Storm would let them wait.

After a scheduling round Nimbus tells only the supervisors that host workers of the new assignment, and of these only
the changed ones hear of it soon. A supervisor that lost its last worker, or whose workers merely talk to moved
executors, asks Nimbus every ten seconds: until then the old worker lives on and tuples are sent to places of the past.

`Nimbus.getSupervisorAssignments` answers with the very struct that `Supervisor.sendSupervisorAssignments` takes, so
its bytes are passed on unread: nothing of it can be lost, whatever fields a Storm release adds.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from storm_operator.adapters.nimbus.connection import NimbusAddress

VERSION_1 = 0x80010000
CALL, REPLY = 1, 2
STRING, STRUCT = 11, 12
STOP = b"\x00"
SUCCESS_FIELD = struct.pack(">bh", STRUCT, 0)
FIRST_ARGUMENT = struct.pack(">bh", STRUCT, 1)
LARGEST_FRAME_BYTES = 64 * 1024 * 1024
"""More than Nimbus' own limit: an answer of this size is not one of Storm's."""


class RelayFailed(Exception):
    """A peer did not take part; the supervisor will ask Nimbus by itself within ten seconds."""


def relay_assignments(
    nimbus: NimbusAddress, supervisors: Mapping[str, NimbusAddress], timeout_seconds: float = 3.0
) -> frozenset[str]:
    """Give each of `supervisors` (address by id) what Nimbus has assigned to it; the ids of those that took it."""

    def relay(supervisor_id: str) -> bool:
        try:
            answer = call_raw(nimbus, "getSupervisorAssignments", string_argument(supervisor_id), timeout_seconds)
            supervisor = supervisors[supervisor_id]
            took = call_raw(supervisor, "sendSupervisorAssignments", passed_on(answer), timeout_seconds)
            if took != STOP:  # a declared exception (not authorized) is a reply, too: in a field of the result
                raise RelayFailed(f"{supervisor} refuses its assignments")
        except RelayFailed:
            return False
        return True

    if not supervisors:
        return frozenset()
    with ThreadPoolExecutor(min(len(supervisors), 16), "relay") as pool:
        taken = pool.map(relay, supervisors)
    return frozenset(supervisor_id for supervisor_id, took in zip(supervisors, taken, strict=True) if took)


def string_argument(text: str) -> bytes:
    """The arguments of a Thrift method that takes one string."""
    encoded = text.encode()
    return struct.pack(">bhi", STRING, 1, len(encoded)) + encoded + STOP


def passed_on(result: bytes) -> bytes:
    """A result that is a struct, as the first argument of another call. RelayFailed when it is an exception."""
    if not result.startswith(SUCCESS_FIELD):
        raise RelayFailed("Nimbus refuses to tell")
    return FIRST_ARGUMENT + result.removeprefix(SUCCESS_FIELD)


def call_raw(address: NimbusAddress, method: str, arguments: bytes, timeout_seconds: float) -> bytes:
    """One framed call in binary protocol; the bytes of its result struct. RelayFailed when there is none."""
    name = method.encode()
    message = struct.pack(">Ii", VERSION_1 | CALL, len(name)) + name + struct.pack(">i", 0) + arguments
    try:
        with socket.create_connection((address.host, address.port), timeout_seconds) as connection:
            connection.sendall(struct.pack(">i", len(message)) + message)
            (length,) = struct.unpack(">i", _receive(connection, 4))
            if not 0 < length <= LARGEST_FRAME_BYTES:
                raise RelayFailed(f"{address} answers {method} with a frame of {length} bytes")
            reply = _receive(connection, length)
    except (OSError, UnicodeError) as error:  # the latter of a host name that is none
        raise RelayFailed(f"{address} does not answer {method}: {error}") from error
    header_bytes = 4 + 4 + len(name) + 4
    if reply[:4] != struct.pack(">I", VERSION_1 | REPLY):
        raise RelayFailed(f"{address} fails in {method}")
    return reply[header_bytes:]


def _receive(connection: socket.socket, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        part = connection.recv(length - len(parts))
        if not part:
            raise OSError("the connection ended in mid-answer")
        parts += part
    return bytes(parts)
