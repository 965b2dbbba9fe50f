"""Node: what a test may ask of the node of a cluster that is up."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import requests

from kube_cluster.archives import write_program_image
from kube_cluster.binaries import program_path
from kube_cluster.errors import KubeClusterError
from kube_cluster.layout import KubeLayout
from kube_cluster.node.cgroups import hierarchies, kubelet_root
from kube_cluster.node.configuration import CONTAINERD_SOCKET, DNS_READY_PORT, PAUSE_IMAGE
from kube_cluster.node.manifests import node_manifests
from kube_cluster.waiting import wait_for
from storm_operator.local.cgroups import MOUNTS

ANSWER_SECONDS = 5.0


class Node:
    """`kubectl` and `object_of` are the cluster's; `pid_of` tells a daemon's process id, None while it does not run."""

    def __init__(
        self,
        layout: KubeLayout,
        kubectl: Callable[..., str],
        object_of: Callable[..., dict[str, Any]],
        pid_of: Callable[[str], int | None],
    ) -> None:
        self._layout = layout
        self._kubectl = kubectl
        self._object_of = object_of
        self._pid_of = pid_of

    def run(self, *command: str, stdin: Path | None = None) -> str:
        """What a program prints that runs in the node's network, with the node's view of the file system."""
        pid = self._pid_of("containerd")
        if pid is None:
            raise KubeClusterError("containerd does not run at this moment")
        enter = ["nsenter", f"--target={pid}", "--mount", "--net", *command]
        with (stdin or Path("/dev/null")).open("rb") as content:
            done = subprocess.run(enter, stdin=content, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise KubeClusterError(
                f"`{' '.join(command)}` on the node failed ({done.returncode}): {done.stderr.strip()}"
            )
        return done.stdout

    def load_image(self, archive: Path) -> None:
        """Give the node an image, as `docker save` or `buildah push docker-archive:` writes it."""
        self.run("ctr", f"--address={CONTAINERD_SOCKET}", "--namespace=k8s.io", "images", "import", "-", stdin=archive)

    def images(self) -> list[str]:
        """The names of the images that pods can have."""
        names = self.run("ctr", f"--address={CONTAINERD_SOCKET}", "--namespace=k8s.io", "images", "list", "-q").split()
        return [name for name in names if not name.startswith("sha256:")]

    def container_cgroup(self, namespace: str, pod: str, container: str, controller: str = "cpu") -> Path:
        """The folder of a running container's cgroup under a controller (of cgroup v1; v2 has one folder for all)."""
        status = self._object_of("pods", pod, namespace)
        ids = {each["name"]: each.get("containerID", "") for each in status["status"].get("containerStatuses", [])}
        identity = ids.get(container, "").rpartition("/")[2]
        if not identity:
            raise KubeClusterError(f"container {container!r} of pod {namespace}/{pod} does not run: {ids}")
        for _, mounted in hierarchies(MOUNTS.read_text()):
            if mounted.name in (controller, "cgroup"):
                below = mounted / kubelet_root(self._layout.name).lstrip("/") / "kubepods"
                for folder in below.rglob(f"pod{status['metadata']['uid']}/{identity}"):
                    return folder
        raise KubeClusterError(f"no {controller} cgroup of container {container!r} of pod {namespace}/{pod}")

    def prepare(self, seconds: float) -> None:
        """Give it what only a running API server can be told, and wait until it takes pods."""
        self._kubectl("apply", "-f", "-", input=node_manifests(self._layout))
        archive = self._layout.root / "pod-probe.tar"
        write_program_image(program_path("pod-probe"), PAUSE_IMAGE, archive)
        wait_for(lambda: self._takes(archive), seconds, "containerd did not take an image")
        archive.unlink()
        wait_for(self._is_ready, seconds, "the node was not ready")

    def _takes(self, archive: Path) -> bool:
        try:
            self.load_image(archive)
        except KubeClusterError:
            return False
        return True

    def _is_ready(self) -> bool:
        try:
            node = self._object_of("nodes", self._layout.node_name)
            dns = requests.get(f"http://{self._layout.node_ip}:{DNS_READY_PORT}/ready", timeout=ANSWER_SECONDS)
        except (KubeClusterError, requests.RequestException):
            return False
        conditions = {each["type"]: each["status"] for each in node["status"].get("conditions", [])}
        return conditions.get("Ready") == "True" and not node["spec"].get("taints") and dns.ok
