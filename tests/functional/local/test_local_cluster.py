"""The emulation is real: delay, CPU capacity, restarts, and a topology that runs, on one small cluster."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from storm_operator.adapters.nimbus.client import NimbusClient
from storm_operator.local.cgroups import set_capacity, throttled_periods
from storm_operator.local.cluster import LocalCluster
from storm_operator.local.lifecycle import wait_until
from storm_operator.local.network import LONGEST_SOCKET_PATH, _device_commands, _ip
from storm_operator.local.rehearsal import submit_words
from storm_operator.local.spec import LocalClusterError, LocalClusterSpec, LocalMachine
from storm_operator.local.status import cluster_status
from storm_operator.local.storm_config import SELDOM_AWAKE, SELDOM_HEARD

pytestmark = [
    pytest.mark.functional,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces and cgroups need root"),
]

CLONE_NEWUTS = 0x04000000
SECONDS = 120.0
MEASURE_CONNECT = """
import socket, sys, time
times = []
for _ in range(15):
    began = time.perf_counter()
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=10).close()
    times.append(time.perf_counter() - began)
print(min(times) * 1000)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    place = os.getpid() * 4 + 1
    spec = LocalClusterSpec(
        name=f"loc{os.getpid() % 1_000_000}",
        subnet=f"10.{100 + place // 250 % 100}.{place % 250}.0/24",
        machines=3,
        agents=False,
        fast_start=True,
        one_way_delay_ms=0.0,
        extra_conf={**SELDOM_AWAKE, **SELDOM_HEARD},
        work_dir=tmp_path_factory.mktemp("storm"),
    )
    with LocalCluster(spec) as cluster:
        yield cluster


SEND = "import socket, sys; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', (sys.argv[1], 9))"


def connect_ms(source: LocalMachine, target: LocalMachine) -> float:
    """The quickest of some TCP connects from one machine to the port of the other's supervisor."""
    command = ["nsenter", f"--net=/run/netns/{source.namespace}", sys.executable, "-c", MEASURE_CONNECT]
    done = subprocess.run([*command, target.host, str(target.thrift_port)], capture_output=True, text=True, check=True)
    return float(done.stdout)


def test_the_delay_matrix_delays_one_pair_both_ways_and_no_other(cluster: LocalCluster) -> None:
    first, second, third = cluster.machines
    without = connect_ms(first, second)
    cluster.set_delay(first.name, second.host, 20.0)
    try:
        assert connect_ms(first, second) > 40.0 > without
        assert connect_ms(second, first) > 40.0
        assert connect_ms(first, third) < 40.0
    finally:
        cluster.set_all_delays(0.0)
    assert connect_ms(first, second) < 40.0


def test_delays_outlive_the_switch(cluster: LocalCluster) -> None:
    first, second = cluster.machines[:2]
    cluster.set_all_delays(15.0)
    try:
        before = cluster.pids["switch"]
        os.kill(before, 9)
        wait_until(lambda: cluster.pids.get("switch", before) != before, SECONDS, "the switch was not started again")
        assert connect_ms(first, second) > 30.0
    finally:
        cluster.set_all_delays(0.0)


def test_a_machine_gets_no_more_cpu_than_its_capacity(cluster: LocalCluster) -> None:
    machine = cluster.machines[2]
    assert machine.cgroup is not None
    set_capacity(machine.cgroup, 50.0)  # less than a very busy machine leaves to whoever asks
    before = throttled_periods(machine.cgroup)
    spin = "import time; time.sleep(0.2); end = time.process_time() + 0.25\nwhile time.process_time() < end: pass"
    burner = subprocess.Popen([sys.executable, "-c", spin])
    (machine.cgroup / "cgroup.procs").write_text(str(burner.pid))
    try:
        burner.wait(timeout=SECONDS)
        after = throttled_periods(machine.cgroup)
        assert before is not None
        assert after is not None
        # A quarter of a second of work at a twentieth of a core runs into the limit in 250 periods of 20 ms.
        assert after - before > 100
    finally:
        burner.kill()
        set_capacity(machine.cgroup, cluster.spec.capacity_millicores)


def test_workers_run_inside_their_machine_and_a_topology_counts(cluster: LocalCluster) -> None:
    if not is_submitted(cluster, "words"):  # by a first try
        submit_words(cluster.layout, "words", workers=3)
    # More when a worker was started again in another slot.
    wait_until(lambda: counting_workers(cluster, "words") >= 3, SECONDS, "the topology did not run")
    workers = cluster.workers()
    assert {worker.machine for worker in workers} == {machine.name for machine in cluster.machines}
    for worker in workers:
        machine = cluster.layout.machine(worker.machine)
        assert machine.cgroup is not None
        assert str(worker.pid) in (machine.cgroup / "cgroup.procs").read_text().split()
        inside = Path(f"/proc/{worker.pid}/ns/net").stat().st_ino
        assert inside == Path(f"/run/netns/{machine.namespace}").stat().st_ino
    status = cluster_status(cluster, sample_seconds=0.1)
    assert [worker["pid"] for worker in status["workers"]] == [worker.pid for worker in workers]
    assert all(machine["used_millicores"] is not None for machine in status["machines"])
    assert 0 < status["memory_mb"] < 3000


@pytest.mark.parametrize("daemon", ["nimbus", "zookeeper", "supervisor-machine-1"])
def test_a_daemon_that_dies_is_started_again_and_nothing_is_forgotten(cluster: LocalCluster, daemon: str) -> None:
    workers = {worker.pid for worker in cluster.workers()}
    before = cluster.pids[daemon]
    os.kill(before, 9)
    wait_until(lambda: cluster.pids.get(daemon, before) != before, SECONDS, f"{daemon} was not started again")
    cluster.wait_ready()
    assert {worker.pid for worker in cluster.workers()} >= workers


def test_a_stopped_machine_stays_down_until_it_is_started(cluster: LocalCluster) -> None:
    machine = cluster.machines[0]
    cluster.stop_supervisor(machine.name)
    assert "supervisor-machine-1" not in cluster.pids
    assert machine.name not in {worker.machine for worker in cluster.workers()}
    cluster.start_supervisor(machine.name)
    wait_until(lambda: "supervisor-machine-1" in cluster.pids, SECONDS, "the supervisor was not started")
    cluster.wait_ready()


def test_what_is_not_there_is_named(cluster: LocalCluster) -> None:
    with pytest.raises(LocalClusterError, match="machine-9"):
        cluster.set_delay("machine-1", "machine-9", 1.0)
    with pytest.raises(LocalClusterError, match=r"no daemon 'agent-machine-1'.*nimbus"):
        cluster.stop_agent("machine-1")
    with pytest.raises(LocalClusterError, match="is up already"):
        LocalCluster(cluster.spec).up()
    with pytest.raises(LocalClusterError, match="subnet"):
        LocalCluster(LocalClusterSpec(name="othername", subnet=cluster.spec.subnet)).up()


def test_a_refused_second_cluster_leaves_the_first_as_it_was(cluster: LocalCluster) -> None:
    before = cluster.keeper_pid, cluster.pids
    with pytest.raises(LocalClusterError, match="is up already"), LocalCluster(cluster.spec):
        pass
    assert (cluster.keeper_pid, cluster.pids) == before


def test_a_network_comes_up_although_somebody_sends_to_it_already() -> None:
    """As who still has an address of an earlier cluster: the kernel has asked for it, and waits for an answer."""
    namespace, addresses = f"Sent{os.getpid()}", ["10.99.1.1", "10.99.1.11"]
    making, naming, *neighbours = _device_commands("tap0", 0, addresses)
    address, *neighbours = neighbours
    _ip([f"netns add {namespace}"])
    try:
        _ip([making, naming, address], namespace)
        subprocess.run(
            ["nsenter", f"--net=/run/netns/{namespace}", sys.executable, "-c", SEND, addresses[1]], check=True
        )
        _ip(neighbours, namespace)
        told = ["ip", "-n", namespace, "neighbour", "show", addresses[1]]
        assert "PERMANENT" in subprocess.run(told, capture_output=True, text=True, check=True).stdout
    finally:
        _ip([f"netns delete {namespace}"])


def test_nimbus_runs_on_a_machine_whose_name_nobody_knows(tmp_path: Path) -> None:
    def bring_up() -> bool:
        if ctypes.CDLL(None).unshare(CLONE_NEWUTS) != 0:  # for this thread, and what it starts
            raise OSError("no namespace for a name of its own")
        socket.sethostname("nobody-knows-me")
        spec = LocalClusterSpec(name=f"nam{os.getpid() % 1_000_000}", machines=1, agents=False, work_dir=tmp_path)
        with LocalCluster(spec, isolate=False) as nameless:
            host, port = nameless.nimbus
            with contextlib.closing(NimbusClient([f"{host}:{port}"])) as nimbus:
                return len(nimbus.cluster_info().supervisors) == 1

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(bring_up).result()


def test_a_folder_too_deep_for_sockets_is_refused(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * LONGEST_SOCKET_PATH)
    with pytest.raises(LocalClusterError, match="work_dir"):
        LocalCluster(LocalClusterSpec(name="toodeep", subnet="10.253.253.0/24", work_dir=deep)).up()


def is_submitted(cluster: LocalCluster, topology: str) -> bool:
    host, port = cluster.nimbus
    with contextlib.closing(NimbusClient([f"{host}:{port}"])) as nimbus:
        return nimbus.cluster_info().topology_named(topology) is not None


def counting_workers(cluster: LocalCluster, topology: str) -> int:
    """Workers of the topology whose executors have begun; their logs say so."""
    logs = cluster.logs_dir.glob(f"*/workers/{topology}-*/*/worker.log")
    return sum(bool(re.search(r"Prepared bolt count|Opened spout words", log.read_text())) for log in logs)
