"""A real API server, without a node, for the tests of everything that talks to Kubernetes."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kube_cluster import KubeCluster, KubeClusterError
from kube_cluster.binaries import CONTROL_PLANE, ensure_programs, obstacle
from kube_cluster.for_pytest import build_first, skip_unless_possible
from kube_cluster.prerequisites import missing_for_api_server
from operator_scene import OperatorProcess, PlayedKubelet, Scene
from storm_by_hand import StormByHand
from storm_operator.local.cluster import LocalCluster
from storm_operator.local.paths import repository_root

PROGRAMS = (*CONTROL_PLANE, "helm")
NAMESPACE = "storm-tests"


def pytest_collection_finish(session: pytest.Session) -> None:
    if not obstacle(PROGRAMS):
        build_first(session, "kube_api", lambda say: ensure_programs(PROGRAMS, say))
        build_first(session, "accounted_kube", lambda say: ensure_programs((*CONTROL_PLANE, "kwok"), say))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With what failed: what the resources say at that moment, before what comes next takes them away."""
    report = yield
    scene = getattr(item, "funcargs", {}).get("scene")
    if report.failed and isinstance(scene, Scene):
        with suppress(KubeClusterError, OSError):  # then that is why it failed
            report.sections.append(("what the resources say", scene.told()))
    return report


@pytest.fixture(scope="session")
def kube_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeCluster]:
    """etcd, API server and controllers, RBAC on, no CRDs yet; it ends with this process, also when that is killed."""
    skip_unless_possible(PROGRAMS, missing_for_api_server())
    with KubeCluster(f"api{os.getpid() % 1_000_000}", logs_dir=tmp_path_factory.mktemp("kube-logs")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def scene(kube_api: KubeCluster, storm_cluster: LocalCluster, workloads_jar: Path) -> Scene:
    """A namespace for resources that the operator carries out on the Storm cluster."""
    root = repository_root()
    assert root is not None
    kube_api.install_crds(root / "crds")
    kube_api.kubectl("create", "namespace", NAMESPACE)
    return Scene(kube_api, storm_cluster, NAMESPACE, workloads_jar)


@pytest.fixture(scope="module")
def kubelet(scene: Scene) -> Iterator[PlayedKubelet]:
    with PlayedKubelet(scene.kube, scene.namespace, scene.storm.storm_home) as kubelet:
        yield kubelet


@pytest.fixture(scope="module")
def by_hand(scene: Scene) -> Iterator[StormByHand]:
    with StormByHand(scene.storm) as hands:
        yield hands


@pytest.fixture
def operator(scene: Scene, kubelet: PlayedKubelet, tmp_path: Path) -> Iterator[OperatorProcess]:
    with OperatorProcess(scene.kube, scene.namespace, tmp_path / "operator.log") as operator:
        scene.clear()
        yield operator
