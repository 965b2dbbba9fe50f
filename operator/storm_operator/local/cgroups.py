"""A cgroup around each emulated machine, so that its CPU capacity is real. cgroup v1 and v2.

Under v1 the machine has a folder in the `cpu` hierarchy and, where that is mounted apart, one in `cpuacct`. Under v2
it has one folder whose children may be threaded: the agent puts single executor threads there.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PERIOD_MICROSECONDS = 20_000
"""Short, so that a throttled machine stutters in steps of 20 ms instead of the kernel's usual 100."""

PARENT = "storm-operator-local"
MOUNTS = Path("/proc/self/mounts")
SUBTREE_CONTROL = "cgroup.subtree_control"


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Where cgroups with CPU control can be made. `accounting` is None when `control` counts CPU by itself."""

    version: int
    control: Path
    accounting: Path | None = None

    def roots(self) -> tuple[Path, ...]:
        return (self.control, self.accounting) if self.accounting else (self.control,)


def find_hierarchy(mounts: str) -> Hierarchy | None:
    """The hierarchy with the cpu controller, from the text of /proc/self/mounts; None when there is none."""
    control = accounting = unified = None
    for line in mounts.splitlines():
        _, point, kind, options = line.split()[:4]
        if kind == "cgroup" and "cpu" in options.split(","):
            control = Path(point)
        if kind == "cgroup" and "cpuacct" in options.split(","):
            accounting = Path(point)
        if kind == "cgroup2":
            unified = Path(point)
    if control:
        return Hierarchy(1, control, accounting if accounting != control else None)
    if unified and "cpu" in _controllers(unified):
        return Hierarchy(2, unified)
    return None


def usable_hierarchy() -> Hierarchy | None:
    """The hierarchy of this machine when cgroups can be made in it by this user."""
    hierarchy = find_hierarchy(MOUNTS.read_text())
    if hierarchy is None or not all(os.access(root, os.W_OK) for root in hierarchy.roots()):
        return None
    return hierarchy


def hierarchy_for_machines(capacity_millicores: float) -> Hierarchy | None:
    """The usable hierarchy, when a machine of this capacity can in fact be made in it: that is tried, once.

    A writable one may refuse: under v2 in a container, where the cgroup at its top holds processes, none below may hand
    on CPU control; under v1 no machine may have more than the container.
    """
    hierarchy = usable_hierarchy()
    return hierarchy if hierarchy and can_hold_machines(hierarchy, capacity_millicores) else None


def can_hold_machines(hierarchy: Hierarchy, capacity_millicores: float) -> bool:
    """Whether the kernel lets a machine be made; nothing stays of the trial."""
    trial = f"trial.{os.getpid()}"  # no cluster's name has a dot
    to_undo = hierarchy.version == 2 and _withholds_cpu(hierarchy.control)
    works = True
    try:
        create_machine_cgroup(hierarchy, trial, "machine", capacity_millicores)
    except OSError:
        works = False
    with contextlib.suppress(OSError):
        remove_cluster_cgroups(trial, hierarchy)
        if to_undo and not works:
            (hierarchy.control / SUBTREE_CONTROL).write_text("-cpu")
    return works


def _withholds_cpu(folder: Path) -> bool:
    """Whether cgroups below `folder` are known to be without the cpu controller."""
    try:
        return "cpu" not in (folder / SUBTREE_CONTROL).read_text().split()
    except OSError:
        return False


def cluster_cgroup(hierarchy: Hierarchy, cluster: str) -> Path:
    return hierarchy.control / PARENT / cluster


def create_machine_cgroup(hierarchy: Hierarchy, cluster: str, machine: str, capacity_millicores: float) -> None:
    """Make the machine's cgroup and set its capacity."""
    for root in hierarchy.roots():
        folder = root / PARENT / cluster / machine
        folder.mkdir(parents=True, exist_ok=True)
        if hierarchy.version == 2:
            for parent in (root, root / PARENT, root / PARENT / cluster):
                (parent / SUBTREE_CONTROL).write_text("+cpu")
    set_capacity(cluster_cgroup(hierarchy, cluster) / machine, capacity_millicores)


def set_capacity(cgroup: Path, capacity_millicores: float) -> None:
    """CPU that the cgroup may use; acts at once."""
    quota = max(1000, round(PERIOD_MICROSECONDS * capacity_millicores / 1000.0))
    is_v2 = (cgroup / "cpu.max").exists()
    burst = cgroup / ("cpu.max.burst" if is_v2 else "cpu.cfs_burst_us")
    # A burst greater than the quota is refused: down before the quota falls, up after it rose.
    _allow_burst(burst, 0)
    if is_v2:
        (cgroup / "cpu.max").write_text(f"{quota} {PERIOD_MICROSECONDS}")
    else:
        (cgroup / "cpu.cfs_period_us").write_text(str(PERIOD_MICROSECONDS))
        (cgroup / "cpu.cfs_quota_us").write_text(str(quota))
    _allow_burst(burst, quota)


def _allow_burst(file: Path, microseconds: int) -> None:
    """What one period left unused may be used in the next.

    Threads of a machine with one core take turns; here two may run at once, use up the quota in half a period and
    then all wait. The burst takes that stall away; on average the capacity is what it is. Older kernels lack it.
    """
    if file.exists():
        file.write_text(str(microseconds))


def process_files(hierarchy: Hierarchy, cgroup: Path) -> tuple[Path, ...]:
    """The files into which a process writes its id to join the machine."""
    relative = cgroup.relative_to(hierarchy.control)
    return tuple(root / relative / "cgroup.procs" for root in hierarchy.roots())


def used_cpu_seconds(hierarchy: Hierarchy, cgroup: Path) -> float | None:
    """CPU used by everything that ever ran in the cgroup; None when unknown."""
    relative = cgroup.relative_to(hierarchy.control)
    try:
        if hierarchy.version == 2:
            return _statistics(cgroup / "cpu.stat")["usage_usec"] / 1e6
        return int((((hierarchy.accounting or hierarchy.control) / relative) / "cpuacct.usage").read_text()) / 1e9
    except (OSError, KeyError, ValueError):
        return None


def throttled_periods(cgroup: Path) -> int | None:
    """How often the machine hit its capacity; None when unknown."""
    try:
        return _statistics(cgroup / "cpu.stat")["nr_throttled"]
    except (OSError, KeyError, ValueError):
        return None


def remove_cluster_cgroups(cluster: str, hierarchy: Hierarchy, patience_seconds: float = 5.0) -> None:
    """Kill whatever is left in the cluster's cgroups and remove them, child cgroups of executor threads included."""
    deadline = time.monotonic() + patience_seconds
    for root in hierarchy.roots():
        folder = root / PARENT / cluster
        while folder.exists():
            for pid in processes_below(folder):
                _kill(pid)
            if _remove_tree(folder):
                break
            if time.monotonic() > deadline:
                raise OSError(f"{folder} cannot be removed: processes {sorted(processes_below(folder))} do not end")
            time.sleep(0.02)
        with contextlib.suppress(FileNotFoundError):
            if not any(entry.is_dir() for entry in (root / PARENT).iterdir()):
                _remove_tree(root / PARENT)


def processes_below(folder: Path) -> frozenset[int]:
    """Ids of the processes in a cgroup or its descendants."""
    found: set[int] = set()
    for group in (folder, *_descendants(folder)):
        try:
            found.update(int(line) for line in (group / "cgroup.procs").read_text().split())
        except OSError:
            # Removed meanwhile, or a threaded cgroup: its processes are listed by the one above.
            continue
    return frozenset(found)


def _remove_tree(folder: Path) -> bool:
    try:
        for group in sorted(_descendants(folder), key=lambda path: -len(path.parts)):
            group.rmdir()
        folder.rmdir()
    except OSError:
        return not folder.exists()
    return True


def _descendants(folder: Path) -> Iterator[Path]:
    """But for those that somebody else removes meanwhile."""
    with contextlib.suppress(FileNotFoundError):
        yield from (path for path in folder.rglob("*") if path.is_dir())


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _controllers(unified: Path) -> Iterable[str]:
    try:
        return (unified / "cgroup.controllers").read_text().split()
    except OSError:
        return ()


def _statistics(path: Path) -> dict[str, int]:
    return {name: int(value) for name, value in (line.split() for line in path.read_text().splitlines())}
