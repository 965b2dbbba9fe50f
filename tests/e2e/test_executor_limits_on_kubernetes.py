"""Executors held one by one on a real node: the agent as a privileged sidecar, judged by the kernel's own files."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eventually import eventually

from kube_cluster import KubeCluster, KubeClusterError
from storm_on_node import NAMESPACE, StormOnNode, cgroup_millicores, word_count

pytestmark = [pytest.mark.functional, pytest.mark.root, pytest.mark.timeout(1500)]

MACHINES = 2
NAME = "held"
EACH_MILLICORES = 70
"""What each executor is given whatever it needs: the plan's figures are those of every later period."""
POD_MILLICORES = 800
"""The most that a pod gets, which it has while executors move, and not afterwards."""
GROUP = "storm-executor@"


@pytest.fixture(scope="module")
def storm(node_with_images: KubeCluster) -> Iterator[StormOnNode]:
    """Storm whose agents may enforce. It is gone when the last test has ended, whatever that came to."""
    installed = StormOnNode(node_with_images)
    try:
        values = {"agent.enforceExecutors": "true", "supervisor.resources.limits.cpu": f"{POD_MILLICORES}m"}
        installed.install(MACHINES, values)
        yield installed
    finally:
        with contextlib.suppress(KubeClusterError):
            sys.stdout.write(installed.logs())
            delete_topology(installed)
        installed.uninstall()


@pytest.fixture(scope="module")
def plan(storm: StormOnNode) -> dict[str, Any]:
    """The spec of a plan that was verified, and that promised each executor its CPU."""
    each = dict.fromkeys(("thetaMillicores", "floorMillicores", "ceilingMillicores"), EACH_MILLICORES)
    storm.apply(word_count(NAME, resources={**each, "enforcement": "Executor"}))
    return dict(eventually(lambda: storm.rebalances("Verified"), "a plan is in force and verified")[-1]["spec"])


def test_each_executor_s_thread_has_a_cgroup_with_what_the_plan_promised_it(
    storm: StormOnNode, plan: dict[str, Any]
) -> None:
    promised = {executor.rpartition("/")[2]: limit for executor, limit in plan["cpuLimitsMillicores"].items()}
    assert set(promised.values()) == {EACH_MILLICORES}
    eventually(lambda: quotas(storm) == promised, "the kernel's quotas are the plan's", seen=lambda: quotas(storm))
    with storm.nimbus() as nimbus:
        executors = nimbus.topology_info(storm.status(NAME)["topologyId"]).executors
    components = {f"{e.task_start}-{e.task_end}": e.component for e in executors}
    assert set(components) == set(promised)
    for executor, group in groups(storm).items():
        (thread,) = (group / "tasks" if (group / "tasks").exists() else group / "cgroup.threads").read_text().split()
        # Storm calls it `Thread-14-split-executor[4, 4]`, of which the kernel keeps 15 letters.
        name = Path("/proc", thread, "comm").read_text().strip()
        assert f"{components[executor]}-executor".startswith(name.split("-", 2)[2])


def test_it_is_told_and_pods_are_resized_around_them(storm: StormOnNode, plan: dict[str, Any]) -> None:
    eventually(lambda: enforced(storm) == ("True", "Executor"), "it is told", seen=lambda: storm.status(NAME))
    (host,) = {move["to"].partition(".")[0] for move in plan["moves"]}
    # Wide open while executors moved; the kernel refuses a parent less than any of its children.
    eventually(
        lambda: EACH_MILLICORES < storm.quota_millicores(host) == storm.wanted_millicores()[host] < POD_MILLICORES,
        "the pod has what its executors need",
        seen=storm.wanted_millicores,
    )


def test_nothing_is_left_of_them(storm: StormOnNode, plan: dict[str, Any]) -> None:
    assert groups(storm)
    containers = list(supervisor_cgroups(storm).values())
    delete_topology(storm)
    eventually(lambda: groups(storm) == {}, "no executor's group outlives the topology", seen=lambda: groups(storm))
    assert all(container.is_dir() for container in containers)
    eventually(lambda: storm.all("stormrebalances") == [], "plans go with their topology")
    storm.uninstall()
    eventually(lambda: not any(container.exists() for container in containers), "the pods' cgroups go with them")


def groups(storm: StormOnNode) -> dict[str, Path]:
    """This machine's view of each executor's cgroup, by its tasks: `3-4`."""
    found = [folder for container in supervisor_cgroups(storm).values() for folder in container.glob(f"{GROUP}*")]
    return {folder.name.rpartition("@")[2]: folder for folder in found}


def quotas(storm: StormOnNode) -> dict[str, int]:
    """Millicores that the kernel allows each executor."""
    with contextlib.suppress(FileNotFoundError):  # removed this very moment
        return {executor: cgroup_millicores(group) for executor, group in groups(storm).items()}
    return {}


def supervisor_cgroups(storm: StormOnNode) -> dict[str, Path]:
    names = [pod["metadata"]["name"] for pod in storm.supervisors()]
    return {name: storm.kube.node.container_cgroup(NAMESPACE, name, "supervisor") for name in names}


def enforced(storm: StormOnNode) -> tuple[str, str]:
    conditions = storm.status(NAME).get("conditions", ())
    return next(((c["status"], c["reason"]) for c in conditions if c["type"] == "Enforced"), ("", ""))


def delete_topology(storm: StormOnNode) -> None:
    storm.kube.kubectl("delete", "stormtopology", NAME, "-n", NAMESPACE, "--ignore-not-found", "--timeout=120s")
