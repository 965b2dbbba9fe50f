"""KubeCluster: a real Kubernetes API server on this machine, up and down. The interface for tests."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any

import requests

from kube_cluster.access import token_of, write_kubeconfig
from kube_cluster.audit import Call, read_calls
from kube_cluster.binaries import ensure_programs, program_path
from kube_cluster.cache import Say
from kube_cluster.errors import KubeClusterError
from kube_cluster.layout import KubeLayout, read_layout, state_file
from kube_cluster.lifecycle import bring_up, plan
from kube_cluster.node.node import Node
from kube_cluster.objects import ANSWER_SECONDS, answer_to, document_of, path_of
from kube_cluster.sweep import take_down
from kube_cluster.waiting import wait_for
from storm_operator.local.processes import marked_processes

READY_SECONDS = 240.0
TOKEN_HOURS = 24


class KubeCluster:
    """One cluster. As a context manager it comes up, waits until it is ready, and goes down with its process.

    >>> with KubeCluster("mine") as cluster:
    ...     cluster.kubectl("get", "namespaces")
    """

    def __init__(
        self, name: str = "kube", node: bool = False, logs_dir: Path | None = None, audit: bool = False
    ) -> None:
        """`logs_dir`: where the daemons' logs stay after the end; without it they go with the cluster.

        `audit`: keep account of what ServiceAccounts ask of the API server, see `audit_calls`.
        """
        self.name = name
        self._has_node = node
        self._audit = audit
        self._kept_logs_dir = logs_dir
        self._layout: KubeLayout | None = None

    @classmethod
    def attach(cls, name: str) -> KubeCluster:
        """A cluster that is up already."""
        layout = read_layout(name)
        if layout is None:
            raise KubeClusterError(f"no cluster {name!r} is up ({state_file(name)} does not exist)")
        cluster = cls(name, layout.node, layout.kept_logs_dir)
        cluster._layout = layout
        return cluster

    def up(self, owned: bool = False, say: Say = lambda _: None) -> None:
        """Start everything. `owned`: when this very process ends, however, the cluster ends too.

        Raises KubeClusterError, and leaves nothing behind then.
        """
        layout = plan(self.name, self._has_node, os.getpid() if owned else None, self._kept_logs_dir, self._audit)
        bring_up(layout, say)
        self._layout = layout

    def down(self) -> None:
        """Stop everything. Harmless when nothing is up."""
        take_down(self.name)

    def __enter__(self) -> KubeCluster:
        self.up(owned=True)
        try:
            self.wait_ready()
        except BaseException:
            self.down()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()

    @property
    def layout(self) -> KubeLayout:
        if self._layout is None:
            raise KubeClusterError(f"cluster {self.name!r} is not up")
        return self._layout

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.layout.kubeconfig

    @property
    def url(self) -> str:
        return self.layout.url

    @property
    def token(self) -> str:
        """The administrator's."""
        return token_of(self.layout, "admin")

    @property
    def ca_file(self) -> Path:
        return self.layout.ca_file

    @property
    def logs_dir(self) -> Path:
        return self.layout.logs_dir

    def processes(self) -> frozenset[int]:
        """Ids of the cluster's processes, its keeper's included."""
        return frozenset(marked_processes(self.layout.mark))

    def daemons(self) -> list[dict[str, Any]]:
        """Name, pid, number of starts, log of each daemon."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(ANSWER_SECONDS)
            try:
                client.connect(str(self.layout.keeper_socket))
                answer: list[dict[str, Any]] = json.loads(client.makefile().readline())
            except (OSError, ValueError) as reason:
                raise KubeClusterError(f"the keeper of cluster {self.name!r} does not answer: {reason}") from reason
        return answer

    def wait_ready(self, seconds: float = READY_SECONDS) -> None:
        """Until the API server is ready and the controllers work: `default` has its ServiceAccount and CA."""
        paths = (
            "/readyz",
            "/api/v1/namespaces/default/serviceaccounts/default",
            "/api/v1/namespaces/default/configmaps/kube-root-ca.crt",
        )
        try:
            wait_for(lambda: all(map(self._answers, paths)), seconds, f"cluster {self.name!r} was not ready")
            if self.layout.node:
                self.node.prepare(seconds)
        except KubeClusterError as reason:
            raise KubeClusterError(f"{reason}\n{self._last_words()}") from None

    def objects(self, kind: str, namespace: str | None = None, labels: str = "") -> list[dict[str, Any]]:
        """All objects of a kind (its plural name) in a namespace, or in the cluster; as administrator.

        For loops that wait: see objects.py. Raises KubeClusterError with what the API server said.
        """
        query = {"labelSelector": labels} if labels else {}
        return list(document_of(self._get(path_of(kind, namespace), query))["items"])

    def object(self, kind: str, name: str, namespace: str | None = None) -> dict[str, Any]:
        """One object of a kind (its plural name); as `objects`."""
        return document_of(self._get(path_of(kind, namespace, name)))

    def kubectl(self, *arguments: str, input: str | None = None, kubeconfig: Path | None = None) -> str:  # noqa: A002 - as in subprocess
        """What kubectl prints. Raises KubeClusterError with what it said on stderr. By default as administrator."""
        command = [str(program_path("kubectl")), f"--cache-dir={self.layout.client_cache}", *arguments]
        return _run(command, {"KUBECONFIG": str(kubeconfig or self.kubeconfig)}, input)

    def helm(self, *arguments: str, kubeconfig: Path | None = None) -> str:
        """What helm prints; built at its first use. Raises KubeClusterError with what it said on stderr."""
        ensure_programs(("helm",))
        homes = {f"HELM_{kind}_HOME": str(self.layout.client_cache / "helm") for kind in ("CACHE", "CONFIG", "DATA")}
        command = [str(program_path("helm")), *arguments]
        return _run(command, homes | {"KUBECONFIG": str(kubeconfig or self.kubeconfig)})

    def install_crds(self, folder: Path) -> None:
        """Apply all CustomResourceDefinitions in a folder, and wait until they are served."""
        self.kubectl("apply", "--server-side", "-f", str(folder))
        self.kubectl("wait", "--for=condition=Established", f"--timeout={READY_SECONDS:.0f}s", "-f", str(folder))
        names = self.kubectl("get", "-f", str(folder), "-o", "name").split()
        for name in names:
            plural = name.partition("/")[2]
            wait_for(partial(self._lists, plural), READY_SECONDS, f"{plural} was not served")
            wait_for(partial(self._explains, plural), READY_SECONDS, f"{plural} was not described")

    def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """A kubeconfig file with a token of an existing ServiceAccount; its namespace is the default one there."""
        token = self.kubectl("create", "token", name, "-n", namespace, f"--duration={TOKEN_HOURS}h").strip()
        return write_kubeconfig(self.layout, self.layout.kubeconfig_of(f"{namespace}.{name}"), token, namespace)

    def audit_calls(self, user: str) -> tuple[Call, ...]:
        """All that a ServiceAccount's user has asked of the API server since the start, oldest first."""
        if not self.layout.audit:
            raise KubeClusterError(f"cluster {self.name!r} keeps no account: KubeCluster(..., audit=True)")
        return read_calls(self.layout.audit_log, user)

    @property
    def node(self) -> Node:
        """The node, of a cluster that has one."""
        if not self.layout.node:
            raise KubeClusterError(f"cluster {self.name!r} has no node: KubeCluster(..., node=True)")
        return Node(self.layout, self.kubectl, self.object, self._pid_of)

    def load_image(self, archive: Path) -> None:
        """Give the node an image, as `images.build_image` makes it; pods need `imagePullPolicy: Never`."""
        self.node.load_image(archive)

    def _pid_of(self, daemon: str) -> int | None:
        return next((each["pid"] for each in self.daemons() if each["name"] == daemon), None)

    def _answers(self, path: str) -> bool:
        try:
            return self._get(path).ok
        except KubeClusterError:
            return False

    def _get(self, path: str, query: Mapping[str, str] = MappingProxyType({})) -> requests.Response:
        return answer_to(self.url + path, self.token, str(self.ca_file), query)

    def _explains(self, plural: str) -> bool:
        """Descriptions (OpenAPI) are published a little later than the resource itself."""
        try:
            return bool(self.kubectl("explain", plural))
        except KubeClusterError:
            return False

    def _lists(self, plural: str) -> bool:
        try:
            self.kubectl("get", plural, "-A")
        except KubeClusterError:
            # Right after its creation the API server may answer 404 or "storage is (re)initializing".
            return False
        return True

    def _last_words(self) -> str:
        """The last lines of each daemon's log."""
        said = []
        for file in sorted(self.logs_dir.glob("*.log")):
            lines = file.read_text(errors="replace").splitlines()[-4:]
            said += [f"{file.name}:", *(f"  {line[:300]}" for line in lines)]
        return "\n".join(said)


def _run(command: list[str], environment: Mapping[str, str], stdin: str | None = None) -> str:
    done = subprocess.run(
        command, input=stdin, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        words = " ".join([Path(command[0]).name, *command[1:]])
        raise KubeClusterError(f"`{words}` failed ({done.returncode}): {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
