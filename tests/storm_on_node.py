"""Storm and the operator on the test node, installed as a user would: helm install, kubectl apply."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from eventually import eventually

from kube_cluster import KubeCluster
from storm_operator.adapters.nimbus.client import NimbusClient
from storm_operator.adapters.submission import storm_options
from storm_operator.local.paths import repository_root
from storm_operator.local.storm_config import FEW_CORES, SELDOM_AWAKE

STORM, OPERATOR = "storm", "storm-operator"
NAMESPACE = "storm"
OPERATOR_NAMESPACE = "storm-operator"
NIMBUS = f"{STORM}-nimbus.{NAMESPACE}:6627"
SUPERVISORS = "app.kubernetes.io/name=storm,app.kubernetes.io/component=supervisor"
CLIENT = "client"
INSTALL_TIMEOUT = "--timeout=600s"


@dataclass(frozen=True, slots=True)
class StormOnNode:
    """What a user has: the cluster, kubectl and helm."""

    kube: KubeCluster

    def install(
        self,
        supervisors: int = 3,
        storm_values: Mapping[str, str] = MappingProxyType({}),
        waits: Mapping[str, Any] = MappingProxyType({**FEW_CORES, **SELDOM_AWAKE}),
    ) -> None:
        """Both charts, with the images that were loaded into the node. `waits`: how executors do that, of Storm's conf;
        usually as those whose latency nobody looks at."""
        root = repository_root()
        assert root is not None
        own = {"image.pullPolicy": "Never", "supervisor.replicas": str(supervisors)}
        # Small, so that everything fits into a machine of two cores.
        small = {
            "supervisor.workerHeapMb": "96",
            "supervisor.resources.requests.cpu": "50m",
            "supervisor.resources.requests.memory": "256Mi",
            "supervisor.scaling.enabled": "true",
            "supervisor.scaling.maxReplicas": str(supervisors),
        }
        values = {**own, **small, **in_storm_yaml(waits), **storm_values}
        self._helm_install(STORM, root / "charts" / "storm", NAMESPACE, values)
        operator = {
            "image.pullPolicy": "Never",
            "submission.image.pullPolicy": "Never",
            "nimbus": NIMBUS,
        }
        self._helm_install(OPERATOR, root / "charts" / "storm-operator", OPERATOR_NAMESPACE, operator)
        # Pods are ready before Nimbus has heard of their supervisors. A topology that is submitted then lands on those
        # that it knows, and there may be nothing to plan.
        with self.nimbus() as nimbus:
            eventually(lambda: len(nimbus.cluster_info().supervisors) == supervisors, "Nimbus knows all supervisors")

    def uninstall(self) -> None:
        self.kube.helm("uninstall", OPERATOR, "-n", OPERATOR_NAMESPACE, "--ignore-not-found", "--wait", INSTALL_TIMEOUT)
        self.kube.helm("uninstall", STORM, "-n", NAMESPACE, "--ignore-not-found", "--wait", INSTALL_TIMEOUT)

    def apply(self, body: Mapping[str, Any]) -> None:
        self.kube.kubectl("apply", "-n", NAMESPACE, "-f", "-", input=json.dumps(body))

    def patch(self, name: str, spec: Mapping[str, Any]) -> None:
        patch = json.dumps({"spec": spec})
        self.kube.kubectl("patch", "stormtopology", name, "-n", NAMESPACE, "--type=merge", f"--patch={patch}")

    def all(self, kind: str, labels: str = "", namespace: str = NAMESPACE) -> list[dict[str, Any]]:
        return self.kube.objects(kind, namespace, labels)

    def status(self, name: str) -> dict[str, Any]:
        found = [body for body in self.all("stormtopologies") if body["metadata"]["name"] == name]
        return dict(found[0].get("status") or {}) if found else {}

    def is_ready(self, name: str) -> bool:
        conditions = self.status(name).get("conditions", ())
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    def rebalances(self, state: str) -> list[dict[str, Any]]:
        return [b for b in self.all("stormrebalances") if (b.get("status") or {}).get("state") == state]

    def supervisors(self) -> list[dict[str, Any]]:
        """The supervisor pods that are not being deleted."""
        pods = self.all("pods", SUPERVISORS)
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def wanted_millicores(self) -> dict[str, int]:
        """The CPU limit that each supervisor pod's spec asks for."""
        return {
            pod["metadata"]["name"]: _millicores(container["resources"]["limits"]["cpu"])
            for pod in self.supervisors()
            for container in pod["spec"]["containers"]
            if container["name"] == "supervisor"
        }

    def quota_millicores(self, pod: str) -> int:
        """The CPU limit that the kernel holds the pod's workers to."""
        cgroup = self.kube.node.container_cgroup(NAMESPACE, pod, "supervisor")
        return cgroup_millicores(cgroup)

    @contextmanager
    def client(self) -> Iterator[None]:
        """A pod of Storm's image that does nothing, for `submit_by_hand`."""
        image = ("--image=localhost/storm:dev", "--image-pull-policy=Never", "--restart=Never")
        overrides = json.dumps({"spec": {"terminationGracePeriodSeconds": 1}})
        command = (f"--overrides={overrides}", "--command", "--", "sleep", "infinity")
        self.kube.kubectl("run", CLIENT, "-n", NAMESPACE, *image, *command)
        try:
            self.kube.kubectl("wait", "--for=condition=Ready", f"pod/{CLIENT}", "-n", NAMESPACE, "--timeout=120s")
            yield
        finally:
            self.kube.kubectl("delete", "pod", CLIENT, "-n", NAMESPACE)

    def submit_by_hand(self, jar: Mapping[str, Any], **conf: Any) -> None:
        """What `storm jar` does: one JVM that runs the main class. `jar` as in a StormTopology's spec; `conf`: the
        topology's own settings."""
        host, _, port = NIMBUS.partition(":")
        properties = {
            "storm.home": "/opt/storm",
            "storm.jar": jar["path"],
            "storm.options": storm_options({"nimbus.seeds": [host], "nimbus.thrift.port": int(port), **conf}),
            "storm.conf.file": "",
            "storm.dependency.jars": "",
            "storm.dependency.artifacts": "{}",
        }
        self.kube.kubectl(
            *("exec", CLIENT, "-n", NAMESPACE, "--", "java", "-Xmx256m", "-XX:+UseSerialGC"),
            *("-XX:TieredStopAtLevel=1", *(f"-D{key}={value}" for key, value in properties.items()), "-cp"),
            *(f"/opt/storm/lib-worker/*:/opt/storm/extlib/*:{jar['path']}", jar["mainClass"], *jar["args"]),
        )

    @contextmanager
    def nimbus(self) -> Iterator[NimbusClient]:
        """From this machine, at its pod's address."""
        (pod,) = self.all("pods", "app.kubernetes.io/component=nimbus")
        client = NimbusClient([f"{pod['status']['podIP']}:6627"])
        try:
            yield client
        finally:
            client.close()

    def logs(self) -> str:
        """What the operator said, for a test that failed."""
        return self.kube.kubectl("logs", "-n", OPERATOR_NAMESPACE, f"deployment/{OPERATOR}", "--tail=60")

    def _helm_install(self, release: str, chart: Path, namespace: str, values: Mapping[str, str]) -> None:
        settings = [f"--set={key}={value}" for key, value in values.items()]
        # Not `install`, which refuses the name while a release is there that did not come up in time.
        self.kube.helm(
            *("upgrade", "--install", release, str(chart), "-n", namespace, "--create-namespace"),
            *("--wait", INSTALL_TIMEOUT, *settings),
        )


def in_storm_yaml(conf: Mapping[str, Any]) -> dict[str, str]:
    """Storm's own settings as values of its chart; a dot in a key is not one between keys."""
    return {"config." + key.replace(".", "\\."): str(value) for key, value in conf.items()}


def word_count(name: str, rate: int = 60, options: Sequence[str] = (), **spec: Any) -> dict[str, Any]:
    """A WordCount from the Storm image's jar, managed in short periods. `options`: more of its command line."""
    args = ["--name", name, "--rate", f"steady:{rate}", "--parallelism", "split=2,count=2", "--workers", "2"]
    scheduling = {"periodSeconds": 5, "settlingSeconds": 10, "rollbackMarginPercent": 10_000}
    return {
        "apiVersion": "storm-operator.dev/v1alpha1",
        "kind": "StormTopology",
        "metadata": {"name": name},
        "spec": {
            "jar": {
                "path": "/opt/storm/examples/workloads.jar",
                "mainClass": "dev.stormoperator.workloads.WordCount",
                "args": [*args, *options],
            },
            "resources": {"thetaMillicores": 50, "floorMillicores": 50, "enforcement": "Pod"},
            **spec,
            "scheduling": scheduling | spec.get("scheduling", {}),
        },
    }


def cgroup_millicores(cgroup: Path) -> int:
    """The CPU limit of a cgroup, version 1 or 2; 0 when there is none."""
    if (cgroup / "cpu.max").exists():
        quota, period = (cgroup / "cpu.max").read_text().split()
    else:
        quota, period = ((cgroup / f"cpu.cfs_{name}_us").read_text().strip() for name in ("quota", "period"))
    return 0 if quota in ("max", "-1") else round(1000 * int(quota) / int(period))


def _millicores(quantity: str) -> int:
    return int(quantity[:-1]) if quantity.endswith("m") else round(1000 * float(quantity))
