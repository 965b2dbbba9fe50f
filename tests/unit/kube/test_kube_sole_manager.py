"""One manager of a Storm cluster, on Kubernetes too: nothing is done while another has it, and who that is is told."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from fake_zookeeper import FakeSession, FakeZooKeeper
from kube_builders import NIMBUS, registry_of, topology_body
from storm_operator.adapters.errors import ZooKeeperUnreachable
from storm_operator.adapters.kube.errors import Forbidden
from storm_operator.adapters.manager_lock import PATIENCE_SECONDS, Holder, ManagedByAnother, ManagerLock, this_process
from storm_operator.assembly import ClusterConnection
from storm_operator.core.backoff import LONGEST_PASS_RETRY_SECONDS
from storm_operator.kube import managed_cluster
from storm_operator.kube.connecting import RunnerSettings
from storm_operator.kube.managed_cluster import ManagedCluster
from storm_operator.kube.runner import ClusterRunner
from storm_operator.kube.sole_manager import AWAITED_LOOK_SECONDS
from storm_operator.kube.status import refused_status
from storm_operator.kube.submission import JobSettings

BY_ADDRESS = "10.0.0.7:6627"
OTHER_POD = Holder("storm-operator-x", 1, 5, "another kernel", NIMBUS, "ops/storm-operator-x")
STANDALONE = Holder("elsewhere", 7, 5, "another kernel")


@dataclass
class Cluster:
    """One Storm cluster, whatever its Nimbus is called; `seconds` pass for whoever waits for its lock."""

    zookeeper: FakeZooKeeper = field(default_factory=FakeZooKeeper)
    seconds: float = 0.0
    sessions: int = 0

    def lock(self, _: ClusterConnection, me: Holder) -> ManagerLock:
        self.sessions += 1
        session = FakeSession(self.zookeeper, f"{self.sessions}")
        return ManagerLock(session, threading.Event(), lambda: None, me=me, clock=lambda: self.seconds)

    def taken_by(self, holder: Holder) -> ManagerLock:
        lock = self.lock(ClusterConnection((NIMBUS,), ""), holder)
        lock.take()
        return lock


class Loop:
    """A runner for one resource; Kubernetes and Storm take everything, and `opened` is what works on Storm."""

    def __init__(self, nimbus: str) -> None:
        self.kinds, self.events, self.opened = Mock(), Mock(), Mock()
        self.kinds.each.return_value = []
        self.opened.lifecycle.side_effect = lambda *_: Mock(repairs={})
        self.opened.storm.supervisor_ids.return_value = {}
        self.opened.loop.paused = ()
        self.opened.loop.seconds_to_next = 60.0
        pods = Mock(supervisors=Mock(return_value=()))
        kube: Any = SimpleNamespace(
            kinds=self.kinds, events=self.events, pods=pods, jobs=Mock(), config_map_text=Mock(return_value="")
        )
        settings = RunnerSettings(JobSettings("storm"), 9464, pod="ops/storm-operator-1")
        body = topology_body(spec={"nimbus": nimbus, "adopt": {}, "scheduling": {"periodSeconds": 60}})
        self.said: list[str] = []
        self.runner = ClusterRunner(ManagedCluster(nimbus, registry_of(body), kube, settings, self.said.append, set()))
        self.confirm: Callable[[], None] = lambda: None

    def pass_once(self) -> float:
        """Seconds from its beginning to that of the next."""
        self.runner.cluster.manager.awaits = False
        period = self.runner._whatever_happens(self.runner.cluster.run_pass)
        return self.runner._retry_seconds() if period is None else period

    @property
    def lives(self) -> int:
        """How often it began with what is in the journal."""
        return int(self.opened.loop.recover.call_count)

    @property
    def passes(self) -> int:
        return int(self.opened.loop.run_once.call_count)

    @property
    def was_told(self) -> bool:
        return bool(self.kinds.patch_status.called or self.events.post.called)

    def degraded(self) -> tuple[str, str]:
        """Reason and message of the condition that was written last."""
        conditions = {one["type"]: one for one in self.kinds.patch_status.call_args.args[3]["conditions"]}
        return conditions["Degraded"]["reason"], conditions["Degraded"]["message"]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    cluster = Cluster()
    monkeypatch.setattr("storm_operator.kube.sole_manager.manager_lock", cluster.lock)
    return cluster


@pytest.fixture
def loop(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Loop]:
    loops: dict[str, Loop] = {}

    def discover(nimbus: str, _: RunnerSettings) -> ClusterConnection:
        return ClusterConnection((nimbus,), "zookeeper:2181")

    def assemble(connection: ClusterConnection, *_: Any, confirm: Callable[[], None], **__: Any) -> Mock:
        found = loops[connection.nimbus[0]]
        found.confirm = confirm
        return found.opened

    monkeypatch.setattr(managed_cluster, "discover", discover)
    monkeypatch.setattr(managed_cluster, "assemble", assemble)
    monkeypatch.setattr(ManagedCluster, "_publish", Mock())
    for name in ("close_lost", "seed_proposals"):
        monkeypatch.setattr(f"storm_operator.kube.connecting.{name}", Mock())

    def make(nimbus: str) -> Loop:
        loops[nimbus] = Loop(nimbus)
        return loops[nimbus]

    return make


Make = Callable[[str], Loop]


def test_a_dead_operators_session_is_waited_for_and_nobody_is_told(cluster: Cluster, loop: Make) -> None:
    dead, ours = cluster.taken_by(OTHER_POD), loop(NIMBUS)
    for _ in range(3):
        assert ours.pass_once() == AWAITED_LOOK_SECONDS
    assert ours.runner.cluster.manager.awaits, "it is no failed pass"
    assert (ours.was_told, ours.lives, ours.passes) == (False, 0, 0)
    (said,) = ours.said
    assert "waiting: pod ops/storm-operator-x holds the lock" in said
    dead.close()
    assert ours.pass_once() == 60.0
    (holder,) = cluster.zookeeper.holders()
    assert (holder.nimbus, holder.pod) == (NIMBUS, "ops/storm-operator-1")
    assert (ours.was_told, ours.lives, ours.passes) == (False, 1, 1)


@pytest.mark.parametrize(
    ("holder", "words"),
    [
        (
            OTHER_POD,
            f"another operator manages the Storm cluster of Nimbus {NIMBUS}, pod ops/storm-operator-x: let one",
        ),
        (
            replace(OTHER_POD, pod=""),
            "another operator manages the Storm cluster of Nimbus .*, pid 1 on storm-op.*-x: ",
        ),
        (STANDALONE, "storm-operator standalone manages the Storm cluster of .*, pid 7 on elsewhere: end it"),
        (
            this_process(BY_ADDRESS, "ops/storm-operator-1"),
            f"managed as {BY_ADDRESS} already: give all .* the same .* delete that with deletionPolicy Leave",
        ),
    ],
    ids=["another release", "another release outside of a pod", "standalone", "another name of the same Nimbus"],
)
def test_while_another_manages_nothing_is_done_and_who_it_is_is_told(
    cluster: Cluster, loop: Make, holder: Holder, words: str
) -> None:
    theirs, ours = cluster.taken_by(holder), loop(NIMBUS)
    ours.pass_once()
    cluster.seconds = PATIENCE_SECONDS
    for _ in range(3):
        assert ours.pass_once() == LONGEST_PASS_RETRY_SECONDS, "for ever: the other may go"
    reason, message = ours.degraded()
    assert reason == "ManagedByAnother"
    assert re.search(words, message)
    assert {post.args[1:] for post in ours.events.post.call_args_list} == {("ManagedByAnother", message, True)}
    assert ours.said[1:] == [f"{NIMBUS}: {message}"]
    assert ours.opened.mock_calls == [], "no recover, no pass, no limit is lifted"
    assert ours.runner.cluster.registry.unanswered(NIMBUS) is None, "Nimbus answers: no finalizer is given up soon"
    assert ours.runner.unforeseen is None

    theirs.close()
    assert ours.pass_once() == 60.0
    assert (ours.lives, ours.passes) == (1, 1)
    assert ours.runner.cluster.manager.told == set()


def test_what_a_manager_of_the_same_resources_writes_into_their_statuses_is_left_there(
    cluster: Cluster, loop: Make
) -> None:
    cluster.taken_by(OTHER_POD)
    ours = loop(NIMBUS)
    ours.pass_once()
    cluster.seconds = PATIENCE_SECONDS
    ours.kinds.patch_status.side_effect = Forbidden("patch status of words: forbidden")
    ours.pass_once()
    assert ours.kinds.patch_status.call_count == 1
    ours.kinds.patch_status.side_effect = None
    ours.runner.cluster.publisher.concerns.troubles.clear()  # the time of the next try has come
    ours.pass_once()
    assert ours.kinds.patch_status.call_count == 2, "what was refused is tried again"
    (one,) = ours.runner.cluster.registry.topologies()
    ours.runner.cluster.registry.put_topology({**one.body, "status": {"phase": "Running", "message": "by the other"}})
    ours.runner.cluster.publisher.written.clear()  # as half a minute later
    ours.pass_once()
    assert ours.kinds.patch_status.call_count == 2


def test_a_resource_whose_spec_was_wrong_meanwhile_is_told_again(cluster: Cluster, loop: Make) -> None:
    """Its status says what was wrong, and nobody else would say that this is over."""
    cluster.taken_by(STANDALONE)
    ours = loop(NIMBUS)
    ours.pass_once()
    cluster.seconds = PATIENCE_SECONDS
    ours.pass_once()
    (one,) = ours.runner.cluster.registry.topologies()
    ours.runner.cluster.registry.put_topology({**one.body, "spec": {"nimbus": NIMBUS, "no": "source"}})
    ours.pass_once()
    assert ours.kinds.patch_status.call_count == 1
    wrong = {"status": refused_status(one, "InvalidSpec", "it has no source", 0.0)}
    ours.runner.cluster.registry.put_topology({**one.body, **wrong})
    ours.runner.cluster.publisher.written.clear()  # as half a minute later
    ours.pass_once()
    assert ours.kinds.patch_status.call_count == 2
    assert ours.degraded()[0] == "ManagedByAnother"
    ours.pass_once()
    assert ours.kinds.patch_status.call_count == 2


def test_two_names_of_one_nimbus_are_two_loops_of_which_one_acts(cluster: Cluster, loop: Make) -> None:
    first, second = loop(NIMBUS), loop(BY_ADDRESS)
    assert (first.pass_once(), second.pass_once()) == (60.0, AWAITED_LOOK_SECONDS)
    cluster.seconds = PATIENCE_SECONDS
    second.pass_once()
    assert second.degraded()[1].startswith(f"Nimbus {BY_ADDRESS} is of the Storm cluster that is managed as {NIMBUS}")
    assert (second.lives, second.passes) == (0, 0)
    first.pass_once()
    assert (first.lives, first.passes, first.was_told) == (1, 2, False)
    first.runner.close()
    second.pass_once()
    assert (second.lives, second.passes) == (1, 1)


def test_whoever_loses_it_acts_no_more_and_begins_anew_when_the_other_has_gone(cluster: Cluster, loop: Make) -> None:
    ours = loop(NIMBUS)
    ours.pass_once()
    known, parts = ours.runner.cluster.publisher, ours.runner.cluster.lifecycle
    cluster.zookeeper.nodes.clear()  # its session has timed out
    theirs = cluster.taken_by(OTHER_POD)
    with pytest.raises(ManagedByAnother, match="has taken over"):
        ours.confirm()  # as before each write to ZooKeeper
    ours.pass_once()
    assert (ours.lives, ours.passes) == (1, 1)
    assert ours.degraded()[0] == "ManagedByAnother"
    assert ours.opened.close.call_count == 1
    ours.opened.loop.release.assert_not_called()
    assert (ours.runner.cluster.assembly, ours.runner.cluster.lifecycle, ours.runner.unforeseen) == (None, None, None)
    cluster.seconds = PATIENCE_SECONDS
    ours.pass_once()
    ours.pass_once()
    theirs.close()
    ours.pass_once()
    assert (ours.lives, ours.passes) == (2, 2)
    assert ours.runner.cluster.publisher is not known
    assert ours.runner.cluster.lifecycle is not parts
    ours.confirm()


def test_a_pass_in_which_it_was_lost_changes_nothing_more(cluster: Cluster, loop: Make) -> None:
    ours = loop(NIMBUS)
    ours.pass_once()
    ours.runner.cluster.publisher.last_report = Mock()
    ours.runner.cluster.care = care = Mock()

    def lose(_: object) -> None:
        cluster.zookeeper.nodes.clear()
        cluster.taken_by(STANDALONE)

    ours.opened.loop.run_once.side_effect = lose
    ours.pass_once()
    care.follow.assert_not_called()
    assert ours.degraded()[0] == "ManagedByAnother"


def test_zookeeper_that_does_not_tell_who_manages_is_out_of_reach(cluster: Cluster, loop: Make) -> None:
    ours = loop(NIMBUS)
    ours.pass_once()
    cluster.zookeeper.answers = False
    ours.pass_once()
    assert (ours.degraded()[0], ours.passes) == ("ClusterUnreachable", 1)
    with pytest.raises(ZooKeeperUnreachable):
        ours.confirm()
    cluster.zookeeper.answers = True
    ours.pass_once()
    assert (ours.lives, ours.passes) == (1, 2), "it was ours all the time"


@pytest.mark.parametrize("is_lost", [False, True])
def test_at_its_end_a_loop_gives_the_lock_back_last_and_lifts_only_limits_of_its_own(
    cluster: Cluster, loop: Make, is_lost: bool
) -> None:
    ours = loop(NIMBUS)
    ours.pass_once()
    held_when_closed: list[int] = []
    ours.opened.close.side_effect = lambda: held_when_closed.append(len(cluster.zookeeper.nodes))
    ours.runner.cluster.registry.forget_topology(("streams", "words"), "uid-words")
    if is_lost:
        cluster.zookeeper.nodes.clear()
        theirs = cluster.taken_by(OTHER_POD)
    stop = threading.Event()
    stop.set()
    ours.runner.run(stop)
    assert ours.opened.loop.release.called is not is_lost
    if is_lost:
        theirs.take()
        assert cluster.zookeeper.holders() == [OTHER_POD]
    else:
        assert (held_when_closed, cluster.zookeeper.holders()) == ([1], [])


def test_another_zookeeper_has_another_lock(cluster: Cluster, loop: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.taken_by(OTHER_POD)
    ours = loop(NIMBUS)
    ours.pass_once()
    elsewhere = Cluster()
    monkeypatch.setattr("storm_operator.kube.sole_manager.manager_lock", elsewhere.lock)
    moved = ClusterConnection((NIMBUS,), "moved:2181")
    monkeypatch.setattr(managed_cluster, "discover", Mock(return_value=moved))
    assert ours.pass_once() == 60.0
    assert cluster.zookeeper.holders() == [OTHER_POD]
    assert len(elsewhere.zookeeper.holders()) == 1
