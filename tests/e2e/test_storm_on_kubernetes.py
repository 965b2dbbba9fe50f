"""The whole thing on a real node: helm install, kubectl apply, a plan in force, pods resized, scaled, healed, gone."""

from __future__ import annotations

import contextlib
import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eventually import eventually

from e2e.jar_origins import IMAGE, JAR, JAR_FOLDER, jar_server, jar_volume, topology_from
from kube_cluster import KubeCluster, KubeClusterError
from storm_on_node import NAMESPACE, NIMBUS, OPERATOR, OPERATOR_NAMESPACE, STORM, StormOnNode, word_count
from storm_operator.kube.pod_need import SUPERVISOR_OWN_MILLICORES
from storm_operator.local.build import workloads_jar
from storm_operator.local.jvm import Jvm

pytestmark = [pytest.mark.functional, pytest.mark.root, pytest.mark.timeout(1500)]

ROOT = Path(__file__).parents[2]
MACHINES = 3
WHOLE_SECONDS = 30.0
"""Longer than Storm takes to notice that a worker is gone."""
EACH_MILLICORES = 80
"""What each executor is given whatever it needs: the plan's figures are those of every later period."""


@pytest.fixture(scope="module")
def storm(node_with_images: KubeCluster) -> Iterator[StormOnNode]:
    installed = StormOnNode(node_with_images)
    installed.install(MACHINES)
    yield installed
    with contextlib.suppress(KubeClusterError):  # the last test uninstalls it
        sys.stdout.write(installed.logs())


@pytest.fixture(scope="module")
def words(storm: StormOnNode) -> str:
    """A topology that runs under a verified plan."""
    each = {
        "thetaMillicores": EACH_MILLICORES,
        "floorMillicores": EACH_MILLICORES,
        "ceilingMillicores": EACH_MILLICORES,
    }
    # What a first try has left may have a plan that failed, and none will follow that is verified.
    storm.kube.kubectl("delete", "stormtopology", "words", "-n", NAMESPACE, "--ignore-not-found", "--timeout=120s")
    storm.apply(word_count("words", resources={**each, "enforcement": "Pod"}))

    def seen() -> str:
        plans = {plan["metadata"]["name"]: plan.get("status") for plan in storm.all("stormrebalances")}
        return f"{storm.status('words')} {plans}\n{storm.logs()}"

    eventually(lambda: storm.status("words").get("phase") == "Running", "it is submitted and runs", seen=seen)
    eventually(lambda: storm.rebalances("Verified"), "a plan is in force and verified", seen=seen)
    eventually(
        lambda: storm.status("words").get("lastPlan", {}).get("state") == "Verified", "its status tells that", seen=seen
    )
    eventually(lambda: storm.is_ready("words"), "it is ready", seen=seen)
    return "words"


def test_helm_s_own_tests_pass(storm: StormOnNode) -> None:
    storm.kube.helm("test", "storm", "-n", NAMESPACE, "--timeout=200s")
    storm.kube.helm("test", "storm-operator", "-n", OPERATOR_NAMESPACE, "--timeout=60s")


def test_plan_brings_the_topology_together_and_the_status_tells_it(storm: StormOnNode, words: str) -> None:
    plan = storm.rebalances("Verified")[0]
    assert plan["spec"]["moveCount"] > 0
    assert plan["status"]["measured"]["after"]["interSupervisorTuplesPerSecond"] == 0.0
    status = storm.status(words)
    assert status["supervisorsUsed"] == 1
    assert "words" in storm.kube.kubectl("get", "stormtopologies", "-n", NAMESPACE)


def test_supervisors_outlive_the_workers_that_the_plan_made_them_end(storm: StormOnNode, words: str) -> None:
    """One that cannot end a worker halts, and is started anew in its container, which counts as no restart."""
    assert storm.rebalances("Verified")[0]["spec"]["restartedWorkers"]
    for pod in storm.supervisors():
        said = storm.kube.kubectl("logs", pod["metadata"]["name"], "-n", NAMESPACE, "-c", "supervisor")
        assert "starting it again" not in said, said


def test_workers_have_not_parsed_the_classes_that_the_image_has_parsed(storm: StormOnNode, words: str) -> None:
    look = ("--", "sh", "-c", "cat /proc/[0-9]*/maps 2>/dev/null || true")  # some process has always just ended
    mapped = "".join(
        storm.kube.kubectl("exec", pod["metadata"]["name"], "-n", NAMESPACE, *look) for pod in storm.supervisors()
    )
    assert {kind for kind in Jvm if f"/opt/storm/class-data/{kind}.jsa" in mapped} == {Jvm.WORKER, Jvm.LOG_WRITER}


def test_pods_get_the_cpu_that_their_executors_need_without_a_restart(storm: StormOnNode, words: str) -> None:
    containers = {pod["metadata"]["name"]: _container(pod) for pod in storm.supervisors()}
    planned = _planned_millicores(storm, words)
    assert set(planned) == set(containers)
    for pod, wanted in planned.items():
        eventually(
            lambda pod=pod, wanted=wanted: storm.quota_millicores(pod) == wanted,  # type: ignore[misc]
            f"the kernel's quota of {pod} is that of the plan: {wanted} millicores",
        )
    assert {pod["metadata"]["name"]: _container(pod) for pod in storm.supervisors()} == containers


def test_supervisor_pod_that_is_deleted_comes_back_and_the_topology_is_whole(storm: StormOnNode, words: str) -> None:
    topology = storm.status(words)["topologyId"]
    plan = storm.rebalances("Verified")[-1]
    name = plan["spec"]["moves"][0]["to"].partition(".")[0]  # the pod that the executors are on
    (victim,) = [pod for pod in storm.supervisors() if pod["metadata"]["name"] == name]
    storm.kube.kubectl("delete", "pod", name, "-n", NAMESPACE, "--wait=false")

    def is_back() -> bool:
        return any(
            pod["metadata"]["name"] == name and pod["metadata"]["uid"] != victim["metadata"]["uid"]
            for pod in storm.supervisors()
        )

    eventually(is_back, "the pod is back")
    whole_since = time.monotonic()

    def is_whole_for_a_while() -> bool:
        nonlocal whole_since
        if not storm.is_ready(words):
            whole_since = time.monotonic()
        return time.monotonic() - whole_since > WHOLE_SECONDS

    eventually(is_whole_for_a_while, "the topology is ready, and stays so", seconds=300.0)
    assert storm.status(words)["topologyId"] == topology


def test_empty_pods_go_and_come_back_when_asked_for(storm: StormOnNode, words: str) -> None:
    before = {pod["metadata"]["name"] for pod in storm.supervisors()}
    with storm.nimbus() as nimbus:
        storm.patch(words, {"supervisors": {"minimum": 1, "maximum": MACHINES}})
        eventually(lambda: len(storm.supervisors()) < MACHINES, "pods that host nothing are taken away")
        # Storm takes longer than this to notice that a supervisor is gone, and to move what it hosted.
        executors = nimbus.topology_info(storm.status(words)["topologyId"]).executors
        taken = before - {pod["metadata"]["name"] for pod in storm.supervisors()}
    assert executors
    assert taken.isdisjoint(executor.host.partition(".")[0] for executor in executors)
    eventually(lambda: storm.is_ready(words), "the topology is whole")
    storm.patch(words, {"supervisors": {"minimum": MACHINES, "maximum": MACHINES}})
    eventually(lambda: len(storm.supervisors()) == MACHINES, "pods come back")


def test_jar_comes_from_a_server_a_volume_or_an_image_and_only_with_the_right_sum(
    storm: StormOnNode, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("jars")
    with jar_server(storm) as (url, sha256), jar_volume(storm, workloads_jar(), folder) as claim:
        origins: dict[str, dict[str, Any]] = {
            "from-server": {"url": url, "sha256": sha256},
            "from-volume": {"persistentVolumeClaim": claim},
            "from-image": {"image": IMAGE, "path": f"{JAR_FOLDER}/{JAR}"},
        }
        wrong = {"url": url, "sha256": "0" * 64}
        topologies = [topology_from(name, origin) for name, origin in (origins | {"from-elsewhere": wrong}).items()]
        try:
            for topology in topologies:
                storm.apply(topology)
            for name in origins:
                eventually(lambda name=name: storm.status(name).get("phase") == "Running", f"{name} runs")  # type: ignore[misc]
            eventually(lambda: sha256 in storm.status("from-elsewhere").get("message", ""), "the wrong sum is told")
        finally:
            names = [topology["metadata"]["name"] for topology in topologies]
            # A volume that is in use cannot be deleted.
            delete = ("delete", "stormtopology", *names, "-n", NAMESPACE, "--ignore-not-found", "--timeout=240s")
            storm.kube.kubectl(*delete)


def test_flux_definition_from_a_config_map_is_submitted(storm: StormOnNode) -> None:
    example = str(ROOT / "examples" / "wordcount-flux.yaml")
    storm.kube.kubectl("apply", "-n", NAMESPACE, "-f", example)
    eventually(lambda: storm.status("wordcount-flux").get("phase") == "Running", "the Flux topology runs")
    storm.kube.kubectl("delete", "-n", NAMESPACE, "-f", example, "--timeout=120s")


def test_topology_that_runs_already_is_adopted_and_outlives_its_resource(storm: StormOnNode) -> None:
    adopted = str(ROOT / "examples" / "adopted.yaml")
    with storm.client(), storm.nimbus() as nimbus:
        storm.submit_by_hand(word_count("payments")["spec"]["jar"])
        try:
            submitted = nimbus.cluster_info().topology_named("payments")
            assert submitted is not None
            storm.kube.kubectl("apply", "-n", NAMESPACE, "-f", adopted)
            eventually(
                lambda: storm.is_ready("payments"),
                "it is adopted and measured",
                seconds=300.0,
                seen=lambda: storm.status("payments"),
            )
            assert storm.status("payments")["topologyId"] == submitted.id
            storm.kube.kubectl("delete", "-n", NAMESPACE, "-f", adopted, "--timeout=120s")
            still = nimbus.cluster_info().topology_named("payments")
            assert still is not None
            assert (still.id, still.status) == (submitted.id, "ACTIVE")
        finally:
            storm.kube.kubectl("delete", "-n", NAMESPACE, "-f", adopted, "--ignore-not-found", "--timeout=120s")
            nimbus.kill("payments")
            eventually(lambda: nimbus.cluster_info().topology_named("payments") is None, "it is gone from Storm")


def test_snapshot_of_the_live_cluster_can_be_planned_with(storm: StormOnNode, words: str, tmp_path: Path) -> None:
    taken = storm.kube.kubectl(
        *("exec", "-n", OPERATOR_NAMESPACE, f"deployment/{OPERATOR}", "--", "storm-operator", "snapshot"),
        *("--nimbus", NIMBUS, "--zookeeper", f"storm-zookeeper.{NAMESPACE}:2181"),
    )
    (tmp_path / "cluster.json").write_text(taken)
    assert words in [topology["name"] for topology in json.loads(taken)["topologies"]]
    command = [sys.executable, "-m", "storm_operator", "plan", "--snapshot", str(tmp_path / "cluster.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_nimbus_leads_again_without_its_data_and_the_topology_is_submitted_anew(storm: StormOnNode, words: str) -> None:
    before = storm.status(words)["topologyId"]
    storm.kube.kubectl("delete", "pod", f"{STORM}-nimbus-0", "-n", NAMESPACE)

    def seen() -> str:
        return f"{storm.status(words)}\n{storm.logs()}"

    def is_another() -> bool:
        status = storm.status(words)
        return status.get("phase") == "Running" and status.get("topologyId") not in (None, before)

    eventually(is_another, "Nimbus leads, and the topology is submitted anew", seconds=300.0, seen=seen)
    eventually(lambda: storm.is_ready(words), "it runs", seconds=300.0, seen=seen)


def test_nothing_is_left_behind(storm: StormOnNode, words: str) -> None:
    storm.kube.kubectl("delete", "stormtopology", words, "-n", NAMESPACE, "--ignore-not-found", "--timeout=120s")
    assert storm.all("stormtopologies") == []
    eventually(lambda: storm.all("stormrebalances") == [], "plans go with their topology")
    storm.uninstall()
    for namespace in (NAMESPACE, OPERATOR_NAMESPACE):
        for kind in ("pods", "services", "configmaps", "jobs", "roles", "leases"):
            eventually(
                lambda kind=kind, namespace=namespace: _own(storm, kind, namespace) == [],  # type: ignore[misc]
                f"no {kind} are left in {namespace}",
            )
    left = storm.kube.kubectl("get", "clusterroles,clusterrolebindings", "-o", "name")
    assert "storm" not in left


def _planned_millicores(storm: StormOnNode, name: str) -> dict[str, int]:
    """The CPU limit of each supervisor pod by the last plan, which brought all executors to one supervisor."""
    (spec,) = [body["spec"] for body in storm.all("stormtopologies") if body["metadata"]["name"] == name]
    plan = storm.rebalances("Verified")[-1]["spec"]
    (host,) = {move["to"].partition(".")[0] for move in plan["moves"]}
    limits = plan["cpuLimitsMillicores"].values()
    assert set(limits) == {EACH_MILLICORES}
    hosting = SUPERVISOR_OWN_MILLICORES + sum(limits) / spec["scheduling"]["headroomFraction"]
    empty = int(SUPERVISOR_OWN_MILLICORES)
    names = [pod["metadata"]["name"] for pod in storm.supervisors()]
    return {pod: 10 * math.ceil(hosting / 10) if pod == host else empty for pod in names}


def _container(pod: dict[str, object]) -> tuple[str, int]:
    """Identity of the container that workers run in, and how often it was restarted."""
    statuses = pod["status"]["containerStatuses"]  # type: ignore[index]
    found = next(status for status in statuses if status["name"] == "supervisor")
    return found["containerID"], found["restartCount"]


def _own(storm: StormOnNode, kind: str, namespace: str) -> list[str]:
    """Names of what is there beside what every namespace has."""
    names = [body["metadata"]["name"] for body in storm.all(kind, namespace=namespace)]
    return [name for name in names if name != "kube-root-ca.crt"]
