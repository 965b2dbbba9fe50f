"""Groups of single threads, by the kernel's own word."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_snapshots import executor_document, snapshot_document
from functional.agent.agent_peers import BusyProcess, eventually
from storm_operator.agent.cgroups import Bandwidth, CgroupV1, CgroupV2, bandwidth_for, write_control
from storm_operator.agent.enforcement import Enforcer
from storm_operator.agent.enforcement_switch import EnforcementSwitch
from storm_operator.agent.limits import ExecutorKey
from storm_operator.agent.machine import MOUNTS, Machine, find_cgroup
from storm_operator.agent.machine_cgroup import CgroupError, describe_cgroup, parse_mounts
from storm_operator.agent.processes import thread_cpu_seconds
from storm_operator.agent.worker_snapshot import parse_worker_snapshot

pytestmark = [pytest.mark.functional, pytest.mark.root]


def version_1(folder: Path) -> CgroupV1:
    return CgroupV1(describe_cgroup(folder, parse_mounts(MOUNTS.read_text())))


def version_2(folder: Path) -> CgroupV2:
    return CgroupV2(describe_cgroup(folder, parse_mounts(MOUNTS.read_text())))


def used(busy: BusyProcess) -> tuple[float, float]:
    first, second = (thread_cpu_seconds(busy.pid, tid) for tid in (busy.first_tid, busy.second_tid))
    assert first is not None
    assert second is not None
    return first, second


def use_while_second_uses(busy: BusyProcess, seconds: float) -> tuple[float, float, float]:
    """Runs until the second thread has used `seconds` more; gives the first's and second's use and the time taken."""
    started, (first, second) = time.monotonic(), used(busy)
    eventually(lambda: used(busy)[1] - second >= seconds)
    now = used(busy)
    return now[0] - first, now[1] - second, time.monotonic() - started


def test_limit_acts_on_one_thread_only(machine_v1: Path, busy_process: BusyProcess) -> None:
    write_control(machine_v1 / "cgroup.procs", str(busy_process.pid))
    cgroups = version_1(machine_v1)
    cgroups.prepare()
    cgroups.create("one")
    cgroups.limit("one", bandwidth_for(20, cgroups.ceiling_millicores()))
    cgroups.add_thread("one", busy_process.first_tid)

    limited, free, elapsed = use_while_second_uses(busy_process, 1.0)
    assert limited <= 0.03 * elapsed + 0.01
    # By use, not by time: others on this machine may leave little to the free thread.
    assert free > 2 * limited
    waited = cgroups.throttled_seconds("one")
    assert waited is not None
    assert waited > 0

    cgroups.remove("one")
    assert str(busy_process.first_tid) in (machine_v1 / "tasks").read_text().split()
    unlimited, free, _ = use_while_second_uses(busy_process, 1.0)
    assert unlimited > 0.3 * free


NOBODY = 2**22 + 1
"""No process has that id: Linux gives none above 2^22."""


def start_child(shell: subprocess.Popen[str]) -> int:
    """A process that `shell` starts, which is born where the shell's thread is."""
    assert shell.stdin is not None
    assert shell.stdout is not None
    shell.stdin.write("sleep 1000 & echo $!\n")
    shell.stdin.flush()
    return int(shell.stdout.readline())


@pytest.fixture
def shell() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        ["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        yield process
        os.killpg(process.pid, signal.SIGKILL)


def test_what_an_executor_starts_is_not_held_to_its_limit(machine_v1: Path, shell: subprocess.Popen[str]) -> None:
    write_control(machine_v1 / "cgroup.procs", str(shell.pid))
    executors = [executor_document(2, tid=shell.pid)]
    worker = parse_worker_snapshot(json.dumps(snapshot_document(pid=shell.pid, executors=executors)).encode())
    limits = {ExecutorKey(worker.topology_id, 2, 2): 200.0}
    enforcer = Enforcer(version_1(machine_v1), "sup-1")
    enforcer.start()
    enforcer.enforce([worker], limits)
    child = start_child(shell)
    (group,) = machine_v1.glob("storm-executor*")
    assert set((group / "tasks").read_text().split()) == {str(shell.pid), str(child)}
    enforcer.enforce([worker], limits)
    assert (group / "tasks").read_text().split() == [str(shell.pid)]
    assert str(child) in (machine_v1 / "tasks").read_text().split()
    enforcer.close()


def test_version_2_moves_out_what_an_executor_starts(machine_v2: Path, shell: subprocess.Popen[str]) -> None:
    write_control(machine_v2 / "cgroup.procs", str(shell.pid))
    cgroups = version_2(machine_v2)
    cgroups.create("one")
    cgroups.add_thread("one", shell.pid)
    child = start_child(shell)
    assert str(child) in (machine_v2 / "one/cgroup.threads").read_text().split()
    cgroups.keep_only("one", shell.pid)
    assert (machine_v2 / "one/cgroup.threads").read_text().split() == [str(shell.pid)]
    assert str(child) in (machine_v2 / "cgroup.threads").read_text().split()
    cgroups.remove("one")


@pytest.mark.parametrize(("names", "alone"), [(("first", "second"), False), (("a-worker-s-id",), True)])
def test_the_cgroup_of_one_worker_is_not_taken_for_the_supervisors(
    machine_v1: Path, names: tuple[str, ...], alone: bool
) -> None:
    workers = [subprocess.Popen(["bash", "-c", "sleep 1000; true", "a-worker-s-id", b"caf\xe9"]) for _ in names]
    try:
        for name, process in zip(names, workers, strict=True):
            (machine_v1 / name).mkdir()
            write_control(machine_v1 / name / "cgroup.procs", str(process.pid))
        pids = [process.pid for process in workers]
        with pytest.raises(CgroupError, match=r"workers are in cgroups of their own .*--cgroup for the one above"):
            find_cgroup(pids, None)
        assert find_cgroup(pids, machine_v1).path == machine_v1
        with pytest.raises(CgroupError, match=f"cannot read the cgroup of process {NOBODY}"):
            find_cgroup((NOBODY,), None)
        if not alone:  # a worker that has just ended says nothing
            assert find_cgroup((NOBODY, *pids[:1]), None).path == machine_v1 / "first"
    finally:
        for process in workers:
            process.kill()
            process.wait()
        for name in names:
            version_1(machine_v1).remove(name)


def test_limit_is_changed_in_place(machine_v1: Path, busy_process: BusyProcess) -> None:
    write_control(machine_v1 / "cgroup.procs", str(busy_process.pid))
    cgroups = version_1(machine_v1)
    cgroups.create("one")
    cgroups.add_thread("one", busy_process.first_tid)
    # From 100 ms to a longer period and back: the kernel checks quota and period against the parent at each write.
    for bandwidth in (Bandwidth(150_000, 100_000), Bandwidth(1_000, 200_000), Bandwidth(50_000, 100_000)):
        cgroups.limit("one", bandwidth)
        assert (machine_v1 / "one/cpu.cfs_quota_us").read_text().strip() == str(bandwidth.quota_us)
        assert (machine_v1 / "one/cpu.cfs_period_us").read_text().strip() == str(bandwidth.period_us)
        burst = machine_v1 / "one/cpu.cfs_burst_us"
        assert not burst.exists() or burst.read_text().strip() == str(bandwidth.quota_us)
    assert (machine_v1 / "one/tasks").read_text().split() == [str(busy_process.first_tid)]


def test_parent_sets_the_ceiling(machine_v1: Path) -> None:
    cgroups = version_1(machine_v1)
    assert cgroups.ceiling_millicores() == 1500.0
    cgroups.create("one")
    with pytest.raises(OSError, match="Invalid argument"):
        cgroups.limit("one", bandwidth_for(1600, None))
    cgroups.limit("one", bandwidth_for(1600, cgroups.ceiling_millicores()))
    cgroups.remove("one")


def test_without_permission_it_says_so(machine_v1: Path) -> None:
    os.seteuid(65534)
    try:
        with pytest.raises(CgroupError, match=r"cannot make a cgroup below .*: Permission denied"):
            version_1(machine_v1).prepare()
    finally:
        os.seteuid(0)


def test_container_that_is_started_anew_is_found_again(machine_v1: Path, busy_process: BusyProcess) -> None:
    first, second = (machine_v1 / name for name in ("first", "second"))
    executors = [executor_document(2, tid=busy_process.first_tid)]
    worker = parse_worker_snapshot(json.dumps(snapshot_document(pid=busy_process.pid, executors=executors)).encode())
    limits = {ExecutorKey(worker.topology_id, 2, 2): 200.0}
    switch = EnforcementSwitch(Machine(None, time.time()), "sup-1", None, declined="")

    def group_in(container: Path) -> Path:
        switch.step((worker,), limits, 0.0)
        (group,) = container.glob("storm-executor*")
        assert (group / "tasks").read_text().split() == [str(busy_process.first_tid)]
        assert (switch.mode, switch.reason) == ("cgroup-v1", "")
        return group

    try:
        first.mkdir()
        write_control(first / "cgroup.procs", str(busy_process.pid))
        gone = group_in(first)
        second.mkdir()
        write_control(second / "cgroup.procs", str(busy_process.pid))
        gone.rmdir()
        first.rmdir()
        group_in(second)
    finally:
        switch.close()
        write_control(machine_v1 / "cgroup.procs", str(busy_process.pid))
        second.rmdir()


def test_machine_counts_its_cpu(machine_v1: Path, busy_process: BusyProcess) -> None:
    machine = describe_cgroup(machine_v1, parse_mounts(MOUNTS.read_text()))
    assert machine.accounting is not None
    assert not machine.is_whole_host
    write_control(machine.accounting / "cgroup.procs", str(busy_process.pid))
    write_control(machine.path / "cgroup.procs", str(busy_process.pid))
    eventually(lambda: (machine.cpu_seconds() or 0) > 0.2)
    assert machine.process_ids() == (busy_process.pid,)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_what_a_machine_had_to_wait_is_added_up_over_its_cpus(machine_v1: Path, busy_process: BusyProcess) -> None:
    """In seconds of CPUs, as the metric says: two that wait at once count more than time goes by."""
    machine = describe_cgroup(machine_v1, parse_mounts(MOUNTS.read_text()))
    first, second, *_ = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(busy_process.first_tid, {first})
    os.sched_setaffinity(busy_process.second_tid, {second})
    (machine_v1 / "cpu.cfs_quota_us").write_text("1000")
    write_control(machine_v1 / "cgroup.procs", str(busy_process.pid))

    def waited_in_a_second() -> float:
        started, before = time.monotonic(), machine.throttled_seconds() or 0.0
        time.sleep(1.0)
        return ((machine.throttled_seconds() or 0.0) - before) / (time.monotonic() - started)

    eventually(lambda: waited_in_a_second() > 1.2)


def test_whole_host_is_told_apart() -> None:
    mounts = parse_mounts(MOUNTS.read_text())
    roots = [mount.mount_point for mount in mounts if mount.version == 2 or "cpu" in mount.controllers]
    assert all(describe_cgroup(root, mounts).is_whole_host for root in roots)


def test_version_2_spreads_threads(machine_v2: Path, busy_process: BusyProcess) -> None:
    write_control(machine_v2 / "cgroup.procs", str(busy_process.pid))
    cgroups = version_2(machine_v2)
    cgroups.create("one")
    cgroups.add_thread("one", busy_process.first_tid)
    assert (machine_v2 / "cgroup.type").read_text().strip() == "domain threaded"
    assert (machine_v2 / "one/cgroup.threads").read_text().split() == [str(busy_process.first_tid)]
    assert str(busy_process.second_tid) in (machine_v2 / "cgroup.threads").read_text().split()
    assert cgroups.names() == ("one",)
    cgroups.remove("one")
    cgroups.remove("one")
    assert str(busy_process.first_tid) in (machine_v2 / "cgroup.threads").read_text().split()


def test_version_2_without_cpu_control_says_so(machine_v2: Path) -> None:
    if "cpu" in (machine_v2 / "cgroup.controllers").read_text().split():
        version_2(machine_v2).prepare()
    else:
        with pytest.raises(CgroupError, match="cpu controller is not available"):
            version_2(machine_v2).prepare()
