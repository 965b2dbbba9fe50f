"""A real Storm cluster with load, storm-operator standalone, and a real Prometheus that scrapes both, with the rules.

What no such run has, since it takes Kubernetes or a day of history, comes from a small exporter: `PLAYED` says which
series and why. The pipeline's figures are written by the pipeline's own code.
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
from prometheus_server import PrometheusServer
from rule_files import rule_files
from storm_by_hand import nothing_left_on
from storm_operator.local.cluster import LocalCluster
from storm_pipeline.metrics import JobFigures, write

SCRAPE_SECONDS = 5.0
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
    """Where to ask, and what the operator has said so far."""

    prometheus: PrometheusServer
    log: Path

    def said(self) -> str:
        return self.log.read_text(errors="replace")


@contextmanager
def monitored(storm: LocalCluster, jar: Path, folder: Path) -> Iterator[MonitoredCluster]:
    """Both topologies managed and scraped, until the block ends; nothing is left on `storm` then."""
    topologies = folder / "topologies"
    topologies.mkdir(parents=True)
    for name in TOPOLOGIES:
        (topologies / f"{name}.yaml").write_text(yaml.safe_dump(description(name, jar)))
    port = free_port()
    log = folder / "operator.log"
    started = time.monotonic()
    write_pipeline_figures(folder / "pipeline")
    with serving(lambda path: played(path, time.monotonic() - started, folder / "pipeline")) as played_url:
        agents = [machine.agent_address for machine in storm.machines]
        config = prometheus_config(agents, f"127.0.0.1:{port}", played_url.removeprefix("http://"))
        with (
            PrometheusServer(folder, config) as prometheus,
            nothing_left_on(storm),
            operator(storm, topologies, port, log),
        ):
            yield MonitoredCluster(prometheus, log)


def description(name: str, jar: Path) -> dict[str, Any]:
    main_class, rate, args = TOPOLOGIES[name]
    full_args = ["--name", name, "--rate", rate, *args]
    return {
        "apiVersion": "storm-operator.dev/v1alpha1",
        "kind": "StormTopology",
        "metadata": {"name": name},
        "spec": {
            "jar": {"path": str(jar), "mainClass": f"{PACKAGE}.{main_class}", "args": full_args},
            "scheduling": {
                "mode": "Enforce",
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
def operator(storm: LocalCluster, topologies: Path, port: int, log: Path) -> Iterator[None]:
    """`storm-operator standalone` as its own process."""
    host, nimbus_port = storm.nimbus
    command = [sys.executable, "-m", "storm_operator", "standalone", str(topologies)]
    command += ["--nimbus", f"{host}:{nimbus_port}", "--zookeeper", storm.zookeeper, "--metrics-port", str(port)]
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
    """Until the first plan was measured to have helped, and two more periods went by."""
    eventually(
        lambda: "Verified" in cluster.said(), f"a plan is verified; the operator said:\n{cluster.said()}", seconds
    )
    time.sleep(4 * SCRAPE_SECONDS)


def played(path: str, seconds: float, pipeline: Path) -> tuple[int, bytes]:
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
    texts = [file.read_text() for file in sorted(pipeline.glob("*.prom"))]
    # As node exporter does: the same metric from several files becomes one.
    seen: set[str] = set()
    for line in "".join(texts).splitlines():
        if not line.startswith("#"):
            lines.append(line)
        elif line not in seen:
            seen.add(line)
    return 200, "\n".join([*lines, ""]).encode()


def write_pipeline_figures(folder: Path) -> None:
    """Three jobs as they ran last night, one of them with rows that broke a rule."""
    now = time.time()
    tables = ("executors", "traffic", "plans")
    write(
        folder,
        JobFigures(
            name="ingest",
            started_at_seconds=now - 3_700,
            ended_at_seconds=now - 3_612,
            succeeded=True,
            rows={
                (t, kind): n for t in tables for kind, n in (("read", 90_000), ("written", 89_400), ("duplicate", 560))
            }
            | {("traffic", "quarantined"): 40.0},
            quarantined={("traffic", "negative_count"): 31.0, ("traffic", "unknown_task"): 9.0},
            newest_row_at={(t,): now - 3_700 for t in tables},
            table_bytes={(t,): 4e6 * (1 + place) for place, t in enumerate(tables)},
        ),
    )
    write(
        folder,
        JobFigures(
            name="profile",
            started_at_seconds=now - 3_600,
            ended_at_seconds=now - 3_541,
            succeeded=True,
            rows={("component_profile", "written"): 340.0, ("restarts", "written"): 3.0},
            table_bytes={("component_profile",): 2.4e5, ("restarts",): 2e4},
            profiles_made_at={(topology,): now - 3_541 for topology in TOPOLOGIES},
        ),
    )
    write(
        folder,
        JobFigures(
            name="forecast",
            started_at_seconds=now - 3_500,
            ended_at_seconds=now - 3_371,
            succeeded=True,
            rows={("forecast_errors", "written"): 96.0, ("seasons", "written"): 16.0},
            table_bytes={("forecast_errors",): 6e4, ("seasons",): 9e4},
            forecast_errors={
                (topology, model): error
                for topology in TOPOLOGIES
                for model, error in (("Line", 0.21), ("DampedTrend", 0.14), ("Seasonal", 0.06))
            },
        ),
    )
