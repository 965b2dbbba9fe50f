"""The same jar by each way that a StormTopology can name: from a server, from a volume, out of another image."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from storm_on_node import NAMESPACE, StormOnNode, word_count

IMAGE = "localhost/storm:dev"
JAR_FOLDER, JAR = "/opt/storm/examples", "workloads.jar"
SERVER, VOLUME = "jars", "jars"
PORT = 8000


@contextmanager
def jar_server(storm: StormOnNode) -> Iterator[tuple[str, str]]:
    """URL and SHA-256 of the jar, served by a pod of Storm's image."""
    overrides = json.dumps({"spec": {"terminationGracePeriodSeconds": 1}})
    storm.kube.kubectl(
        *("run", SERVER, "-n", NAMESPACE, f"--image={IMAGE}", "--image-pull-policy=Never", "--restart=Never"),
        *(f"--overrides={overrides}", "--command", "--"),
        *("python3", "-m", "http.server", str(PORT), f"--directory={JAR_FOLDER}"),
    )
    try:
        storm.kube.kubectl("wait", "--for=condition=Ready", f"pod/{SERVER}", "-n", NAMESPACE, "--timeout=240s")
        (pod,) = [pod for pod in storm.all("pods") if pod["metadata"]["name"] == SERVER]
        said = storm.kube.kubectl("exec", SERVER, "-n", NAMESPACE, "--", "sha256sum", f"{JAR_FOLDER}/{JAR}")
        yield f"http://{pod['status']['podIP']}:{PORT}/{JAR}", said.split()[0]
    finally:
        storm.kube.kubectl("delete", "pod", SERVER, "-n", NAMESPACE, "--ignore-not-found")


@contextmanager
def jar_volume(storm: StormOnNode, jar: Path, folder: Path) -> Iterator[dict[str, str]]:
    """`spec.jar.persistentVolumeClaim` of a volume that holds the jar: a folder of the node."""
    folder.chmod(0o755)
    shutil.copy(jar, folder / JAR)
    (folder / JAR).chmod(0o644)
    shape = {"accessModes": ["ReadOnlyMany"], "storageClassName": ""}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": VOLUME},
        "spec": {**shape, "capacity": {"storage": "1Gi"}, "hostPath": {"path": str(folder)}},
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": VOLUME},
        "spec": {**shape, "volumeName": VOLUME, "resources": {"requests": {"storage": "1Gi"}}},
    }
    try:
        for body in (volume, claim):
            storm.apply(body)
        yield {"claimName": VOLUME, "path": JAR}
    finally:
        storm.kube.kubectl("delete", "persistentvolumeclaim", VOLUME, "-n", NAMESPACE, "--ignore-not-found")
        storm.kube.kubectl("delete", "persistentvolume", VOLUME, "--ignore-not-found")


def topology_from(name: str, origin: Mapping[str, Any]) -> dict[str, Any]:
    """A WordCount that only runs, its jar from `origin` in place of the Storm image."""
    body = word_count(name, rate=1, scheduling={"mode": "Observe"})
    jar = body["spec"]["jar"]
    del jar["path"]
    args = ["--name", name, "--rate", "steady:1", "--workers", "1"]
    body["spec"]["jar"] = {**jar, **origin, "args": args}
    return body
