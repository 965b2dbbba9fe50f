"""The lock of a cluster's managers in a real ZooKeeper, one that forgets all sessions included."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from eventually import eventually
from kazoo.client import KazooClient

from functional.agent.agent_peers import ZooKeeperServer
from storm_operator.adapters.errors import AdapterError
from storm_operator.adapters.manager_lock import (
    SESSION_TIMEOUT_SECONDS,
    Holder,
    ManagedByAnother,
    ManagerLock,
    this_process,
)
from storm_operator.adapters.zookeeper import ZooKeeperSession

pytestmark = pytest.mark.functional
ELSEWHERE = Holder("elsewhere", 7, 5, "another kernel")
QUEUE = "/storm/storm-operator/standalone"


@contextmanager
def lock_of(server: ZooKeeperServer, me: Holder) -> Iterator[tuple[ManagerLock, ZooKeeperSession, threading.Event]]:
    """With its session, and whether it was told that another has it."""
    connected, lost = threading.Event(), threading.Event()
    session = ZooKeeperSession(
        server.hosts, session_timeout_seconds=SESSION_TIMEOUT_SECONDS, on_connected=connected.set
    )
    lock = ManagerLock(session, connected, lost.set, me=me)
    try:
        yield lock, session, lost
    finally:
        lock.close()


def end_session(server: ZooKeeperServer, session: ZooKeeperSession) -> None:
    """As ZooKeeper does when it has not heard of it for too long: its nodes go, and it is told when it comes back."""
    # A client that has not found a restarted server again yet has none, and then another session would end.
    present = eventually(lambda: session._client.client_id, "the session is connected")
    usurper = KazooClient(hosts=server.hosts, client_id=present)
    usurper.start(timeout=30)
    usurper.stop()
    usurper.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    server = ZooKeeperServer(tmp_path)
    server.start()
    yield server
    server.stop()


def test_lock_is_kept_over_a_restart_and_a_lost_session_and_left_at_the_end(server: ZooKeeperServer) -> None:
    with lock_of(server, ELSEWHERE) as (waiting, _, _), lock_of(server, this_process()) as (lock, session, lost):
        onlooker = ZooKeeperSession(server.hosts)
        lock.take()
        (before,) = onlooker.children(QUEUE)
        server.stop()
        server.start()
        eventually(lambda: onlooker.children(QUEUE) == (before,), "a restart in time loses no session")
        end_session(server, session)
        eventually(lambda: onlooker.children(QUEUE) > (before,), "the lock is taken again")
        lock.check()
        with pytest.raises(AdapterError, match="holds the lock"):
            waiting.take()
        end_session(server, session)
        assert lost.wait(60.0), "whoever waits has it before it can be taken again"
        with pytest.raises(ManagedByAnother, match="has taken over this Storm cluster, pid 7 on elsewhere"):
            lock.check()
        waiting.take()
        onlooker.close()
    with lock_of(server, this_process()) as (next_one, _, _):
        next_one.take()  # nobody is left to be waited for
