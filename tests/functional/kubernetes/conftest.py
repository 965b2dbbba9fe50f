"""A real API server, without a node, for the tests of everything that talks to Kubernetes."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from kube_cluster import KubeCluster
from kube_cluster.binaries import CONTROL_PLANE, ensure_programs, obstacle
from kube_cluster.for_pytest import build_first, skip_unless_possible
from kube_cluster.prerequisites import missing_for_api_server

PROGRAMS = (*CONTROL_PLANE, "helm")


def pytest_collection_finish(session: pytest.Session) -> None:
    if not obstacle(PROGRAMS):
        build_first(session, "kube_api", lambda say: ensure_programs(PROGRAMS, say))
        build_first(session, "accounted_kube", lambda say: ensure_programs((*CONTROL_PLANE, "kwok"), say))


@pytest.fixture(scope="session")
def kube_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeCluster]:
    """etcd, API server and controllers, RBAC on, no CRDs yet; it ends with this process, also when that is killed."""
    skip_unless_possible(PROGRAMS, missing_for_api_server())
    with KubeCluster(f"api{os.getpid() % 1_000_000}", logs_dir=tmp_path_factory.mktemp("kube-logs")) as cluster:
        yield cluster
