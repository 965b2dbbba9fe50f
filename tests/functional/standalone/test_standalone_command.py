"""`storm-operator standalone` as a person runs it: a folder of files, a real cluster, Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cluster_bench import WORD_COUNT
from eventually import eventually

from metric_pages import complaints_of_promtool, names_on, page_at
from operator_scene import free_port
from page_truth import not_as_described, tells_the_truth
from storm_operator.adapters.nimbus.client import NimbusClient
from storm_operator.adapters.zookeeper import ZooKeeperSession
from storm_operator.assembly import assemble
from storm_operator.connection_options import connection_of
from storm_operator.demo.recorder import Recorder
from storm_operator.local.cluster import LocalCluster
from storm_operator.metric_contract import AGENT_METRICS, OPERATOR_METRICS, Exporter

pytestmark = pytest.mark.functional

ONLY_ELSEWHERE = {
    f"storm_operator_{name}"
    for name in ("watch_age_seconds", "omitted_series", "pod_resizes_total", "pod_resize_problems")
}
"""Of Kubernetes, and of very large clusters."""
ONLY_ENFORCED = {
    "storm_executor_cpu_limit_cores",
    "storm_executor_throttled_seconds_total",
    "storm_supervisor_cpu_limit_cores",
    "storm_supervisor_throttled_seconds_total",
}
"""Where machines have cgroups of their own, as root."""

FILE = """
apiVersion: storm-operator.dev/v1alpha1
kind: StormTopology
metadata: {{name: {name}}}
spec:
  jar:
    path: {jar}
    mainClass: {main_class}
    args: [--name, {name}, --rate, "steady:80", --parallelism, "split=2,count=2", --workers, "3"]
  scheduling: {{mode: {mode}, periodSeconds: 3, coolDownSeconds: 5, settlingSeconds: 5, maximumAgeSeconds: 30}}
  resources: {{thetaMillicores: 50, floorMillicores: 50}}
"""


def test_folder_is_submitted_managed_followed_and_left_running(
    storm_cluster: LocalCluster, workloads_jar: Path, tmp_path: Path
) -> None:
    name = "standalone-words"
    file = tmp_path / "words.yaml"
    file.write_text(FILE.format(name=name, jar=workloads_jar, main_class=WORD_COUNT, mode="Recommend"))
    (tmp_path / "broken.yaml").write_text("kind: [")
    jarless = FILE.format(name="jarless", jar=tmp_path / "absent.jar", main_class=WORD_COUNT, mode="Recommend")
    (tmp_path / "jarless.yaml").write_text(jarless)
    host, port = storm_cluster.nimbus
    connection = ["--nimbus", f"{host}:{port}", "--zookeeper", storm_cluster.zookeeper]
    client = ["--storm-home", str(storm_cluster.storm_home), "--storm-conf-dir", str(storm_cluster.conf_dir)]
    log = tmp_path / "log"
    metrics_port, page_port = free_port(), free_port()
    page = f"http://127.0.0.1:{page_port}"
    program = [sys.executable, "-m", "storm_operator", "standalone", str(tmp_path), *connection, *client]
    program += ["--metrics-port", str(metrics_port), "--page-port", str(page_port)]
    assembly = assemble(connection_of(storm_cluster), Recorder())
    with log.open("w") as output:
        operator = subprocess.Popen(program, stdout=output, stderr=subprocess.STDOUT)
    try:
        eventually(lambda: "plan p-" in log.read_text(), "a plan is recommended")
        topology = next(t for t in assembly.storm.running() if t.name == name)
        assert assembly.store.read_plan(topology.id) is None, "Recommend must not apply"

        fresh = tmp_path / "fresh"
        fresh.write_text(FILE.format(name=name, jar=workloads_jar, main_class=WORD_COUNT, mode="Enforce"))
        fresh.replace(file)

        def is_applied() -> bool:
            acknowledgement = assembly.store.read_acknowledgement(topology.id)
            return acknowledgement is not None and acknowledgement.outcome == "applied"

        eventually(is_applied, "the plan is in force")
        eventually(lambda: bool(assembly.store.read_cpu_limits(topology.id)), "CPU limits are given")
        eventually(lambda: "Verified" in log.read_text(), "the plan is verified")
        nimbus = NimbusClient([f"{host}:{port}"])
        tells_the_truth(page, nimbus, name)
        broken, absent = not_as_described(page)
        assert broken.startswith("broken.yaml: not valid YAML")
        assert absent.startswith("jarless: ")
        assert "absent.jar" in absent
        nimbus.close()
        metrics_keep_the_contract(f"http://127.0.0.1:{metrics_port}/metrics", storm_cluster, name)

        fresh.write_text(f"{file.read_text()}  parallelism: {{components: {{split: {{executors: 1}}}}}}\n")
        fresh.replace(file)

        def split_executors() -> int:
            executors = assembly.client.topology_info(topology.id).executors
            return sum(executor.component == "split" for executor in executors)

        eventually(lambda: split_executors() == 1, "the number of executors is what the file says")

        told: set[str] = set()

        def is_another() -> bool:
            told.update(not_as_described(page))
            return any(t.name == name and t.id != topology.id for t in assembly.storm.running())

        fresh.write_text(f"{file.read_text()}  killWaitSeconds: 4\n  config: {{topology.debug: false}}\n")
        fresh.replace(file)
        eventually(is_another, "it is replaced, since its configuration is another")
        for words in (
            "it is replaced, because",
            "the old topology of that name is being killed",
            "it is being submitted",
        ):
            assert [one for one in told if one.startswith(f"{name}: {words}")], told
        eventually(lambda: name not in " ".join(not_as_described(page)), "it runs as its file says")
        operator.send_signal(signal.SIGINT)
        assert operator.wait(timeout=240) == 0
        running = {t.name: t.status for t in assembly.storm.running()}
        assert running[name] == "ACTIVE"
        assert not assembly.store.read_cpu_limits(topology.id), "nobody watches: nobody is held back"
        text = log.read_text()
        assert "broken.yaml: not valid YAML" in text
        assert "Traceback" not in text
    finally:
        if operator.poll() is None:
            operator.kill()
            operator.wait(timeout=10)
        assembly.storm.kill(name, 0)
        assembly.close()


@contextmanager
def standalone_on(cluster: LocalCluster, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """One whose folder of topologies is empty."""
    host, port = cluster.nimbus
    folder = log.with_name(f"topologies-of-{log.name}")
    folder.mkdir()
    program = [sys.executable, "-m", "storm_operator", "standalone", str(folder), "--page-port", "0"]
    program += ["--nimbus", f"{host}:{port}", "--zookeeper", cluster.zookeeper]
    with log.open("w") as output:
        operator = subprocess.Popen(
            program, stdout=output, stderr=subprocess.STDOUT, env=os.environ | {"COLUMNS": "300"}
        )
    try:
        yield operator
    finally:
        operator.kill()
        operator.wait(timeout=10)


def wait_until_it_manages(log: Path) -> None:
    eventually(lambda: "managing" in log.read_text(), "it manages", seen=log.read_text)


def test_second_is_refused_and_the_next_life_of_a_killed_one_is_not(
    storm_cluster: LocalCluster, tmp_path: Path
) -> None:
    logs = [tmp_path / f"log-{number}" for number in range(3)]
    with standalone_on(storm_cluster, logs[0]) as first:
        wait_until_it_manages(logs[0])
        with standalone_on(storm_cluster, logs[1]) as second:
            assert second.wait(timeout=60) == 1
        refused = logs[1].read_text()
        assert f"manages this Storm cluster already: pid {first.pid} on {socket.gethostname()}; end that one" in refused
        assert "managing" not in refused
        assert "Traceback" not in refused
        assert first.poll() is None
    assert first.returncode == -signal.SIGKILL
    with standalone_on(storm_cluster, logs[2]) as third:
        wait_until_it_manages(logs[2])
        assert "waiting" not in logs[2].read_text(), "whoever is dead for certain is not waited for"
        third.send_signal(signal.SIGINT)
        assert third.wait(timeout=60) == 0


def test_one_that_was_replaced_while_it_could_not_be_heard_says_so_and_ends(
    storm_cluster: LocalCluster, tmp_path: Path
) -> None:
    logs = [tmp_path / f"log-{number}" for number in range(2)]
    onlooker = ZooKeeperSession(storm_cluster.zookeeper)
    with standalone_on(storm_cluster, logs[0]) as first:
        wait_until_it_manages(logs[0])
        first.send_signal(signal.SIGSTOP)
        eventually(lambda: not onlooker.children("/storm/storm-operator/standalone"), "its session has timed out")
        with standalone_on(storm_cluster, logs[1]) as second:
            wait_until_it_manages(logs[1])
            first.send_signal(signal.SIGCONT)
            assert first.wait(timeout=120) == 1
            assert f"has taken over this Storm cluster, pid {second.pid} on" in logs[0].read_text()
            assert "Traceback" not in logs[0].read_text()
            assert second.poll() is None
    onlooker.close()


def metrics_keep_the_contract(operator_url: str, cluster: LocalCluster, topology: str) -> None:
    """Both exporters, of the operator and of every agent, on a cluster where a plan has been verified."""

    def missing() -> set[str]:
        there = names_on(page_at(operator_url), Exporter.OPERATOR)
        return {metric.name for metric in OPERATOR_METRICS} - there - ONLY_ELSEWHERE

    # What compares two passes is there after two of them that a plan did not disturb.
    eventually(lambda: not missing(), "every metric of the contract is there")
    page = page_at(operator_url)
    assert complaints_of_promtool(page) == []
    assert re.search(rf'state="Verified",topology="{topology}"\}} [1-9]', page)
    assert re.search(r'peer_calls_total\{nimbus="[^"]+",outcome="ok",peer="agent",verb="scrape"\}', page)
    seen: set[str] = set()
    for machine in cluster.machines:
        page = page_at(machine.agent_url)
        assert complaints_of_promtool(page) == []
        seen |= names_on(page, Exporter.AGENT)
    assert {m.name for m in AGENT_METRICS} - seen <= ONLY_ENFORCED


def test_cluster_that_is_not_there_is_said_and_waited_for(tmp_path: Path) -> None:
    (tmp_path / "words.yaml").write_text(FILE.format(name="w", jar="a.jar", main_class="a.B", mode="Enforce"))
    nowhere = ["--nimbus", "127.0.0.1:9", "--zookeeper", "127.0.0.1:9"]
    operator = subprocess.Popen(
        [sys.executable, "-m", "storm_operator", "standalone", str(tmp_path), *nowhere],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert operator.stdout is not None
        deadline = time.monotonic() + 60.0
        said = ""
        while "--zookeeper" not in said:
            assert time.monotonic() < deadline, said
            said += operator.stdout.readline()
        assert operator.poll() is None, "it waits instead of ending"
        assert "waiting: " in said
        assert "managing" not in said
        assert "Traceback" not in said
        operator.send_signal(signal.SIGINT)
        rest, _ = operator.communicate(timeout=60)
        assert "ended; nothing was managed" in rest
        assert operator.returncode == 0
    finally:
        operator.kill()
        operator.wait(timeout=10)
