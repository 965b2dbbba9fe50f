"""Which cgroup hierarchy is used, and what is written into it, on folders that look like the kernel's."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from storm_operator.local import cgroups
from storm_operator.local.cgroups import (
    PARENT,
    SUBTREE_CONTROL,
    Hierarchy,
    can_hold_machines,
    create_machine_cgroup,
    find_hierarchy,
    process_files,
    remove_cluster_cgroups,
    set_capacity,
    throttled_periods,
    used_cpu_seconds,
)
from storm_operator.local.lifecycle import plan_layout
from storm_operator.local.spec import LocalClusterSpec


def test_cgroups_that_somebody_else_removes_meanwhile_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that come up at once both sweep what a crash left."""
    cluster = tmp_path / PARENT / "x"
    (cluster / "machine-1" / "task-3").mkdir(parents=True)

    def vanishing(folder: Path, _: str) -> Iterator[Path]:
        yield folder / "machine-1"
        shutil.rmtree(tmp_path / PARENT)
        raise FileNotFoundError

    monkeypatch.setattr(Path, "rglob", vanishing)
    remove_cluster_cgroups("x", Hierarchy(1, tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_v1_with_cpu_and_accounting_apart() -> None:
    mounts = "cgroup /c/cpu cgroup rw,relatime,cpu 0 0\ncgroup /c/acct cgroup rw,cpuacct 0 0\n"
    assert find_hierarchy(mounts) == Hierarchy(1, Path("/c/cpu"), Path("/c/acct"))


def test_v1_with_both_in_one_mount() -> None:
    assert find_hierarchy("cgroup /c/both cgroup rw,cpu,cpuacct 0 0\n") == Hierarchy(1, Path("/c/both"))


def test_cpuset_is_not_cpu() -> None:
    assert find_hierarchy("cgroup /c/cpuset cgroup rw,cpuset 0 0\n") is None


def test_v2_counts_only_with_the_cpu_controller(tmp_path: Path) -> None:
    mounts = f"cgroup2 {tmp_path} cgroup2 rw,nsdelegate 0 0\n"
    (tmp_path / "cgroup.controllers").write_text("memory pids\n")
    assert find_hierarchy(mounts) is None
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu memory\n")
    assert find_hierarchy(mounts) == Hierarchy(2, tmp_path)


def test_v1_capacity_is_a_quota_of_a_20_ms_period(tmp_path: Path) -> None:
    set_capacity(tmp_path, 500.0)
    assert (tmp_path / "cpu.cfs_period_us").read_text() == "20000"
    assert (tmp_path / "cpu.cfs_quota_us").read_text() == "10000"


def test_v2_capacity_and_delegation_down_to_the_machine(tmp_path: Path) -> None:
    machine = tmp_path / "storm-operator-local" / "x" / "machine-1"
    machine.mkdir(parents=True)
    (machine / "cpu.max").write_text("max 100000")
    create_machine_cgroup(Hierarchy(2, tmp_path), "x", "machine-1", 1500.0)
    assert (machine / "cpu.max").read_text() == "30000 20000"
    for parent in list(machine.parents)[:3]:
        assert (parent / "cgroup.subtree_control").read_text() == "+cpu"


@pytest.mark.parametrize(
    ("quota", "burst"), [("cpu.cfs_quota_us", "cpu.cfs_burst_us"), ("cpu.max", "cpu.max.burst")], ids=["v1", "v2"]
)
def test_a_capacity_falls_and_rises_without_a_burst_above_the_quota(
    quota: str, burst: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in ((quota, "20000 20000"), (burst, "20000"), ("cpu.cfs_period_us", "20000")):
        (tmp_path / name).write_text(text)
    write = Path.write_text

    def written_by_the_kernel(file: Path, text: str) -> int:
        """Which refuses a burst above the quota, whichever of the two is written."""
        size = write(file, text)
        if int((tmp_path / burst).read_text()) > int((tmp_path / quota).read_text().split()[0]):
            raise OSError(errno.EINVAL, "Invalid argument")
        return size

    monkeypatch.setattr(Path, "write_text", written_by_the_kernel)
    for millicores, allowed in ((500.0, "10000"), (2000.0, "40000")):
        set_capacity(tmp_path, millicores)
        assert (tmp_path / quota).read_text().split()[0] == (tmp_path / burst).read_text() == allowed


def test_a_process_joins_both_hierarchies_of_v1(tmp_path: Path) -> None:
    hierarchy = Hierarchy(1, tmp_path / "cpu", tmp_path / "acct")
    create_machine_cgroup(hierarchy, "x", "machine-1", 1000.0)
    files = process_files(hierarchy, tmp_path / "cpu/storm-operator-local/x/machine-1")
    assert [file.parent.is_dir() for file in files] == [True, True]
    assert {file.relative_to(tmp_path).parts[0] for file in files} == {"cpu", "acct"}


def test_readings_that_fail_are_unknown_and_not_zero(tmp_path: Path) -> None:
    hierarchy = Hierarchy(1, tmp_path)
    assert used_cpu_seconds(hierarchy, tmp_path / "machine-1") is None
    assert throttled_periods(tmp_path / "machine-1") is None


def test_readings_of_v1_and_v2(tmp_path: Path) -> None:
    (tmp_path / "cpuacct.usage").write_text("2500000000\n")
    (tmp_path / "cpu.stat").write_text("nr_periods 9\nnr_throttled 4\nusage_usec 1500000\n")
    assert used_cpu_seconds(Hierarchy(1, tmp_path), tmp_path) == 2.5
    assert used_cpu_seconds(Hierarchy(2, tmp_path), tmp_path) == 1.5
    assert throttled_periods(tmp_path) == 4


@pytest.fixture
def container(tmp_path: Path) -> Hierarchy:
    """A v2 hierarchy that may be written, and whose groups below the first refuse to hand on control."""
    (tmp_path / PARENT / SUBTREE_CONTROL).mkdir(parents=True)  # a folder: writing to it fails
    (tmp_path / SUBTREE_CONTROL).write_text("memory")
    return Hierarchy(2, tmp_path)


def test_a_hierarchy_that_may_be_written_and_refuses_holds_no_machines(container: Hierarchy) -> None:
    assert not can_hold_machines(container, 1000.0)
    assert [path.name for path in (container.control / PARENT).iterdir()] == [SUBTREE_CONTROL]
    assert (container.control / SUBTREE_CONTROL).read_text() == "-cpu"


def test_cpu_control_that_was_on_before_a_trial_stays_on(container: Hierarchy) -> None:
    (container.control / SUBTREE_CONTROL).write_text("cpu memory")
    assert not can_hold_machines(container, 1000.0)
    assert (container.control / SUBTREE_CONTROL).read_text() == "+cpu"


def remove_with_files(folder: Path) -> bool:
    """As the kernel does, of whose cgroups the files go by themselves."""
    shutil.rmtree(folder)
    return True


@pytest.mark.parametrize("version", [1, 2])
def test_a_hierarchy_that_takes_a_machine_is_left_without_the_trial(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "_remove_tree", remove_with_files)
    assert can_hold_machines(Hierarchy(version, tmp_path), 1000.0)
    assert not (tmp_path / PARENT).exists()


def test_a_cluster_is_planned_without_cgroups_where_a_trial_is_refused(
    container: Hierarchy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "usable_hierarchy", lambda: container)
    layout = plan_layout(LocalClusterSpec(name="unit-trial"), {}, isolate=True)
    assert [machine.cgroup for machine in layout.machines] == [None] * 4
    assert any("CPU limits are not enforced" in sentence for sentence in layout.not_emulated)
