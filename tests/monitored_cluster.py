"""A real Storm cluster with load, storm-operator standalone, and a real Prometheus that scrapes both, with the rules.

What no such run has, since it takes Kubernetes, comes from a small exporter: `PLAYED` says which series and why. So do
the figures of the pipeline's jobs: real ones, of runs that were kept (`pipeline_figures`). To run them here would take
minutes of both cores, which the cluster needs: of ten recorded minutes, ingest alone takes Spark over 100 s of CPU.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from eventually import eventually

from http_server import serving
from operator_scene import free_port
from pipeline_figures import pipeline_figures
from prometheus_server import PrometheusServer
from rule_files import all_rules, rule_files
from storm_by_hand import nothing_left_on
from storm_operator.local.cluster import LocalCluster

SCRAPE_SECONDS = 5.0
PLAN_MEASURED = 'storm_operator_last_plan_inter_supervisor_tuples_per_second{stage="measured"}'
RECORDED_PAIRS = "supervisors:storm_traffic_tuples:current"
PACKAGE = "dev.stormoperator.workloads"
TOPOLOGIES = {
    "wordcount": ("WordCount", "sine:30..90/90s", ["--workers", "3", "--parallelism", "split=2,count=2"]),
    "chain": (
        "ReferenceChain",
        "steady:30",
        ["--workers", "2", "--stages", "3", "--parallelism", "spout=1,simple=1,stateful=1,ack=1"],
    ),
}

PLAYED = {
    "storm_operator_pod_resizes_total": "there are no pods to resize outside Kubernetes",
    "storm_operator_pod_resize_problems": "likewise, and only while a node has no room",
    "storm_operator_watch_age_seconds": "there are no watches outside Kubernetes",
    "storm_operator_omitted_series": "only a cluster with thousands of executors has more series than the bounds",
}
"""Metrics that a small cluster without Kubernetes never has, and why: a played exporter serves them."""


@dataclass(frozen=True, slots=True)
class MonitoredCluster:
    """Where to ask, where the operator's page is, and what the operator has said so far."""

    prometheus: PrometheusServer
    page_url: str
    log: Path
    topologies: Path
    jar: Path

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def crossing_is_recorded(self) -> bool:
        """Whether the rule of once a minute has seen traffic between two supervisors."""
        found = self.prometheus.query(RECORDED_PAIRS)
        return any(labels["source"] != labels["target"] and rate > 0.0 for labels, rate in found)

    def describe(self, mode: str) -> None:
        """The topologies' files, new or changed, each in one step."""
        for name in TOPOLOGIES:
            fresh = self.topologies / f"{name}.new"
            fresh.write_text(yaml.safe_dump(description(name, self.jar, mode)))
            fresh.replace(self.topologies / f"{name}.yaml")


@contextmanager
def monitored(storm: LocalCluster, jar: Path, folder: Path) -> Iterator[MonitoredCluster]:
    """Both topologies watched (mode Observe) and scraped, until the block ends; nothing is left on `storm` then."""
    topologies = folder / "topologies"
    topologies.mkdir(parents=True)
    port, page_port = free_port(), free_port()
    log = folder / "operator.log"
    started = time.monotonic()
    of_jobs = pipeline_figures(time.time())
    with serving(lambda path: played(path, time.monotonic() - started, of_jobs)) as played_url:
        agents = [machine.agent_address for machine in storm.machines]
        config = prometheus_config(agents, f"127.0.0.1:{port}", played_url.removeprefix("http://"))
        with PrometheusServer(folder, config) as prometheus, nothing_left_on(storm):
            cluster = MonitoredCluster(prometheus, f"http://127.0.0.1:{page_port}/", log, topologies, jar)
            cluster.describe("Observe")
            with operator(storm, topologies, port, page_port, log):
                yield cluster


def description(name: str, jar: Path, mode: str) -> dict[str, Any]:
    main_class, rate, args = TOPOLOGIES[name]
    full_args = ["--name", name, "--rate", rate, *args]
    return {
        "apiVersion": "storm-operator.dev/v1alpha1",
        "kind": "StormTopology",
        "metadata": {"name": name},
        "spec": {
            "jar": {"path": str(jar), "mainClass": f"{PACKAGE}.{main_class}", "args": full_args},
            "scheduling": {
                "mode": mode,
                "periodSeconds": 5,
                "coolDownSeconds": 120,
                "settlingSeconds": 6,
                "maximumAgeSeconds": 60,
            },
            "resources": {"thetaMillicores": 50, "floorMillicores": 50},
        },
    }


def prometheus_config(agents: list[str], operator_address: str, played_address: str) -> dict[str, Any]:
    def job(name: str, targets: list[str]) -> dict[str, Any]:
        return {"job_name": name, "static_configs": [{"labels": {"cluster": "storm"}, "targets": targets}]}

    every = f"{SCRAPE_SECONDS:.0f}s"
    return {
        "global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
        "rule_files": [str(file) for file in rule_files()],
        "scrape_configs": [
            job("storm-agents", agents),
            job("storm-operator", [operator_address]),
            job("played", [played_address]),
        ],
    }


@contextmanager
def operator(storm: LocalCluster, topologies: Path, port: int, page_port: int, log: Path) -> Iterator[None]:
    """`storm-operator standalone` as its own process."""
    host, nimbus_port = storm.nimbus
    command = [sys.executable, "-m", "storm_operator", "standalone", str(topologies)]
    command += ["--nimbus", f"{host}:{nimbus_port}", "--zookeeper", storm.zookeeper]
    command += ["--metrics-port", str(port), "--page-port", str(page_port)]
    command += ["--storm-home", str(storm.storm_home), "--storm-conf-dir", str(storm.conf_dir)]
    for machine in storm.machines:
        command += ["--agent", f"{machine.host}={machine.agent_url}"]
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=10)


def wait_for_a_verified_plan(cluster: MonitoredCluster, seconds: float = 300.0) -> None:
    """Until the first plan was measured to have helped, and Prometheus knows that and what all rules make of it.

    No plan is made before traffic between supervisors was recorded: a plan ends it, often within the minute after which
    the rule looks again, and nothing would be seen of it.
    """
    eventually(cluster.crossing_is_recorded, "traffic between supervisors is recorded", seconds)
    cluster.describe("Enforce")
    eventually(
        lambda: "Verified" in cluster.said(), f"a plan is verified; the operator said:\n{cluster.said()}", seconds
    )
    wanted = [PLAN_MEASURED, *(rule.name for rule in all_rules() if not rule.is_alert)]
    eventually(
        lambda: all(cluster.prometheus.query(expression) for expression in wanted),
        f"Prometheus knows all of {', '.join(wanted)}",
    )


def played(path: str, seconds: float, of_jobs: list[str]) -> tuple[int, bytes]:
    """What the exporter beside the cluster answers after so many seconds."""
    if path != "/metrics":
        return 404, b""
    lines = [
        f'storm_operator_pod_resizes_total{{nimbus="played",outcome="asked"}} {seconds // 20:.0f}',
        f'storm_operator_pod_resizes_total{{nimbus="played",outcome="refused"}} {seconds // 90:.0f}',
        f'storm_operator_pod_resize_problems{{nimbus="played",reason="Deferred"}} {int(seconds) // 60 % 2}',
        f'storm_operator_watch_age_seconds{{kind="StormTopologies"}} {seconds % 12:.1f}',
        f'storm_operator_watch_age_seconds{{kind="StormRebalances"}} {seconds % 17:.1f}',
        'storm_operator_omitted_series{nimbus="played",metric="storm_operator_executor_cpu_demand_cores"} 120',
    ]
    return 200, "\n".join([*lines, *of_jobs, ""]).encode()
