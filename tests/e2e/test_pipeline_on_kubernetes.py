"""The data pipeline on a real node: recorded history in, tables out, by the chart's CronJob, with executors as pods."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from eventually import eventually

from history_scene import record
from kube_cluster import KubeCluster
from kube_cluster.for_pytest import skip_unless_possible
from kube_cluster.images import PIPELINE_IMAGE, build_image
from kube_cluster.prerequisites import missing_for_images
from tiny_spark import TINY_FRAMES

pytestmark = [pytest.mark.functional, pytest.mark.root, pytest.mark.timeout(1500)]  # its image is built first

ROOT = Path(__file__).parents[2]
NAMESPACE, RELEASE, CLAIM = "learning", "storm-operator", "history"
PIPELINE = f"{RELEASE}-pipeline"
PERIODS = 20
LONGEST_JOB_SECONDS = 600.0
VALUES = {
    "pipeline.enabled": "true",
    "pipeline.image.pullPolicy": "Never",
    "pipeline.jobs": "{ingest,traffic}",
    "pipeline.executors": "1",
    "pipeline.executorCpuRequest": "100m",
    "pipeline.executorMemory": "600m",
    "pipeline.driverMemory": "600m",
    "pipeline.driverResources.requests.cpu": "100m",
    "history.existingClaim": CLAIM,
}


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recorded by the real loop on a simulated cluster; the pods' user may write beside it."""
    folder = tmp_path_factory.mktemp("history")
    record(folder, PERIODS)
    for path in (folder, *folder.parents[:2], *folder.rglob("*")):
        path.chmod(path.stat().st_mode | 0o055)
    folder.chmod(0o777)
    return folder


@pytest.fixture
def installed(node: KubeCluster, history: Path) -> Iterator[KubeCluster]:
    skip_unless_possible((), missing_for_images())
    node.load_image(build_image("pipeline", PIPELINE_IMAGE))
    remove(node)  # what a first try has left
    node.kubectl("create", "namespace", NAMESPACE)
    node.kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
    node.kubectl("apply", "-f", "-", input=json.dumps(_volume(history)))
    node.kubectl("apply", "-f", "-", "-n", NAMESPACE, input=json.dumps(_claim()))
    settings = [f"--set={key}={value}" for key, value in VALUES.items()]
    settings.append(f"--set-json=pipeline.sparkConf={json.dumps(TINY_FRAMES)}")
    node.helm("install", RELEASE, str(ROOT / "charts" / "storm-operator"), "-n", NAMESPACE, *settings)
    yield node
    remove(node)


def remove(node: KubeCluster) -> None:
    """Whatever is there of the release, its namespace and its volume."""
    node.helm("uninstall", RELEASE, "-n", NAMESPACE, "--ignore-not-found", "--wait")
    node.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=300s")
    node.kubectl("delete", "persistentvolume", CLAIM, "--ignore-not-found", "--timeout=300s")


def test_cron_job_turns_history_into_tables_with_executor_pods(installed: KubeCluster, history: Path) -> None:
    installed.kubectl("create", "job", "tonight", f"--from=cronjob/{PIPELINE}", "-n", NAMESPACE)
    run_out(installed, "tonight")
    events = installed.kubectl("get", "events", "-n", NAMESPACE, "-o", "jsonpath={.items[*].involvedObject.name}")
    assert any("-exec-" in name for name in events.split()), "Spark made no executor pod"
    eventually(
        lambda: executors(installed) == [], "no executor outlives its application", seen=lambda: executors(installed)
    )
    recorded = _rows(sorted((history / "executors").rglob("*.parquet")))
    assert recorded > 0
    assert _rows(_files_of(history / "lake" / "silver" / "executors")) == recorded
    assert any((history / "lake" / "gold").iterdir())


def executors(node: KubeCluster) -> list[str]:
    """Names of their pods."""
    return [pod["metadata"]["name"] for pod in node.objects("pods", NAMESPACE, labels="spark-role=executor")]


def run_out(node: KubeCluster, job: str) -> None:
    """Wait until the job is complete; what its pods said is shown when it fails or takes too long."""
    condition = "jsonpath={.status.conditions[*].type}"
    deadline = time.monotonic() + LONGEST_JOB_SECONDS
    ended = ""
    while not {"Complete", "Failed"} & set(ended.split()) and time.monotonic() < deadline:
        time.sleep(5.0)
        ended = node.kubectl("get", "job", job, "-n", NAMESPACE, "-o", condition)
    if "Complete" not in ended.split():
        pods = node.kubectl("get", "pods", "-n", NAMESPACE, "-o", "wide")
        said = node.kubectl("logs", f"job/{job}", "-n", NAMESPACE, "--tail=60")
        pytest.fail(f"{job} is {ended or 'not over'}:\n{pods}\n{said}")


def _files_of(table: Path) -> list[Path]:
    """The data files of a Delta table as its log has them."""
    files: set[str] = set()
    for commit in sorted((table / "_delta_log").glob("*.json")):
        for line in commit.read_text().splitlines():
            action = json.loads(line)
            if "add" in action:
                files.add(action["add"]["path"])
            if "remove" in action:
                files.discard(action["remove"]["path"])
    return [table / name for name in sorted(files)]


def _rows(files: list[Path]) -> int:
    return sum(pq.ParquetFile(file).metadata.num_rows for file in files)


def _volume(folder: Path) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": CLAIM},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteMany"],
            "hostPath": {"path": str(folder)},
            "storageClassName": "",
            "claimRef": {"namespace": NAMESPACE, "name": CLAIM},
        },
    }


def _claim() -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": CLAIM},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "volumeName": CLAIM,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
