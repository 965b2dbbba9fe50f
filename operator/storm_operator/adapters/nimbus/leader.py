"""Finds the Nimbus that leads, and tells whether it is ready for work."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from thriftpy2.thrift import TApplicationException

from storm_operator.adapters.errors import NotLeader
from storm_operator.adapters.nimbus.connection import Connection, ConnectionBroken, NimbusAddress, storm_thrift

Connect = Callable[[NimbusAddress, float], Connection]


def find_leader(
    seeds: Sequence[NimbusAddress],
    connect: Connect,
    timeout_seconds: float,
    gives_up: Callable[[], bool] = lambda: False,
) -> Connection:
    """A connection to the leader that any of `seeds` names.

    Raises NotLeader when seeds answer but name no leader that can be reached, ConnectionBroken when none answers. Once
    `gives_up`, no further seed is asked.
    """
    failures: list[str] = []
    for seed in seeds:
        try:
            leading = _leading(seed, connect, timeout_seconds)
        except ConnectionBroken as error:
            failures.append(f"{seed}: {error}")
            if gives_up():
                raise ConnectionBroken("; ".join(failures)) from error
            continue
        if leading is not None:
            return leading
    if len(failures) < len(seeds):
        raise NotLeader(no_leader(seeds))
    raise ConnectionBroken("; ".join(failures))


def is_ready(connection: Connection) -> bool:
    """Whether this very Nimbus leads and is ready for work: only then it accepts an upload."""
    try:
        if not connection.call("getLeader").isLeader:
            return False
        connection.call("finishFileUpload", connection.call("beginFileUpload"))
    except TApplicationException:
        return False
    return True


def has_assignments(connection: Connection) -> bool:
    """Whether this very Nimbus leads and has read all assignments.

    Others answer all the same: one that does not lead yet with nobody placed, one that no longer does with where
    executors were when it last led. Only this call Storm answers for a leader that has read them alone.
    """
    try:
        connection.call("getSupervisorAssignments", "")
    except TApplicationException:
        return False
    except storm_thrift.AuthorizationException:
        return True  # it tells nobody but supervisors; then nobody can know
    return True


def is_unknown_method(refusal: Exception) -> bool:
    return isinstance(refusal, TApplicationException) and refusal.type == TApplicationException.UNKNOWN_METHOD


def no_leader(seeds: Sequence[NimbusAddress]) -> str:
    return f"Nimbus {names(seeds)} has no leader that is ready for work; wait for the failover, or see nimbus.log"


def names(seeds: Sequence[NimbusAddress]) -> str:
    return ", ".join(str(seed) for seed in seeds)


def _leading(seed: NimbusAddress, connect: Connect, timeout_seconds: float) -> Connection | None:
    """The leader's connection, found through one seed; None when that seed knows no leader to be reached."""
    connection = connect(seed, timeout_seconds)
    try:
        leader = connection.call("getLeader")
    except TApplicationException as refusal:
        connection.close()
        if is_unknown_method(refusal):  # a supervisor, one port on, or DRPC: waiting would bring nothing
            raise ConnectionBroken("what answers there is no Nimbus: it knows no getLeader") from refusal
        return None
    except Exception:
        connection.close()
        raise
    advertised = NimbusAddress(leader.host, leader.port)
    if advertised == seed:
        return connection
    try:
        there = connect(advertised, timeout_seconds)
    except ConnectionBroken:
        # Behind a forwarded port the advertised address means nothing here; the seed may be the leader itself.
        if is_ready(connection):
            return connection
        connection.close()
        return None
    connection.close()
    return there
