"""Agents on a real Storm cluster, beside real workers with the metrics plugin."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from prometheus_client.parser import text_string_to_metric_families

from functional.agent.agent_peers import eventually
from storm_operator.adapters.nimbus.client import NimbusClient
from storm_operator.adapters.submission import JarSubmission, StormClientHome, submit_jar
from storm_operator.local.cluster import LocalCluster

pytestmark = pytest.mark.functional

NAME = "agent-steady"
PROGRAM = Path(__file__).parent / "SteadyTopology.java"
PATIENCE_SECONDS = 240.0
COMPONENTS = {"numbers", "sink"}
CPU = "storm_executor_cpu_seconds_total"
EXECUTED = "storm_executor_executed_tuples_total"
LATENCY_COUNT = "storm_complete_latency_seconds_count"

Samples = list[tuple[dict[str, str], float]]


@pytest.fixture(scope="module")
def steady_jar(storm_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("steady")
    class_path = f"{storm_cluster.storm_home}/lib-worker/*"
    subprocess.run(["javac", "-nowarn", "-d", folder, "-cp", class_path, PROGRAM], check=True, timeout=120)
    jar = folder / "steady.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for compiled in sorted(folder.glob("*.class")):
            archive.write(compiled, compiled.name)
    return jar


@pytest.fixture(scope="module")
def topology_id(storm_cluster: LocalCluster, steady_jar: Path) -> Iterator[str]:
    """The steady topology, exported by the agents."""
    host, port = storm_cluster.nimbus
    client = NimbusClient([f"{host}:{port}"], patience_seconds=PATIENCE_SECONDS)
    home = StormClientHome(storm_cluster.storm_home, storm_cluster.conf_dir)
    if client.cluster_info().topology_named(NAME) is None:  # a first try may have submitted it
        submit_jar(JarSubmission(steady_jar, "SteadyTopology", (NAME,)), home)
    running = client.cluster_info().topology_named(NAME)
    assert running is not None
    # Nimbus places a topology some time after it took it: wait for the three that the program names.
    eventually(lambda: len(by_place(of_topology(storm_cluster, CPU, running.id))) == 3, PATIENCE_SECONDS)
    yield running.id
    client.kill(NAME)
    eventually(lambda: not of_topology(storm_cluster, "storm_worker_info", running.id), PATIENCE_SECONDS)
    client.close()


def scrape(cluster: LocalCluster, name: str) -> Samples:
    """Samples called `name` of all agents together."""
    found = []
    for url in cluster.agent_urls.values():
        with urllib.request.urlopen(url, timeout=30) as response:
            text = response.read().decode()
        for family in text_string_to_metric_families(text):
            found += [(dict(s.labels), s.value) for s in family.samples if s.name == name]
    return found


def of_topology(cluster: LocalCluster, name: str, topology_id: str) -> Samples:
    return [sample for sample in scrape(cluster, name) if sample[0]["topology_id"] == topology_id]


def by_place(samples: Samples) -> dict[tuple[str, str, str], float]:
    """Values of user components by supervisor, executor and port."""
    return {
        (labels["supervisor"], labels["executor"], labels["port"]): value
        for labels, value in samples
        if labels["component"] in COMPONENTS
    }


def test_every_executor_is_exported_and_counts(storm_cluster: LocalCluster, topology_id: str) -> None:
    components = [labels["component"] for labels, _ in of_topology(storm_cluster, CPU, topology_id)]
    assert sorted(name for name in components if name in COMPONENTS) == ["numbers", "sink", "sink"]
    for name in (CPU, "storm_executor_acked_tuples_total"):
        before = by_place(of_topology(storm_cluster, name, topology_id))

        def risen(name: str = name, before: dict[tuple[str, str, str], float] = before) -> bool:
            now = by_place(of_topology(storm_cluster, name, topology_id))
            return all(now.get(place, 0) > value for place, value in before.items())

        eventually(risen, PATIENCE_SECONDS)
    eventually(lambda: of_topology(storm_cluster, "storm_traffic_tuples_total", topology_id), PATIENCE_SECONDS)
    assert {labels["component"] for labels, _ in of_topology(storm_cluster, LATENCY_COUNT, topology_id)} == {"numbers"}


def test_counts_go_on_when_a_worker_is_killed(storm_cluster: LocalCluster, topology_id: str) -> None:
    victim = of_topology(storm_cluster, "storm_worker_info", topology_id)[0][0]

    def executed() -> dict[tuple[str, str, str], float]:
        samples = of_topology(storm_cluster, EXECUTED, topology_id)
        return {
            place: value
            for place, value in by_place(samples).items()
            if (place[0], place[2]) == (victim["supervisor"], victim["port"])
        }

    def pids() -> list[str]:
        workers = of_topology(storm_cluster, "storm_worker_info", topology_id)
        return [
            labels["pid"]
            for labels, _ in workers
            if (labels["supervisor"], labels["port"]) == (victim["supervisor"], victim["port"])
        ]

    before = executed()
    os.kill(int(victim["pid"]), 9)
    eventually(lambda: pids() and pids() != [victim["pid"]], PATIENCE_SECONDS)
    eventually(lambda: executed().keys() == before.keys(), PATIENCE_SECONDS)
    assert all(value >= before[place] for place, value in executed().items())


def test_supervisors_know_their_machine_and_each_other(storm_cluster: LocalCluster, topology_id: str) -> None:
    machines = len(storm_cluster.machines)
    assert len(scrape(storm_cluster, "storm_supervisor_cpu_seconds_total")) == machines
    pairs = machines * (machines - 1)
    eventually(lambda: len(scrape(storm_cluster, "storm_supervisor_round_trip_seconds")) == pairs, PATIENCE_SECONDS)
    if storm_cluster.isolated:
        delay_seconds = 2 * storm_cluster.layout.spec.one_way_delay_ms / 1000
        for labels, round_trip in scrape(storm_cluster, "storm_supervisor_round_trip_seconds"):
            assert round_trip >= delay_seconds, labels


@pytest.mark.root
def test_limits_are_enforced_on_workers(storm_cluster: LocalCluster, topology_id: str) -> None:
    if not storm_cluster.isolated:
        pytest.skip("machines have no cgroups here")
    tasks = [labels["executor"].split("-") for labels, _ in of_topology(storm_cluster, CPU, topology_id)]
    rows = [{"task_start": int(start), "task_end": int(end), "millicores": 300} for start, end in tasks]
    document = {"version": 1, "topology_id": topology_id, "plan_id": "p-1", "limits": rows}
    path = f"/storm/storm-operator/cpu-limits/{topology_id}"
    client = KazooClient(hosts=storm_cluster.zookeeper)
    client.start(timeout=30)
    try:
        client.ensure_path(path)
        client.set(path, json.dumps(document).encode())
        limit = "storm_executor_cpu_limit_cores"
        eventually(lambda: len(of_topology(storm_cluster, limit, topology_id)) == len(rows), PATIENCE_SECONDS)
        assert {value for _, value in of_topology(storm_cluster, limit, topology_id)} == {0.3}
        client.delete(path)
        eventually(lambda: not of_topology(storm_cluster, limit, topology_id), PATIENCE_SECONDS)
    finally:
        client.stop()
        client.close()
