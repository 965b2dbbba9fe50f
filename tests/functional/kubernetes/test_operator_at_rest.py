"""What an operator with nothing to do asks of the API server: the server's audit log tells. Pods are played by KWOK.

Nothing to do there is where no Nimbus answers, and where a topology runs that is only to be observed.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import requests
from eventually import eventually

from kube_cluster import KubeCluster
from kube_cluster.audit import Call
from kube_cluster.binaries import CONTROL_PLANE
from kube_cluster.for_pytest import skip_unless_possible
from kube_cluster.kwok import PlayedNodes
from kube_cluster.prerequisites import missing_for_api_server
from operator_scene import WORD_COUNT, OperatorProcess, Scene, word_count_args
from storm_by_hand import StormByHand, nothing_left_on
from storm_operator.core.model import WorkerSlot
from storm_operator.kube.status_news import FIGURES_SECONDS
from storm_operator.local.cluster import LocalCluster
from storm_operator.local.paths import repository_root

pytestmark = pytest.mark.functional

NAMESPACE, ACCOUNT = "rest", "operator"
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
RESOURCES, PODS = 30, 40
PASSES = 3
OBSERVED, WORKERS = "observed", 2
WRITES = ("create", "update", "patch", "delete")


@pytest.fixture(scope="module")
def accounted_kube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeCluster]:
    """An API server that keeps account, with played supervisor pods."""
    skip_unless_possible((*CONTROL_PLANE, "kwok"), missing_for_api_server())
    root = repository_root()
    assert root is not None
    name, logs = f"rest{os.getpid() % 1_000_000}", tmp_path_factory.mktemp("kube-logs")
    with KubeCluster(name, logs_dir=logs, audit=True) as cluster, PlayedNodes(cluster, 2) as nodes:
        cluster.install_crds(root / "crds")
        cluster.kubectl("create", "namespace", NAMESPACE)
        cluster.kubectl("create", "serviceaccount", ACCOUNT, "-n", NAMESPACE)
        grant = ("--clusterrole=cluster-admin", f"--serviceaccount={NAMESPACE}:{ACCOUNT}")
        cluster.kubectl("create", "rolebinding", ACCOUNT, *grant, "-n", NAMESPACE)
        nodes.add_pods(NAMESPACE, [played_pod(number) for number in range(PODS)])
        yield cluster


def played_pod(number: int) -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": "storm", "app.kubernetes.io/component": "supervisor"}
    spec = {"containers": [{"name": "supervisor", "image": "none"}], "tolerations": [{"operator": "Exists"}]}
    metadata = {"name": f"storm-supervisor-{number}", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def test_played_pods_run_on_played_nodes(accounted_kube: KubeCluster) -> None:
    running = ("get", "pods", "-n", NAMESPACE, "--field-selector=status.phase=Running", "-o", "name")
    assert len(accounted_kube.kubectl(*running).split()) == PODS
    assert len(accounted_kube.kubectl("get", "nodes", "-o", "name").split()) == 2


def test_only_the_account_s_own_calls_are_told(accounted_kube: KubeCluster) -> None:
    before = accounted_kube.audit_calls(USER)
    kubeconfig = accounted_kube.service_account_kubeconfig(NAMESPACE, ACCOUNT)
    accounted_kube.kubectl("get", "pod", "storm-supervisor-0", "-n", NAMESPACE)
    accounted_kube.kubectl("get", "pod", "storm-supervisor-1", "-n", NAMESPACE, kubeconfig=kubeconfig)
    eventually(lambda: len(accounted_kube.audit_calls(USER)) > len(before), "the call is in the log", 30.0)
    assert Call("get", "pods", "storm-supervisor-1") in accounted_kube.audit_calls(USER)
    assert Call("get", "pods", "storm-supervisor-0") not in accounted_kube.audit_calls(USER)


@pytest.fixture
def observed(storm_cluster: LocalCluster, workloads_jar: Path) -> Iterator[StormByHand]:
    """Storm with a topology that somebody else submitted, spread as Storm's own scheduler does it."""
    with nothing_left_on(storm_cluster), StormByHand(storm_cluster) as hands:
        hands.submit(workloads_jar, WORD_COUNT, word_count_args(OBSERVED))
        eventually(lambda: processes(hands), "its workers run")
        yield hands


def processes(hands: StormByHand) -> Mapping[WorkerSlot, int]:
    """Of all its workers; empty while not every agent tells of its own."""
    found = hands.processes(OBSERVED)
    return found if len(found) == WORKERS else {}


def test_running_topology_that_is_only_observed_is_left_alone(
    accounted_kube: KubeCluster, storm_cluster: LocalCluster, observed: StormByHand, tmp_path: Path
) -> None:
    kubeconfig = accounted_kube.service_account_kubeconfig(NAMESPACE, ACCOUNT)
    scene = Scene(accounted_kube, storm_cluster, NAMESPACE, tmp_path)
    scheduling = {"mode": "Observe", "periodSeconds": 1, "settlingSeconds": 1}
    with OperatorProcess(accounted_kube, NAMESPACE, tmp_path / "operator.log", kubeconfig) as operator:
        workers = eventually(lambda: processes(observed), "its workers are seen")
        before = len(writes(accounted_kube))
        try:
            scene.apply(scene.topology(OBSERVED, adopt={}, scheduling=scheduling))
            eventually(lambda: is_measured(scene.status(OBSERVED)), "it is measured, and held for its mode alone")
            eventually(lambda: writes_no_more_than_figures(accounted_kube, operator), "passes without news are quiet")
            asked = {(call.verb, call.what) for call in writes(accounted_kube)[before:]}
            own = ("stormtopologies", "stormtopologies/status", "events")
            assert {what for _, what in asked} <= set(own), "no plan, no pod, no replicas, no Job"
            assert scene.rebalances() == []
            eventually(
                lambda: processes(observed) == workers, f"all of {workers} run on", seen=lambda: processes(observed)
            )
            assert observed.journal is None
        finally:
            scene.delete(OBSERVED)
            eventually(lambda: scene.is_gone(OBSERVED), "the resource is gone")
        assert observed.status(OBSERVED) == "ACTIVE", "it was adopted, and runs on"


def is_measured(status: Mapping[str, Any]) -> bool:
    held = (status.get("lastHold") or {}).get("reason")
    return held == "ObserveOnly" and status.get("interSupervisorTuplesPerSecond", 0.0) > 0.0


def writes_no_more_than_figures(kube: KubeCluster, operator: OperatorProcess) -> bool:
    """Over some passes: figures are written once in FIGURES_SECONDS, and nothing else.

    A machine that is too busy to measure in time is news, and then the next passes count.
    """
    began = time.monotonic()
    made = written_over(PASSES, kube, operator)
    figures = 1 + (time.monotonic() - began) // FIGURES_SECONDS
    return len(made) <= figures and {call.what for call in made} <= {"stormtopologies/status"}


def test_idle_operator_writes_nothing(accounted_kube: KubeCluster, tmp_path: Path) -> None:
    kubeconfig = accounted_kube.service_account_kubeconfig(NAMESPACE, ACCOUNT)
    with OperatorProcess(accounted_kube, NAMESPACE, tmp_path / "operator.log", kubeconfig) as operator:
        accounted_kube.kubectl("apply", "-f", "-", input="---".join(map(resource, range(RESOURCES))))
        eventually(lambda: len(out_of_reach(accounted_kube)) == RESOURCES, "each says that its Nimbus is away")
        eventually(lambda: written_over(1, accounted_kube, operator) == [], "what it has to say at first is said")
        assert written_over(PASSES, accounted_kube, operator) == []


def written_over(count: int, kube: KubeCluster, operator: OperatorProcess) -> list[Call]:
    """All writes while so many more passes begin and end."""
    before = len(writes(kube))
    wait_for_passes(operator, count)
    return writes(kube)[before:]


def resource(number: int) -> str:
    return f"""
apiVersion: storm-operator.dev/v1alpha1
kind: StormTopology
metadata: {{name: topology-{number}, namespace: {NAMESPACE}}}
spec: {{nimbus: "127.0.0.1:1", adopt: {{}}, scheduling: {{periodSeconds: 1}}}}
"""


def out_of_reach(kube: KubeCluster) -> list[str]:
    found = kube.objects("stormtopologies", NAMESPACE)
    return [body["metadata"]["name"] for body in found if "ClusterUnreachable" in json.dumps(body.get("status", {}))]


def writes(kube: KubeCluster) -> list[Call]:
    """To anything but the Lease, which says that the operator lives."""
    return [call for call in kube.audit_calls(USER) if call.verb in WRITES and call.what != "leases"]


def wait_for_passes(operator: OperatorProcess, more: int) -> None:
    """Until the loop has begun and ended so many more passes than those under way now."""
    until = passes(operator) + more + 1
    eventually(lambda: passes(operator) >= until, f"{more} more passes")


def passes(operator: OperatorProcess) -> int:
    text = requests.get(f"http://127.0.0.1:{operator.metrics_port}/metrics", timeout=10).text
    (line,) = [line for line in text.splitlines() if line.startswith("storm_operator_passes_total{")]
    return int(float(line.split()[-1]))
