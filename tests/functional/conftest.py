"""A real Storm cluster for all functional tests of a run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from storm_by_hand import StormByHand
from storm_operator.local.build import plugin_jar as build_plugin_jar
from storm_operator.local.build import workloads_jar as build_workloads_jar
from storm_operator.local.cluster import LocalCluster
from storm_operator.local.spec import LocalClusterSpec
from storm_operator.local.storm_config import SELDOM_AWAKE, SELDOM_HEARD

STORM = pytest.StashKey[LocalCluster]()


def unique_name(prefix: str) -> str:
    """A cluster name that no other test run uses at the same time."""
    return f"{prefix}{os.getpid() % 1_000_000}"


def unique_subnet(number: int) -> str:
    """A /24 of this test run's own; `number` (0 to 3) tells its clusters apart."""
    place = os.getpid() * 4 + number
    return f"10.{100 + place // 250 % 100}.{place % 250}.0/24"


@pytest.fixture(scope="session")
def plugin_jar() -> Path:
    """The scheduler and metrics plugin, built when its sources are newer."""
    return build_plugin_jar()


@pytest.fixture(scope="session")
def workloads_jar() -> Path:
    """The example topologies, built when their sources are newer."""
    return build_workloads_jar()


@pytest.fixture(scope="module", autouse=True)
def nothing_left_for_the_next_module(request: pytest.FixtureRequest) -> Iterator[None]:
    """Topologies that a module leaves behind, since one of its tests failed, would take the slots of the next one's."""
    yield
    storm = request.config.stash.get(STORM, None)
    if storm is not None:
        with StormByHand(storm) as hands:
            hands.kill_all()


@pytest.fixture(scope="session")
def storm_cluster(
    plugin_jar: Path, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[LocalCluster]:
    """Four machines with agents and plugin; as root with networks and CPU of their own, else on loopback.

    It ends with this process, also when that is killed.
    """
    spec = LocalClusterSpec(
        name=unique_name("test"),
        subnet=unique_subnet(0),
        fast_start=True,
        message_timeout_seconds=10,
        extra_conf={**SELDOM_AWAKE, **SELDOM_HEARD},
        plugin_jar=plugin_jar,
        work_dir=tmp_path_factory.mktemp("storm"),
    )
    with LocalCluster(spec) as cluster:
        pytestconfig.stash[STORM] = cluster
        yield cluster
        del pytestconfig.stash[STORM]
