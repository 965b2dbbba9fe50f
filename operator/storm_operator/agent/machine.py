"""CPU and memory of the whole supervisor: from its cgroup where it has one, else from its workers' processes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import psutil

from storm_operator.agent.machine_cgroup import (
    MILLICORES,
    CgroupError,
    MachineCgroup,
    Mount,
    cgroup_of_process,
    describe_cgroup,
    parse_mounts,
)
from storm_operator.agent.processes import ProcessCpuMeter, process_use, with_log_writers

MOUNTS = Path("/proc/self/mountinfo")


@dataclass(frozen=True, slots=True)
class MachineUse:
    """What a supervisor uses and may use; None is unknown."""

    cpu_seconds: float | None
    throttled_seconds: float | None
    capacity_cores: float
    limit_cores: float | None
    """What its cgroup allows now; on Kubernetes that of its pod, which may be resized below the capacity."""
    memory_bytes: float | None


def find_cgroup(worker_pids: Collection[int], given: Path | None) -> MachineCgroup:
    """The supervisor's: the cgroup at `given`, else the one that its workers are in. CgroupError when there is none, or
    each worker has its own: that of one says nothing of the others, and none of their threads may be moved into it."""
    mounts = parse_mounts(MOUNTS.read_text())
    if given is not None:
        return describe_cgroup(given, mounts)
    found = {pid: cgroup for pid in worker_pids if (cgroup := _cgroup_of(pid, mounts)) is not None}
    if not found:
        raise CgroupError(f"cannot read the cgroup of process {', '.join(map(str, worker_pids))}: it has ended")
    first, *others = found.values()
    if any(other.path != first.path for other in others) or any(
        cgroup.path.name in _words_of(pid) for pid, cgroup in found.items()
    ):
        raise CgroupError(
            f"workers are in cgroups of their own ({first.path}), as Storm's resource isolation makes them: "
            "storm.resource.isolation.plugin.enable: false, or --no-enforce and --cgroup for the one above, is right"
        )
    return first


def _cgroup_of(pid: int, mounts: tuple[Mount, ...]) -> MachineCgroup | None:
    """None where the process has just ended; CgroupError where its cgroup cannot be read or is of no use."""
    try:
        described = Path(f"/proc/{pid}/cgroup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    except OSError as error:
        raise CgroupError(f"cannot read the cgroup of process {pid}: {error.strerror}") from error
    return cgroup_of_process(described, mounts)


def _words_of(pid: int) -> tuple[str, ...]:
    """Its command line. A worker's has its id, by which Storm calls the cgroup of one that is alone in it."""
    try:
        return tuple(Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0"))
    except OSError:
        return ()


class Machine:
    """Measures one supervisor. Its cgroup may become known only when the first worker shows where it is.

    `began_at_seconds` is when the agent did: what was used before is not counted. An earlier agent has told that, added
    to what containers before this one had used: after the fall all of it would seem to have been used at once.
    `shares_cgroup`: other supervisors' workers are in it, so it says what CPU there is, and not who uses it.
    """

    def __init__(
        self, capacity_millicores: float | None, began_at_seconds: float, *, shares_cgroup: bool = False
    ) -> None:
        self._capacity_millicores = capacity_millicores
        self._shares_cgroup = shares_cgroup
        self._cgroup: MachineCgroup | None = None
        self._meter = ProcessCpuMeter(began_at_seconds)
        self._carried_cpu_seconds = 0.0
        self._told_cpu_seconds = 0.0
        self._told_capacity_cores = _all_cores()

    def adopt_cgroup(self, cgroup: MachineCgroup) -> None:
        """From now on CPU is counted by `cgroup`, going on from what was told so far, or from zero."""
        if cgroup != self._cgroup and not self._counts_others(cgroup):
            self._carried_cpu_seconds = self._told_cpu_seconds - (cgroup.cpu_seconds() or 0.0)
        self._cgroup = cgroup

    def use(self, worker_pids: tuple[int, ...]) -> MachineUse:
        own = self._cgroup if self._cgroup is not None and not self._counts_others(self._cgroup) else None
        pids = own.process_ids() if own else None
        uses = [use for pid in pids or with_log_writers(worker_pids) if (use := process_use(pid)) is not None]
        # Also while a cgroup counts: what it told of them is not to be told again once it is gone.
        before_seconds = self._meter.total_seconds
        used_by_processes = self._meter.add(uses) - before_seconds
        counted = own.cpu_seconds() if own else None
        if counted is None:
            self._told_cpu_seconds += used_by_processes
        else:
            self._told_cpu_seconds = self._going_on(counted)
        limit_cores = self._limit_cores()
        return MachineUse(
            cpu_seconds=self._told_cpu_seconds,
            throttled_seconds=own.throttled_seconds() if own else None,
            capacity_cores=self._capacity_cores(limit_cores),
            limit_cores=limit_cores,
            memory_bytes=sum(use.memory_bytes for use in uses),
        )

    def _counts_others(self, cgroup: MachineCgroup) -> bool:
        # The kernel's root cgroup bounds nothing and counts everybody on the host.
        return self._shares_cgroup or cgroup.is_whole_host

    def _going_on(self, counted_seconds: float) -> float:
        """`counted_seconds` beyond what others had told; a cgroup that was made anew counts from zero again."""
        self._carried_cpu_seconds = max(self._carried_cpu_seconds, self._told_cpu_seconds - counted_seconds)
        return counted_seconds + self._carried_cpu_seconds

    def _capacity_cores(self, limit_cores: float | None) -> float:
        """While its cgroup is gone, as between the end of a service and its next start, what it was before."""
        if self._capacity_millicores is not None:
            return self._capacity_millicores / MILLICORES
        if self._cgroup is None or self._cgroup.exists:
            self._told_capacity_cores = _all_cores() if limit_cores is None else limit_cores
        return self._told_capacity_cores

    def _limit_cores(self) -> float | None:
        quota = self._cgroup.quota_millicores() if self._cgroup is not None and self._cgroup.exists else None
        return None if quota is None else quota / MILLICORES


def _all_cores() -> float:
    return float(psutil.cpu_count() or 1)
