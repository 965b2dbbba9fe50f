"""What more StormTopologies and more supervisor pods cost: memory, API calls, status writes at rest, CPU.

A real API server, whose audit log tells what the operator asks of it; pods played by KWOK, as many as resources; one
real Storm without topologies, so that every pass goes all the way, and one that is not there. Every resource adopts a
topology that does not run. For each number of resources a fresh operator in a fresh namespace. The last line is JSON.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer
from many_resources import ABSENT_NIMBUS, START_SECONDS, bodies, create_resources, wait_until_all_have_status
from rich.console import Console

from kube_cluster import KubeCluster
from kube_cluster.audit import Call
from kube_cluster.kwok import PlayedNodes
from operator_scene import OperatorProcess
from storm_operator.local.build import plugin_jar
from storm_operator.local.cluster import LocalCluster
from storm_operator.local.paths import repository_root
from storm_operator.local.spec import LocalClusterSpec

ACCOUNT = "operator"
PODS_PER_NODE = 100
QUIET_SECONDS = 25.0
"""Longer than two passes of the loop: what is not written within that is not written for what was created."""
PATIENCE_SECONDS = 300.0
WRITES = ("create", "update", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one operator with `resources` StormTopologies and as many supervisor pods.

    `calls_to_settle` are all API calls from its start until nothing more was written; the figures at rest are of
    `rest_seconds` after that. `never_looked_at` are resources that still have their very first status then.
    """

    nimbus: str
    resources: int
    seconds_to_status: float
    memory_mb_without: float
    memory_mb_with: float
    calls_to_settle: int
    rest_seconds: float
    calls_at_rest: int
    status_writes_at_rest: int
    never_looked_at: int
    cpu_percent_at_rest: float


def main(
    sizes: Annotated[str, typer.Option(help="Numbers of resources, and of pods.")] = "250,500,1000",
    rest_seconds: float = 60.0,
    absent: Annotated[bool, typer.Option(help="Also with a Nimbus that is not there, for the largest number.")] = True,
) -> None:
    """Measure each number of resources in turn."""
    console = Console(stderr=True)
    numbers = [int(size) for size in sizes.split(",")]
    root = repository_root()
    assert root is not None
    spec = LocalClusterSpec(name="growth", machines=1, subnet="10.96.0.0/24", plugin_jar=plugin_jar())
    costs: list[Cost] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        KubeCluster("growth", audit=True) as kube,
        LocalCluster(spec) as storm,
        PlayedNodes(kube, max(numbers) // PODS_PER_NODE + 1) as nodes,
    ):
        kube.install_crds(root / "crds")
        nimbus = "{}:{}".format(*storm.nimbus)
        cases = [("real", nimbus, number) for number in numbers]
        cases += [("absent", ABSENT_NIMBUS, max(numbers))] if absent else []
        for kind, address, number in cases:
            costs.append(_measure(kube, nodes, kind, address, number, rest_seconds, Path(folder)))
            console.log(costs[-1])
    print(json.dumps({"costs": [asdict(cost) for cost in costs], "growth": growth(costs)}))


def growth(costs: list[Cost]) -> dict[str, float]:
    """Of the smallest to the largest number with a real Nimbus: how much more of each there is, per resource.

    1 is linear growth, less is slower.
    """
    real = sorted((cost for cost in costs if cost.nimbus == "real"), key=lambda cost: cost.resources)
    first, last = real[0], real[-1]
    more = last.resources / first.resources
    return {
        "resources": more,
        "memory": (last.memory_mb_with - last.memory_mb_without)
        / (first.memory_mb_with - first.memory_mb_without)
        / more,
        "calls_to_settle": last.calls_to_settle / first.calls_to_settle / more,
        "calls_at_rest": last.calls_at_rest / first.calls_at_rest / more,
    }


def _measure(
    kube: KubeCluster, nodes: PlayedNodes, kind: str, nimbus: str, number: int, rest_seconds: float, folder: Path
) -> Cost:
    namespace = f"{kind}-{number}"
    user = f"system:serviceaccount:{namespace}:{ACCOUNT}"
    nodes.add_pods(_prepared(kube, namespace), [_supervisor(ordinal) for ordinal in range(number)])
    kubeconfig = kube.service_account_kubeconfig(namespace, ACCOUNT)
    with OperatorProcess(kube, namespace, folder / f"{namespace}.log", kubeconfig) as operator:
        assert operator.process is not None
        process = psutil.Process(operator.process.pid)
        time.sleep(START_SECONDS)
        without_mb = process.memory_info().rss / 1e6
        began = time.monotonic()
        create_resources(kube, namespace, number, nimbus)
        wait_until_all_have_status(kube, namespace, number)
        seconds = time.monotonic() - began
        _wait_until_quiet(kube, user)
        settled, cpu = kube.audit_calls(user), _cpu_seconds(process)
        time.sleep(rest_seconds)
        cpu_percent = 100.0 * (_cpu_seconds(process) - cpu) / rest_seconds
        at_rest = kube.audit_calls(user)[len(settled) :]
        return Cost(
            nimbus=kind,
            resources=number,
            seconds_to_status=round(seconds, 1),
            memory_mb_without=round(without_mb, 1),
            memory_mb_with=round(process.memory_info().rss / 1e6, 1),
            calls_to_settle=len(settled),
            rest_seconds=rest_seconds,
            calls_at_rest=len(at_rest),
            status_writes_at_rest=sum(map(_writes_status, at_rest)),
            never_looked_at=sum(body["status"]["message"] == "accepted" for body in bodies(kube, namespace)),
            cpu_percent_at_rest=round(cpu_percent, 1),
        )


def _prepared(kube: KubeCluster, namespace: str) -> str:
    """A namespace with the operator's account, which may do everything in it."""
    kube.kubectl("create", "namespace", namespace)
    kube.kubectl("create", "serviceaccount", ACCOUNT, "-n", namespace)
    grant = ("--clusterrole=cluster-admin", f"--serviceaccount={namespace}:{ACCOUNT}")
    kube.kubectl("create", "rolebinding", ACCOUNT, *grant, "-n", namespace)
    return namespace


def _supervisor(ordinal: int) -> dict[str, Any]:
    """A pod as the storm chart's StatefulSet makes it, as far as the operator reads it."""
    labels = {"app.kubernetes.io/name": "storm", "app.kubernetes.io/component": "supervisor"}
    resources = {"limits": {"cpu": "1"}, "requests": {"cpu": "100m"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"storm-supervisor-{ordinal}",
            "labels": labels,
            "annotations": {"storm-operator.dev/cpu-capacity-millicores": "1000"},
        },
        "spec": {
            "subdomain": "storm-supervisor",
            "hostname": f"storm-supervisor-{ordinal}",
            "containers": [{"name": "supervisor", "image": "none", "resources": resources}],
            "tolerations": [{"operator": "Exists"}],
        },
    }


def _wait_until_quiet(kube: KubeCluster, user: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    before, since = -1, time.monotonic()
    while time.monotonic() - since < QUIET_SECONDS:
        written = sum(map(_writes_status, kube.audit_calls(user)))
        if written != before:
            before, since = written, time.monotonic()
        if time.monotonic() > deadline:
            raise SystemExit(f"{user} still writes statuses after {PATIENCE_SECONDS:.0f} s: {_summary(kube, user)}")
        time.sleep(1.0)


def _summary(kube: KubeCluster, user: str) -> str:
    counts = Counter(f"{call.verb} {call.what}" for call in kube.audit_calls(user))
    return ", ".join(f"{what} {count}" for what, count in counts.most_common())


def _writes_status(call: Call) -> bool:
    return call.verb in WRITES and call.what.startswith("storm")


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    typer.run(main)
