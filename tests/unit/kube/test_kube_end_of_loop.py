"""Nobody names a Storm cluster any more: what becomes of what was held or paused there, as nobody looks at it again."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from kube_builders import NIMBUS, managed, registry_of
from resized_pods import BOTH_ON_S1, DEMAND, S1, FakePods, pod
from storm_operator.adapters.errors import ZooKeeperUnreachable
from storm_operator.adapters.kube.errors import KubernetesError, NoAnswer, Refused
from storm_operator.adapters.kube.pods import SupervisorPod
from storm_operator.adapters.manager_lock import Holder, ManagedByAnother
from storm_operator.kube.connecting import RunnerSettings
from storm_operator.kube.end_of_loop import PAUSES_SECONDS
from storm_operator.kube.managed_cluster import ManagedCluster
from storm_operator.kube.submission import JobSettings


class Pods(FakePods):
    """Whose kubelet grants what is asked for between two looks; `unlisted` are the next answers that fail."""

    def __init__(self) -> None:
        super().__init__([replace(pod(0), requested_millicores=1000.0)])
        self.own_request = 1000.0
        self.unlisted: list[KubernetesError] = []

    def supervisors(self, namespaces: tuple[str, ...]) -> tuple[SupervisorPod, ...]:
        if self.unlisted:
            raise self.unlisted.pop()
        self.pods = {
            name: replace(one, limit_millicores=one.wanted_millicores, reserved_millicores=one.requested_millicores)
            for name, one in self.pods.items()
        }
        return super().supervisors(namespaces)


class End:
    """Of a cluster whose only pod was open when it was looked at last, and is held since."""

    def __init__(self) -> None:
        self.seconds, self.said, self.pods = 0.0, list[str](), Pods()
        kube: Any = SimpleNamespace(kinds=Mock(), events=Mock(), pods=self.pods)
        settings = RunnerSettings(JobSettings("storm"), 9464)
        self.cluster = ManagedCluster(NIMBUS, registry_of(), kube, settings, self.said.append, set(), sleep=self.sleep)
        self.assembly = Mock()
        self.assembly.loop.paused = ()
        self.assembly.storm.supervisor_ids.return_value = {S1.host: "s1"}
        self.cluster.assembly, self.cluster.manager.lock = self.assembly, Mock(is_lost=False)
        self.limits.now = lambda: self.seconds
        self.cluster.care.see((managed(),))
        self.limits.follow((S1,), BOTH_ON_S1, DEMAND, 0.9, {})
        assert self.cpu == (600.0, 600.0)

    @property
    def limits(self) -> Any:
        return self.cluster.care.limits

    @property
    def cpu(self) -> tuple[float | None, float | None]:
        """Limit and request."""
        (one,) = self.pods.pods.values()
        return one.wanted_millicores, one.requested_millicores

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def end() -> End:
    return End()


def test_they_are_looked_at_until_they_have_limit_and_request_of_their_own_again(end: End) -> None:
    end.cluster.release()
    assert end.cpu == (2000.0, 1000.0)
    assert not end.limits.held
    assert end.seconds < sum(PAUSES_SECONDS)


def test_they_are_not_waited_for_where_none_is_held(end: End) -> None:
    end.pods.pods = {"sup-0": pod(0)}
    end.cluster.release()
    assert end.seconds == 0.0


def test_one_look_that_fails_does_not_end_it(end: End) -> None:
    end.pods.unlisted = [NoAnswer("list pods in storm: no answer")]
    end.cluster.release()
    assert end.cpu == (2000.0, 1000.0)


def test_supervisors_that_are_not_told_for_a_moment_do_not_end_it(end: End) -> None:
    end.assembly.storm.supervisor_ids.side_effect = [ZooKeeperUnreachable("away"), *[{S1.host: "s1"}] * 3]
    end.cluster.release()
    assert end.cpu == (2000.0, 1000.0)


def test_those_that_cannot_be_given_back_are_named_and_waited_for_no_longer(end: End) -> None:
    end.pods.refusal = KubernetesError("resize pod storm/sup-0: down")
    end.cluster.release()
    assert end.seconds == sum(PAUSES_SECONDS)
    assert end.said[-1] == f"{NIMBUS}: pods storm/sup-0 keep other CPU than their own, and nobody sees to them any more"
    end.assembly.loop.release.assert_called_once_with()


def test_what_was_refused_a_moment_ago_is_asked_for_once_more(end: End) -> None:
    end.cluster.care.see((managed(),))
    end.pods.refusal = Refused("exceeded quota: limits.cpu")
    end.limits.open_up([S1.host])
    assert end.cpu == (600.0, 600.0)
    end.pods.refusal = None
    end.cluster.care.see((managed(),))
    end.cluster.release()
    assert end.cpu == (2000.0, 1000.0)


AWAY = ZooKeeperUnreachable("away")


@pytest.mark.parametrize("unanswered", [[AWAY], [None, AWAY], [AWAY, None, AWAY]], ids=["first", "next", "both"])
def test_one_call_that_zookeeper_does_not_answer_does_not_end_it(
    end: End, unanswered: list[ZooKeeperUnreachable | None]
) -> None:
    lock: Any = end.cluster.manager.lock
    lock.take.side_effect = [*unanswered, *[None] * 5]
    end.assembly.loop.paused = ("words-1",)
    end.assembly.loop.resume_paused.side_effect = [AWAY, None]
    end.assembly.loop.release.side_effect = [AWAY, None]
    end.cluster.release()
    assert end.cpu == (2000.0, 1000.0)
    assert end.assembly.loop.resume_paused.call_count == 2
    assert end.assembly.loop.release.call_count == 2


@pytest.mark.parametrize("answers", [0, 1], ids=["never", "but once"])
def test_zookeeper_that_stays_away_leaves_what_is_said(end: End, answers: int) -> None:
    loop, lock = end.assembly.loop, cast("Any", end.cluster.manager.lock)
    loop.paused, loop.memory.limited = ("words-1",), frozenset({"words-1", "lines-1"})
    lock.take.side_effect = [*[None] * answers, *[AWAY] * 4]
    loop.release.side_effect = AWAY
    end.cluster.release()
    said = [words for words in end.said if "away" not in words]
    pods = f"{NIMBUS}: pods storm/sup-0 keep other CPU than their own, and nobody sees to them any more"
    executors = f"{NIMBUS}: executors of lines-1, words-1 keep their CPU limits, and nobody sees to them any more"
    spouts = f"{NIMBUS}: the spouts of words-1 may stay paused; `storm activate NAME` resumes them"
    resumed = "the spouts of words-1, which a plan had paused, are resumed"
    assert said == [resumed if answers else spouts, pods, executors]
    assert loop.resume_paused.called is loop.release.called is bool(answers)


def test_nothing_is_touched_where_another_manages_the_cluster(end: End) -> None:
    lock: Any = end.cluster.manager.lock
    lock.take.side_effect = ManagedByAnother("taken over", Holder("elsewhere", 1))
    with pytest.raises(ManagedByAnother):
        end.cluster.release()
    assert (end.cpu, end.seconds) == ((600.0, 600.0), 0.0)
    end.assembly.loop.release.assert_not_called()
