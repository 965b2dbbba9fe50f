"""Hundreds of StormTopologies at once: how long until all have a status, against a handler that does nothing else.

The bare handler is kopf's own, with one patch for each object. Both watch a real API server; they take turns, each with
a fresh namespace. No Storm is needed: the resources name a Nimbus that is not there. What many resources cost for
long is measured by growth.py. The last line is JSON.
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
ABSENT_NIMBUS = "127.0.0.1:1"
START_SECONDS = 5.0
"""Both are given the same time to start."""
LIMIT_SECONDS = 300.0
POLL_SECONDS = 0.2


def main(count: int = 300, turns: int = 3) -> None:
    """Create `count` resources under each handler `turns` times."""
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
                    began = time.monotonic()
                    create_resources(kube, namespace, count, ABSENT_NIMBUS)
                    wait_until_all_have_status(kube, namespace, count)
                    seconds[way].append(time.monotonic() - began)
                console.log(f"turn {turn + 1}, {way}: {seconds[way][-1]:.1f} s")
    ratio = statistics.median(seconds["operator"]) / statistics.median(seconds["bare"])
    console.print(f"{count} resources: operator / bare = {ratio:.2f}")
    print(json.dumps({"count": count, "seconds": seconds, "ratio": ratio}))


@contextmanager
def _handler(way: str, kube: KubeCluster, namespace: str, folder: Path) -> Iterator[None]:
    """The process that watches `namespace`, ready to work."""
    if way == "operator":
        with OperatorProcess(kube, namespace, folder / f"{namespace}.log"):
            time.sleep(START_SECONDS)
            yield
        return
    script = folder / "bare.py"
    script.write_text(BARE_HANDLER)
    command = [sys.executable, "-m", "kopf", "run", "--standalone", "-n", namespace, "-q", str(script)]
    environment = os.environ | {"KUBECONFIG": str(kube.kubeconfig)}
    with (folder / f"{namespace}.log").open("ab") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        time.sleep(START_SECONDS)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)


def create_resources(kube: KubeCluster, namespace: str, count: int, nimbus: str) -> None:
    """So many StormTopologies, each of which adopts a topology that nobody submitted."""
    items = [
        {
            "apiVersion": "storm-operator.dev/v1alpha1",
            "kind": "StormTopology",
            "metadata": {"name": f"topology-{number}", "namespace": namespace},
            "spec": {"nimbus": nimbus, "adopt": {}},
        }
        for number in range(count)
    ]
    body = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    kube.kubectl("create", "-f", "-", input=body)


def wait_until_all_have_status(kube: KubeCluster, namespace: str, count: int) -> None:
    """Wait; SystemExit when it takes too long."""
    began = time.monotonic()
    while time.monotonic() - began < LIMIT_SECONDS:
        found = bodies(kube, namespace)
        if len(found) == count and all((body.get("status") or {}).get("observedGeneration") for body in found):
            return
        time.sleep(POLL_SECONDS)
    raise SystemExit(f"{namespace}: not all of {count} resources had a status within {LIMIT_SECONDS:.0f} s")


def bodies(kube: KubeCluster, namespace: str) -> list[dict[str, Any]]:
    """The StormTopologies as they are now."""
    answer = json.loads(kube.kubectl("get", "stormtopologies", "-n", namespace, "-o", "json"))
    return list(answer["items"])


if __name__ == "__main__":
    typer.run(main)
