"""One loop for each Storm cluster that a resource names: begun, ended, never two at once, and watched."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from kube_builders import NIMBUS, registry_of, topology_body
from storm_operator.adapters.kube.clients import KubeClients
from storm_operator.kube import runners as module
from storm_operator.kube.connecting import RunnerSettings
from storm_operator.kube.managed_cluster import ManagedCluster
from storm_operator.kube.runner import ClusterRunner
from storm_operator.kube.runners import END_SECONDS, IDLE_LIMIT_SECONDS, PAUSED_END_SECONDS, Runners
from storm_operator.kube.submission import JobSettings

OTHER = "other.storm:6627"
PATIENCE_SECONDS = 30.0


class FakeRunner:
    """Runs until it is told to stop, and then until it may end."""

    def __init__(self, nimbus: str) -> None:
        self.nimbus = nimbus
        self.last_pass_at = self.next_pass_at = 1000.0
        self.paused: tuple[str, ...] = ()
        self.only_releases = False
        self.may_end = threading.Event()
        self.begun = threading.Event()
        self.resumed = threading.Event()
        self.may_resume = threading.Event()

    def run(self, stop: threading.Event) -> None:
        self.begun.set()
        stop.wait(PATIENCE_SECONDS)
        self.may_end.wait(PATIENCE_SECONDS)

    def release_only(self, stop: threading.Event) -> None:
        self.only_releases = True
        self.begun.set()
        self.may_end.wait(PATIENCE_SECONDS)
        stop.set()

    def resume_paused(self) -> None:
        self.may_resume.wait(PATIENCE_SECONDS)
        self.resumed.set()


class Scene:
    def __init__(self) -> None:
        self.registry = registry_of(topology_body())
        self.made: list[FakeRunner] = []
        self.runners = Runners(self.registry, self.make)

    def make(self, nimbus: str) -> ClusterRunner:
        self.made.append(FakeRunner(nimbus))
        return cast("ClusterRunner", self.made[-1])

    def follow(self) -> list[str]:
        """The clusters that loops were made for so far."""
        self.runners.follow()
        return [runner.nimbus for runner in self.made]

    def end(self, nimbus: str) -> None:
        """Let a loop that was told to stop come to its end."""
        next(runner for runner in self.made if runner.nimbus == nimbus).may_end.set()
        self.runners.running[nimbus].thread.join(PATIENCE_SECONDS)

    def forget(self) -> None:
        self.registry.forget_topology(("streams", "words"), "uid-words")


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: 1001.0))
    scene = Scene()
    yield scene
    for runner in scene.made:
        runner.may_end.set()
    scene.runners.join()


def body_on(nimbus: str, name: str) -> dict[str, Any]:
    return topology_body(name, spec={"adopt": {}, "nimbus": nimbus})


def test_a_nimbus_that_hangs_keeps_nobody_elses_spouts_paused_at_an_end_that_waits_for_nothing(scene: Scene) -> None:
    scene.registry.put_topology(body_on(OTHER, "lines"))
    scene.registry.put_topology(body_on("third.storm:6627", "counts"))
    scene.follow()
    hanging, other, at_rest = scene.made
    hanging.paused, other.paused = ("words-1",), ("lines-1",)
    other.may_resume.set()
    at_rest.may_resume.set()
    scene.runners.resume_paused(0.0)
    assert other.resumed.wait(PATIENCE_SECONDS)
    assert not hanging.resumed.is_set()
    hanging.may_resume.set()
    scene.runners.resume_paused(PATIENCE_SECONDS)
    assert (hanging.resumed.is_set(), at_rest.resumed.is_set()) == (True, False)


def test_each_cluster_gets_one_loop(scene: Scene) -> None:
    scene.registry.put_topology(topology_body("second"))
    scene.registry.put_topology(body_on(OTHER, "third"))
    scene.follow()
    assert sorted(scene.follow()) == sorted([NIMBUS, OTHER])
    assert all(runner.begun.wait(PATIENCE_SECONDS) for runner in scene.made)


def test_loop_ends_when_no_resource_names_its_cluster(scene: Scene) -> None:
    scene.follow()
    scene.forget()
    scene.follow()
    assert scene.runners.running[NIMBUS].stop.is_set()
    scene.end(NIMBUS)
    scene.follow()
    assert scene.runners.running == {}


def test_loops_of_other_clusters_run_on(scene: Scene) -> None:
    scene.registry.put_topology(body_on(OTHER, "third"))
    scene.follow()
    scene.forget()
    scene.follow()
    assert not scene.runners.running[OTHER].stop.is_set()


def test_loop_that_still_applies_a_plan_gets_no_second_beside_it(scene: Scene) -> None:
    scene.follow()
    scene.forget()
    scene.follow()
    scene.registry.put_topology(topology_body())
    assert scene.follow() == [NIMBUS]


def test_cluster_that_comes_back_gets_a_new_loop_once_the_old_has_ended(scene: Scene) -> None:
    scene.follow()
    scene.forget()
    scene.follow()
    scene.end(NIMBUS)
    scene.registry.put_topology(topology_body())
    assert scene.follow() == [NIMBUS, NIMBUS]
    assert not scene.runners.running[NIMBUS].stop.is_set()


class TestOnlyInvalidResources:
    """Since an earlier life of the operator, which may have left spouts paused, and CPU limits."""

    INVALID = topology_body(spec={"adopt": {}, "suspend": "perhaps"}, status={"nimbus": NIMBUS})

    def test_get_one_loop_that_only_releases_and_ends_itself(self, scene: Scene) -> None:
        scene.registry.put_topology(self.INVALID)
        scene.follow()
        assert scene.follow() == [NIMBUS]
        assert scene.made[0].begun.wait(PATIENCE_SECONDS)
        assert (scene.made[0].only_releases, scene.runners.running[NIMBUS].stop.is_set()) == (True, False)
        scene.end(NIMBUS)
        assert scene.runners.problem() == ""
        assert scene.follow() == [NIMBUS]
        assert scene.runners.running == {}

    def test_get_none_where_a_loop_of_this_life_releases_as_it_ends(self, scene: Scene) -> None:
        scene.follow()
        scene.registry.put_topology(self.INVALID)
        scene.follow()
        assert scene.runners.running[NIMBUS].stop.is_set()
        scene.end(NIMBUS)
        assert scene.follow() == [NIMBUS]

    def test_get_none_where_another_is_valid_or_nobody_was_ever_managed(self, scene: Scene) -> None:
        scene.registry.put_topology(topology_body("other", spec=self.INVALID["spec"], status={"nimbus": NIMBUS}))
        scene.registry.put_topology(topology_body("never", spec=self.INVALID["spec"]))
        assert scene.follow() == [NIMBUS]
        assert scene.made[0].begun.wait(PATIENCE_SECONDS)
        assert not scene.made[0].only_releases

    def test_get_a_loop_once_one_is_mended(self, scene: Scene) -> None:
        scene.registry.put_topology(self.INVALID)
        scene.follow()
        scene.registry.put_topology(topology_body())
        assert scene.follow() == [NIMBUS]
        scene.end(NIMBUS)
        assert scene.follow() == [NIMBUS, NIMBUS]
        assert scene.made[1].begun.wait(PATIENCE_SECONDS)
        assert not scene.made[1].only_releases


class TestProblem:
    def test_there_is_none_while_loops_run(self, scene: Scene) -> None:
        scene.follow()
        assert scene.runners.problem() == ""

    def test_loop_that_ended_by_itself(self, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(FakeRunner, "run", lambda *_: None)
        scene.follow()
        scene.runners.running[NIMBUS].thread.join(PATIENCE_SECONDS)
        assert scene.runners.problem() == f"the loop of {NIMBUS} has ended"

    def test_loop_that_ended_as_told_is_none(self, scene: Scene) -> None:
        scene.follow()
        scene.forget()
        scene.follow()
        scene.end(NIMBUS)
        assert scene.runners.problem() == ""

    def test_loop_that_makes_no_passes(self, scene: Scene) -> None:
        scene.follow()
        made = scene.made[0]
        made.last_pass_at = made.next_pass_at = 1001.0 - IDLE_LIMIT_SECONDS
        assert scene.runners.problem() == ""
        made.last_pass_at = made.next_pass_at = 1001.0 - IDLE_LIMIT_SECONDS - 5.0
        assert scene.runners.problem() == f"the loop of {NIMBUS} made no pass for 605 s"

    def test_loop_that_rests_for_a_long_period_is_none(self, scene: Scene) -> None:
        scene.follow()
        made = scene.made[0]
        made.last_pass_at, made.next_pass_at = 1001.0 - 3000.0, 1001.0 + 600.0
        assert scene.runners.problem() == ""
        made.last_pass_at, made.next_pass_at = 1001.0 - 5000.0, 1001.0 - 1400.0
        assert scene.runners.problem() == f"the loop of {NIMBUS} made no pass for 5000 s"


def test_follows_the_registry_until_it_is_stopped(scene: Scene) -> None:
    stop = Mock()
    stop.wait.side_effect = [False, False, True]
    scene.runners.run(stop)
    assert [runner.nimbus for runner in scene.made] == [NIMBUS]


def test_no_loop_begins_before_all_resources_are_known(scene: Scene) -> None:
    """The younger of two that name a topology would have it, a plan would be of topologies that nobody manages."""
    made_meanwhile: list[int] = []

    def wait_until_known(_: threading.Event) -> bool:
        made_meanwhile.append(len(scene.made))
        return True

    scene.runners.wait_until_known = wait_until_known
    scene.runners.run(Mock(wait=Mock(side_effect=[False, True])))
    assert (made_meanwhile, len(scene.made)) == ([0], 1)


def test_no_loop_begins_when_it_is_stopped_before_that(scene: Scene) -> None:
    scene.runners.wait_until_known = lambda _: False
    scene.runners.run(Mock(wait=Mock(side_effect=[False, True])))
    assert scene.made == []


@pytest.mark.parametrize(
    ("paused", "seconds"), [((), END_SECONDS), (("words-1",), PAUSED_END_SECONDS)], ids=["nobody", "words-1"]
)
def test_loops_that_do_not_end_have_one_deadline_together(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, paused: tuple[str, ...], seconds: float
) -> None:
    """A later one where spouts are paused for the plan that one of them applies."""
    now = [1001.0]
    waited: list[float] = []

    class Stuck:
        def join(self, timeout: float) -> None:
            waited.append(timeout)
            now[0] += min(timeout, 6.0)

        def is_alive(self) -> bool:
            return True

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    for nimbus in (NIMBUS, OTHER, "third.storm:6627"):
        runner = cast("ClusterRunner", SimpleNamespace(paused=paused if nimbus == NIMBUS else ()))
        stuck = module._Running(runner, cast("threading.Thread", Stuck()), threading.Event())
        scene.runners.running[nimbus] = stuck
    assert scene.runners.join() is False
    assert waited == [seconds, END_SECONDS - 6.0, 0.0]
    assert scene.runners.paused() == paused
    assert all(one.stop.is_set() for one in scene.runners.running.values())
    scene.runners.running.clear()


def test_history_that_cannot_be_written_is_given_up_while_loops_have_time_to_end() -> None:
    """Else the process would be ended in the middle of it, and its Lease not given back."""
    patience: list[float] = []

    def close(patience_seconds: float = 30.0) -> None:
        patience.append(patience_seconds)

    kube, recorder = cast("KubeClients", Mock()), Mock(close=close)
    settings = RunnerSettings(JobSettings("storm"), 9464)
    cluster = ManagedCluster(NIMBUS, registry_of(topology_body()), kube, settings, Mock(), set(), recorder=recorder)
    ClusterRunner(cluster).close()
    assert len(patience) == 1
    assert patience[0] < END_SECONDS


def test_no_loop_begins_once_they_are_to_end(scene: Scene) -> None:
    assert scene.runners.join() is True
    assert scene.follow() == []


def test_join_ends_all_loops(scene: Scene) -> None:
    scene.registry.put_topology(body_on(OTHER, "third"))
    scene.follow()
    for runner in scene.made:
        runner.may_end.set()
    assert scene.runners.join() is True
    assert not any(one.thread.is_alive() for one in scene.runners.running.values())
