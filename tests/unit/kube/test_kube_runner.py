"""Between two passes of a cluster's loop: what owners want is attended to at once, and only that."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, patch

import pytest

from kube_builders import NIMBUS, NOW_SECONDS, FakeEvents, managed, plan, rebalance, registry_of, topology_body
from loop_scene import SPECS, last_state
from loop_scene import Scene as LoopScene
from loop_scene import scene as scene_of_a_loop
from storm_operator.adapters.errors import NimbusError, NimbusUnreachable, NotAuthorized, ZooKeeperUnreachable
from storm_operator.adapters.kube.errors import Forbidden, KubernetesError
from storm_operator.adapters.kube.pods import SupervisorPod
from storm_operator.adapters.manager_lock import Holder, HolderAwaited, ManagedByAnother
from storm_operator.assembly import ClusterConnection
from storm_operator.console.documents import unsqueezed
from storm_operator.console.messages import Request
from storm_operator.core.backoff import LONGEST_PASS_RETRY_SECONDS, put_off
from storm_operator.core.lifecycle import RunningTopology
from storm_operator.core.plan_record import PlanState
from storm_operator.core.settings import ApplyMethod
from storm_operator.core.topology_spec import PAUSED_ANNOTATION
from storm_operator.kube import end_of_loop, managed_cluster
from storm_operator.kube import runner as runner_module
from storm_operator.kube.conditions import TopologyView
from storm_operator.kube.connecting import RunnerSettings, remind
from storm_operator.kube.managed import Managed, Registry, Unanswered, rightful
from storm_operator.kube.managed_cluster import FOLLOW_UP_SECONDS, ZOOKEEPER_PATIENCE_SECONDS, ManagedCluster
from storm_operator.kube.owners import Owners
from storm_operator.kube.page import KubePage
from storm_operator.kube.runner import ClusterRunner
from storm_operator.kube.sole_manager import AWAITED_LOOK_SECONDS
from storm_operator.kube.status import refused_status, status_of, trouble_status
from storm_operator.kube.submission import JobSettings, JobSubmitter
from storm_operator.lifecycle_manager import LifecycleManager
from storm_operator.lifecycle_progress import Progress, Stage
from storm_operator.loop_ports import report_of_unseen

Act = Callable[[Registry], object]


SETTINGS = RunnerSettings(JobSettings("storm"), 9464)


class Scene:
    """A runner between two passes; `looks` says what users do before each look."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.registry = registry_of(topology_body())
        kube: Any = SimpleNamespace(kinds=Mock(), events=Mock(), pods=Mock())
        self.said: list[str] = []
        self.runner = ClusterRunner(ManagedCluster(NIMBUS, self.registry, kube, SETTINGS, self.said.append, set()))
        self.runner.cluster.lifecycle = Mock()
        self.runner.cluster.attended = self.runner.cluster.wishes()
        self.attended_at: list[int] = []
        self.look = 0
        self.failure: Exception | None = None
        monkeypatch.setattr(ManagedCluster, "attend", self.attend)

    def attend(self) -> None:
        self.runner.cluster.attended = self.runner.cluster.wishes()
        self.attended_at.append(self.look)
        if self.failure is not None:
            raise self.failure

    def rest(self, *looks: Act) -> list[int]:
        """Rest for so many looks; returns in which of them it attended to something."""

        def wait(_: float) -> bool:
            self.look += 1
            if self.look > len(looks):
                return True
            looks[self.look - 1](self.registry)
            return False

        self.runner._rest(Mock(wait=wait), until=math.inf)
        return self.attended_at


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


def nothing(_: Registry) -> None:
    return None


def create(name: str) -> Act:
    return lambda registry: registry.put_topology(topology_body(name))


def change(**metadata: Any) -> Act:
    body = topology_body()
    return lambda registry: registry.put_topology({**body, "metadata": {**body["metadata"], **metadata}})


def test_nothing_is_done_while_nobody_wants_anything(scene: Scene) -> None:
    assert scene.rest(nothing, nothing, nothing) == []


def test_new_resource_is_attended_to_once(scene: Scene) -> None:
    assert scene.rest(create("more"), nothing, nothing, nothing) == [2]


def test_many_that_come_together_are_attended_to_together(scene: Scene) -> None:
    assert scene.rest(create("a"), create("b"), create("c"), nothing, nothing) == [4]


@pytest.mark.parametrize(
    "metadata", [{"generation": 99}, {"annotations": {PAUSED_ANNOTATION: "true"}}], ids=["spec", "pause"]
)
def test_change_of_mind_is_attended_to(scene: Scene, metadata: dict[str, Any]) -> None:
    assert scene.rest(change(**metadata), nothing, nothing) == [2]


def test_status_that_was_written_is_no_wish(scene: Scene) -> None:
    assert scene.rest(change(resourceVersion="99"), nothing, nothing) == []


class Resting:
    """A runner between two passes while a topology comes or goes; asking Storm takes `takes_seconds`, or fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.takes_seconds, self.looks_at = 0.0, 0.0, list[float]()
        clock = SimpleNamespace(monotonic=lambda: self.now, time=lambda: NOW_SECONDS + self.now)
        for module in (runner_module, managed_cluster):
            monkeypatch.setattr(module, "time", clock)
        monkeypatch.setattr(ManagedCluster, "_connect", lambda _: self.connect())
        monkeypatch.setattr(ManagedCluster, "_publish", Mock())
        self.failure: Exception | None = None
        self.lifecycle = Mock(repairs={}, come=(), is_under_way=True, next_try_at_seconds=math.inf)
        kube: Any = SimpleNamespace(kinds=Mock(), events=Mock(), pods=Mock())
        self.runner = ClusterRunner(
            ManagedCluster(NIMBUS, registry_of(topology_body()), kube, SETTINGS, lambda _: None, set())
        )
        self.runner.cluster.lifecycle = self.lifecycle
        self.runner.cluster.attended = self.runner.cluster.wishes()
        self.runner.cluster.look_again_at = FOLLOW_UP_SECONDS

    def connect(self) -> tuple[Any, Any]:
        self.looks_at.append(self.now)
        self.now += self.takes_seconds
        if self.failure is not None:
            raise self.failure
        return Mock(), self.lifecycle

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        return False

    def until(self, seconds: float) -> list[float]:
        """When it looked so far, once the next pass is due."""
        self.runner._rest(Mock(wait=self.wait), until=seconds)
        return self.looks_at


@pytest.fixture
def resting(monkeypatch: pytest.MonkeyPatch) -> Resting:
    return Resting(monkeypatch)


class TestFollowUp:
    """What comes or goes is looked at again before the next pass, and never without a pause."""

    def test_comes_again_and_again_until_all_is_at_rest(self, resting: Resting) -> None:
        assert resting.until(7.0) == [2.0, 4.0, 6.0]
        resting.lifecycle.is_under_way = False
        assert resting.until(3600.0) == [2.0, 4.0, 6.0, 8.0]

    def test_comes_when_what_failed_may_be_tried_again_however_long_the_period(self, resting: Resting) -> None:
        resting.lifecycle.is_under_way, resting.lifecycle.next_try_at_seconds = False, NOW_SECONDS + 40.0
        assert resting.until(41.0) == [2.0, 40.0]
        resting.lifecycle.next_try_at_seconds = math.inf
        assert resting.until(3600.0) == [2.0, 40.0, 42.0]

    def test_takes_half_of_the_time_at_most(self, resting: Resting) -> None:
        resting.takes_seconds = 5.0
        assert resting.until(30.0) == [2.0, 12.0, 22.0]

    def test_that_fails_comes_again_after_the_pause_of_a_pass_that_failed(self, resting: Resting) -> None:
        resting.failure = NimbusUnreachable("away")
        assert resting.until(30.0) == [2.0, 12.0, 22.0]

    def test_hides_nothing_that_nobody_foresaw(self, resting: Resting) -> None:
        resting.runner.unforeseen = put_off(None, "", 0.0)
        assert resting.until(3600.0) == []


def test_what_fails_is_told_and_waits_for_the_next_pass(scene: Scene) -> None:
    scene.failure = NimbusUnreachable("Nimbus is away")
    assert scene.rest(create("more"), nothing, nothing, nothing) == [2]
    assert scene.said == [f"{NIMBUS}: Nimbus is away"]


@pytest.mark.parametrize(
    ("came_through_at", "next_pass_at"), [(0.0, 30.0), (math.inf, 600.0)], ids=["came through", "failed"]
)
def test_period_that_was_shortened_holds_from_the_last_pass_on_that_came_through(
    resting: Resting, came_through_at: float, next_pass_at: float
) -> None:
    resting.lifecycle.is_under_way = False
    resting.runner.came_through_at = came_through_at
    body = topology_body(spec={"nimbus": NIMBUS, "adopt": {}, "scheduling": {"periodSeconds": 30}})
    resting.runner.cluster.registry.put_topology({**body, "metadata": {**body["metadata"], "generation": 99}})
    resting.until(600.0)
    assert resting.now == pytest.approx(next_pass_at, abs=1.0)


class TestTopologiesThatCome:
    """Only a pass opens the pods that their workers start on, and a period may be five minutes."""

    @pytest.fixture
    def resting(self, resting: Resting) -> Resting:
        """The last pass began at 0, and the look 2 s later finds a new topology."""
        spec = {"nimbus": NIMBUS, "adopt": {}, "scheduling": {"periodSeconds": 300}}
        resting.runner.cluster.registry.put_topology(topology_body(spec=spec))
        resting.runner.came_through_at = 0.0
        resting.lifecycle.come, resting.lifecycle.is_under_way = ("words-2-2",), False
        return resting

    @staticmethod
    def next_passes(resting: Resting, count: int) -> list[float]:
        """When so many begin; the topology is new to the first look only."""
        begin: list[float] = []
        for _ in range(count):
            resting.until(resting.runner.came_through_at + 300.0)
            resting.lifecycle.come = ()
            resting.runner.came_through_at = resting.now
            begin.append(resting.now)
        return begin

    def test_bring_the_next_passes_forward_until_storm_has_placed_them(self, resting: Resting) -> None:
        assert self.next_passes(resting, 4) == [10.0, 20.0, 30.0, 330.0]

    def test_are_opened_pods_for_at_once_where_the_last_pass_was_long_ago(self, resting: Resting) -> None:
        resting.now = resting.runner.cluster.look_again_at = 150.0
        assert self.next_passes(resting, 4) == [150.5, 160.5, 170.5, 470.5]

    def test_that_a_pass_itself_found_are_followed_likewise(self, resting: Resting) -> None:
        resting.lifecycle.come, resting.runner.cluster.topologies_came_at = (), 0.5
        assert self.next_passes(resting, 3) == [10.0, 20.0, 30.0]

    def test_hurry_nothing_after_a_pass_that_failed(self, resting: Resting) -> None:
        resting.runner.came_through_at = math.inf
        resting.until(300.0)
        assert resting.now == 300.0

    def test_change_nothing_where_the_period_is_ten_seconds(self, resting: Resting) -> None:
        resting.until(10.0)
        assert resting.now == 10.0


def test_before_the_first_pass_came_through_there_is_nobody_to_attend(scene: Scene) -> None:
    scene.runner.cluster.lifecycle = None
    assert scene.rest(create("more"), nothing, nothing) == []


@pytest.mark.parametrize(("periods", "seconds"), [((60, 3), 3.0), ((60, 30), 10.0), ((), 10.0)])
def test_nimbus_out_of_reach_is_tried_again_after_the_shortest_period(
    monkeypatch: pytest.MonkeyPatch, periods: tuple[int, ...], seconds: float
) -> None:
    specs = [{"nimbus": NIMBUS, "adopt": {}, "scheduling": {"periodSeconds": period}} for period in periods]
    bodies = [topology_body(f"t{at}", spec=spec) for at, spec in enumerate(specs)]
    runner = Scene(monkeypatch).runner
    runner.cluster.registry = registry_of(*bodies)
    monkeypatch.setattr(ManagedCluster, "run_pass", Mock(side_effect=NimbusUnreachable("away")))
    monkeypatch.setattr(runner_module, "time", Mock(monotonic=lambda: 100.0))
    rests: list[float] = []
    stop = Mock(is_set=Mock(side_effect=[False, True]))
    monkeypatch.setattr(ClusterRunner, "_rest", lambda _, stop, until: rests.append(until - 100.0))
    runner.run(stop)
    assert rests == [seconds]


def test_after_a_pass_that_a_peer_was_in_the_way_of_the_next_comes_soon_however_long_the_period(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A peer that goes away in the midst of a pass may have cut a plan short, whose spouts are paused."""
    start, unseen = Start(monkeypatch), report_of_unseen(NOW_SECONDS, "Nimbus does not answer")
    monkeypatch.setattr(ManagedCluster, "_follow_wishes", Mock(return_value=(start.opened, Mock(), {})))
    start.opened.loop = Mock(period_seconds=60.0, seconds_to_next=7.0, run_once=Mock(side_effect=[Mock(), unseen]))
    assert start.rests_after(2) == [7.0, LONGEST_PASS_RETRY_SECONDS]


def test_what_kubernetes_refuses_at_the_start_is_told_and_tried_ever_more_slowly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And it is not done by halves: what was opened for it is closed each time."""
    start = Start(monkeypatch)
    start.kinds.each.side_effect = Forbidden("list stormrebalances in streams: forbidden")
    assert start.rests_after(4) == [10.0, 20.0, 40.0, 80.0]
    assert start.opened.close.call_count == 4
    ready = {one["type"]: one for one in start.kinds.patch_status.call_args.args[3]["conditions"]}["Degraded"]
    assert (ready["status"], ready["reason"]) == ("True", "KubernetesRefused")
    assert "list stormrebalances in streams: forbidden" in ready["message"]
    start.kinds.each.side_effect = None
    start.kinds.each.return_value = []
    start.runner.cluster._connect()
    assert start.runner.cluster.assembly is start.opened
    assert start.runner._retry_seconds() == LONGEST_PASS_RETRY_SECONDS


def test_plans_that_are_over_are_not_kept_whole_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    start = Start(monkeypatch)
    start.kinds.each.return_value = iter((rebalance("Verified", of=plan("p-1")), rebalance("Proposed", of=plan("p-2"))))
    start.runner.cluster._connect()
    kept = {body["metadata"]["name"]: "plan" in body["spec"] for body in start.runner.cluster.registry.rebalances()}
    assert kept == {"p-1": False, "p-2": True}


def test_topologies_are_submitted_to_whichever_nimbus_of_the_cluster_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    start = Start(monkeypatch)
    start.kinds.each.return_value = []
    start.runner.cluster._connect()
    assert start.runner.cluster.submitter is not None
    assert start.runner.cluster.submitter.other_nimbuses == ("nimbus2.example.com:6627",)


def test_nimbus_that_is_away_after_a_refusal_is_tried_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    start = Start(monkeypatch)
    start.kinds.each.side_effect = Forbidden("list stormrebalances in streams: forbidden")
    start.rests_after(3)
    monkeypatch.setattr(managed_cluster, "discover", Mock(side_effect=NimbusUnreachable("away")))
    assert start.rests_after(2) == [LONGEST_PASS_RETRY_SECONDS] * 2


def degraded(kinds: Mock) -> tuple[str, str, str]:
    """Status, reason and message of the condition that was written last."""
    conditions = {one["type"]: one for one in kinds.patch_status.call_args.args[3]["conditions"]}
    return tuple(conditions["Degraded"][field] for field in ("status", "reason", "message"))


def test_what_nobody_foresaw_is_told_with_its_place_and_tried_ever_more_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    start = Start(monkeypatch)
    monkeypatch.setattr(managed_cluster, "discover", Mock(side_effect=ValueError("nobody thought of that")))
    begun_at, start.runner.next_pass_at = start.runner.last_pass_at, 50.0
    assert start.rests_after(4) == [10.0, 20.0, 40.0, 80.0]
    status, reason, message = degraded(start.kinds)
    assert (status, reason) == ("True", "OperatorFailed")
    assert message.startswith("the operator failed (ValueError: nobody thought of that)")
    (shown,) = start.page.watcher_of(NIMBUS).seen.view.decisions
    assert shown.message == message, "the page would else show the last pass as if it were of now"
    assert "in _assembled" in start.said[-1]
    known = (start.runner.last_pass_at, start.runner.next_pass_at)
    assert known == (begun_at, 50.0), "or /healthz would never say that it goes on"


def test_pass_that_comes_through_ends_what_nobody_foresaw(monkeypatch: pytest.MonkeyPatch) -> None:
    start = Start(monkeypatch)
    monkeypatch.setattr(ManagedCluster, "run_pass", Mock(side_effect=[ValueError("a"), ValueError("b"), 60.0]))
    assert start.rests_after(3) == [10.0, 20.0, 60.0]
    assert (start.runner.unforeseen, start.runner.last_pass_at, start.runner.next_pass_at) == (None, 100.0, 160.0)


def test_loop_goes_on_although_not_even_its_trouble_could_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    start = Start(monkeypatch)
    monkeypatch.setattr(Owners, "tell_trouble", Mock(side_effect=TypeError("a status that cannot be")))
    monkeypatch.setattr(
        ManagedCluster, "run_pass", Mock(side_effect=[NimbusUnreachable("away"), ValueError("a"), 60.0])
    )
    assert start.rests_after(3) == [10.0, 20.0, 60.0]


@pytest.mark.parametrize(
    ("spec", "metadata", "resizes"),
    [
        ({}, {}, True),
        ({"resources": {"enforcement": "None"}}, {}, False),
        ({"scheduling": {"mode": "Observe"}}, {}, False),
        ({}, {"annotations": {PAUSED_ANNOTATION: "true"}}, False),
        ({}, {"deletionTimestamp": "2027-01-15T08:00:00Z"}, False),
    ],
    ids=["enforced", "not enforced", "observed", "paused", "leaving"],
)
def test_pods_are_resized_for_topologies_that_are_managed_and_want_it(
    monkeypatch: pytest.MonkeyPatch, spec: dict[str, Any], metadata: dict[str, Any], resizes: bool
) -> None:
    runner = Scene(monkeypatch).runner
    body = topology_body(spec={"nimbus": NIMBUS, "adopt": {}, "scheduling": {"mode": "Enforce"}} | spec, **metadata)
    runner.cluster.owners.by_name, _ = rightful(registry_of(body).of_cluster(NIMBUS))
    assert runner.cluster.care.resizes() is resizes


@pytest.mark.parametrize(
    ("spec", "metadata", "is_left_alone"),
    [
        ({"adopt": {}, "resources": {"enforcement": "None"}}, {}, False),
        ({"adopt": {}}, {"annotations": {PAUSED_ANNOTATION: "true"}}, True),
        ({"adopt": {}}, {"deletionTimestamp": "2027-01-15T08:00:00Z"}, True),
        ({"adopt": {}, "suspend": "perhaps"}, {}, True),
    ],
    ids=["managed", "paused", "leaving", "invalid"],
)
def test_pods_are_not_held_for_the_executors_of_who_is_left_alone(
    scene: Scene, spec: dict[str, Any], metadata: dict[str, Any], is_left_alone: bool
) -> None:
    cluster, status = scene.runner.cluster, {"topologyId": "other-1-1", "nimbus": NIMBUS}
    cluster.registry.put_topology(topology_body("other", spec={"nimbus": NIMBUS} | spec, status=status, **metadata))
    cluster.owners.look()
    assert cluster.care.left_alone() == ({"other"} if is_left_alone else set())


def test_number_of_pods_waits_for_topologies_that_the_lifecycle_awaits(scene: Scene) -> None:
    cluster: Any = scene.runner.cluster
    cluster.lifecycle.awaited = ("words",)
    assert cluster.care.awaited() == ("words",)
    cluster.lifecycle = None
    assert cluster.care.awaited() == ()


def test_pods_are_released_as_soon_as_a_change_of_mind_is_attended_to() -> None:
    played = Deletion("Leave")
    played.runner.cluster.care.limits = Mock()
    played.runner.cluster.care.hosts = lambda: {"s0": "sup-0"}
    with patch.object(ManagedCluster, "_publish"):
        played.runner.cluster.attend()
    ((hosts,), _) = played.runner.cluster.care.limits.release.call_args
    assert list(hosts) == ["sup-0"]


@pytest.mark.parametrize("is_named", [True, False], ids=["operator ends", "nobody names the cluster"])
def test_limits_end_with_a_loop_only_where_nobody_asks_for_one(monkeypatch: pytest.MonkeyPatch, is_named: bool) -> None:
    start = Start(monkeypatch)
    cluster, pods = start.runner.cluster, Mock(held=frozenset())
    cluster.assembly, cluster.care.limits, cluster.manager.lock = start.opened, pods, Mock()
    start.opened.storm.supervisor_ids.return_value = {}
    cluster.owners.by_name, _ = rightful(cluster.registry.of_cluster(NIMBUS))
    if not is_named:  # its finalizer was taken away, or its spec is invalid now
        cluster.registry.forget_topology(("streams", "words"), "uid-words")
    start.rests_after(0)
    released = (start.opened.loop.release.called, pods.release.called)
    assert released == ((False, False) if is_named else (True, True))
    start.opened.close.assert_called_once_with()


def cut_short(played: LoopScene) -> None:
    """A plan is in force, and Nimbus went away before it resumed the spouts that it had paused."""
    drains = replace(SPECS["words"], scheduling=replace(SPECS["words"].scheduling, apply_method=ApplyMethod.DRAIN))
    with patch.object(played.cluster, "activate", Mock(side_effect=NimbusUnreachable("it fails over"))):
        played.run({"words": drains})
    assert (last_state(played), played.cluster.inactive) == (PlanState.APPLYING, {"words"})


@pytest.mark.parametrize("is_named", [True, False], ids=["operator ends", "nobody names the cluster"])
def test_spouts_do_not_stay_paused_with_a_loop_that_nobody_asks_for(
    monkeypatch: pytest.MonkeyPatch, is_named: bool
) -> None:
    """As where the only spec is invalid now, or was deleted, in the midst of a plan that drains."""
    start, played = Start(monkeypatch), scene_of_a_loop()
    cluster = start.runner.cluster
    cut_short(played)
    cluster.assembly, cluster.manager.lock, start.opened.loop = start.opened, Mock(), played.loop
    start.opened.storm.supervisor_ids.return_value = {}
    if not is_named:
        cluster.registry.put_topology(topology_body(spec={"scheduling": {"timeZone": 7}}))
        assert cluster.registry.of_cluster(NIMBUS) == ()
    start.rests_after(0)
    assert played.cluster.inactive == ({"words"} if is_named else set())
    assert any("words, which a plan had paused, are resumed" in words for words in start.said) is not is_named


INVALID = {"scheduling": {"timeZone": 7}}


class NextLife:
    """Of an operator that was ended with spouts paused and executors held; the only spec became invalid meanwhile."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.start, self.played = Start(monkeypatch), scene_of_a_loop()
        self.cluster = self.start.runner.cluster
        cut_short(self.played)
        reborn = scene_of_a_loop()
        reborn.loop.applier, reborn.loop.journal = self.played.loop.applier, self.played.loop.journal
        reborn.loop.memory.limited = frozenset({"words"})
        self.start.opened.loop = reborn.loop
        self.start.opened.storm.supervisor_ids.return_value = {"sup-0.sup.streams.svc.cluster.local": "s0"}
        self.start.pods.supervisors.return_value = (
            SupervisorPod("streams", "sup-0", "sup", "sup", True, 300.0, 300.0, 2000.0, is_resized=True),
        )
        self.cluster.sleep = Mock()
        self.stop, self.waited = threading.Event(), list[float]()
        monkeypatch.setattr(self.stop, "wait", self.waited.append)
        self.cluster.registry.put_topology(topology_body(spec=INVALID, status={"nimbus": NIMBUS}))

    def run(self) -> bool:
        """Whether it has ended as told."""
        self.start.runner.release_only(self.stop)
        return self.stop.is_set()

    @property
    def is_released(self) -> tuple[bool, bool, bool]:
        """Spouts, pods and executors."""
        return (
            self.played.cluster.inactive == set(),
            bool(self.start.pods.resize_cpu.called),
            self.start.opened.loop.memory.limited == frozenset(),
        )


@pytest.fixture
def next_life(monkeypatch: pytest.MonkeyPatch) -> NextLife:
    return NextLife(monkeypatch)


class TestLeftByAnEarlierLife:
    """Where no valid resource names the cluster any more."""

    def test_is_released_and_the_plan_left_for_who_names_the_cluster_again(self, next_life: NextLife) -> None:
        assert next_life.run()
        assert next_life.is_released == (True, True, True)
        kept = next_life.played.loop.journal.load()
        assert kept is not None
        assert kept.state is PlanState.APPLYING
        next_life.start.opened.close.assert_called_once_with()
        assert next_life.cluster.manager.lock is None

    def test_is_released_once_the_cluster_can_be_looked_at(
        self, next_life: NextLife, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """After a crash the lock is its former session's for some seconds, and Nimbus may be away for longer."""
        lock = Mock(is_lost=False, take=Mock(side_effect=[HolderAwaited("its session may end"), *[None] * 9]))
        monkeypatch.setattr("storm_operator.kube.sole_manager.manager_lock", Mock(return_value=lock))
        found = ClusterConnection((NIMBUS,), "zookeeper:2181")
        monkeypatch.setattr(managed_cluster, "discover", Mock(side_effect=[NimbusUnreachable("away"), found, found]))
        assert next_life.run()
        assert next_life.waited == [LONGEST_PASS_RETRY_SECONDS, AWAITED_LOOK_SECONDS]
        assert next_life.is_released == (True, True, True)

    def test_is_left_to_another_that_manages_the_cluster(
        self, next_life: NextLife, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It has taken over what was left; once it had gone, to release would be to end what it holds."""
        other = ManagedByAnother("taken", Holder("elsewhere", 7, 5, "another kernel"))
        lock = Mock(is_lost=False, take=Mock(side_effect=other))
        monkeypatch.setattr("storm_operator.kube.sole_manager.manager_lock", Mock(return_value=lock))
        assert next_life.run()
        assert next_life.is_released == (False, False, False)
        assert any("standalone manages the Storm cluster" in words for words in next_life.start.said)

    def test_is_left_to_the_loop_of_a_resource_that_names_the_cluster_meanwhile(
        self, next_life: NextLife, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def away(*_: object) -> None:
            next_life.cluster.registry.put_topology(topology_body())
            raise NimbusUnreachable("away")

        monkeypatch.setattr(managed_cluster, "discover", away)
        assert next_life.run()
        assert next_life.is_released == (False, False, False)


@pytest.mark.parametrize("is_lost", [False, True])
def test_spouts_are_resumed_before_an_end_that_waits_for_nothing(
    monkeypatch: pytest.MonkeyPatch, is_lost: bool
) -> None:
    """Without the API server nobody can lead, and go on with the plan, for as long as that is away."""
    start, played = Start(monkeypatch), scene_of_a_loop()
    start.runner.resume_paused()
    cut_short(played)
    start.runner.cluster.assembly, start.opened.loop = start.opened, played.loop
    if is_lost:
        other = Holder("elsewhere", 1)
        monkeypatch.setattr(played.cluster, "activate", Mock(side_effect=ManagedByAnother("taken over", other)))
    start.runner.resume_paused()
    assert played.cluster.inactive == ({"words"} if is_lost else set())


def test_limits_are_lifted_also_where_nimbus_is_away_and_spouts_stay_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    start, played = Start(monkeypatch), scene_of_a_loop()
    cluster = start.runner.cluster
    cluster.sleep = Mock()
    cut_short(played)
    cluster.assembly, cluster.manager.lock, start.opened.loop = start.opened, Mock(), played.loop
    start.opened.storm.supervisor_ids.return_value = {}
    cluster.registry.forget_topology(("streams", "words"), "uid-words")
    played.loop.memory.limited = frozenset({"words"})
    with patch.object(played.cluster, "activate", Mock(side_effect=NimbusUnreachable("away"))):
        start.rests_after(0)
    assert any("words may stay paused: away" in words for words in start.said)
    assert played.loop.memory.limited == frozenset()


def test_going_on_with_a_plan_at_the_start_is_no_waiting_for_nimbus(monkeypatch: pytest.MonkeyPatch) -> None:
    start = Start(monkeypatch)
    seen: list[Unanswered | None] = []
    going_on = Mock(side_effect=lambda *_: seen.append(start.runner.cluster.registry.unanswered(NIMBUS)))
    monkeypatch.setattr(managed_cluster, "go_on_where_it_ended", going_on)
    start.opened.lifecycle.return_value = Mock(repairs={})
    start.runner.cluster._follow_wishes()
    assert seen == [None]


def test_spouts_that_a_plan_has_paused_wait_for_nothing_else_of_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that comes before it asks Kubernetes much, and Nimbus of each topology: it may fail over one of them."""
    start, played = Start(monkeypatch), scene_of_a_loop()
    cluster, seen = start.runner.cluster, list[Unanswered | None]()
    cut_short(played)
    activate = played.cluster.activate

    def noted(topology_id: str) -> None:
        seen.append(cluster.registry.unanswered(NIMBUS))
        activate(topology_id)

    monkeypatch.setattr(played.cluster, "activate", noted)
    cluster.assembly, cluster.manager.lock, start.opened.loop = start.opened, Mock(), played.loop
    cluster.lifecycle = Mock(step=Mock(side_effect=NimbusError("Nimbus failed in getTopologyConf of bad-2-2")))
    with pytest.raises(NimbusError):
        cluster._follow_wishes()
    assert (played.cluster.inactive, seen) == (set(), [None])
    assert cluster.registry.unanswered(NIMBUS) is not None


def test_who_cannot_go_on_with_a_plan_has_asked_since_it_began_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resource that is deleted meanwhile is let go in time."""
    start, played = Start(monkeypatch), scene_of_a_loop()
    cluster = start.runner.cluster
    cut_short(played)
    monkeypatch.setattr(played.cluster, "activate", Mock(side_effect=NimbusUnreachable("away")))
    cluster.assembly, cluster.lifecycle, cluster.manager.lock = start.opened, Mock(), Mock()
    start.opened.loop = played.loop
    cluster.registry.note_question(NIMBUS, 5.0)
    for _ in range(2):
        with pytest.raises(NimbusUnreachable):
            cluster._follow_wishes()
        asked = cluster.registry.unanswered(NIMBUS)
        assert asked is not None
        assert asked.since_seconds == 5.0


def test_going_on_with_a_plan_at_the_start_opens_the_pods_that_it_moves_executors_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = Start(monkeypatch)
    start.kinds.each.return_value = []
    pod = SupervisorPod("streams", "sup-0", "sup", "sup", True, 300.0, 300.0, 2000.0)
    start.pods.supervisors.return_value = (pod,)
    start.opened.storm.supervisor_ids.return_value = {"sup-0.sup.streams.svc.cluster.local": "s0"}
    start.opened.loop.recover.side_effect = lambda: start.runner.cluster.care.open_up(["s0"])
    start.opened.lifecycle.return_value = Mock(repairs={})
    start.runner.cluster._follow_wishes()
    start.pods.resize_cpu.assert_called_once_with(pod, 2000, reserve_millicores=None)


def test_parts_know_when_the_loop_is_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    start, stop = Start(monkeypatch), threading.Event()
    assembled = Mock(return_value=start.opened)
    monkeypatch.setattr(managed_cluster, "assemble", assembled)
    start.kinds.each.return_value = []
    start.opened.lifecycle.return_value = Mock(repairs={})
    told: list[bool] = []

    def rest(*_: object) -> None:
        is_ending = assembled.call_args.kwargs["is_ending"]
        told.append(is_ending())
        stop.set()
        told.append(is_ending())

    monkeypatch.setattr(ClusterRunner, "_rest", rest)
    start.runner.run(stop)
    assert told == [False, True]


@pytest.mark.parametrize(
    ("left", "is_drift"),
    [(Stage.RUNNING, True), (Stage.REPLACING, False), (Stage.WAITING, False), (Stage.FAILED, False)],
    ids=["running", "replaced", "being killed to be replaced", "failed to be replaced"],
)
def test_what_the_operator_killed_itself_before_it_was_started_anew_is_nobody_elses_doing(
    left: Stage, is_drift: bool
) -> None:
    before = managed(spec={"jar": {"path": "/w.jar", "mainClass": "a.W"}})
    view = TopologyView(before, Progress(left, "", "words-1-1"), None, None, None, NOW_SECONDS)
    reborn = LifecycleManager(Mock(running=lambda: (LEAVING,)), Mock(fingerprint=lambda _: "new"), lambda _: None)
    after = replace(before, body={**before.body, "status": status_of(view)})
    remind(reborn, "words", after)
    assert after.spec is not None
    reborn.step({"words": after.spec}, NOW_SECONDS)
    assert ("words" in reborn.repairs) is is_drift


def paused_meanwhile(before: Managed) -> dict[str, Any]:
    paused = {**before.body["metadata"], "annotations": {PAUSED_ANNOTATION: "true"}}
    one = replace(before, body={**before.body, "metadata": paused})
    return status_of(TopologyView(one, None, None, None, None, NOW_SECONDS))


@pytest.mark.parametrize(
    "meanwhile",
    [
        paused_meanwhile,
        lambda before: trouble_status(before, "ClusterUnreachable", "Nimbus is away", NOW_SECONDS),
        lambda before: refused_status(before, "InvalidSpec", "spec.suspend: no", NOW_SECONDS),
    ],
    ids=["paused", "out of reach", "invalid"],
)
@pytest.mark.parametrize(("left", "is_drift"), [(Stage.RUNNING, True), (Stage.REPLACING, False)])
def test_what_the_operator_killed_itself_before_nobody_looked_is_nobody_elses_doing(
    left: Stage, is_drift: bool, meanwhile: Callable[[Managed], dict[str, Any]]
) -> None:
    fresh = managed(spec={"jar": {"path": "/w.jar", "mainClass": "a.W"}})
    view = TopologyView(fresh, Progress(left, "", "words-1-1"), None, None, None, NOW_SECONDS)
    status = status_of(view)
    status |= meanwhile(replace(fresh, body={**fresh.body, "status": status}))
    lifecycle = LifecycleManager(Mock(running=lambda: ()), Mock(fingerprint=lambda _: "new"), lambda _: None)
    remind(lifecycle, "words", replace(fresh, body={**fresh.body, "status": status}))
    assert fresh.spec is not None
    lifecycle.step({"words": fresh.spec}, NOW_SECONDS)
    assert ("words" in lifecycle.repairs) is is_drift


def test_what_the_operator_suspended_may_be_resumed_though_the_last_step_of_its_former_life_failed() -> None:
    before = managed(status={"suspendedByOperator": True})
    failed = Progress(Stage.FAILED, "Nimbus refused", "words-1-1")
    view = TopologyView(before, failed, None, None, None, NOW_SECONDS, suspended_by_operator=True)
    reborn = LifecycleManager(Mock(), Mock(), lambda _: None)
    remind(reborn, "words", replace(before, body={**before.body, "status": status_of(view)}))
    assert reborn.suspended == {"words": "words-1-1"}


def test_what_ran_on_another_nimbus_is_not_taken_for_killed_on_this_one() -> None:
    status = {"topologyId": "words-1-1", "nimbus": "other.storm:6627"}
    one = managed(spec={"nimbus": NIMBUS, "jar": {"path": "/w.jar", "mainClass": "a.W"}}, status=status)
    assert one.spec is not None
    reborn = LifecycleManager(Mock(running=lambda: ()), Mock(fingerprint=lambda _: "new"), lambda _: None)
    remind(reborn, "words", one)
    reborn.step({"words": one.spec}, NOW_SECONDS)
    assert reborn.repairs == {}


def test_default_nimbus_that_changed_is_told_beside_what_runs_and_when_that_is_out_of_reach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = Start(monkeypatch)
    cluster = start.runner.cluster
    cluster.registry = Registry("new.storm:6627")
    cluster.owners.registry = cluster.publisher.registry = cluster.registry
    cluster.registry.put_topology(topology_body(status={"topologyId": "words-1-1", "nimbus": NIMBUS}))
    cluster.owners.look()
    cluster._publish(Mock(progress={"words": Progress(Stage.RUNNING, "", "words-1-1")}, retries={}, suspended={}))
    status, reason, message = degraded(start.kinds)
    assert (status, reason) == ("True", "NimbusChanged")
    assert f"runs on Nimbus {NIMBUS}" in message
    cluster.owners.tell_trouble("Nimbus does not answer", "ClusterUnreachable")
    _, reason, message = degraded(start.kinds)
    assert reason == "ClusterUnreachable"
    assert message.startswith(f"Nimbus does not answer; it runs on Nimbus {NIMBUS}, and stays there")


def test_annotations_of_ours_that_do_nothing_are_events_of_what_they_are_on(monkeypatch: pytest.MonkeyPatch) -> None:
    start = Start(monkeypatch)
    cluster, events = start.runner.cluster, FakeEvents()
    cluster.kube.events = cluster.publisher.events = events  # type: ignore[misc]
    cluster.registry.put_topology(topology_body(annotations={"storm-operator.dev/pause": "true"}))
    plan = rebalance()
    plan["metadata"]["annotations"] = {"storm-operator.dev/approve": "true", "example.com/approve": "true"}
    cluster.registry.put_rebalance(plan)
    cluster.owners.look()
    cluster._publish(Mock(progress={}, retries={}, suspended={}))
    unknown = "metadata.annotations: unknown annotation storm-operator.dev/{}; known is storm-operator.dev/{}"
    told = {
        "words": unknown.format("pause", "paused"),
        plan["metadata"]["name"]: unknown.format("approve", "rebalance"),
    }
    assert dict(zip(events.about, events.posted, strict=True)) == {
        name: ("AnnotationIgnored", words, True) for name, words in told.items()
    }


def test_suspension_is_written_down_before_spouts_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A life that ends right after that leaves a topology that its next one may resume."""
    monkeypatch.setattr(managed_cluster, "go_on_where_it_ended", Mock())
    order = Mock()
    order.storm.running.return_value = (RUNNING,)
    start = Start(monkeypatch)
    order.attach_mock(start.kinds, "kinds")
    start.runner.cluster.registry.put_topology(topology_body(spec={"nimbus": NIMBUS, "adopt": {}, "suspend": True}))
    start.opened.lifecycle.side_effect = lambda say, submitter: LifecycleManager(order.storm, submitter, say)
    start.opened.loop.being_moved = ()
    start.runner.cluster._follow_wishes()
    deeds = [one for one in order.mock_calls if one[0] in ("kinds.patch_status", "storm.deactivate")]
    assert [one[0] for one in deeds] == ["kinds.patch_status", "storm.deactivate"]
    assert deeds[0].args[-1] == {"topologyId": "words-1-1", "suspendedByOperator": True}


def test_a_peer_that_is_in_the_way_of_a_pass_is_told_to_all_who_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page, the history and `explain` would else go on with what was decided before."""
    start = Start(monkeypatch)
    runner, away = start.runner, NimbusUnreachable("Nimbus does not answer")
    monkeypatch.setattr(ManagedCluster, "_follow_wishes", Mock(side_effect=away))
    with pytest.raises(NimbusUnreachable):
        runner.cluster.run_pass()
    start.opened.loop.tell_out_of_reach.assert_not_called()
    runner.cluster.assembly = start.opened
    with pytest.raises(NimbusUnreachable):
        runner.cluster.run_pass()
    start.opened.loop.tell_out_of_reach.assert_called_once_with(away)
    start.opened.loop.run_once.assert_not_called()


class TestZooKeeperThatMoves:
    """Its address was read from Nimbus once, and Storm's own daemons were started anew with another."""

    BEFORE = ClusterConnection((NIMBUS,), "zk1:2181")

    @pytest.fixture
    def start(self, monkeypatch: pytest.MonkeyPatch) -> Start:
        """A cluster whose ZooKeeper falls silent."""
        start = Start(monkeypatch)
        cluster = start.runner.cluster
        cluster.assembly, cluster.manager.lock, cluster.manager.connection = start.opened, Mock(), self.BEFORE
        cluster.lifecycle = Mock()
        cluster.manager.lock.take.side_effect = ZooKeeperUnreachable("zk1:2181 did not answer")
        return start

    @staticmethod
    def passes(start: Start, monkeypatch: pytest.MonkeyPatch, seconds: float, now: ClusterConnection) -> int:
        """Passes that fail over so long, while Nimbus has it `now`; how often Nimbus was asked."""
        discover = Mock(return_value=now)
        monkeypatch.setattr(managed_cluster, "discover", discover)
        for at in range(0, int(seconds) + 1, 10):
            clock = Mock(monotonic=lambda at=at: 100.0 + at, time=lambda: NOW_SECONDS)
            monkeypatch.setattr(managed_cluster, "time", clock)
            with pytest.raises(ZooKeeperUnreachable):
                start.runner.cluster.run_pass()
        return discover.call_count

    def test_is_connected_to_anew(self, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
        moved = replace(self.BEFORE, zookeeper="zk2:2181")
        assert self.passes(start, monkeypatch, ZOOKEEPER_PATIENCE_SECONDS - 10, moved) == 0
        assert self.passes(start, monkeypatch, ZOOKEEPER_PATIENCE_SECONDS, moved) == 1
        cluster: Any = start.runner.cluster
        assert cluster.assembly is None
        start.opened.close.assert_called_once_with()
        old, start.kinds.each.return_value = cluster.manager.lock, []
        cluster._connect()
        old.close.assert_called_once_with()
        assert [cluster.assembly, cluster.manager.connection] == [start.opened, moved]

    def test_is_waited_for_where_it_was_while_nimbus_has_it_there(
        self, start: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """To begin anew would be to forget what was measured."""
        assert self.passes(start, monkeypatch, 3 * ZOOKEEPER_PATIENCE_SECONDS, self.BEFORE) == 3
        assert start.runner.cluster.assembly is start.opened

    def test_is_waited_for_while_nimbus_is_away_too(self, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
        away: Any = Mock(side_effect=NimbusUnreachable("away"))
        start.runner.cluster.silent_since = 100.0 - ZOOKEEPER_PATIENCE_SECONDS
        monkeypatch.setattr(managed_cluster, "discover", away)
        with pytest.raises(ZooKeeperUnreachable):
            start.runner.cluster.run_pass()
        away.assert_called_once()
        assert start.runner.cluster.assembly is start.opened


def shown(start: Start, path: str) -> tuple[int, Any]:
    """Status and document that the page's API answers."""
    answer = start.page.api(lambda: {NIMBUS: start.runner}, None).answer(Request("GET", f"/api/v1/{path}"))
    return int(answer.status), json.loads(unsqueezed(answer.body) if answer.is_gzip else answer.body)


@pytest.mark.parametrize("error", [NimbusUnreachable("away"), Forbidden("list stormrebalances: forbidden")])
def test_a_cluster_that_no_pass_could_begin_for_is_listed_on_the_page_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    start = Start(monkeypatch)
    monkeypatch.setattr(managed_cluster, "discover", Mock(side_effect=error))
    start.rests_after(2)
    (listed,) = shown(start, "clusters")[1]["clusters"]
    assert (listed["name"], listed["passes"]) == (NIMBUS, 2)
    (decision,) = shown(start, "view")[1]["decisions"]
    assert decision["reason"] == "ClusterUnreachable"
    assert str(error) in decision["message"]
    status, answer = shown(start, "topologies/words/explanation")
    assert status == 503
    assert str(error) in answer["message"]


def test_a_cluster_that_another_manages_is_listed_on_the_page_with_who_does(monkeypatch: pytest.MonkeyPatch) -> None:
    start = Start(monkeypatch)
    other = ManagedByAnother("taken", Holder("elsewhere", 7, 5, "another kernel"))
    monkeypatch.setattr(managed_cluster, "discover", Mock(side_effect=other))
    start.rests_after(1)
    status, answer = shown(start, "topologies/words/explanation")
    assert (status, "standalone manages the Storm cluster" in answer["message"]) == (503, True)


def test_a_cluster_is_listed_on_the_page_while_it_is_not_known_whether_it_can_be_managed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = Start(monkeypatch)
    monkeypatch.setattr(managed_cluster, "discover", Mock(side_effect=HolderAwaited("its session may end")))
    start.rests_after(3)
    assert [one["passes"] for one in shown(start, "clusters")[1]["clusters"]] == [0]
    assert shown(start, "topologies/words/explanation")[0] == 503


def test_nothing_is_suspended_that_cannot_be_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managed_cluster, "go_on_where_it_ended", Mock())
    storm = Mock()
    storm.running.return_value = (RUNNING,)
    start = Start(monkeypatch)
    start.kinds.patch_status.side_effect = KubernetesError("status: down")
    start.runner.cluster.registry.put_topology(topology_body(spec={"nimbus": NIMBUS, "adopt": {}, "suspend": True}))
    start.opened.lifecycle.side_effect = lambda say, submitter: LifecycleManager(storm, submitter, say)
    start.opened.loop.being_moved = ()
    _, lifecycle, _ = start.runner.cluster._follow_wishes()
    storm.deactivate.assert_not_called()
    assert lifecycle.progress["words"].message.startswith("words: not suspended: its status cannot be written")


class Deletion:
    """The only resource is being deleted, or as `metadata` say; Nimbus shows `running`, and `call_off` ends it."""

    def __init__(self, policy: str | None = "Kill", **metadata: Any) -> None:
        spec = {
            "nimbus": NIMBUS,
            **({"deletionPolicy": policy} if policy else {}),
            "killWaitSeconds": 30,
            "jar": {"path": "/w.jar", "mainClass": "a.W"},
        }
        body = topology_body(spec=spec, **(metadata or {"deletionTimestamp": "2027-01-15T08:00:00Z"}))
        kube: Any = SimpleNamespace(kinds=Mock(), events=Mock(), pods=Mock())
        self.gone: set[str] = set()
        self.said: list[str] = []
        self.runner = ClusterRunner(
            ManagedCluster(NIMBUS, registry_of(body), kube, SETTINGS, self.said.append, self.gone)
        )
        self.runner.cluster.manager.lock = Mock(is_lost=False)
        self.assembly = Mock()
        self.assembly.store.planned_topologies.return_value = ()
        self.assembly.loop.being_moved = ()
        self.runner.cluster.assembly, self.runner.cluster.lifecycle = (
            self.assembly,
            Mock(repairs={}, is_under_way=False, next_try_at_seconds=math.inf),
        )
        self.running: list[RunningTopology] = []
        self.assembly.storm.running.side_effect = lambda: tuple(self.running)
        self.call_off = Mock(return_value=True)
        self.runner.cluster.submitter = Mock(call_off=self.call_off, last={})

    def look(self) -> bool:
        """Attend to it once; whether it is let go."""
        self.runner.cluster._follow_wishes()
        return bool(self.gone)

    @property
    def is_looked_at_again(self) -> bool:
        """Before the next pass, however far that is."""
        return self.runner.cluster.look_again_at < math.inf


RUNNING = RunningTopology("words-1-1", "words", "ACTIVE")
LEAVING = RunningTopology("words-1-1", "words", "KILLED", "old")


def test_name_of_a_topology_stays_with_the_resource_that_runs_it_though_that_is_invalid_now() -> None:
    played = Deletion(creationTimestamp="2026-01-01T00:00:00Z")
    spec = {"nimbus": NIMBUS, "adopt": {}, "suspend": "perhaps", "topologyName": "words"}
    status = {"topologyId": "words-1-1", "nimbus": NIMBUS}
    played.runner.cluster.registry.put_topology(topology_body("older", spec=spec, status=status))
    played.look()
    assert played.runner.cluster.owners.by_name == {}
    kinds: Any = played.runner.cluster.kube.kinds
    (_, namespace, name, written), _ = kinds.patch_status.call_args
    assert (namespace, name, written["topologyId"]) == ("streams", "words", None)
    assert {one["reason"] for one in written["conditions"]} == {"NameTaken"}
    assert written["message"].startswith("topology 'words' belongs to StormTopology streams/older;")


class TestDeletion:
    @pytest.mark.parametrize("policy", ["Kill", "Leave"])
    def test_waits_until_the_submission_that_is_under_way_has_ended(self, policy: str) -> None:
        played = Deletion(policy)
        played.call_off.return_value = False
        assert not played.look()
        assert played.is_looked_at_again
        played.call_off.return_value = True
        assert played.look()
        assert not played.is_looked_at_again

    def test_kills_what_a_submission_got_into_storm_before_it_ended(self) -> None:
        played = Deletion()
        played.call_off.return_value = False
        assert not played.look()
        played.call_off.side_effect = lambda _: self_submitted(played)
        assert not played.look()
        played.assembly.storm.kill.assert_called_once_with("words", 30)
        played.call_off.side_effect, played.call_off.return_value = None, True
        played.running = []
        assert played.look()

    def test_looks_again_until_what_it_killed_has_ended(self) -> None:
        """With a period of an hour the finalizer would give up before that."""
        played = Deletion()
        played.running = [replace(RUNNING, fingerprint="of-the-jar")]
        for shown in ([LEAVING], []):
            assert not played.look()
            assert played.is_looked_at_again
            played.running = shown
        assert played.look()
        assert not played.is_looked_at_again

    def test_leaves_it_if_that_is_wanted(self) -> None:
        played = Deletion("Leave")
        played.running = [RUNNING]
        assert played.look()
        played.assembly.storm.kill.assert_not_called()

    @pytest.mark.parametrize(("fingerprint", "dies"), [("of-the-jar", True), (None, False)], ids=["ours", "another's"])
    def test_kills_what_was_submitted_where_nobody_says_what_becomes_of_it(
        self, fingerprint: str | None, dies: bool
    ) -> None:
        """A topology that ran under that name before the resource came is managed, and never replaced, either."""
        played = Deletion(None)
        played.running = [replace(RUNNING, fingerprint=fingerprint)]
        assert played.look() is not dies
        assert played.assembly.storm.kill.called is dies

    def test_job_that_kubernetes_does_not_end_is_told_and_holds_up_nobody_else(self) -> None:
        played = Deletion()
        played.call_off.side_effect = Forbidden("delete job streams/words-submit-1: forbidden")
        assert not played.look()
        assert "SubmissionNotEnded: delete job streams/words-submit-1: forbidden" in played.said
        cluster: Any = played.runner.cluster
        cluster._publish(Mock(progress={}, retries={}, suspended={}))
        assert degraded(cluster.kube.kinds)[1] == "SubmissionNotEnded", "event LetGo is to say why"

    def test_kill_that_nimbus_refuses_is_told_and_holds_up_nobody_else(self) -> None:
        played = Deletion()
        played.running = [replace(RUNNING, fingerprint="of-the-jar")]
        other = topology_body("other", spec={"nimbus": NIMBUS, "adopt": {}})
        played.runner.cluster.registry.put_topology(other)
        played.assembly.storm.kill.side_effect = NotAuthorized("Nimbus n:1 refuses killTopologyWithOpts: not yours")
        assert not played.look()
        lifecycle: Any = played.runner.cluster.lifecycle
        assert set(lifecycle.step.call_args.args[0]) == {"other"}
        assert played.runner.cluster.registry.unanswered(NIMBUS) is None
        played.runner.cluster._publish(Mock(progress={}, retries={}, suspended={}))
        kinds: Any = played.runner.cluster.kube.kinds
        written = {name: status["conditions"] for (_, _, name, status), _ in kinds.patch_status.call_args_list}
        degrading = {name: conditions[-1]["reason"] for name, conditions in written.items()}
        assert degrading == {"other": "AsExpected", "words": "KillRefused"}, "event LetGo is to say why"
        played.runner.cluster.registry.put_topology({**other, "metadata": {**other["metadata"], "name": "words"}})
        played.look()
        assert played.runner.cluster.care.obstacles("words") == (), "one that is made anew is in nobody's way"

    def test_nimbus_has_not_answered_until_all_that_the_resources_want_was_asked(self) -> None:
        played = Deletion()
        played.assembly.storm.running.side_effect = NimbusUnreachable("away")
        with pytest.raises(NimbusUnreachable):
            played.look()
        assert played.runner.cluster.registry.unanswered(NIMBUS) is not None
        played.assembly.storm.running.side_effect = tuple
        assert played.look()
        assert played.runner.cluster.registry.unanswered(NIMBUS) is None

    def test_who_was_in_its_way_is_kept_until_all_was_answered(self) -> None:
        """Nimbus is well, and the event on a resource that is let go is not to blame it."""
        played = Deletion()
        silent = ZooKeeperUnreachable("ZooKeeper zk:2181 did not answer")
        played.runner.cluster.manager.lock = Mock(is_lost=False, take=Mock(side_effect=silent))
        played.runner._whatever_happens(played.runner.cluster.attend)
        asked = played.runner.cluster.registry.unanswered(NIMBUS)
        assert asked is not None
        assert asked.why == "ZooKeeper zk:2181 did not answer"
        played.runner.cluster.manager.lock.take.side_effect = None
        assert played.look()
        assert played.runner.cluster.registry.unanswered(NIMBUS) is None


class TestPause:
    def test_ends_the_submission_that_is_under_way_and_looks_once(self) -> None:
        played = Deletion(annotations={PAUSED_ANNOTATION: "true"})
        played.call_off.return_value = False
        played.look()
        assert played.is_looked_at_again
        played.call_off.return_value = True
        for _ in range(3):
            played.look()
        assert played.call_off.call_count == 2
        assert not played.is_looked_at_again
        assert not played.gone

    def test_ends_the_next_submission_when_it_is_paused_again(self) -> None:
        played = Deletion(annotations={PAUSED_ANNOTATION: "true"})
        paused = played.runner.cluster.registry.of_cluster(NIMBUS)[0].body
        resumed = {**paused, "metadata": {**paused["metadata"], "annotations": {}}}
        for body in (paused, resumed, paused):
            played.runner.cluster.registry.put_topology(body)
            played.look()
        assert played.call_off.call_count == 2

    def test_without_a_pause_nothing_is_ended(self) -> None:
        played = Deletion(annotations={})
        played.look()
        played.call_off.assert_not_called()


@pytest.mark.parametrize("spec", [{"nimbus": "dead:6627"}, {"suspend": "perhaps"}], ids=["moved", "invalid"])
class TestMove:
    """The resource names another Nimbus, which may never answer, or none, while its topology is being submitted."""

    @staticmethod
    def moved(changes: dict[str, Any]) -> tuple[Deletion, Mock]:
        """And what ends a Job."""
        played = Deletion(annotations={})
        cluster = played.runner.cluster
        (here,) = cluster.registry.of_cluster(NIMBUS)
        ended = Mock()
        cluster.submitter = JobSubmitter(ended, SETTINGS.jobs, Mock(), Mock())
        cluster.submitter.last[here.uid] = ("words-submit-1", "abc")
        cluster.registry.put_topology({**here.body, "spec": {**here.body["spec"], **changes}})
        return played, ended.delete

    def test_ends_the_submission_that_is_under_way_where_others_stay(self, spec: dict[str, Any]) -> None:
        played, delete = self.moved(spec)
        played.runner.cluster.registry.put_topology(topology_body("other", spec={"nimbus": NIMBUS, "adopt": {}}))
        for _ in range(2):
            played.look()
        delete.assert_called_once_with("streams", "words-submit-1", pods_first=True)

    def test_ends_the_submission_that_is_under_way_with_the_loop_that_began_it(
        self, monkeypatch: pytest.MonkeyPatch, spec: dict[str, Any]
    ) -> None:
        """Where it cannot be ended all else that belongs to the end of a loop is done."""
        for step in ("resume_before_the_end", "give_back_pods"):
            monkeypatch.setattr(end_of_loop, step, Mock())
        played, delete = self.moved(spec)
        delete.side_effect = Forbidden("delete job streams/words-submit-1: forbidden")
        played.runner.run(Mock(is_set=lambda: True))
        delete.assert_called_once_with("streams", "words-submit-1", pods_first=True)
        assert "SubmissionNotEnded: delete job streams/words-submit-1: forbidden" in played.said
        played.assembly.loop.release.assert_called_once_with()


def self_submitted(played: Deletion) -> bool:
    """The submission was faster: it is over, and the topology runs."""
    played.running = [RUNNING]
    return True


class Start:
    """A runner at its start; Nimbus and ZooKeeper are there, what Kubernetes answers is to be said."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kinds, self.pods, self.opened = Mock(), Mock(), Mock()
        self.opened.loop.paused = ()
        self.pods.supervisors.return_value = ()
        kube: Any = SimpleNamespace(
            kinds=self.kinds, events=Mock(), pods=self.pods, jobs=Mock(), config_map_text=Mock(return_value="")
        )
        self.page = KubePage(leads=True)
        settings = replace(SETTINGS, page=self.page)
        body = topology_body(spec={"nimbus": NIMBUS, "adopt": {}, "scheduling": {"periodSeconds": 60}})
        self.said: list[str] = []
        self.runner = ClusterRunner(ManagedCluster(NIMBUS, registry_of(body), kube, settings, self.said.append, set()))
        connection = ClusterConnection((NIMBUS, "nimbus2.example.com:6627"), "zookeeper:2181")
        monkeypatch.setattr(managed_cluster, "discover", Mock(return_value=connection))
        monkeypatch.setattr(managed_cluster, "assemble", Mock(return_value=self.opened))
        monkeypatch.setattr("storm_operator.kube.sole_manager.manager_lock", Mock(return_value=Mock(is_lost=False)))
        monkeypatch.setattr("storm_operator.kube.connecting.close_lost", Mock())
        monkeypatch.setattr("storm_operator.kube.connecting.seed_proposals", Mock())
        for module in (runner_module, managed_cluster):
            monkeypatch.setattr(module, "time", Mock(monotonic=lambda: 100.0, time=lambda: 1_800_000_000.0))
        self.rests: list[float] = []
        monkeypatch.setattr(ClusterRunner, "_rest", lambda _, stop, until: self.rests.append(until - 100.0))

    def rests_after(self, passes: int) -> list[float]:
        self.rests.clear()
        self.runner.run(Mock(is_set=Mock(side_effect=[False] * passes + [True])))
        return self.rests
