"""What becomes of a topology in Storm, and of what is kept for it, while its StormTopology is being deleted."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from fake_cluster import FakeClock, FakeCluster
from kube_builders import GATHERED, NOW, SPREAD, TOPOLOGY_ID, managed
from storm_operator.core.direct_plan import direct_plan
from storm_operator.core.lifecycle import RunningTopology
from storm_operator.cpu_limits import CpuLimits
from storm_operator.kube.calling_off import CallingOff
from storm_operator.kube.concerns import Concerns
from storm_operator.kube.letting_go import LettingGo


def letting_go_of() -> LettingGo:
    concerns = Concerns(lambda: 0.0, lambda _: None)
    return LettingGo(set(), CallingOff(concerns, lambda *_: None), concerns, lambda *_: None, lambda _: None)


def test_plan_of_a_killed_topology_holds_it_until_it_has_finished_and_goes_with_it() -> None:
    cluster = FakeCluster(GATHERED, FakeClock())
    for topology_id in (TOPOLOGY_ID, "words-of-others-1-1767268800"):
        cluster.plans[topology_id] = direct_plan(SPREAD, GATHERED, "p-1", 0.0, "gathers")
    cluster.limits[TOPOLOGY_ID] = dict.fromkeys(GATHERED.slot_of, 100.0)
    running = {"words": RunningTopology(TOPOLOGY_ID, "words", "ACTIVE")}
    kills: list[tuple[str, int]] = []

    def kill(name: str, wait_seconds: int) -> None:
        kills.append((name, wait_seconds))
        running[name] = RunningTopology(TOPOLOGY_ID, name, "KILLED")

    storm = SimpleNamespace(running=lambda: tuple(running.values()), kill=kill)
    applier = SimpleNamespace(limits=CpuLimits(cluster))
    loop = SimpleNamespace(applier=applier, being_moved=())
    assembly: Any = SimpleNamespace(storm=storm, store=cluster, loop=loop)
    letting_go = letting_go_of()
    deleted = managed(spec={"adopt": {}, "deletionPolicy": "Kill", "killWaitSeconds": 60}, deletionTimestamp=NOW)
    for _ in range(2):
        letting_go.follow((deleted,), assembly, None)
    assert kills == [("words", 60)]
    assert TOPOLOGY_ID in cluster.plans
    assert cluster.limits[TOPOLOGY_ID] == {}
    assert not letting_go.gone
    running.clear()
    letting_go.follow((deleted,), assembly, None)
    assert set(cluster.planned_topologies()) == {"words-of-others-1-1767268800"}
    assert letting_go.gone == {deleted.uid}


def test_one_that_a_plan_has_paused_is_not_left_before_its_spouts_run_again() -> None:
    cluster = FakeCluster(GATHERED, FakeClock())
    storm = SimpleNamespace(running=lambda: (RunningTopology(TOPOLOGY_ID, "words", "INACTIVE"),))
    loop = SimpleNamespace(applier=SimpleNamespace(limits=CpuLimits(cluster)), being_moved=(TOPOLOGY_ID,))
    assembly: Any = SimpleNamespace(storm=storm, store=cluster, loop=loop)
    letting_go = letting_go_of()
    deleted = managed(spec={"adopt": {}}, deletionTimestamp=NOW)
    letting_go.follow((deleted,), assembly, None)
    assert not letting_go.gone
    loop.being_moved = ()
    letting_go.follow((deleted,), assembly, None)
    assert letting_go.gone == {deleted.uid}


def test_one_of_which_nobody_can_tell_who_submitted_it_runs_on_and_that_is_told() -> None:
    cluster, told = FakeCluster(GATHERED, FakeClock()), list[tuple[Any, ...]]()
    unreadable = "it is not managed, since Nimbus' answer to getTopologyConf is not JSON"
    storm = SimpleNamespace(running=lambda: (RunningTopology(TOPOLOGY_ID, "words", "ACTIVE", None, unreadable),))
    loop = SimpleNamespace(applier=SimpleNamespace(limits=CpuLimits(cluster)), being_moved=())
    assembly: Any = SimpleNamespace(storm=storm, store=cluster, loop=loop)
    letting_go = replace(letting_go_of(), tell=lambda *event: told.append(event))
    deleted = managed(spec={"jar": {"path": "/jars/words.jar", "mainClass": "a.Words"}}, deletionTimestamp=NOW)
    letting_go.follow((deleted,), assembly, None)
    assert letting_go.gone == {deleted.uid}
    ((name, reason, message, warning),) = told
    assert (name, reason, warning) == ("words", "LetGo", True)
    assert message == (
        f"{TOPOLOGY_ID} runs on: {unreadable}, and nobody can tell whether the operator submitted it; `storm kill` ends"
        " it"
    )
