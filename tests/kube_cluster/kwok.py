"""Nodes and pods that only KWOK plays: what many of them mean for the API server's clients, without running any."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

from kube_cluster.binaries import ensure_programs, module_folder, program_path
from kube_cluster.cluster import KubeCluster
from kube_cluster.waiting import wait_for
from storm_operator.local.daemons import CLUSTER_MARK

STAGES = ("node/fast", "node/heartbeat-with-lease", "pod/fast")
"""What KWOK plays: nodes and pods are ready at once, and stay so."""

PLAYED = {"kwok.x-k8s.io/node": "played"}
LEASE_SECONDS = 40
READY_SECONDS = 120.0


class PlayedNodes:
    """So many nodes, `played-0` and on, as a context manager. Pods must name theirs: `nodeName`. No pod runs.

    KWOK has the cluster's mark: it ends with the cluster also where this process is killed.
    """

    def __init__(self, kube: KubeCluster, nodes: int = 1) -> None:
        self._kube = kube
        self._nodes = nodes

    def __enter__(self) -> PlayedNodes:
        ensure_programs(("kwok",))
        config = self._kube.layout.root / "kwok.yaml"
        config.write_text("\n---\n".join(_stages()))
        command = [str(program_path("kwok")), f"--kubeconfig={self._kube.kubeconfig}", f"--config={config}"]
        command += ["--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=played"]
        command += [f"--node-lease-duration-seconds={LEASE_SECONDS}"]
        # Its home is where it would look for a configuration of the user's.
        environment = os.environ | {CLUSTER_MARK: self._kube.layout.mark, "HOME": str(self._kube.layout.root)}
        with (self._kube.logs_dir / "kwok.log").open("ab") as log:
            self._process = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
        self._create(_node(number) for number in range(self._nodes))
        self._kube.kubectl("wait", "--for=condition=Ready", "nodes", "--all", f"--timeout={READY_SECONDS:.0f}s")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait()

    def add_pods(self, namespace: str, bodies: list[dict[str, Any]]) -> None:
        """Create pods, spread over the nodes, and wait until all that are in the namespace run."""
        for number, body in enumerate(bodies):
            body["spec"]["nodeName"] = f"played-{number % self._nodes}"
            body["metadata"]["namespace"] = namespace
        self._create(bodies)
        wait_for(lambda: not self._waiting(namespace), READY_SECONDS, f"not all pods of {namespace} run")

    def _waiting(self, namespace: str) -> str:
        return self._kube.kubectl(
            "get", "pods", "-n", namespace, "--field-selector=status.phase!=Running", "-o", "name"
        )

    def _create(self, bodies: Any) -> None:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(bodies)})
        self._kube.kubectl("create", "--validate=false", "-f", "-", input=text)


def _node(number: int) -> dict[str, Any]:
    metadata = {"name": f"played-{number}", "annotations": PLAYED}
    taint = {"key": "kwok.x-k8s.io/node", "value": "played", "effect": "NoSchedule"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": [taint]}}


def _stages() -> list[str]:
    folder = module_folder("kwok", "sigs.k8s.io/kwok") / "kustomize" / "stage"
    files = [file for stage in STAGES for file in sorted(Path(folder, stage).glob("*.yaml"))]
    return [file.read_text() for file in files if file.name != "kustomization.yaml"]
