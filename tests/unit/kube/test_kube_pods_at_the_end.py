"""Nobody names a Storm cluster any more: what becomes of its pods that were held, since nobody looks at them again."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from kube_builders import NIMBUS, managed, registry_of
from resized_pods import BOTH_ON_S1, DEMAND, S1, FakePods, pod
from storm_operator.adapters.errors import ZooKeeperUnreachable
from storm_operator.adapters.kube.errors import KubernetesError, NoAnswer, Refused
from storm_operator.adapters.kube.pods import SupervisorPod
from storm_operator.kube.connecting import RunnerSettings
from storm_operator.kube.managed_cluster import ManagedCluster
from storm_operator.kube.pods_at_the_end import PAUSES_SECONDS
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
