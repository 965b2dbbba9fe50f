"""One standalone operator for each cluster: who is refused, who waits, who takes over, who ends."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from eventually import eventually

from loop_scene import WORDS, scene
from storm_operator.adapters.errors import AdapterError, MalformedDocument, ZooKeeperUnreachable
from storm_operator.adapters.standalone_lock import (
    PATIENCE_SECONDS,
    Holder,
    ManagedByAnother,
    StandaloneLock,
    decode_holder,
    encode_holder,
    is_gone,
    this_process,
)
from storm_operator.lifecycle_manager import LifecycleManager
from storm_operator.standalone import AroundPasses, TopologyFolder, run_forever

QUEUE = "/storm/storm-operator/standalone"
HERE = this_process()
GONE = replace(HERE, pid=2**22 + 1)
"""Higher than Linux gives any."""
ELSEWHERE = Holder("elsewhere", 7, 5, "another kernel")


@dataclass
class FakeZooKeeper:
    """Nodes in a dictionary, each with the session that it ends with."""

    nodes: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    count: int = 0
    answers: bool = True
    refused: int = 0

    def expire(self, session: str) -> None:
        self.nodes = {path: node for path, node in self.nodes.items() if node[0] != session}

    def holders(self) -> list[Holder]:
        return [decode_holder(path, content) for path, (_, content) in sorted(self.nodes.items())]


@dataclass
class FakeSession:
    zookeeper: FakeZooKeeper
    name: str

    def _ask(self) -> dict[str, tuple[str, bytes]]:
        if not self.zookeeper.answers:
            self.zookeeper.refused += 1
            raise ZooKeeperUnreachable("no answer")
        return self.zookeeper.nodes

    def get(self, path: str) -> bytes | None:
        found = self._ask().get(path)
        return found[1] if found else None

    def put(self, path: str, content: bytes) -> None:
        raise NotImplementedError

    def remove(self, path: str) -> None:
        self._ask().pop(path, None)

    def children(self, path: str) -> tuple[str, ...]:
        return tuple(sorted(node.removeprefix(f"{path}/") for node in self._ask()))

    def enqueue(self, path: str, content: bytes) -> str:
        self.zookeeper.count += 1
        name = f"{path}{self.zookeeper.count:010}"
        self._ask()[name] = (self.name, content)
        return name


@dataclass
class Operator:
    """One that wants the lock; `lost` once it was told that another has it."""

    zookeeper: FakeZooKeeper
    me: Holder
    seconds: float = 0.0
    connected: threading.Event = field(default_factory=threading.Event)
    lost: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        session = FakeSession(self.zookeeper, f"{self.me}")
        self.lock = StandaloneLock(session, self.connected, self.lost.set, me=self.me, clock=lambda: self.seconds)


@pytest.fixture
def zookeeper() -> FakeZooKeeper:
    return FakeZooKeeper()


@pytest.fixture
def operator(zookeeper: FakeZooKeeper) -> Callable[[Holder], Operator]:
    return lambda me: Operator(zookeeper, me)


Make = Callable[[Holder], Operator]


def living_neighbour() -> tuple[subprocess.Popen[bytes], Holder]:
    """A process of its own that does nothing, and how it would name itself."""
    program = "from storm_operator.adapters.standalone_lock import *; import sys\n"
    program += "print(encode_holder(this_process()).decode(), flush=True); sys.stdin.read()"
    process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    return process, decode_holder("stdout", process.stdout.readline())


def test_a_second_is_refused_at_once_and_told_who_and_what_to_do(operator: Make, zookeeper: FakeZooKeeper) -> None:
    process, neighbour = living_neighbour()
    with process:
        operator(neighbour).lock.take()
        with pytest.raises(ManagedByAnother, match=rf"already: pid {process.pid} on \S+; end that one first"):
            operator(HERE).lock.take()
        assert zookeeper.holders() == [neighbour], "whoever is refused leaves nothing behind"
        process.kill()
        process.wait()
        operator(HERE).lock.take()
        assert zookeeper.holders() == [HERE], "a neighbour that was killed is not waited for"


def test_one_that_cannot_be_seen_is_waited_for_as_long_as_a_dead_one_lasts(
    operator: Make, zookeeper: FakeZooKeeper
) -> None:
    holder, second = operator(ELSEWHERE), operator(HERE)
    holder.lock.take()
    with pytest.raises(
        AdapterError, match=r"pid 7 on elsewhere holds the lock .*: if it has died, it loses it within 10"
    ):
        second.lock.take()
    second.seconds = PATIENCE_SECONDS - 1.0
    with pytest.raises(AdapterError):
        second.lock.take()
    second.seconds = PATIENCE_SECONDS
    with pytest.raises(ManagedByAnother, match="already: pid 7 on elsewhere"):
        second.lock.take()
    third = operator(HERE)
    with pytest.raises(AdapterError):
        third.lock.take()
    zookeeper.expire(f"{ELSEWHERE}")
    third.lock.take()
    assert zookeeper.holders() == [HERE]


def test_the_lock_is_taken_again_after_a_lost_session(operator: Make, zookeeper: FakeZooKeeper) -> None:
    holder = operator(HERE)
    holder.lock.take()
    zookeeper.expire(f"{HERE}")
    zookeeper.answers = False
    holder.connected.set()
    eventually(lambda: zookeeper.refused, "a look that is not answered")
    zookeeper.answers = True
    holder.connected.set()
    eventually(lambda: zookeeper.nodes, "the lock is taken again")
    assert zookeeper.holders() == [HERE]
    holder.lock.check()
    holder.lock.take()
    assert not holder.lost.is_set()
    holder.lock.close()


def test_whoever_finds_another_after_a_lost_session_is_told_and_ends(operator: Make, zookeeper: FakeZooKeeper) -> None:
    holder, other = operator(HERE), operator(ELSEWHERE)
    holder.lock.take()
    zookeeper.expire(f"{HERE}")
    other.lock.take()
    holder.connected.set()
    assert holder.lost.wait(10.0)
    with pytest.raises(ManagedByAnother, match="has taken over this Storm cluster, pid 7 on elsewhere"):
        holder.lock.check()
    other.lock.check()


def test_a_node_of_ours_whose_making_was_not_answered_is_no_other(operator: Make, zookeeper: FakeZooKeeper) -> None:
    FakeSession(zookeeper, f"{HERE}").enqueue(f"{QUEUE}/holder-", encode_holder(HERE))
    operator(HERE).lock.take()
    assert zookeeper.holders() == [HERE]


def test_who_is_gone() -> None:
    assert HERE.pid == os.getpid()
    assert not is_gone(HERE)
    assert is_gone(GONE)
    assert is_gone(replace(HERE, started_ticks=HERE.started_ticks + 1)), "another process has its pid by now"
    assert not replace(HERE, pid_space="").is_neighbour_of(replace(HERE, pid_space=""))


def test_a_holder_of_another_version_is_refused_by_name() -> None:
    assert decode_holder("x", encode_holder(ELSEWHERE)) == ELSEWHERE
    with pytest.raises(MalformedDocument, match="holder-1: version is 2; only 1 is known here"):
        decode_holder("holder-1", b'{"version": 2}')
    with pytest.raises(MalformedDocument, match="holder-1: pid is missing"):
        decode_holder("holder-1", b'{"version": 1, "host": "h"}')


def test_cpu_limits_of_the_one_that_took_over_are_left_alone(tmp_path: Path) -> None:
    stop, played = threading.Event(), scene()
    stop.set()
    limits = {WORDS.executors[0]: 100.0}
    played.cluster.limits["words"] = limits
    played.loop.memory.limited = frozenset({"words"})

    def confirm() -> None:
        raise ManagedByAnother("another")

    lifecycle = LifecycleManager(None, None, print)  # type: ignore[arg-type]
    around = AroundPasses(confirm=confirm)
    with pytest.raises(ManagedByAnother):
        run_forever(TopologyFolder(tmp_path, print), lifecycle, played.loop, stop, print, around)
    assert played.cluster.limits == {"words": limits}
    run_forever(TopologyFolder(tmp_path, print), lifecycle, played.loop, stop, print)
    assert not played.cluster.limits["words"]
