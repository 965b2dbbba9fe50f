"""What Kubernetes does not give is seen, told and planned around: a real API server; the kubelet is played."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from kubernetes.client import ApiClient
from kubernetes.config import new_client_from_config

from builders import chain_topology, placed, same_demand, snapshot
from kube_builders import topology_body
from kube_cluster import KubeCluster
from storm_operator.adapters.kube.events import Events
from storm_operator.adapters.kube.pods import CAPACITY_ANNOTATION, CONTAINER, Pods
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Supervisor
from storm_operator.core.topology_spec import AdoptSource, ScaleLimits, TopologySpec
from storm_operator.kube.cluster_care import ClusterCare
from storm_operator.kube.managed import managed_from
from storm_operator.kube.resize_problem import RETRY_SECONDS

pytestmark = pytest.mark.functional

NAMESPACE = f"refused-{os.getpid()}"
NIMBUS = f"storm-nimbus.{NAMESPACE}:6627"
WORDS = chain_topology("words", ("spout", 1))
HOST = f"storm-supervisor-0.storm-supervisor.{NAMESPACE}.svc.cluster.local"
SEEN = snapshot((WORDS,), (Supervisor("s0", HOST, (6700,)),), placed(WORDS, {"spout": "s0"}))
INFEASIBLE = "Node didn't have enough capacity: cpu, requested: 2000, capacity: 1000"
LABELS = {"app.kubernetes.io/name": "storm", "app.kubernetes.io/component": "supervisor"}


@dataclass
class Refused:
    """The operator's care for one cluster, whose only supervisor pod asks for 2 CPUs and has 0.6."""

    api: ApiClient
    kube: KubeCluster
    now: float = 0.0

    def __post_init__(self) -> None:
        self.said: list[str] = []
        events, about = Events(self.api, lambda: datetime.now(UTC), self.said.append), topology_body("words", NAMESPACE)
        self.care = ClusterCare(
            NIMBUS,
            Pods(self.api),
            lambda: {"s0": HOST},
            lambda _, reason, message, warning: events.post(about, reason, message, warning),
            self.said.append,
            namespace_of=lambda _: NAMESPACE,
        )
        self.care.limits.now = self.care.news.now = self.care.concerns.now = lambda: self.now

    def run_pass(self, demand: Demand, after_seconds: float = 10.0) -> None:
        self.now += after_seconds
        self.care.see((managed_from(topology_body("words", NAMESPACE), NIMBUS),))
        self.care.limits.follow(SEEN.supervisors, SEEN.assignment, demand, 0.9, {})
        self.care.news.tell_of({"words": TopologySpec("words", AdoptSource())}, SEEN)

    def events(self) -> list[tuple[str, str]]:
        found = self.kube.objects("events", NAMESPACE)
        return [(one["reason"], one["message"]) for one in found if one["source"].get("component") == "storm-operator"]

    def are_resized(self) -> list[bool]:
        self.care.see((managed_from(topology_body("words", NAMESPACE), NIMBUS),))
        return [pod.is_resized for pod in self.care.limits.present]

    def asked_for(self) -> str:
        pod = self.kube.object("pods", "storm-supervisor-0", NAMESPACE)
        return str(pod["spec"]["containers"][0]["resources"]["limits"]["cpu"])


@pytest.fixture(scope="module")
def refused(kube_api: KubeCluster) -> Iterator[Refused]:
    kube_api.kubectl("create", "namespace", NAMESPACE)
    kube_api.kubectl("create", "-n", NAMESPACE, "-f", "-", input=json.dumps(supervisor_pod()))
    status = json.dumps({"status": what_the_kubelet_says()})
    kube_api.kubectl(
        *("patch", "pod", "storm-supervisor-0", "-n", NAMESPACE),
        *("--subresource=status", "--type=merge", "-p", status),
    )
    yield Refused(new_client_from_config(str(kube_api.kubeconfig)), kube_api)  # type: ignore[no-untyped-call]
    kube_api.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def supervisor_pod() -> dict[str, Any]:
    cpu = {"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}
    metadata = {"name": "storm-supervisor-0", "labels": LABELS, "annotations": {CAPACITY_ANNOTATION: "2000"}}
    container = {"name": CONTAINER, "image": "none", "resources": cpu}
    spec = {"containers": [container], "nodeName": "nowhere", "subdomain": "storm-supervisor"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def what_the_kubelet_says() -> dict[str, Any]:
    in_force = {"limits": {"cpu": "600m"}, "requests": {"cpu": "600m"}}
    container = {"name": CONTAINER, "image": "none", "imageID": "", "ready": True, "restartCount": 0}
    pending = {"type": "PodResizePending", "status": "True", "reason": "Infeasible", "message": INFEASIBLE}
    return {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}, pending],
        "containerStatuses": [{**container, "resources": in_force, "allocatedResources": in_force["requests"]}],
    }


def test_infeasible_resize_is_told_planned_around_and_asked_for_again(refused: Refused) -> None:
    wants_all = same_demand((WORDS,), 1700.0)
    refused.run_pass(wants_all)
    assert refused.care.capacities() == {"s0": 600.0}
    assert refused.events() == [
        ("ResizeRefused", f"supervisor pod storm-supervisor-0 has 600 millicores: Infeasible: {INFEASIBLE}")
    ]
    refused.run_pass(wants_all)
    assert refused.asked_for() == "2"
    refused.run_pass(wants_all, RETRY_SECONDS)
    assert (refused.said, refused.asked_for()) == ([], "1990m")
    assert len(refused.events()) == 1


def test_kubernetes_remembers_whose_the_limit_of_a_pod_is(refused: Refused) -> None:
    refused.run_pass(same_demand((WORDS,), 1700.0), RETRY_SECONDS)
    assert refused.are_resized() == [True]
    cpu = {"limits": {"cpu": "1900m"}, "requests": {"cpu": "1900m"}}
    patch = json.dumps({"spec": {"containers": [{"name": CONTAINER, "resources": cpu}]}})
    refused.kube.kubectl("patch", "pod", "storm-supervisor-0", "-n", NAMESPACE, "--subresource=resize", "-p", patch)
    assert refused.are_resized() == [False]


def test_pod_that_reserves_all_but_its_cpu_is_held_though_kubernetes_lets_it_not_become_guaranteed(
    refused: Refused,
) -> None:
    body, all_of_it = supervisor_pod(), {"cpu": "100m", "memory": "192Mi"}
    (container,) = body["spec"]["containers"]
    container["resources"] = {
        "limits": {"cpu": "2", "memory": "3Gi"},
        "requests": {"cpu": "500m", "memory": "3Gi"},
    }
    agent = {"name": "agent", "image": "none", "resources": {"limits": all_of_it, "requests": all_of_it}}
    body["spec"]["initContainers"] = [{**agent, "restartPolicy": "Always"}]
    body["metadata"] |= {"name": "reserving-supervisor-0", "namespace": NAMESPACE}
    refused.kube.kubectl("create", "-f", "-", input=json.dumps(body))
    pods = Pods(refused.api)
    (pod,) = (one for one in pods.supervisors((NAMESPACE,)) if one.name == "reserving-supervisor-0")
    pods.resize_cpu(pod, 800, reserve_millicores=800)
    found = refused.kube.object("pods", "reserving-supervisor-0", NAMESPACE)
    assert found["status"]["qosClass"] == "Burstable"
    assert found["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "800m", "memory": "3Gi"},
        "requests": {"cpu": "799m", "memory": "3Gi"},
    }


def test_set_of_that_name_is_not_there(refused: Refused) -> None:
    limits = ScaleLimits(1, 3, "storm-supervisors")
    refused.run_pass(same_demand((WORDS,), 100.0))
    specs = {"words": TopologySpec("words", AdoptSource(), supervisors=limits)}
    refused.care._scale_if_possible(specs, None, SEEN, None)  # type: ignore[arg-type]
    words = refused.care.obstacles("words")[0]
    assert words[0] == "NoScaleTarget"
    assert words in refused.events()
