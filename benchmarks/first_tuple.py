"""From `kubectl apply` to the first acked tuple, against the same topology submitted by hand: on a real node.

By hand is what `storm jar` does (one JVM that runs the main class), started by `kubectl exec` in a pod of the same
image that runs already, so no pod has to start for it. A third way is by hand, too, with workers whose Java finds its
own classes parsed, as each Java does, but not Storm's, which Storm's image has parsed. All take turns. The operator has
another resource to look after at its default period, and each turn begins at another moment of that period. Agents
count acked tuples every second, for all alike. The last line is JSON; figures are seconds since the command was given.
"""

from __future__ import annotations

import json
import random
import statistics
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import requests
import typer
from eventually import eventually
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from kube_cluster import KubeCluster
from kube_cluster.images import build_project_images
from storm_on_node import CLIENT, NAMESPACE, StormOnNode, word_count
from storm_operator.adapters.nimbus.client import NimbusClient
from storm_operator.local.jvm import log_writer_options
from storm_operator.local.storm_config import FEW_CORES

BY_HAND, PARSED_ANEW, APPLY = "by hand", "by hand, parsed anew", "kubectl apply"
NAMES = {BY_HAND: "hand", PARSED_ANEW: "anew", APPLY: "apply"}
JAVAS_OWN_CLASSES = "/usr/lib/jvm/java-17-openjdk-*/lib/server/classes.jsa"
"""In the Storm image; its folder names the kind of processor, too."""

PERIOD_SECONDS = 10.0
POLL_SECONDS = 0.2
AGENT_PORT = 9464
SUPERVISORS = 2


@dataclass(frozen=True, slots=True)
class Turn:
    """Seconds since the command: until Nimbus knew the topology, and until a tuple of it had been acked."""

    submitted: float
    first_tuple: float


def main(turns: int = 8) -> None:
    """Take `turns` turns each way."""
    console = Console(stderr=True)
    phases = random.Random(1)
    measured: dict[str, list[Turn]] = {way: [] for way in NAMES}
    archives = build_project_images(console.log)
    with KubeCluster("first-tuple", node=True) as kube:
        for archive in archives.values():
            kube.load_image(archive)
        storm = StormOnNode(kube)
        storm.install(SUPERVISORS, waits=FEW_CORES)
        storm.apply(_resident())
        eventually(lambda: storm.status("resident").get("phase") == "Pending", "the operator's loop runs")
        with storm.client(), storm.nimbus() as nimbus:
            parsed_anew = _parsed_anew(storm)
            for turn in range(turns):
                for way in sorted(NAMES, reverse=bool(turn % 2)):
                    time.sleep(phases.uniform(0.0, PERIOD_SECONDS))
                    name = f"{NAMES[way]}-{turn}"
                    conf = parsed_anew if way == PARSED_ANEW else {}
                    measured[way].append(_take_turn(storm, nimbus, name, partial(_start, storm, way, name, conf)))
                    console.log(f"{way}: {measured[way][-1]}")
    print(json.dumps(_report(measured)))


def _report(measured: dict[str, list[Turn]]) -> dict[str, object]:
    medians = {way: statistics.median(turn.first_tuple for turn in turns) for way, turns in measured.items()}
    return {
        "turns": {way: [asdict(turn) for turn in turns] for way, turns in measured.items()},
        "median_first_tuple": medians,
        "median_extra": medians[APPLY] - medians[BY_HAND],
        "worst_extra": max(turn.first_tuple for turn in measured[APPLY]) - medians[BY_HAND],
        "median_parsing": medians[PARSED_ANEW] - medians[BY_HAND],
    }


def _take_turn(storm: StormOnNode, nimbus: NimbusClient, name: str, start: Callable[[], None]) -> Turn:
    began = time.monotonic()
    starting = threading.Thread(target=start)
    starting.start()
    eventually(lambda: nimbus.cluster_info().topology_named(name), f"{name} is submitted")
    submitted = time.monotonic() - began
    while not _acked(storm, name):
        if time.monotonic() - began > 120.0:
            raise SystemExit(f"{name}: no tuple was acked within 120 s\n{storm.logs()}")
        time.sleep(POLL_SECONDS)
    first_tuple = time.monotonic() - began
    starting.join()
    _end(storm, nimbus, name)
    return Turn(round(submitted, 1), round(first_tuple, 1))


def _start(storm: StormOnNode, way: str, name: str, conf: Mapping[str, str]) -> None:
    body = _topology(name)
    if way == APPLY:
        storm.apply(body)
    else:
        storm.submit_by_hand(body["spec"]["jar"], **conf)


def _parsed_anew(storm: StormOnNode) -> dict[str, str]:
    """What the chart sets, but for the image's archives. A topology's own options come last, and the last one holds."""
    find = ("exec", CLIENT, "-n", NAMESPACE, "--", "sh", "-c", f"echo {JAVAS_OWN_CLASSES}")
    option = f"-XX:SharedArchiveFile={storm.kube.kubectl(*find).strip()}"
    log_writer = " ".join(log_writer_options(option))
    return {"topology.worker.childopts": option, "topology.worker.logwriter.childopts": log_writer}


def _topology(name: str) -> dict[str, Any]:
    """With the operator's default period."""
    body = word_count(name)
    del body["spec"]["scheduling"]
    return body


def _resident() -> dict[str, object]:
    """One that adopts a topology which nobody submits: something to look after."""
    kind = {"apiVersion": "storm-operator.dev/v1alpha1", "kind": "StormTopology"}
    return {**kind, "metadata": {"name": "resident"}, "spec": {"adopt": {}}}


def _acked(storm: StormOnNode, name: str) -> bool:
    """Whether any agent has counted an acked tuple of the topology."""
    return any(_acked_on(pod["status"].get("podIP", ""), name) for pod in storm.supervisors())


def _acked_on(address: str, name: str) -> bool:
    try:
        text = requests.get(f"http://{address}:{AGENT_PORT}/metrics", timeout=5).text
    except requests.RequestException:
        return False
    return any(
        sample.value > 0
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "storm_executor_acked_tuples_total" and sample.labels["topology_id"].startswith(f"{name}-")
    )


def _end(storm: StormOnNode, nimbus: NimbusClient, name: str) -> None:
    """Both ways leave a free cluster to the next turn."""
    if storm.status(name):
        storm.kube.kubectl("delete", "stormtopology", name, "-n", NAMESPACE, "--timeout=120s")
    else:
        nimbus.kill(name)
    eventually(lambda: nimbus.cluster_info().topology_named(name) is None, f"{name} is gone")
    eventually(lambda: not _acked(storm, name), f"no agent knows {name} any more")


if __name__ == "__main__":
    typer.run(main)
