"""The test node itself: pods run, talk, are resized in place, and nothing of them stays."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import requests

from kube_cluster import KubeCluster, KubeClusterError
from kube_cluster.images import PROJECT_IMAGES
from kube_cluster.leftovers import leftovers
from kube_cluster.node.configuration import PAUSE_IMAGE
from kube_cluster.node.mounts import COVERED, KUBELET_SYSCTLS
from kube_cluster.waiting import wait_for

pytestmark = [pytest.mark.functional, pytest.mark.root]

TESTS = Path(__file__).parents[1]
SECONDS = 60.0
NUMBERS = count()
OWNER = """
import sys, time
from kube_cluster import KubeCluster
cluster = KubeCluster(sys.argv[1], node=True)
cluster.up(owned=True)
cluster.wait_ready()
cluster.kubectl("apply", "-f", "-", input=sys.argv[2])
cluster.kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
print("up", flush=True)
time.sleep(600)
"""


def web(namespace: str = "default") -> str:
    """A pod that answers `hello`, and its service, as a manifest."""
    container = {
        "name": "web",
        "image": PAUSE_IMAGE,
        "imagePullPolicy": "Never",
        "args": ["serve", ":8080", "hello"],
        "resources": {"limits": {"cpu": "200m", "memory": "32Mi"}},
        "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
    }
    metadata = {"name": "web", "namespace": namespace, "labels": {"app": "web"}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
    }
    ports = [{"port": 80, "targetPort": 8080}]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"selector": {"app": "web"}, "ports": ports},
    }
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod, service]})


@pytest.fixture
def namespace(node: KubeCluster) -> Iterator[str]:
    """One with a ready pod `web`."""
    name = f"web-{next(NUMBERS)}"
    node.kubectl("create", "namespace", name)
    # A pod is refused until its namespace has a ServiceAccount.
    node.kubectl("wait", "--for=create", "serviceaccount/default", "-n", name, "--timeout=60s")
    node.kubectl("apply", "-f", "-", input=web(name))
    node.kubectl("wait", "--for=condition=Ready", "pod/web", "-n", name, "--timeout=60s")
    yield name
    node.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def other(node: KubeCluster) -> Iterator[str]:
    """The name of a second cluster that a test may treat as it likes. `node` only says whether there can be one."""
    name = f"gone{os.getpid() % 1_000_000}"
    yield name
    KubeCluster(name).down()


def pod_status(cluster: KubeCluster, namespace: str) -> dict[str, Any]:
    return dict(cluster.object("pods", "web", namespace)["status"])


def succeeds(cluster: KubeCluster, *arguments: str) -> bool:
    try:
        cluster.kubectl(*arguments)
    except KubeClusterError:
        return False
    return True


def resize(cluster: KubeCluster, namespace: str, cpu: str) -> None:
    resources = {"limits": {"cpu": cpu}, "requests": {"cpu": cpu}}
    patch = json.dumps({"spec": {"containers": [{"name": "web", "resources": resources}]}})
    cluster.kubectl("patch", "pod", "web", "-n", namespace, "--subresource=resize", f"--patch={patch}")


def folders_of_the_machine() -> set[str]:
    """What is directly in each of the folders that the node has its own of."""
    return {str(path) for folder in COVERED for path in folder.iterdir()}


def sysctls() -> dict[str, str]:
    return {name: Path("/proc/sys", name).read_text() for name in KUBELET_SYSCTLS}


def test_pods_find_each_other_by_name_and_the_test_reaches_them(node: KubeCluster, namespace: str) -> None:
    service = node.kubectl("get", "service", "web", "-n", namespace, "-o", "jsonpath={.spec.clusterIP}")
    probe = ("exec", "web", "-n", namespace, "--", "/pod-probe")
    assert node.kubectl(*probe, "lookup", f"web.{namespace}.svc.cluster.local").strip() == service
    # The node's rules follow a moment after the pod is ready; until then nobody answers for the service.
    wait_for(lambda: succeeds(node, *probe, "get", f"http://web.{namespace}"), SECONDS, "the service did not answer")
    assert node.kubectl(*probe, "get", f"http://web.{namespace}") == "hello\n"
    with pytest.raises(KubeClusterError, match="no such host"):
        node.kubectl(*probe, "lookup", "nowhere.invalid")
    assert requests.get(f"http://{service}", timeout=10).text == "hello\n"
    address = pod_status(node, namespace)["podIP"]
    assert requests.get(f"http://{address}:8080", timeout=10).text == "hello\n"


def test_pods_reach_the_api_server_by_its_service(node: KubeCluster, namespace: str) -> None:
    probe = ("exec", "web", "-n", namespace, "--", "/pod-probe")
    # The probe trusts no certificate: that it complains of one means that somebody answered.
    with pytest.raises(KubeClusterError, match="signed by unknown authority"):
        node.kubectl(*probe, "get", "https://kubernetes.default.svc")


def test_a_resize_in_place_changes_the_quota_of_the_same_container(node: KubeCluster, namespace: str) -> None:
    cgroup = node.node.container_cgroup(namespace, "web", "web")
    before = pod_status(node, namespace)["containerStatuses"][0]
    assert millicores(cgroup) == 200
    resize(node, namespace, "500m")
    wait_for(lambda: millicores(cgroup) == 500, SECONDS, "the quota did not follow")
    after = pod_status(node, namespace)["containerStatuses"][0]
    assert (after["containerID"], after["restartCount"]) == (before["containerID"], 0)


def test_a_resize_beyond_the_node_is_told(node: KubeCluster, namespace: str) -> None:
    cgroup = node.node.container_cgroup(namespace, "web", "web")
    resize(node, namespace, "1000")
    wait_for(lambda: "Infeasible" in reasons(node, namespace), SECONDS, "nobody said that it cannot be")
    assert millicores(cgroup) == 200


def millicores(cgroup: Path) -> int:
    """The CPU limit, of cgroup v1 or v2."""
    if (cgroup / "cpu.max").exists():
        quota, period = (cgroup / "cpu.max").read_text().split()
    else:
        quota, period = ((cgroup / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
    return round(1000 * int(quota) / int(period))


def reasons(cluster: KubeCluster, namespace: str) -> list[str]:
    return [each.get("reason", "") for each in pod_status(cluster, namespace).get("conditions", [])]


def test_the_projects_images_run(node_with_images: KubeCluster) -> None:
    assert set(node_with_images.node.images()) == {PAUSE_IMAGE, *PROJECT_IMAGES.values()}
    for target, image in PROJECT_IMAGES.items():
        pod = f"image-{target}"
        node_with_images.kubectl(
            *("run", pod, f"--image={image}", "--image-pull-policy=Never", "--restart=Never", "--", "--help")
        )
        node_with_images.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", f"pod/{pod}", "--timeout=120s")
        assert "storm-operator" in node_with_images.kubectl("logs", pod)
        node_with_images.kubectl("delete", "pod", pod, "--wait=false")


def test_down_leaves_nothing_of_node_and_pods(other: str) -> None:
    folders, settings = folders_of_the_machine(), sysctls()
    with KubeCluster(other, node=True) as cluster:
        cluster.kubectl("apply", "-f", "-", input=web())
        cluster.kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
        container = cluster.node.container_cgroup("default", "web", "web")
        pids = [int(line) for line in (container / "cgroup.procs").read_text().split()]
        assert len(leftovers(other)) > 10
    assert leftovers(other) == []
    assert not [pid for pid in pids if is_alive(pid)]
    assert folders_of_the_machine() - folders == set()
    assert sysctls() == settings


def test_it_goes_with_its_pods_when_its_owner_is_killed(other: str) -> None:
    owner = start_owner(other)
    assert leftovers(other)
    owner.kill()
    owner.wait()
    wait_for(lambda: leftovers(other) == [], SECONDS, "the node outlived its owner")


def test_after_kill_9_of_owner_and_keeper_down_sweeps_the_pods(other: str) -> None:
    owner = start_owner(other)
    cluster = KubeCluster.attach(other)
    container = cluster.node.container_cgroup("default", "web", "web")
    pids = [int(line) for line in (container / "cgroup.procs").read_text().split()]
    keepers = cluster.processes() - {daemon["pid"] for daemon in cluster.daemons()}
    owner.kill()
    owner.wait()
    for pid in keepers:
        # Among them are the shims of containers, whose parent is nobody's daemon; and a runc may have ended meanwhile.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert all(is_alive(pid) for pid in pids)
    KubeCluster(other).down()
    assert leftovers(other) == []
    wait_for(lambda: not any(is_alive(pid) for pid in pids), SECONDS, "processes of pods outlived `down`")


def start_owner(name: str) -> subprocess.Popen[str]:
    """A process whose node runs a pod."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER, name, web()], cwd=TESTS, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    assert owner.stdout.readline() == "up\n"
    owner.stdout.close()
    return owner


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that ended and that nobody has asked about does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
