"""Hundreds of StormTopologies at once: how long until all have a status, against a handler that does nothing else.

The bare handler is kopf's own, with one patch for each object. Both watch a real API server; they take turns, each with
a fresh namespace. Afterwards the operator keeps `--many` resources for a while: its memory, and the status writes
that it makes although nothing happens, are counted. No Storm is needed: the resources name a Nimbus that is not there.
The last line is JSON.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import typer
from rich.console import Console

from kube_cluster import KubeCluster
from operator_scene import OperatorProcess
from storm_operator.local.paths import repository_root

BARE_HANDLER = """
import kopf

@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.posting.enabled = False

@kopf.on.event("storm-operator.dev", "v1alpha1", "stormtopologies")
def seen(type, body, patch, **_):
    if type != "DELETED" and not body.get("status"):
        patch.status["observedGeneration"] = body["metadata"]["generation"]
"""
LIMIT_SECONDS = 300.0
POLL_SECONDS = 0.2


def main(count: int = 300, many: int = 1000, turns: int = 3, idle_seconds: float = 60.0) -> None:
    """Create `count` resources under each handler `turns` times; then keep `many` for `idle_seconds`."""
    console = Console(stderr=True)
    root = repository_root()
    assert root is not None
    seconds: dict[str, list[float]] = {"bare": [], "operator": []}
    with tempfile.TemporaryDirectory() as folder, KubeCluster("many") as kube:
        kube.install_crds(root / "crds")
        for turn in range(turns):
            for way in seconds:
                namespace = f"{way}-{turn}"
                kube.kubectl("create", "namespace", namespace)
                with _handler(way, kube, namespace, Path(folder)):
                    seconds[way].append(_time_until_all_have_status(kube, namespace, count))
                console.log(f"turn {turn + 1}, {way}: {seconds[way][-1]:.1f} s")
        idle = _keep(kube, many, idle_seconds, Path(folder))
    ratio = statistics.median(seconds["operator"]) / statistics.median(seconds["bare"])
    console.print(f"{count} resources: operator / bare = {ratio:.2f}; {many} kept: {idle}")
    print(json.dumps({"count": count, "seconds": seconds, "ratio": ratio, "many": many, "idle": idle}))


@contextmanager
def _handler(way: str, kube: KubeCluster, namespace: str, folder: Path) -> Iterator[int]:
    """The process that watches `namespace`, ready to work; yields its pid."""
    if way == "operator":
        with OperatorProcess(kube, namespace, folder / f"{namespace}.log") as operator:
            assert operator.process is not None
            time.sleep(5.0)  # both are given the same time to start
            yield operator.process.pid
        return
    script = folder / "bare.py"
    script.write_text(BARE_HANDLER)
    command = [sys.executable, "-m", "kopf", "run", "--standalone", "-n", namespace, "-q", str(script)]
    environment = os.environ | {"KUBECONFIG": str(kube.kubeconfig)}
    with (folder / f"{namespace}.log").open("ab") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        time.sleep(5.0)
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)


def _create(kube: KubeCluster, namespace: str, count: int) -> None:
    items = [
        {
            "apiVersion": "storm-operator.dev/v1alpha1",
            "kind": "StormTopology",
            "metadata": {"name": f"topology-{number}", "namespace": namespace},
            "spec": {"nimbus": "127.0.0.1:1", "adopt": {}},
        }
        for number in range(count)
    ]
    body = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    kube.kubectl("create", "-f", "-", input=body)


def _time_until_all_have_status(kube: KubeCluster, namespace: str, count: int) -> float:
    began = time.monotonic()
    _create(kube, namespace, count)
    while time.monotonic() - began < LIMIT_SECONDS:
        found = _bodies(kube, namespace)
        if len(found) == count and all((body.get("status") or {}).get("observedGeneration") for body in found):
            return time.monotonic() - began
        time.sleep(POLL_SECONDS)
    raise SystemExit(f"{namespace}: not all of {count} resources had a status within {LIMIT_SECONDS:.0f} s")


def _bodies(kube: KubeCluster, namespace: str) -> list[dict[str, Any]]:
    answer = json.loads(kube.kubectl("get", "stormtopologies", "-n", namespace, "-o", "json"))
    return list(answer["items"])


def _keep(kube: KubeCluster, many: int, idle_seconds: float, folder: Path) -> dict[str, float]:
    """Memory of the operator with `many` resources, and how many of them it wrote although nothing happened."""
    kube.kubectl("create", "namespace", "many")
    with _handler("operator", kube, "many", folder) as pid:
        empty_mb = psutil.Process(pid).memory_info().rss / 1e6
        _time_until_all_have_status(kube, "many", many)
        time.sleep(60.0)  # until the loop, too, has said what it found
        before = {body["metadata"]["name"]: body["metadata"]["resourceVersion"] for body in _bodies(kube, "many")}
        time.sleep(idle_seconds)
        after = {body["metadata"]["name"]: body["metadata"]["resourceVersion"] for body in _bodies(kube, "many")}
        full_mb = psutil.Process(pid).memory_info().rss / 1e6
    written = sum(1 for name, version in after.items() if before.get(name) != version)
    return {"memory_mb_without": empty_mb, "memory_mb_with": full_mb, "idle_seconds": idle_seconds, "writes": written}


if __name__ == "__main__":
    typer.run(main)
