"""Helm, or a loud skip; and a real API server for what only that can judge."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from functional.charts.chart_objects import Helm, find_helm
from kube_cluster import KubeCluster
from kube_cluster.binaries import CONTROL_PLANE, ensure_programs, obstacle
from kube_cluster.for_pytest import build_first, skip_unless_possible

PROGRAMS = (*CONTROL_PLANE, "helm", "kubeconform")


def pytest_collection_finish(session: pytest.Session) -> None:
    if not obstacle(("helm",)):
        build_first(session, "helm", lambda say: ensure_programs(("helm",), say))
    if not obstacle(PROGRAMS):
        build_first(session, "chart_api", lambda say: ensure_programs(PROGRAMS, say))


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    program = find_helm()
    if program is None:
        pytest.skip("NO CHART TESTS: no helm, and no Go to build it. Remedy: install helm 3, or Go 1.26 or newer")
    return Helm(program, tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="module")  # one of a whole run would idle, at a twentieth of a core, until its last test
def chart_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeCluster]:
    """An API server without a node; it ends with this process, also when that is killed."""
    skip_unless_possible(PROGRAMS)
    with KubeCluster(f"chart{os.getpid() % 1_000_000}", logs_dir=tmp_path_factory.mktemp("kube-logs")) as cluster:
        yield cluster
