"""The agent as a process of its own, with a real JVM for a worker and a real ZooKeeper."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from agent_snapshots import executor_document, snapshot_document, write_snapshot
from functional.agent.agent_peers import AgentProcess, BusyProcess, ZooKeeperServer, eventually, running_agent
from storm_operator.agent.cgroups import write_control

pytestmark = pytest.mark.functional

TOPOLOGY = "wordcount-1-1767268800"
LIMITS_PATH = f"/storm/storm-operator/cpu-limits/{TOPOLOGY}"
CPU = "storm_executor_cpu_seconds_total"
LIMIT = "storm_executor_cpu_limit_cores"
GROUP = f"storm-executor@sup-1@{TOPOLOGY}@6700@2-2"


def busy_worker(folder: Path, busy: BusyProcess, **fields: Any) -> None:
    """The busy JVM's snapshot: executors 2 and 3 are its threads, executor 4 has not been seen yet."""
    now_ms = int(time.time() * 1000)
    executors = [
        executor_document(2, tid=busy.first_tid, executed=10),
        executor_document(3, tid=busy.second_tid),
        executor_document(4, tid=None),
    ]
    document = snapshot_document(pid=busy.pid, started_at_ms=now_ms, written_at_ms=now_ms, executors=executors)
    (folder / "metrics").mkdir(exist_ok=True)
    write_snapshot(folder / "metrics", document | fields)


def by_executor(samples: list[tuple[dict[str, str], float]]) -> dict[str, float]:
    return {labels["executor"]: value for labels, value in samples}


def enforcement(agent: AgentProcess) -> tuple[str, str]:
    ((labels, _),) = agent.scrape("storm_agent_enforcement")
    return labels["mode"], labels["reason"]


def test_exports_a_worker_while_it_lives(tmp_path: Path, polite_process: BusyProcess) -> None:
    with running_agent(tmp_path, "--no-enforce", "--cpu-capacity-millicores", "1500") as agent:
        busy_worker(tmp_path, polite_process)
        first = by_executor(agent.scrape(CPU))
        assert first.keys() == {"2-2", "3-3"}
        eventually(lambda: all(used > first[name] for name, used in by_executor(agent.scrape(CPU)).items()))
        assert by_executor(agent.scrape("storm_executor_executed_tuples_total"))["2-2"] == 10
        assert agent.scrape("storm_supervisor_cpu_capacity_cores") == [({"supervisor": "sup-1"}, 1.5)]
        assert enforcement(agent) == ("observe-only", "told not to (--no-enforce)")
        assert agent.get("/healthz") == (200, "ok\n")
        assert agent.get("/nothing")[0] == 404
        os.kill(polite_process.pid, 9)
        eventually(lambda: not agent.scrape("storm_worker_info"))
        assert agent.scrape(CPU) == []


def test_ends_cleanly_on_sigterm(tmp_path: Path) -> None:
    with running_agent(tmp_path, "--zookeeper", "127.0.0.1:1") as agent:
        assert agent.terminate() == 0
        assert "has ended" in agent.log()


def test_says_once_why_it_only_observes(tmp_path: Path) -> None:
    with running_agent(tmp_path, "--zookeeper", "127.0.0.1:1", "--cgroup", "/nowhere") as agent:
        eventually(lambda: "/nowhere" in enforcement(agent)[1])
        assert enforcement(agent)[0] == "observe-only"
        assert agent.log().count("observing only, CPU limits are not enforced: /nowhere is not a cgroup") == 1


def test_refuses_options_with_one_clear_message(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"must be HOST=ADDRESS:PORT"):
        running_agent(tmp_path, "--peer", "nonsense").__enter__()


def test_agents_measure_each_other(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
    with running_agent(other) as peer, running_agent(one, "--peer", f"sup-2=127.0.0.1:{peer.port}") as agent:
        eventually(lambda: agent.scrape("storm_supervisor_round_trip_seconds"))
        ((labels, round_trip),) = agent.scrape("storm_supervisor_round_trip_seconds")
        assert labels["peer"] == "sup-2"
        assert 0 < round_trip < 0.5
        assert len(agent.scrape("storm_supervisor_coordinate_seconds")) == 3
        assert agent.scrape("storm_supervisor_availability_ratio")[0][1] == 1.0
        peer.kill()
        eventually(lambda: agent.scrape("storm_supervisor_availability_ratio")[0][1] < 1.0)


class Operator:
    """What the operator writes."""

    def __init__(self, client: KazooClient) -> None:
        self._client = client

    def limit(self, millicores: Mapping[int, float]) -> None:
        rows = [{"task_start": task, "task_end": task, "millicores": limit} for task, limit in millicores.items()]
        document = {"version": 1, "topology_id": TOPOLOGY, "plan_id": "p-1", "limits": rows}
        self.write(json.dumps(document).encode())

    def write(self, document: bytes) -> None:
        self._client.ensure_path(LIMITS_PATH)
        self._client.set(LIMITS_PATH, document)

    def forget(self) -> None:
        self._client.delete(LIMITS_PATH)


@pytest.fixture
def operator(zookeeper_server: ZooKeeperServer) -> Iterator[Operator]:
    client = KazooClient(hosts=zookeeper_server.hosts)
    client.start(timeout=30)
    try:
        yield Operator(client)
    finally:
        client.stop()
        client.close()


def limits_seen(agent: AgentProcess) -> dict[str, float]:
    """In cores."""
    return by_executor(agent.scrape(LIMIT))


@pytest.mark.root
def test_limits_follow_zookeeper(
    tmp_path: Path,
    zookeeper_server: ZooKeeperServer,
    operator: Operator,
    machine_v1: Path,
    polite_process: BusyProcess,
) -> None:
    write_control(machine_v1 / "cgroup.procs", str(polite_process.pid))
    busy_worker(tmp_path, polite_process)
    tid = str(polite_process.first_tid)
    # The cgroup is not told: it is found from the worker.
    with running_agent(tmp_path, "--zookeeper", zookeeper_server.hosts) as agent:
        operator.limit({2: 50, 4: 100, 9: 100})
        eventually(lambda: limits_seen(agent) == {"2-2": 0.05})
        assert enforcement(agent) == ("cgroup-v1", "")
        assert agent.scrape("storm_supervisor_cpu_capacity_cores")[0][1] == 1.5
        assert (machine_v1 / GROUP / "tasks").read_text().split() == [tid]
        eventually(lambda: by_executor(agent.scrape("storm_executor_throttled_seconds_total"))["2-2"] > 0.1)

        operator.limit({2: 5000})
        eventually(lambda: limits_seen(agent) == {"2-2": 1.5})  # all that the machine has

        operator.write(b"{ not json")
        eventually(lambda: "malformed" in agent.log())
        assert limits_seen(agent) == {"2-2": 1.5}

        zookeeper_server.stop()
        eventually(lambda: "keeping the CPU limits last known" in agent.log())
        assert limits_seen(agent) == {"2-2": 1.5}
        zookeeper_server.start()
        eventually(lambda: _tried(lambda: operator.limit({2: 300})))
        eventually(lambda: limits_seen(agent) == {"2-2": 0.3})

        operator.forget()
        eventually(lambda: not (machine_v1 / GROUP).exists())
        assert tid in (machine_v1 / "tasks").read_text().split()

        operator.limit({2: 300})
        eventually((machine_v1 / GROUP).exists)
        assert agent.terminate() == 0
        assert not (machine_v1 / GROUP).exists()
        assert tid in (machine_v1 / "tasks").read_text().split()


@pytest.mark.root
def test_crashed_agent_s_groups_are_taken_over(
    tmp_path: Path,
    zookeeper_server: ZooKeeperServer,
    operator: Operator,
    machine_v1: Path,
    polite_process: BusyProcess,
) -> None:
    write_control(machine_v1 / "cgroup.procs", str(polite_process.pid))
    busy_worker(tmp_path, polite_process)
    operator.limit({2: 200})
    options = ("--zookeeper", zookeeper_server.hosts, "--cgroup", str(machine_v1))
    with running_agent(tmp_path, *options) as agent:
        eventually((machine_v1 / GROUP / "tasks").exists)
        agent.kill()
        assert (machine_v1 / GROUP).exists()
    operator.limit({3: 400})
    with running_agent(tmp_path, *options) as agent:
        eventually(lambda: limits_seen(agent) == {"3-3": 0.4})
        assert not (machine_v1 / GROUP).exists()
        os.kill(polite_process.pid, 9)
        eventually(lambda: not [entry for entry in machine_v1.iterdir() if entry.is_dir()])


def _tried(deed: Any) -> bool:
    try:
        deed()
    except Exception:
        return False
    return True
