"""The chart's rights are enough and none is too many: each is used here as the operator uses it, by its ServiceAccount.

Take a rule out of the chart and the test of that name fails; put one in and the last test does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client import ApiClient, CustomObjectsApi
from kubernetes.config import new_client_from_config

from kube_cluster import KubeCluster
from storm_operator.adapters.kube.clients import KubeClients
from storm_operator.adapters.kube.errors import Forbidden, KubernetesError
from storm_operator.adapters.kube.events import Events
from storm_operator.adapters.kube.jobs import Jobs
from storm_operator.adapters.kube.leases import Lease, LeaseTerms
from storm_operator.adapters.kube.pods import CONTAINER, Pods
from storm_operator.adapters.kube.resources import GROUP, REBALANCES, TOPOLOGIES, VERSION, OwnKinds
from storm_operator.kube.managed import managed_from
from storm_operator.kube.submission import JobSettings, job_body
from storm_operator.local.paths import repository_root

pytestmark = pytest.mark.functional

NAMESPACE = f"rbac-{os.getpid()}"
RELEASE = "storm-operator"
TOPOLOGY = {
    "apiVersion": f"{GROUP}/{VERSION}",
    "kind": "StormTopology",
    "metadata": {"name": "words", "namespace": NAMESPACE},
    "spec": {"nimbus": "127.0.0.1:1", "adopt": {}},
}
SUPERVISOR_LABELS = {"app.kubernetes.io/name": "storm", "app.kubernetes.io/component": "supervisor"}


@dataclass(frozen=True)
class Hands:
    """The operator's own adapters, with the rights of the chart's ServiceAccount alone."""

    api: ApiClient
    admin: KubeCluster
    topology: dict[str, Any]

    @property
    def kinds(self) -> OwnKinds:
        return OwnKinds(self.api)

    @property
    def pods(self) -> Pods:
        return Pods(self.api)

    @property
    def jobs(self) -> Jobs:
        return Jobs(self.api)

    @property
    def events(self) -> Events:
        return Events(self.api, lambda: datetime.now(UTC), refuse)

    def lease(self, identity: str) -> Lease:
        terms = LeaseTerms(NAMESPACE, RELEASE, identity, duration_seconds=1)
        return Lease(self.api, terms, lambda: datetime.now(UTC))


def refuse(words: str) -> None:
    raise Forbidden(words)


@pytest.fixture(scope="module")
def hands(kube_api: KubeCluster) -> Iterator[Hands]:
    root = repository_root()
    assert root is not None
    kube_api.install_crds(root / "crds")
    kube_api.kubectl("create", "namespace", NAMESPACE)
    kube_api.kubectl("apply", "-n", NAMESPACE, "-f", "-", input=yaml.safe_dump_all(chart_objects(kube_api, root)))
    for body in (TOPOLOGY, rebalance("p-1"), stateful_set(), supervisor_pod(), config_map()):
        kube_api.kubectl("create", "-n", NAMESPACE, "-f", "-", input=json.dumps(body))
    created = json.loads(kube_api.kubectl("get", "stormtopology", "words", "-n", NAMESPACE, "-o", "json"))
    kubeconfig = kube_api.service_account_kubeconfig(NAMESPACE, RELEASE)
    yield Hands(new_client_from_config(str(kubeconfig)), kube_api, created)  # type: ignore[no-untyped-call]
    kube_api.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def chart_objects(kube: KubeCluster, root: Path) -> list[dict[str, Any]]:
    """ServiceAccount, roles and bindings, as the chart makes them for one watched namespace."""
    text = kube.helm(
        *("template", RELEASE, str(root / "charts" / "storm-operator"), "-n", NAMESPACE, "--kube-version=1.35.4"),
        *(f"--set=watchNamespaces={{{NAMESPACE}}}", "-s=templates/rbac.yaml", "-s=templates/serviceaccount.yaml"),
        "-s=templates/lease.yaml",
    )
    return [body for body in yaml.safe_load_all(text) if body]


def rebalance(name: str) -> dict[str, Any]:
    spec = {"planId": name, "planHash": "a", "baseHash": "b", "topologies": ["words-1"], "plan": "{}"}
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": "StormRebalance", "metadata": metadata, "spec": spec}


def supervisor_pod() -> dict[str, Any]:
    """On a node that is none: the API server judges rights before it asks whether a resize makes sense."""
    container = {
        "name": CONTAINER,
        "image": "none",
        "resources": {"limits": {"cpu": "500m"}, "requests": {"cpu": "500m"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "storm-supervisor-0", "labels": SUPERVISOR_LABELS},
        "spec": {"containers": [container], "nodeName": "nowhere"},
    }


def stateful_set() -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "x", "image": "none"}]}}
    spec = {"replicas": 0, "serviceName": "s", "selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "storm-supervisor"}, "spec": spec}


def config_map() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "flux"}, "data": {"topology.yaml": "name: x"}}


def list_kind(plural: str) -> Callable[[Hands], None]:
    return lambda hands: [hands.kinds.list(plural, (NAMESPACE,))].clear()


def watch_kind(plural: str) -> Callable[[Hands], None]:
    def watch(hands: Hands) -> None:
        api: Any = CustomObjectsApi(hands.api)
        try:
            api.list_namespaced_custom_object(GROUP, VERSION, NAMESPACE, plural, watch=True, timeout_seconds=1)
        except ValueError:
            return  # the stream is no single JSON document; what matters is that there was one

    return watch


def patch_status(plural: str, name: str) -> Callable[[Hands], None]:
    return lambda hands: hands.kinds.patch_status(plural, NAMESPACE, name, {"message": "seen"})


def annotate(plural: str, name: str) -> Callable[[Hands], None]:
    return lambda hands: hands.kinds.annotate(plural, NAMESPACE, name, {"a": "b"})


def submission_job(hands: Hands) -> dict[str, Any]:
    managed = managed_from(hands.topology, None)
    assert managed.spec is not None
    return job_body(managed, "words-submit", managed.spec, {}, JobSettings("none"))


def create_job(hands: Hands) -> None:
    hands.jobs.create(NAMESPACE, submission_job(hands))


def read_log(hands: Hands) -> None:
    try:
        hands.jobs.pod_log(NAMESPACE, "storm-supervisor-0")
    except Forbidden:
        raise
    except KubernetesError:
        return  # it has no log: there is no node. It was not forbidden


def resize(hands: Hands) -> None:
    (pod,) = hands.pods.supervisors((NAMESPACE,))
    hands.pods.resize_cpu(pod, 600, reserve_millicores=600)


def read_config_map(hands: Hands) -> None:
    clients = KubeClients(hands.api, hands.kinds, hands.jobs, hands.pods, hands.events)
    assert clients.config_map_text(NAMESPACE, "flux", "topology.yaml") == "name: x"


def hold_lease(hands: Hands) -> None:
    assert hands.lease("first").hold()


def make_lease_anew(hands: Hands) -> None:
    hands.admin.kubectl("delete", "lease", RELEASE, f"--namespace={NAMESPACE}")
    lease = hands.lease("second")
    assert lease.hold()
    lease.release()


USES: dict[tuple[str, str], Callable[[Hands], None]] = {
    ("list", f"{GROUP}/{TOPOLOGIES}"): list_kind(TOPOLOGIES),
    ("watch", f"{GROUP}/{TOPOLOGIES}"): watch_kind(TOPOLOGIES),
    ("patch", f"{GROUP}/{TOPOLOGIES}"): annotate(TOPOLOGIES, "words"),
    ("patch", f"{GROUP}/{TOPOLOGIES}/status"): patch_status(TOPOLOGIES, "words"),
    ("list", f"{GROUP}/{REBALANCES}"): list_kind(REBALANCES),
    ("watch", f"{GROUP}/{REBALANCES}"): watch_kind(REBALANCES),
    ("create", f"{GROUP}/{REBALANCES}"): lambda hands: [
        hands.kinds.create(REBALANCES, NAMESPACE, rebalance("p-2"))
    ].clear(),
    ("patch", f"{GROUP}/{REBALANCES}"): annotate(REBALANCES, "p-1"),
    ("delete", f"{GROUP}/{REBALANCES}"): lambda hands: hands.kinds.delete(REBALANCES, NAMESPACE, "p-9"),
    ("patch", f"{GROUP}/{REBALANCES}/status"): patch_status(REBALANCES, "p-1"),
    ("create", "batch/jobs"): create_job,
    ("get", "batch/jobs"): lambda hands: [hands.jobs.outcome(NAMESPACE, "words-submit")].clear(),
    ("list", "batch/jobs"): lambda hands: [hands.jobs.owned_by("no-such-uid", NAMESPACE, "app=words")].clear(),
    ("delete", "batch/jobs"): lambda hands: hands.jobs.delete(NAMESPACE, "no-such-job"),
    ("list", "/pods"): lambda hands: [hands.pods.supervisors((NAMESPACE,))].clear(),
    ("get", "/pods/log"): read_log,
    ("patch", "/pods/resize"): resize,
    ("get", "apps/statefulsets"): lambda hands: [hands.pods.first_ordinal(NAMESPACE, "storm-supervisor")].clear(),
    ("get", "apps/statefulsets/scale"): lambda hands: [hands.pods.replicas(NAMESPACE, "storm-supervisor")].clear(),
    ("patch", "apps/statefulsets/scale"): lambda hands: hands.pods.scale(NAMESPACE, "storm-supervisor", 0),
    ("get", "/configmaps"): read_config_map,
    ("create", "/events"): lambda hands: hands.events.post(hands.topology, "Tried", "rights"),
    ("create", "coordination.k8s.io/leases"): make_lease_anew,
    ("get", "coordination.k8s.io/leases"): hold_lease,
    ("update", "coordination.k8s.io/leases"): hold_lease,
}
"""By verb and resource (API group, slash, resource): what the operator does with that right."""


@pytest.mark.parametrize(("verb", "resource"), sorted(USES), ids=lambda word: str(word).replace("/", " ").strip())
def test_right_is_there_and_is_used(hands: Hands, verb: str, resource: str) -> None:
    USES[verb, resource](hands)


def test_no_right_is_given_that_is_not_used(kube_api: KubeCluster) -> None:
    root = repository_root()
    assert root is not None
    given = {
        (verb, f"{group}/{resource}")
        for body in chart_objects(kube_api, root)
        for rule in body.get("rules") or ()
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert given == set(USES)


def test_the_rights_end_at_the_watched_namespace(hands: Hands) -> None:
    with pytest.raises(Forbidden, match="stormtopologies"):
        hands.kinds.list(TOPOLOGIES, ("default",))
    with pytest.raises(Forbidden):
        hands.pods.supervisors(("kube-system",))
