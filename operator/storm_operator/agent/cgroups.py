"""A cgroup of its own for one executor's thread, so that it alone is held to a CPU limit.

One small protocol, two kernels: in version 1 any thread can be put in any group of the cpu hierarchy; in version 2
only in a threaded group below the one where its process lives. Groups are made directly below the machine's.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from storm_operator.agent.machine_cgroup import MILLICORES, CgroupError, MachineCgroup, throttled_seconds

PERIOD_US = 100_000
"""The kernel's own default. A thread may use what one period left in the next (`allow_burst`), so the longer the period
the longer the bursts that get through: at 20 ms threads well below their limit wait many times as long
(docs/benchmarks/agent.md, "The period of CPU limits")."""
LONGEST_PERIOD_US = 1_000_000  # the kernel's bounds: period 1 ms to 1 s, quota at least 1 ms
SHORTEST_QUOTA_US = 1_000
REMOVE_ATTEMPTS = 20
REMOVE_PAUSE_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """`quota_us` of CPU time in each `period_us`."""

    quota_us: int
    period_us: int

    @property
    def millicores(self) -> float:
        return self.quota_us / self.period_us * MILLICORES


def bandwidth_for(millicores: float, ceiling_millicores: float | None) -> Bandwidth:
    """What to write for a limit: at most the ceiling (version 1 refuses a child above its parent).

    Limits below 10 millicores get a longer period, because the kernel refuses quotas under 1 ms.
    """
    allowed = millicores if ceiling_millicores is None else min(millicores, ceiling_millicores)
    quota_us = int(PERIOD_US * allowed / MILLICORES)
    if quota_us >= SHORTEST_QUOTA_US:
        return Bandwidth(quota_us, PERIOD_US)
    period_us = LONGEST_PERIOD_US if allowed <= 0 else -int(-SHORTEST_QUOTA_US * MILLICORES // allowed)
    return Bandwidth(SHORTEST_QUOTA_US, min(LONGEST_PERIOD_US, period_us))


class ExecutorCgroups(Protocol):
    """Groups of single threads below one parent. Methods raise OSError as the kernel refuses."""

    @property
    def mode(self) -> str:
        """How metrics call it: `cgroup-v1` or `cgroup-v2`."""
        ...

    def prepare(self) -> None:
        """Makes sure that groups can be made and limited here; CgroupError with the reason when not."""
        ...

    def can_limit(self) -> bool:
        """Whether what `prepare` made sure of still holds: somebody may have taken it away, with all limits."""
        ...

    def ceiling_millicores(self) -> float | None:
        """What the parent may use altogether, None when it is unlimited."""
        ...

    def names(self) -> tuple[str, ...]:
        """Names of the groups below the parent; CgroupError when they cannot be read."""
        ...

    def create(self, name: str) -> None: ...

    def limit(self, name: str, bandwidth: Bandwidth) -> None: ...

    def add_thread(self, name: str, tid: int) -> None: ...

    def keep_only(self, name: str, tid: int) -> None:
        """Moves all but thread `tid` back to the parent.

        Threads and processes that a limited thread starts are born in its group. They are none of the executor: what
        they use is not measured as its own, and the limit leaves them nothing.
        """
        ...

    def throttled_seconds(self, name: str) -> float | None: ...

    def remove(self, name: str) -> None:
        """Moves what is left in the group back to the parent and removes it; fine when it is gone already."""
        ...

    def close(self) -> None:
        """Leaves the parent as `prepare` found it."""
        ...


def executor_cgroups(machine: MachineCgroup) -> ExecutorCgroups:
    """The implementation for the kernel interface that `machine` is in."""
    return CgroupV1(machine) if machine.version == 1 else CgroupV2(machine)


class _Groups:
    """What both versions share: folders below the parent, and moving threads out before removing one."""

    version: int
    threads_file: str

    def __init__(self, machine: MachineCgroup) -> None:
        self._machine = machine
        self._parent = machine.path

    @property
    def mode(self) -> str:
        return f"cgroup-v{self.version}"

    def ceiling_millicores(self) -> float | None:
        return self._machine.quota_millicores()

    def names(self) -> tuple[str, ...]:
        try:
            return tuple(sorted(entry.name for entry in self._parent.iterdir() if entry.is_dir()))
        except OSError as error:
            raise CgroupError(f"cannot list the cgroups below {self._parent}: {error.strerror}") from error

    def create(self, name: str) -> None:
        (self._parent / name).mkdir(exist_ok=True)

    def add_thread(self, name: str, tid: int) -> None:
        write_control(self._parent / name / self.threads_file, str(tid))

    def keep_only(self, name: str, tid: int) -> None:
        self._move_out(name, but=str(tid))

    def throttled_seconds(self, name: str) -> float | None:
        return throttled_seconds(self.version, self._parent / name)

    def remove(self, name: str) -> None:
        for attempt in range(REMOVE_ATTEMPTS):
            try:
                self._move_out(name)
                (self._parent / name).rmdir()
            except FileNotFoundError:
                return
            except OSError as error:
                # A thread that is just ending, or was just started by one in the group, keeps it busy for a moment.
                if error.errno != errno.EBUSY or attempt == REMOVE_ATTEMPTS - 1:
                    raise
                time.sleep(REMOVE_PAUSE_SECONDS)
            else:
                return

    def _move_out(self, name: str, but: str = "") -> None:
        for tid in (self._parent / name / self.threads_file).read_text().split():
            if tid != but:
                with contextlib.suppress(ProcessLookupError):
                    write_control(self._parent / self.threads_file, tid)


class CgroupV1(_Groups):
    """Version 1: folders of the cpu hierarchy, threads by `tasks`."""

    version = 1
    threads_file = "tasks"

    def prepare(self) -> None:
        probe = f"storm-agent-probe-{os.getpid()}"
        try:
            self.create(probe)
            self.limit(probe, bandwidth_for(MILLICORES, self.ceiling_millicores()))
            self.remove(probe)
        except OSError as error:
            with contextlib.suppress(OSError):
                (self._parent / probe).rmdir()
            raise CgroupError(f"cannot make a cgroup below {self._parent}: {error.strerror}") from error

    def can_limit(self) -> bool:
        return True

    def limit(self, name: str, bandwidth: Bandwidth) -> None:
        folder = self._parent / name
        period, quota = folder / "cpu.cfs_period_us", folder / "cpu.cfs_quota_us"
        burst = folder / "cpu.cfs_burst_us"
        # A burst greater than the quota is refused: down before the quota falls, up after it rose.
        allow_burst(burst, 0)
        if int(period.read_text()) != bandwidth.period_us:
            # Both are checked against the parent at each write: without a quota any period is fine.
            write_control(quota, "-1")
            write_control(period, str(bandwidth.period_us))
        write_control(quota, str(bandwidth.quota_us))
        allow_burst(burst, bandwidth.quota_us)

    def close(self) -> None:
        """Nothing was changed in the parent."""


class CgroupV2(_Groups):
    """Version 2: threaded groups below the one where the workers' processes are, threads by `cgroup.threads`."""

    version = 2
    threads_file = "cgroup.threads"

    def __init__(self, machine: MachineCgroup) -> None:
        super().__init__(machine)
        self._enabled_cpu = False

    def prepare(self) -> None:
        try:
            self._prepare()
        except OSError as error:
            raise CgroupError(f"cannot make threaded cgroups below {self._parent}: {error.strerror}") from error

    def _prepare(self) -> None:
        if "cpu" not in (self._parent / "cgroup.controllers").read_text().split():
            raise CgroupError(f"the cpu controller is not available in {self._parent}")
        if not self.can_limit():
            # With processes inside, this makes the parent a threaded domain, whose threads may then be spread.
            write_control(self._parent / "cgroup.subtree_control", "+cpu")
            self._enabled_cpu = True
        probe = f"storm-agent-probe-{os.getpid()}"
        try:
            self.create(probe)
        finally:
            with contextlib.suppress(OSError):
                (self._parent / probe).rmdir()

    def can_limit(self) -> bool:
        return "cpu" in (self._parent / "cgroup.subtree_control").read_text().split()

    def create(self, name: str) -> None:
        super().create(name)
        write_control(self._parent / name / "cgroup.type", "threaded")

    def limit(self, name: str, bandwidth: Bandwidth) -> None:
        folder = self._parent / name
        allow_burst(folder / "cpu.max.burst", 0)
        write_control(folder / "cpu.max", f"{bandwidth.quota_us} {bandwidth.period_us}")
        allow_burst(folder / "cpu.max.burst", bandwidth.quota_us)

    def close(self) -> None:
        if self._enabled_cpu:
            with contextlib.suppress(OSError):
                write_control(self._parent / "cgroup.subtree_control", "-cpu")


def allow_burst(file: Path, microseconds: int) -> None:
    """What the group left unused of its quota, and may use in a later period, up to so much; never more on average.

    Tuples come in bursts: without it a thread that did nothing for ten periods waits in the eleventh. Kernels before
    5.14 have no such file.
    """
    if file.exists():
        write_control(file, str(microseconds))


def write_control(file: Path, value: str) -> None:
    """One write to a control file that must exist: the kernel takes or refuses it as a whole."""
    descriptor = os.open(file, os.O_WRONLY)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)
