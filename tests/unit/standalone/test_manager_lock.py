"""One manager for each cluster: who is refused, who waits, who takes over, who ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from eventually import eventually

from fake_zookeeper import QUEUE, FakeSession, FakeZooKeeper
from loop_scene import WORDS, scene
from storm_operator.adapters.errors import AdapterError, MalformedDocument
from storm_operator.adapters.manager_lock import (
    PATIENCE_SECONDS,
    HeldNodes,
    Holder,
    HolderAwaited,
    ManagedByAnother,
    ManagerLock,
    decode_holder,
    encode_holder,
    is_gone,
    this_process,
)
from storm_operator.lifecycle_manager import LifecycleManager
from storm_operator.standalone import AroundPasses, run_forever
from storm_operator.topology_folder import TopologyFolder

HERE = this_process()
GONE = replace(HERE, pid=2**22 + 1)
"""Higher than Linux gives any."""
ELSEWHERE = Holder("elsewhere", 7, 5, "another kernel")


@dataclass
class Operator:
    """One that wants the lock; `lost` once it was told that another has it."""

    zookeeper: FakeZooKeeper
    me: Holder
    seconds: float = 0.0
    connected: threading.Event = field(default_factory=threading.Event)
    lost: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        session = FakeSession(self.zookeeper, f"{self.me!r}" if self.me.nimbus else f"{self.me}")
        self.lock = ManagerLock(session, self.connected, self.lost.set, me=self.me, clock=lambda: self.seconds)


@pytest.fixture
def zookeeper() -> FakeZooKeeper:
    return FakeZooKeeper()


@pytest.fixture
def operator(zookeeper: FakeZooKeeper) -> Callable[[Holder], Operator]:
    return lambda me: Operator(zookeeper, me)


Make = Callable[[Holder], Operator]


def living_neighbour() -> tuple[subprocess.Popen[bytes], Holder]:
    """A process of its own that does nothing, and how it would name itself."""
    program = "from storm_operator.adapters.manager_lock import *; import sys\n"
    program += "print(encode_holder(this_process()).decode(), flush=True); sys.stdin.read()"
    process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    return process, decode_holder("stdout", process.stdout.readline())


def test_a_second_is_refused_at_once_and_told_who_and_what_to_do(operator: Make, zookeeper: FakeZooKeeper) -> None:
    process, neighbour = living_neighbour()
    with process:
        operator(neighbour).lock.take()
        second = operator(HERE)
        with pytest.raises(
            ManagedByAnother, match=rf"already: pid {process.pid} on \S+; end that one first"
        ) as refusal:
            second.lock.take()
        assert refusal.value.holder == neighbour
        second.lock.close()
        assert zookeeper.holders() == [neighbour], "whoever ends leaves nothing behind"
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


@pytest.mark.slow
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


def test_whoever_holds_it_is_asked_for_each_time_and_refused_before_its_connection_is_back(
    operator: Make, zookeeper: FakeZooKeeper
) -> None:
    holder, other = operator(HERE), operator(ELSEWHERE)
    holder.lock.take()
    holder.lock.take()
    zookeeper.expire(f"{HERE}")
    other.lock.take()
    with pytest.raises(ManagedByAnother, match="has taken over") as refusal:
        holder.lock.take()
    assert refusal.value.holder == ELSEWHERE
    other.lock.close()
    with pytest.raises(ManagedByAnother):
        holder.lock.take()
    assert holder.lock.is_lost, "what it knows is of the past: it begins anew with another lock"


def test_a_node_of_the_same_name_in_a_zookeeper_that_lost_its_data_is_another_holders(
    operator: Make, zookeeper: FakeZooKeeper
) -> None:
    """As where chart storm's ZooKeeper, which keeps its data in the pod, is deleted: its numbers begin anew."""
    holder, other = operator(HERE), operator(ELSEWHERE)
    holder.lock.take()
    zookeeper.nodes.clear()
    zookeeper.count = 0
    other.lock.take()
    with pytest.raises(ManagedByAnother, match="has taken over") as refusal:
        holder.lock.take()
    assert refusal.value.holder == ELSEWHERE
    other.lock.take()


def test_a_look_that_was_cut_short_is_no_proof(operator: Make, zookeeper: FakeZooKeeper) -> None:
    holder, other = operator(HERE), operator(ELSEWHERE)
    holder.lock.take()
    zookeeper.expire(f"{HERE}")
    other.lock.take()
    zookeeper.answers_left = 3
    with pytest.raises(AdapterError, match="no answer"):
        holder.lock.take()
    assert zookeeper.holders() == [ELSEWHERE, HERE], "it was cut short after it had queued up"
    zookeeper.answers_left = None
    with pytest.raises(ManagedByAnother):
        holder.lock.take()


def test_two_loops_of_one_process_are_two(operator: Make, zookeeper: FakeZooKeeper) -> None:
    one, two = replace(HERE, nimbus="a.storm:6627"), replace(HERE, nimbus="10.0.0.7:6627")
    first, second = operator(one), operator(two)
    first.lock.take()
    with pytest.raises(HolderAwaited):
        second.lock.take()  # the first may be about to end: its resources were given the other name
    second.seconds = PATIENCE_SECONDS
    with pytest.raises(ManagedByAnother) as refusal:
        second.lock.take()
    assert (refusal.value.holder, one.is_in_process_of(two), one.is_in_process_of(ELSEWHERE)) == (one, True, False)
    assert zookeeper.holders() == [one, two], "a place in the queue is kept"
    zookeeper.expire(f"{one!r}")
    first.lock.close()
    second.lock.take()


def test_nobody_else_writes_nor_begins_a_plan() -> None:
    zookeeper = FakeZooKeeper(nodes={"/storm/journal": ("", b"theirs")})

    def confirm() -> None:
        raise ManagedByAnother("another", ELSEWHERE)

    nodes = HeldNodes(FakeSession(zookeeper, "ours"), confirm)
    assert (nodes.get("/storm/journal"), nodes.children("/storm")) == (b"theirs", ("journal",))
    with pytest.raises(ManagedByAnother):
        nodes.put("/storm/journal", b"ours")
    with pytest.raises(ManagedByAnother):
        nodes.remove("/storm/journal")
    assert zookeeper.nodes == {"/storm/journal": ("", b"theirs")}

    played = scene()
    played.journal.refuse_next(ManagedByAnother("another", ELSEWHERE))
    before = dict(played.cluster.assignment.slot_of)
    with pytest.raises(ManagedByAnother):
        played.run()
    assert (dict(played.cluster.assignment.slot_of), played.cluster.limits) == (before, {})


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


def test_what_readers_of_before_kubernetes_knew_is_written_as_ever() -> None:
    """They refuse other versions, and would go on beside a successor that they cannot read."""
    old = {"version": 1, "host": "elsewhere", "pid": 7, "started_ticks": 5, "pid_space": "another kernel"}
    assert decode_holder("x", json.dumps(old).encode()) == ELSEWHERE
    written = json.loads(encode_holder(replace(ELSEWHERE, nimbus="nimbus:6627", pod="ops/one")))
    assert {name: written[name] for name in old} == old


def test_a_holder_of_another_version_is_refused_by_name() -> None:
    in_a_pod = replace(ELSEWHERE, nimbus="nimbus:6627", pod="ops/storm-operator-1")
    assert decode_holder("x", encode_holder(in_a_pod)) == in_a_pod
    assert f"{in_a_pod}" == "pod ops/storm-operator-1"
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
        raise ManagedByAnother("another", ELSEWHERE)

    lifecycle = LifecycleManager(None, None, print)  # type: ignore[arg-type]
    around = AroundPasses(confirm=confirm)
    with pytest.raises(ManagedByAnother):
        run_forever(TopologyFolder(tmp_path, print), lifecycle, played.loop, stop, print, around)
    assert played.cluster.limits == {"words": limits}
    run_forever(TopologyFolder(tmp_path, print), lifecycle, played.loop, stop, print)
    assert not played.cluster.limits["words"]
