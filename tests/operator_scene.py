"""The operator as its own process, between a real API server and a real Storm cluster. Only the kubelet is played."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
from eventually import eventually

from kube_cluster import KubeCluster, KubeClusterError
from storm_operator.kube.rebalances import ASK_ANNOTATION, FINAL_STATES
from storm_operator.kube.submission import REQUEST_VARIABLE
from storm_operator.local.cluster import LocalCluster

POLL_SECONDS = 0.5
WORD_COUNT = "dev.stormoperator.workloads.WordCount"
SUBMISSION_SECONDS = 300.0
DYING_OPERATOR = Path(__file__).with_name("dying_operator.py")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def word_count_args(name: str, rate: int = 60) -> list[str]:
    return ["--name", name, "--rate", f"steady:{rate}", "--parallelism", "split=2,count=2", "--workers", "2"]


@dataclass
class PlayedKubelet:
    """Runs the pods of submission Jobs as processes here: there is no node. The Job controller does the rest."""

    kube: KubeCluster
    namespace: str
    storm_home: Path
    started: list[str] = field(default_factory=list)
    _phases: dict[str, str] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> PlayedKubelet:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(POLL_SECONDS):
            try:
                self._play_what_is_pending()
            except (KubeClusterError, OSError, ValueError) as trouble:
                # Not the end of this thread: all later tests would wait for pods that nobody plays.
                sys.stdout.write(f"the played kubelet: {trouble!r}\n")

    def _play_what_is_pending(self) -> None:
        for pod in self.kube.objects("pods", self.namespace, labels="job-name"):
            if pod["status"]["phase"] == "Pending":
                self._play(pod)

    def _play(self, pod: Mapping[str, Any]) -> None:
        """Run the pod unless it has run; how that ended is told again while the API server has not taken it."""
        name = pod["metadata"]["name"]
        if name not in self.started:
            self.started.append(name)
            self._phases[name] = "Succeeded" if self._succeeds(pod) else "Failed"
        patch = json.dumps({"status": {"phase": self._phases.get(name, "Failed")}})
        self.kube.kubectl(
            "patch", "pod", name, "-n", self.namespace, "--subresource=status", "--type=merge", "-p", patch
        )

    def _succeeds(self, pod: Mapping[str, Any]) -> bool:
        container = pod["spec"]["containers"][0]
        (request,) = [entry["value"] for entry in container["env"] if entry["name"] == REQUEST_VARIABLE]
        command = [sys.executable, "-m", "storm_operator", *container["command"][1:]]
        environment = os.environ | {REQUEST_VARIABLE: request, "STORM_HOME": str(self.storm_home)}
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, check=False, timeout=SUBMISSION_SECONDS
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0


@dataclass
class OperatorProcess:
    """`storm-operator run`, watching one namespace; `dies_at` names a moment, see dying_operator.py."""

    kube: KubeCluster
    namespace: str
    log: Path
    kubeconfig: Path | None = None
    dies_at: str | None = None
    lease: str = "storm-operator"
    options: Sequence[str] = ()
    health_port: int = field(default_factory=free_port)
    metrics_port: int = field(default_factory=free_port)
    page_port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> OperatorProcess:
        self.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.end(signal.SIGTERM)
        sys.stdout.write(self.said())  # pytest shows it where the test failed

    def start(self) -> None:
        program = ["-m", "storm_operator"] if self.dies_at is None else [str(DYING_OPERATOR), self.dies_at]
        command = [sys.executable, *program, "run", "--watch-namespace", self.namespace]
        command += ["--kubeconfig", str(self.kubeconfig or self.kube.kubeconfig), "--lease-namespace", self.namespace]
        command += ["--lease-name", self.lease, "--deletion-patience-seconds", "20"]
        command += ["--health-port", str(self.health_port), "--metrics-port", str(self.metrics_port)]
        command += ["--page-port", str(self.page_port), *self.options]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def end(self, number: int) -> int | None:
        """Signal it and wait; its exit code."""
        if self.process is None:
            return None
        self.process.send_signal(number)
        code = self.process.wait(timeout=60)
        self.process = None
        return code

    def passes(self) -> float:
        """Of all loops, since it started."""
        text = requests.get(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=10).text
        return sum(
            float(line.split()[-1]) for line in text.splitlines() if line.startswith("storm_operator_passes_total")
        )

    @property
    def page(self) -> str:
        return f"http://127.0.0.1:{self.page_port}"

    def wait_for_passes(self, count: int) -> None:
        """Until so many more passes are over."""
        before = self.passes()
        deadline = time.monotonic() + 120.0
        while self.passes() <= before + count:
            assert time.monotonic() < deadline, "the loop makes no passes"
            time.sleep(POLL_SECONDS)

    @property
    def has_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def said(self) -> str:
        return self.log.read_text(errors="replace")


@dataclass
class Scene:
    """Shortcuts for one namespace."""

    kube: KubeCluster
    storm: LocalCluster
    namespace: str
    jar: Path

    @property
    def nimbus(self) -> str:
        host, port = self.storm.nimbus
        return f"{host}:{port}"

    def topology(self, name: str, *, rate: int = 60, **spec: Any) -> dict[str, Any]:
        """A WordCount as a resource, that can be changed before it is applied."""
        args = word_count_args(name, rate)
        # On a busy machine latency says little about a plan: these tests are about what is done with it.
        quick = {"periodSeconds": 2, "settlingSeconds": 4, "coolDownSeconds": 0, "rollbackMarginPercent": 10_000}
        scheduling = quick | spec.pop("scheduling", {})
        jar = {"path": str(self.jar), "mainClass": WORD_COUNT, "args": args}
        return {
            "apiVersion": "storm-operator.dev/v1alpha1",
            "kind": "StormTopology",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "nimbus": self.nimbus,
                **({} if {"adopt", "flux"} & spec.keys() else {"jar": jar}),
                "killWaitSeconds": 1,
                "scheduling": scheduling,
                "resources": {"thetaMillicores": 50, "floorMillicores": 50},
                **spec,
            },
        }

    def apply(self, body: Mapping[str, Any]) -> None:
        self.kube.kubectl("apply", "--validate=strict", "-f", "-", input=json.dumps(body))

    def get(self, kind: str, name: str) -> dict[str, Any] | None:
        found = [body for body in self.all(kind) if body["metadata"]["name"] == name]
        return found[0] if found else None

    def all(self, kind: str) -> list[dict[str, Any]]:
        return sorted(self.kube.objects(kind, self.namespace), key=lambda body: str(body["metadata"]["name"]))

    def status(self, name: str) -> dict[str, Any]:
        body = self.get("stormtopologies", name)
        return dict(body.get("status") or {}) if body else {}

    def condition(self, name: str, kind: str) -> dict[str, str]:
        conditions = self.status(name).get("conditions", ())
        return next((c for c in conditions if c["type"] == kind), {})

    def rebalances(self, state: str | None = None) -> list[dict[str, Any]]:
        """All, or those `in_state`."""
        found = self.all("stormrebalances")
        return found if state is None else in_state(found, state)

    def annotate(self, kind: str, name: str, annotation: str) -> None:
        self.kube.kubectl("annotate", "--overwrite", kind, name, annotation, "-n", self.namespace)

    def delete(self, name: str) -> None:
        self.kube.kubectl("delete", "stormtopology", name, "-n", self.namespace, "--wait=false")

    def forget_plans(self) -> None:
        self.kube.kubectl("delete", "stormrebalances", "--all", "-n", self.namespace)

    def clear(self) -> None:
        """Delete what a test that failed has left, and wait until it is gone. Takes an operator that runs."""
        for left in self.all("stormtopologies"):
            self.delete(left["metadata"]["name"])
        eventually(lambda: not self.all("stormtopologies"), "no StormTopology is left")
        self.forget_plans()  # those that no StormTopology owns stay otherwise
        eventually(lambda: not self.rebalances(), "no StormRebalance is left")

    def events(self, name: str, reason: str) -> list[dict[str, Any]]:
        """Those about the StormTopology that is there now, not about an earlier one of that name."""
        body = self.get("stormtopologies", name)
        if body is None:
            return []
        uid = body["metadata"]["uid"]
        seen = self.kube.objects("events", self.namespace)
        about = [event for event in seen if (event.get("involvedObject") or {}).get("uid") == uid]
        return [event for event in about if event.get("reason") == reason]

    def told(self) -> str:
        """All that its StormTopologies and StormRebalances say of themselves: why a test waits in vain."""
        bodies = [*self.all("stormtopologies"), *self.all("stormrebalances")]
        return "\n".join(f"{body['metadata']['name']}: {json.dumps(body.get('status'))}" for body in bodies)

    def is_gone(self, name: str) -> bool:
        return self.get("stormtopologies", name) is None


@dataclass
class Approver:
    """Approves plans that wait, one after the other: while loads settle one supersedes the other before its approval is
    heard. What is proposed while an approved one settles would, if approved, be begun as soon as that one is verified.
    """

    scene: Scene
    approved: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By name: each as it was when it was approved."""

    def approve(self) -> None:
        self._approve_one_of(self.scene.rebalances())

    def rebalances(self, state: str) -> list[dict[str, Any]]:
        """Those in that state; while there are none, what waits is approved."""
        seen = self.scene.rebalances()
        found = in_state(seen, state)
        if not found:
            self._approve_one_of(seen)
        return found

    def _approve_one_of(self, seen: Sequence[dict[str, Any]]) -> None:
        under_way = [body for body in seen if body["status"]["state"] not in FINAL_STATES]
        if any(body["metadata"]["name"] in self.approved for body in under_way):
            return
        for body in in_state(seen, "Proposed")[:1]:
            name = body["metadata"]["name"]
            self.approved[name] = body
            self.scene.annotate("stormrebalance", name, f"{ASK_ANNOTATION}=approve")


def in_state(rebalances: Sequence[dict[str, Any]], state: str) -> list[dict[str, Any]]:
    """Those whose status was written and has that state: before it is, the CRD's default is `Proposed`."""
    return [body for body in rebalances if body["status"]["state"] == state and "message" in body["status"]]
