"""Where supervisor pods are looked for, which of them leave, and what follows a pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from kube_builders import topology_body
from storm_operator.adapters.kube.errors import Forbidden
from storm_operator.adapters.kube.pods import Pods, SupervisorPod
from storm_operator.kube.cluster_care import ClusterCare
from storm_operator.kube.managed import Managed, managed_from
from storm_operator.kube.scaled_set import ScaledSet


class FakePods:
    """Pods by namespace; those of other namespaces may not be listed."""

    def __init__(self, allowed: Mapping[str, tuple[SupervisorPod, ...]]) -> None:
        self.allowed = allowed

    def supervisors(self, namespaces: tuple[str, ...]) -> tuple[SupervisorPod, ...]:
        for namespace in namespaces:
            if namespace not in self.allowed:
                raise Forbidden(f"pods in {namespace}")
        return tuple(pod for namespace in namespaces for pod in self.allowed[namespace])


def pod(namespace: str, ordinal: int) -> SupervisorPod:
    name = f"storm-supervisor-{ordinal}"
    return SupervisorPod(namespace, name, "storm-supervisor", "storm-supervisor", True, 500.0, 500.0, 1000.0)


def host(namespace: str, ordinal: int) -> str:
    return f"storm-supervisor-{ordinal}.storm-supervisor.{namespace}.svc.cluster.local"


def care(nimbus: str, allowed: Mapping[str, tuple[SupervisorPod, ...]], hosts: dict[str, str]) -> ClusterCare:
    return ClusterCare(nimbus, cast("Pods", FakePods(allowed)), lambda: hosts, lambda *_: None, lambda words: None)


def resource(namespace: str) -> Managed:
    body = topology_body()
    return managed_from({**body, "metadata": {**body["metadata"], "namespace": namespace}}, None)


def test_pods_are_found_beside_the_resources_and_beside_nimbus() -> None:
    both = {"team": (pod("team", 0),), "storm": (pod("storm", 0), pod("storm", 1))}
    seen = care("storm-nimbus.storm:6627", both, {"a": host("storm", 1)})
    seen.see((resource("team"),))
    assert seen.namespaces == ("storm", "team")
    assert len(seen.limits.present) == 3
    assert seen.capacities() == {"a": 1000.0}


def test_nimbus_outside_kubernetes_has_no_namespace() -> None:
    seen = care("nimbus.example.com:6627", {"team": (pod("team", 0),)}, {})
    seen.see((resource("team"),))
    assert seen.namespaces == ("team",)
    address = care("10.0.0.1:6627", {"team": ()}, {})
    address.see((resource("team"),))
    assert address.namespaces == ("team",)


def test_supervisors_of_pods_that_are_emptied_leave() -> None:
    pods = {"storm": (pod("storm", 0), pod("storm", 1))}
    seen = care("n.storm:6627", pods, {"a": host("storm", 0), "b": host("storm", 1)})
    seen.see((resource("storm"),))
    assert seen.leaving() == frozenset()
    seen.scale = replace(seen.scale, leaving=frozenset({1}))
    seen.scaled = ScaledSet("storm", "storm-supervisor", pods["storm"])
    assert seen.leaving() == {"b"}
