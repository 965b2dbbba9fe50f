"""A real Kubernetes node, and the project's images on it, for all end-to-end tests of a run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kube_cluster import KubeCluster
from kube_cluster.binaries import NODE, ensure_programs, obstacle
from kube_cluster.for_pytest import build_first, skip_unless_possible
from kube_cluster.images import build_project_images
from kube_cluster.prerequisites import missing_for_images, missing_for_node

PROGRAMS = (*NODE, "helm")
ARCHIVES = pytest.StashKey[Mapping[str, Path]]()


def pytest_collection_finish(session: pytest.Session) -> None:
    if not obstacle(PROGRAMS) and not missing_for_node():
        build_first(session, "node", lambda say: ensure_programs(PROGRAMS, say))
        if not missing_for_images():
            build_first(
                session, "image_archives", lambda say: session.stash.setdefault(ARCHIVES, build_project_images(say))
            )


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeCluster]:
    """A cluster with a node that runs pods; it ends with this process, also when that is killed."""
    skip_unless_possible(PROGRAMS, missing_for_node())
    name = f"node{os.getpid() % 1_000_000}"
    with KubeCluster(name, node=True, logs_dir=tmp_path_factory.mktemp("node-logs")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def image_archives(request: pytest.FixtureRequest) -> Mapping[str, Path]:
    """The project's images as archives, by name."""
    skip_unless_possible((), missing_for_images())
    return request.session.stash[ARCHIVES]


@pytest.fixture(scope="session")
def node_with_images(node: KubeCluster, image_archives: Mapping[str, Path]) -> KubeCluster:
    """The node, with the project's images on it."""
    for archive in image_archives.values():
        node.load_image(archive)
    return node
