"""The cgroup that bounds this supervisor's machine (or pod): where it is, and what it says about CPU.

Both versions of the kernel's interface: version 1 has CPU limits and CPU accounting in two hierarchies, which may
or may not be mounted together; version 2 has both in one. See Documentation/admin-guide/cgroup-v1 and -v2 of Linux.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

MILLICORES = 1000.0
NANOSECONDS = 1e9
MICROSECONDS = 1e6


class CgroupError(Exception):
    """A cgroup cannot be found or used; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Mount:
    """One mounted cgroup hierarchy: `root` is the cgroup that appears at `mount_point`."""

    version: int
    controllers: frozenset[str]
    root: str
    mount_point: Path


@dataclass(frozen=True, slots=True)
class MachineCgroup:
    """A cgroup under CPU control. `accounting` is its twin that counts CPU, None where there is none."""

    version: int
    path: Path
    mount_point: Path
    accounting: Path | None

    @property
    def exists(self) -> bool:
        """Whether it is there, or one at its place: it goes with the service or container that it is of."""
        return self.path.is_dir()

    @property
    def is_whole_host(self) -> bool:
        """Whether this is the kernel's root cgroup, which bounds nothing and counts everybody."""
        if self.version == 1:
            return (self.path / "release_agent").exists()
        return not (self.path / "cgroup.type").exists()

    def quota_millicores(self) -> float | None:
        """The tightest CPU limit of this cgroup and its ancestors; None without any."""
        limits = []
        for folder in (self.path, *self.path.parents):
            limit = quota_millicores(self.version, folder)
            if limit is not None:
                limits.append(limit)
            if folder == self.mount_point:
                break
        return min(limits, default=None)

    def cpu_seconds(self) -> float | None:
        """CPU used by everything in this cgroup since it was made."""
        if self.accounting is None:
            return None
        if self.version == 1:
            usage = read_number(self.accounting / "cpuacct.usage")
            return None if usage is None else usage / NANOSECONDS
        usage = read_flat_keyed(self.accounting / "cpu.stat").get("usage_usec")
        return None if usage is None else usage / MICROSECONDS

    def throttled_seconds(self) -> float | None:
        return throttled_seconds(self.version, self.path)

    def process_ids(self) -> tuple[int, ...] | None:
        """Processes in this cgroup (not in cgroups below it); None when they cannot be read."""
        try:
            return tuple(int(line) for line in (self.path / "cgroup.procs").read_text().split())
        except (OSError, ValueError):
            return None


def quota_millicores(version: int, folder: Path) -> float | None:
    """The limit that `folder` itself sets; None when it sets none or it cannot be read."""
    if version == 1:
        quota, period = read_number(folder / "cpu.cfs_quota_us"), read_number(folder / "cpu.cfs_period_us")
    else:
        try:
            words = (folder / "cpu.max").read_text().split()
        except OSError:
            return None
        if len(words) != 2 or words[0] == "max":
            return None
        quota, period = float(words[0]), float(words[1])
    if quota is None or period is None or quota <= 0 or period <= 0:
        return None
    return quota / period * MILLICORES


def throttled_seconds(version: int, folder: Path) -> float | None:
    """How long threads in `folder` had work but no quota left; None when it cannot be read."""
    statistics = read_flat_keyed(folder / "cpu.stat")
    name, unit = ("throttled_time", NANOSECONDS) if version == 1 else ("throttled_usec", MICROSECONDS)
    return statistics[name] / unit if name in statistics else None


def read_number(file: Path) -> float | None:
    try:
        return float(file.read_text())
    except (OSError, ValueError):
        return None


def read_flat_keyed(file: Path) -> dict[str, float]:
    """A file of `name value` lines; empty when it cannot be read."""
    try:
        lines = [line.split() for line in file.read_text().splitlines()]
        return {words[0]: float(words[1]) for words in lines if len(words) == 2}
    except (OSError, ValueError):
        return {}


def parse_mounts(mountinfo: str) -> tuple[Mount, ...]:
    """The cgroup hierarchies in the text of /proc/self/mountinfo (proc(5))."""
    mounts = []
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, details = before.split(), after.split()
        if len(fields) < 5 or len(details) < 3 or details[0] not in ("cgroup", "cgroup2"):
            continue
        mounts.append(
            Mount(
                version=1 if details[0] == "cgroup" else 2,
                controllers=frozenset(details[2].split(",")),
                root=fields[3],
                mount_point=Path(fields[4]),
            )
        )
    return tuple(mounts)


def cgroup_of_process(proc_cgroup: str, mounts: tuple[Mount, ...]) -> MachineCgroup:
    """Where a process is, from the text of its /proc/PID/cgroup: under version 1 if CPU is controlled there, else 2."""
    paths = {}
    for line in proc_cgroup.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            paths[controller] = path
    for controller, version in (("cpu", 1), ("", 2)):
        mount = _mount_with(mounts, version, controller)
        if mount is not None and controller in paths:
            return describe_cgroup(_path_below(mount, paths[controller]), mounts)
    raise CgroupError("no cgroup hierarchy with the cpu controller is mounted")


def describe_cgroup(path: Path, mounts: tuple[Mount, ...]) -> MachineCgroup:
    """The cgroup at the folder `path`; CgroupError when it is none or its hierarchy does not control CPU."""
    holding = [mount for mount in mounts if path.is_relative_to(mount.mount_point)]
    mount = max(holding, key=lambda mount: len(mount.mount_point.parts), default=None)
    if mount is None or not path.is_dir():
        raise CgroupError(f"{path} is not a cgroup (no such folder in a cgroup file system)")
    if mount.version == 2:
        return MachineCgroup(2, path, mount.mount_point, accounting=path)
    if "cpu" not in mount.controllers:
        raise CgroupError(f"{path} is in a cgroup hierarchy without the cpu controller")
    accounting = _mount_with(mounts, 1, "cpuacct")
    twin = None if accounting is None else accounting.mount_point / path.relative_to(mount.mount_point)
    return MachineCgroup(1, path, mount.mount_point, accounting=twin if twin is not None and twin.is_dir() else None)


def _mount_with(mounts: tuple[Mount, ...], version: int, controller: str) -> Mount | None:
    for mount in mounts:
        if mount.version == version and (version == 2 or controller in mount.controllers):
            return mount
    return None


def _path_below(mount: Mount, cgroup: str) -> Path:
    # In a container the hierarchy may be mounted from the container's own cgroup down, yet named from the root.
    path = Path(cgroup)
    if ".." in path.parts or not path.is_relative_to(mount.root):
        raise CgroupError(f"the cgroup {cgroup} is another container's: only what is below {mount.root} is seen here")
    return mount.mount_point / path.relative_to(mount.root)
