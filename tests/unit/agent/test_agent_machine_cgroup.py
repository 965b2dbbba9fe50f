from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from storm_operator.agent.machine import Machine
from storm_operator.agent.machine_cgroup import (
    CgroupError,
    MachineCgroup,
    cgroup_of_process,
    describe_cgroup,
    parse_mounts,
)
from storm_operator.agent.processes import ProcessUse


def mounts_below(root: Path, *lines: str) -> str:
    return "\n".join(line.replace("ROOT", str(root)) for line in lines)


V1_APART = (
    "23 1 0:20 / / rw - ext4 /dev/vda rw",
    "32 31 0:29 / ROOT/cpu rw,relatime - cgroup cgroup rw,cpu",
    "33 31 0:30 / ROOT/cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpuacct",
    "41 31 0:38 / ROOT/unified rw,relatime - cgroup2 cgroup2 rw",
)
V2 = ("32 31 0:29 / ROOT rw,relatime - cgroup2 cgroup2 rw,nsdelegate",)


def test_version_1_with_accounting_mounted_apart(tmp_path: Path) -> None:
    for controller in ("cpu", "cpuacct"):
        (tmp_path / controller / "machines" / "m1").mkdir(parents=True)
    mounts = parse_mounts(mounts_below(tmp_path, *V1_APART))
    found = cgroup_of_process("2:cpuacct:/other\n1:cpu:/machines/m1\n0::/\n", mounts)
    assert found == MachineCgroup(
        1, tmp_path / "cpu/machines/m1", tmp_path / "cpu", accounting=tmp_path / "cpuacct/machines/m1"
    )
    (tmp_path / "cpuacct/machines/m1/cpuacct.usage").write_text("2500000000\n")
    (tmp_path / "cpu/machines/m1/cpu.stat").write_text("nr_periods 5\nnr_throttled 2\nthrottled_time 500000000\n")
    assert found.cpu_seconds() == 2.5
    assert found.throttled_seconds() == 0.5


def test_a_folder_that_is_in_no_cgroup_file_system_is_no_cgroup(tmp_path: Path) -> None:
    mounts = parse_mounts(mounts_below(tmp_path, *V1_APART))
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(CgroupError, match="is not a cgroup"):
        describe_cgroup(tmp_path / "elsewhere", mounts)


def test_a_hierarchy_that_is_mounted_within_another_is_the_one_that_counts(tmp_path: Path) -> None:
    (tmp_path / "cpu/m1").mkdir(parents=True)
    inner = "33 31 0:30 / ROOT/cpu rw - cgroup cgroup rw,cpu"
    for lines in ((*V2, inner), (inner, *V2)):
        found = describe_cgroup(tmp_path / "cpu/m1", parse_mounts(mounts_below(tmp_path, *lines)))
        assert (found.version, found.mount_point) == (1, tmp_path / "cpu")


def test_version_1_mounted_together(tmp_path: Path) -> None:
    (tmp_path / "m1").mkdir()
    mounts = parse_mounts(mounts_below(tmp_path, "32 31 0:29 / ROOT rw - cgroup cgroup rw,cpu,cpuacct"))
    assert describe_cgroup(tmp_path / "m1", mounts).accounting == tmp_path / "m1"


def test_version_2(tmp_path: Path) -> None:
    (tmp_path / "m1").mkdir()
    mounts = parse_mounts(mounts_below(tmp_path, *V2))
    found = cgroup_of_process("0::/m1\n", mounts)
    assert (found.version, found.path) == (2, tmp_path / "m1")
    (tmp_path / "m1/cpu.stat").write_text("usage_usec 1500000\nuser_usec 1\nthrottled_usec 250000\n")
    assert found.cpu_seconds() == 1.5
    assert found.throttled_seconds() == 0.25


def test_container_whose_hierarchy_is_mounted_from_its_own_cgroup(tmp_path: Path) -> None:
    mounts = parse_mounts(mounts_below(tmp_path, "32 31 0:29 /kubepods/c1 ROOT rw - cgroup2 cgroup2 rw"))
    assert cgroup_of_process("0::/kubepods/c1\n", mounts).path == tmp_path


@pytest.mark.parametrize(("root", "worker"), [("/kubepods/c1", "/kubepods/c2"), ("/", "/../c2")])
def test_cgroup_of_another_container_is_not_taken_for_our_own(tmp_path: Path, root: str, worker: str) -> None:
    mounts = parse_mounts(mounts_below(tmp_path, f"32 31 0:29 {root} ROOT rw - cgroup2 cgroup2 rw"))
    with pytest.raises(CgroupError, match="another container's"):
        cgroup_of_process(f"0::{worker}\n", mounts)


@pytest.mark.parametrize("version", [1, 2])
def test_the_tightest_quota_above_counts(tmp_path: Path, version: int) -> None:
    inner = tmp_path / "pod" / "machine"
    inner.mkdir(parents=True)
    for folder, quota in ((tmp_path, None), (tmp_path / "pod", 30_000), (inner, 50_000)):
        if version == 1:
            (folder / "cpu.cfs_period_us").write_text("20000\n")
            (folder / "cpu.cfs_quota_us").write_text(f"{quota or -1}\n")
        elif quota:
            (folder / "cpu.max").write_text(f"{quota} 20000\n")
        else:
            (folder / "cpu.max").write_text("max 100000\n")
    machine = MachineCgroup(version, inner, tmp_path, accounting=None)
    assert machine.quota_millicores() == 1500.0
    assert MachineCgroup(version, tmp_path, tmp_path, accounting=None).quota_millicores() is None


def test_what_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    machine = MachineCgroup(2, tmp_path, tmp_path, accounting=tmp_path)
    assert machine.cpu_seconds() is None
    assert machine.throttled_seconds() is None
    assert machine.process_ids() is None
    assert machine.quota_millicores() is None


def test_says_why_a_folder_is_no_cgroup(tmp_path: Path) -> None:
    mounts = parse_mounts(mounts_below(tmp_path, *V1_APART))
    with pytest.raises(CgroupError, match="is not a cgroup"):
        describe_cgroup(tmp_path / "cpu" / "nowhere", mounts)
    (tmp_path / "cpuacct").mkdir()
    with pytest.raises(CgroupError, match="without the cpu controller"):
        describe_cgroup(tmp_path / "cpuacct", mounts)
    with pytest.raises(CgroupError, match="no cgroup hierarchy"):
        cgroup_of_process("1:cpu:/\n", ())


@pytest.mark.parametrize(("shared", "cpu_seconds", "counts_its_processes"), [(False, 2.0, True), (True, 0.0, False)])
def test_a_cgroup_that_is_shared_counts_for_nobody_and_still_bounds_all(
    tmp_path: Path, shared: bool, cpu_seconds: float, counts_its_processes: bool
) -> None:
    (tmp_path / "cgroup.type").write_text("domain")  # the kernel's root has none
    (tmp_path / "cgroup.procs").write_text(f"{os.getpid()}\n")
    (tmp_path / "cpu.stat").write_text("usage_usec 3000000\n")
    (tmp_path / "cpu.max").write_text("150000 100000")
    machine = Machine(None, began_at_seconds=0.0, shares_cgroup=shared)
    machine.adopt_cgroup(MachineCgroup(2, tmp_path, tmp_path, accounting=tmp_path))
    (tmp_path / "cpu.stat").write_text("usage_usec 5000000\n")
    use = machine.use(())
    assert use.cpu_seconds == cpu_seconds
    assert bool(use.memory_bytes) is counts_its_processes
    assert use.capacity_cores == use.limit_cores == 1.5


def test_a_limit_that_is_resized_is_told_beside_the_capacity_that_stays(tmp_path: Path) -> None:
    machine = Machine(capacity_millicores=2000.0, began_at_seconds=0.0)
    assert machine.use(()).limit_cores is None, "its cgroup is not known yet"
    machine.adopt_cgroup(MachineCgroup(2, tmp_path, tmp_path, accounting=tmp_path))
    for quota, cores in (("150000 100000", 1.5), ("80000 100000", 0.8), ("max 100000", None)):
        (tmp_path / "cpu.max").write_text(quota)
        use = machine.use(())
        assert (use.limit_cores, use.capacity_cores) == (cores, 2.0)


def test_a_service_that_stands_still_for_a_while_has_not_all_cores_meanwhile(tmp_path: Path) -> None:
    """Its quota is gone with its cgroup, and there again with the next: in between plans would fill the machine."""
    service = tmp_path / "storm.service"
    cgroup = MachineCgroup(2, service, tmp_path, accounting=service)
    machine = Machine(None, began_at_seconds=0.0)
    (tmp_path / "cpu.max").write_text("800000 100000")
    told = []
    for quota in ("150000 100000", None, "max 100000"):
        shutil.rmtree(service, ignore_errors=True)
        if quota is not None:
            service.mkdir()
            (service / "cpu.max").write_text(quota)
            machine.adopt_cgroup(cgroup)
        use = machine.use(())
        told.append((use.capacity_cores, use.limit_cores))
    assert told == [(1.5, 1.5), (1.5, None), (8.0, 8.0)]


def test_cpu_of_a_cgroup_that_is_older_than_the_agent_counts_from_zero(tmp_path: Path) -> None:
    (tmp_path / "cgroup.type").write_text("domain\n")
    (tmp_path / "cpu.stat").write_text("usage_usec 3600000000\n")
    machine = Machine(None, began_at_seconds=0.0)
    machine.adopt_cgroup(MachineCgroup(2, tmp_path, tmp_path, accounting=tmp_path))
    assert machine.use(()).cpu_seconds == 0.0, "an hour, as if used since the last agent's last word"
    (tmp_path / "cpu.stat").write_text("usage_usec 3602000000\n")
    assert machine.use(()).cpu_seconds == 2.0


def test_cpu_goes_on_from_what_was_told_before_the_cgroup_was_known(tmp_path: Path) -> None:
    machine = Machine(None, began_at_seconds=0.0)
    assert machine.use(()).cpu_seconds == 0.0
    pod = tmp_path / "pod"
    pod.mkdir()
    (pod / "cgroup.type").write_text("domain\n")
    (pod / "cpu.stat").write_text("usage_usec 3600000000\n")
    machine.adopt_cgroup(MachineCgroup(2, pod, tmp_path, accounting=pod))
    assert machine.use(()).cpu_seconds == 0.0
    (pod / "cpu.stat").write_text("usage_usec 3601000000\n")
    machine.adopt_cgroup(MachineCgroup(2, pod, tmp_path, accounting=pod))
    assert machine.use(()).cpu_seconds == 1.0
    (pod / "cpu.stat").write_text("usage_usec 500000\n")
    assert machine.use(()).cpu_seconds == 1.0, "made anew"
    (pod / "cpu.stat").write_text("usage_usec 1500000\n")
    assert machine.use(()).cpu_seconds == 2.0


def test_cpu_goes_on_over_a_service_that_stands_still_for_a_while(tmp_path: Path) -> None:
    service = tmp_path / "storm.service"
    cgroup = MachineCgroup(2, service, tmp_path, accounting=service)
    machine = Machine(None, began_at_seconds=0.0)

    def begins_with(cpu_seconds: int) -> None:
        shutil.rmtree(service, ignore_errors=True)
        service.mkdir()
        (service / "cgroup.type").write_text("domain\n")
        (service / "cpu.stat").write_text(f"usage_usec {cpu_seconds}000000\n")
        machine.adopt_cgroup(cgroup)

    begins_with(0)
    (service / "cpu.stat").write_text("usage_usec 500000000\n")
    told = [machine.use(()).cpu_seconds]
    begins_with(1)
    told.append(machine.use(()).cpu_seconds)
    shutil.rmtree(service)
    told.append(machine.use(()).cpu_seconds)
    begins_with(1)
    told.append(machine.use(()).cpu_seconds)
    assert told == [500.0] * 4
    (service / "cpu.stat").write_text("usage_usec 3000000\n")
    assert machine.use(()).cpu_seconds == 502.0


def test_processes_that_a_cgroup_counted_count_by_themselves_from_then_on_once_it_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cgroup.type").write_text("domain\n")
    (tmp_path / "cgroup.procs").write_text("4711\n")
    (tmp_path / "cpu.stat").write_text("usage_usec 0\n")
    machine = Machine(None, began_at_seconds=0.0)
    machine.adopt_cgroup(MachineCgroup(2, tmp_path, tmp_path, accounting=tmp_path))
    (tmp_path / "cpu.stat").write_text("usage_usec 700000000\n")

    def told_when_the_process_has_used(cpu_seconds: float) -> float | None:
        use = ProcessUse(4711, started_ticks=1, started=1.0, cpu_seconds=cpu_seconds, memory_bytes=1)
        monkeypatch.setattr("storm_operator.agent.machine.process_use", lambda _pid: use)
        return machine.use((4711,)).cpu_seconds

    assert told_when_the_process_has_used(600.0) == 700.0
    for file in tmp_path.iterdir():
        file.unlink()
    assert told_when_the_process_has_used(602.0) == 702.0
