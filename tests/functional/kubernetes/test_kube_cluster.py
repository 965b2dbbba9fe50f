"""The test cluster itself: a real API server with real rules, that leaves nothing behind however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
import yaml

from kube_cluster import KubeCluster, KubeClusterError
from kube_cluster.layout import state_file
from kube_cluster.leftovers import leftovers
from kube_cluster.waiting import wait_for

pytestmark = pytest.mark.functional

CRDS = Path(__file__).parents[3] / "crds"
TESTS = Path(__file__).parents[2]
SECONDS = 240.0
READER = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: default}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: default}]
"""
OWNER = """
import sys, time
from pathlib import Path
from kube_cluster import KubeCluster
KubeCluster(sys.argv[1]).up(owned=True)
print("up", flush=True)
time.sleep(600)
"""


@pytest.fixture
def name(kube_api: KubeCluster) -> Iterator[str]:
    """Of a cluster that a test may treat as it likes. `kube_api` only says whether there can be one."""
    name = f"end{os.getpid() % 1_000_000}"
    yield name
    KubeCluster(name).down()


def test_crds_are_accepted_and_served(kube_api: KubeCluster) -> None:
    kube_api.install_crds(CRDS)
    for file in sorted(CRDS.glob("*.yaml")):
        names = yaml.safe_load(file.read_text())["spec"]["names"]
        assert kube_api.kubectl("get", names["plural"], "-o", "name") == ""
        assert names["kind"] in kube_api.kubectl("explain", names["plural"])


def test_a_crd_that_kubernetes_does_not_accept_is_an_error(kube_api: KubeCluster) -> None:
    crd = yaml.safe_load(next(CRDS.glob("stormtopologies*.yaml")).read_text())
    crd["metadata"]["name"] = "wrong.storm-operator.dev"
    with pytest.raises(KubeClusterError, match=r"must be spec.names.plural\+\".\"\+spec.group"):
        kube_api.kubectl("apply", "--server-side", "-f", "-", input=yaml.safe_dump(crd))


def test_a_service_account_may_do_what_its_role_says_and_nothing_else(kube_api: KubeCluster) -> None:
    kube_api.kubectl("apply", "-f", "-", input=READER)
    reader = kube_api.service_account_kubeconfig("default", "reader")
    assert "kube-root-ca.crt" in kube_api.kubectl("get", "configmaps", kubeconfig=reader)
    with pytest.raises(KubeClusterError, match='"system:serviceaccount:default:reader" cannot list resource "secrets"'):
        kube_api.kubectl("get", "secrets", kubeconfig=reader)


def test_the_certificate_is_trusted_and_a_token_is_asked_for(kube_api: KubeCluster) -> None:
    url = f"{kube_api.url}/api/v1/namespaces"
    with_token = {"Authorization": f"Bearer {kube_api.token}"}
    assert requests.get(url, headers=with_token, verify=str(kube_api.ca_file), timeout=30).status_code == 200
    assert requests.get(url, verify=str(kube_api.ca_file), timeout=30).status_code == 403
    wrong = {"Authorization": "Bearer wrong"}
    assert requests.get(url, headers=wrong, verify=str(kube_api.ca_file), timeout=30).status_code == 401


def test_helm_talks_to_it(kube_api: KubeCluster) -> None:
    assert kube_api.helm("list", "--short") == ""
    assert kube_api.helm("version", "--short").startswith("v3.20")


def test_down_leaves_nothing(name: str) -> None:
    with KubeCluster(name) as cluster:
        # On a busy machine kube-controller-manager may have ended by itself, and have been started again.
        wait_for(
            lambda: running_daemons(cluster) == 3 and len(cluster.processes()) == 4, SECONDS, "not all daemons ran"
        )
    assert leftovers(name) == []


def running_daemons(cluster: KubeCluster) -> int:
    return sum(daemon["pid"] is not None for daemon in cluster.daemons())


def test_logs_stay_where_they_were_asked_to(name: str, tmp_path: Path) -> None:
    with KubeCluster(name, logs_dir=tmp_path):
        pass
    assert leftovers(name) == []
    assert (tmp_path / "kube-apiserver.log").stat().st_size > 0


def test_it_goes_when_its_owner_is_killed(name: str) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, name], cwd=TESTS, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    assert owner.stdout.readline() == "up\n"
    assert leftovers(name)
    owner.kill()
    owner.wait()
    owner.stdout.close()
    wait_for(lambda: leftovers(name) == [], SECONDS, "the cluster outlived its owner")


def test_after_kill_9_of_owner_and_keeper_the_next_cluster_sweeps(name: str) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, name], cwd=TESTS, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    assert owner.stdout.readline() == "up\n"
    owner.stdout.close()
    cluster = KubeCluster.attach(name)
    daemons = {daemon["pid"] for daemon in cluster.daemons()}
    for pid in cluster.processes() - daemons:
        os.kill(pid, signal.SIGKILL)
    owner.kill()
    owner.wait()
    # The kernel ends the daemons with their keeper; the files wait for somebody to sweep.
    wait_for(lambda: not cluster.processes(), SECONDS, "daemons outlived their keeper")
    assert leftovers(name) == [str(state_file(name).parent)]
    with KubeCluster(f"{name}b"):
        assert leftovers(name) == []


def test_down_of_what_is_not_up_does_no_harm(name: str) -> None:
    KubeCluster(name).down()
    assert leftovers(name) == []
    with pytest.raises(KubeClusterError, match=f"no cluster '{name}' is up"):
        KubeCluster.attach(name)


def test_a_second_up_of_the_same_name_is_refused(kube_api: KubeCluster) -> None:
    with pytest.raises(KubeClusterError, match="is up already"):
        KubeCluster(kube_api.name).up()
    assert kube_api.kubectl("get", "namespaces", "-o", "name").startswith("namespace/")


def test_a_bad_name_is_told() -> None:
    with pytest.raises(KubeClusterError, match=r"name: 'Not_good' must be 1 to 12 characters"):
        KubeCluster("Not_good").up()
