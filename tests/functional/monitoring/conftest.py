"""A Storm cluster, the operator as its own process, and a real Prometheus that scrapes both and knows the rules."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from eventually import eventually

from operator_scene import WORD_COUNT, free_port
from prometheus_server import Labels, PrometheusServer
from rule_files import rule_files, speed_up
from storm_by_hand import StormByHand
from storm_operator.local.cgroups import set_capacity
from storm_operator.local.cluster import LocalCluster

SPEED = 15.0
"""A scrape a second in place of one every 15 s, and everything in the rules as much faster."""
PATIENT_ALERTS = (
    "StormSupervisorOverloaded",
    "StormTopologyFailingTuples",
    "StormMetricsIncomplete",
    "StormWatchFrozen",
    "StormAgentMissing",
    "StormCpuResizeRefused",
)
"""They compare what is so now, and then wait: nothing real is shortened when they wait less."""
SPEEDS = {"StormPlacementFlapping": 4.0} | dict.fromkeys(PATIENT_ALERTS, 60.0)
"""Plans take the time that workers need to start, which nothing makes faster; and five are to fit into the window."""
LAST_LINES = 60
CLUSTER = "real"
PLAYED = "played"


@dataclass
class Watched:
    """The operator's process, and what Prometheus makes of it all."""

    storm: LocalCluster
    folder: Path
    jar: Path
    port: int
    prometheus: PrometheusServer
    process: subprocess.Popen[bytes] | None = None

    @property
    def has_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    @property
    def log(self) -> Path:
        return self.folder / "operator.log"

    def start_operator(self) -> None:
        host, port = self.storm.nimbus
        command = [sys.executable, "-m", "storm_operator", "standalone", str(self.folder)]
        command += ["--nimbus", f"{host}:{port}", "--zookeeper", self.storm.zookeeper]
        for machine in self.storm.machines:
            command += ["--agent", f"{machine.host}={machine.agent_url}"]
        command += ["--storm-home", str(self.storm.storm_home), "--storm-conf-dir", str(self.storm.conf_dir)]
        command += ["--metrics-port", str(self.port), "--page-port", "0"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

    def end_operator(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(timeout=10)
            self.process = None

    @contextmanager
    def manages(self, by_hand: StormByHand, name: str, args: list[str], **scheduling: Any) -> Iterator[None]:
        """The topology runs and is managed inside the block; nothing of it is left afterwards."""
        file = self._write(name, args, scheduling)
        try:
            eventually(lambda: by_hand.running(name) and by_hand.processes(name), f"{name} runs")
            yield
        finally:
            words = f"{file.name} is gone"
            before = self.said(words)
            file.unlink()
            eventually(lambda: self.has_ended or self.said(words) > before, f"{name} is let go")
            if by_hand.running(name) is not None:
                by_hand.kill(name)
            eventually(lambda: by_hand.running(name) is None, f"{name} is gone")

    def change(self, name: str, args: list[str], **scheduling: Any) -> None:
        """Other settings for a topology that is managed; in use when this returns."""
        words = f"{name}.yaml has changed and is followed"
        before = self.said(words)
        self._write(name, args, scheduling)
        eventually(lambda: self.said(words) > before, f"{name}'s new settings are in use")

    def _write(self, name: str, args: list[str], scheduling: dict[str, Any]) -> Path:
        """A topology's file, new or changed, in one step."""
        body = {
            "apiVersion": "storm-operator.dev/v1alpha1",
            "kind": "StormTopology",
            "metadata": {"name": name},
            "spec": {
                "jar": {"path": str(self.jar), "mainClass": WORD_COUNT, "args": ["--name", name, *args]},
                "scheduling": {"periodSeconds": 2, "maximumAgeSeconds": 30, **scheduling},
                # No limits: a machine cannot be made slower than its executors may be fast.
                "resources": {"thetaMillicores": 50, "floorMillicores": 50, "enforcement": "None"},
            },
        }
        file, fresh = self.folder / f"{name}.yaml", self.folder / f"{name}.new"
        fresh.write_text(yaml.safe_dump(body))
        return fresh.replace(file)

    def said(self, words: str) -> int:
        """How often the operator has said so."""
        return self.log.read_text(errors="replace").count(words)

    def last_words(self) -> str:
        """The end of the operator's log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-LAST_LINES:])

    @contextmanager
    def capacity(self, millicores: float, host: str = "") -> Iterator[None]:
        """So much CPU for the machine, or for each, inside the block; as much as machines here can be given any."""
        cgroups = [m.cgroup for m in self.storm.machines if m.cgroup is not None and host in ("", m.host)]
        try:
            for cgroup in cgroups:
                set_capacity(cgroup, millicores)
            yield
        finally:
            for cgroup in cgroups:
                set_capacity(cgroup, self.storm.spec.capacity_millicores)

    def firing(self, alert: str, **labels: str) -> list[Labels]:
        """The alerts of that name and with these labels that fire now."""
        return [found for found in self.prometheus.firing().get(alert, ()) if labels.items() <= found.items()]

    def fires(self, alert: str, **labels: str) -> None:
        eventually(lambda: self.firing(alert, **labels), f"{alert} fires for {labels}", seen=self.last_words)

    def keeps_quiet_again(self, alert: str, **labels: str) -> None:
        eventually(lambda: not self.firing(alert, **labels), f"{alert} for {labels} is over")


def scrape_job(name: str, cluster: str, targets: list[str]) -> dict[str, Any]:
    return {"job_name": name, "static_configs": [{"labels": {"cluster": cluster}, "targets": targets}]}


@pytest.fixture(scope="module")
def played_port() -> int:
    """Where a test may serve metrics of its own."""
    return free_port()


@pytest.fixture(scope="module")
def watched(
    storm_cluster: LocalCluster, workloads_jar: Path, tmp_path_factory: pytest.TempPathFactory, played_port: int
) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("monitored")
    for file in rule_files():
        quick = speed_up(yaml.safe_load(file.read_text()), SPEED, SPEEDS)
        (folder / f"quick-{file.name}").write_text(yaml.safe_dump(quick, sort_keys=False))
    port = free_port()
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(folder / "quick-*.yml")],
        "scrape_configs": [
            scrape_job("storm-agents", CLUSTER, [machine.agent_address for machine in storm_cluster.machines]),
            scrape_job("storm-operator", CLUSTER, [f"127.0.0.1:{port}"]),
            scrape_job("played", PLAYED, [f"127.0.0.1:{played_port}"]),
        ],
    }
    topologies = folder / "topologies"
    topologies.mkdir()
    with PrometheusServer(folder, config) as prometheus:
        watched = Watched(storm_cluster, topologies, workloads_jar, port, prometheus)
        watched.start_operator()
        try:
            yield watched
        finally:
            watched.end_operator()
            sys.stdout.write(watched.log.read_text(errors="replace") if watched.log.exists() else "")


@pytest.fixture(scope="module")
def by_hand(storm_cluster: LocalCluster) -> Iterator[StormByHand]:
    with StormByHand(storm_cluster) as hands:
        yield hands
