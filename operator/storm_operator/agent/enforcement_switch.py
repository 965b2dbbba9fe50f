"""Whether this agent enforces, and why not: decided as soon as the machine's cgroup is known, said once.

In a pod the supervisor's container may be started anew, in another cgroup, and a service of systemd in one of the same
name: then that is found, and prepared, like the first. So is one from which the cpu controller was taken, as systemd
does when a service's settings change that does not delegate its cgroup.
"""

from __future__ import annotations

import logging
from pathlib import Path

from storm_operator.agent.cgroups import executor_cgroups
from storm_operator.agent.enforcement import Enforcer
from storm_operator.agent.limits import Limits
from storm_operator.agent.machine import Machine, find_cgroup
from storm_operator.agent.machine_cgroup import CgroupError, MachineCgroup
from storm_operator.agent.worker_snapshot import WorkerSnapshot
from storm_operator.core.agent_enforcement import OBSERVE_ONLY

RETRY_SECONDS = 30.0
NO_WORKER = "no worker has been seen yet"

log = logging.getLogger(__name__)


class EnforcementSwitch:
    """`declined` is why limits are not wanted here (empty: they are)."""

    def __init__(self, machine: Machine, host: str, given_cgroup: Path | None, declined: str) -> None:
        self._machine = machine
        self._host = host
        self._given_cgroup = given_cgroup
        self._declined = declined
        self._cgroup: MachineCgroup | None = None
        self._inode: int | None = None
        self._retry_at_seconds = 0.0
        self.enforcer: Enforcer | None = None
        self._reason = declined or NO_WORKER

    @property
    def mode(self) -> str:
        return self.enforcer.mode if self.enforcer else OBSERVE_ONLY

    @property
    def reason(self) -> str:
        """Why executors are not held, or not all of them; empty where all that have a limit are."""
        return self.enforcer.why_not_all() if self.enforcer else self._reason

    def step(self, workers: tuple[WorkerSnapshot, ...], limits: Limits, now_seconds: float) -> None:
        """One pass: find the cgroup if that is still to be done, then bring limits in line."""
        if self._cgroup is not None:
            if _inode(self._cgroup.path) != self._inode:
                self._lose(f"{self._cgroup.path} is gone: looking for the one that workers are in now")
            elif self.enforcer is not None and not self.enforcer.can_limit():
                self._lose(
                    f"the cpu controller was taken from {self._cgroup.path}, and all limits with it: preparing it anew"
                    " (a service of systemd keeps it with Delegate=yes)"
                )
        if self._cgroup is None and (workers or self._given_cgroup) and now_seconds >= self._retry_at_seconds:
            self._locate(tuple(worker.pid for worker in workers), now_seconds)
        if self.enforcer is not None:
            self.enforcer.enforce(workers, limits)

    def close(self) -> None:
        if self.enforcer is not None:
            self.enforcer.close()

    def _locate(self, worker_pids: tuple[int, ...], now_seconds: float) -> None:
        try:
            cgroup = find_cgroup(worker_pids, self._given_cgroup)
            inode = _inode(cgroup.path)
            self._machine.adopt_cgroup(cgroup)
            enforcer = Enforcer(executor_cgroups(cgroup), self._host)
            if self._declined:
                enforcer.remove_leftovers()
            else:
                enforcer.start()
                self.enforcer, self._reason = enforcer, ""
                log.info("enforcing CPU limits below %s (%s)", cgroup.path, enforcer.mode)
        except CgroupError as error:
            self._retry_at_seconds = now_seconds + RETRY_SECONDS
            if not self._declined and self._reason != str(error):
                self._reason = str(error)
                log.warning("observing only, CPU limits are not enforced: %s", error)
        else:
            self._cgroup, self._inode = cgroup, inode

    def _lose(self, why: str) -> None:
        """Its groups are gone with it, or without limits."""
        log.info(why)
        self._cgroup, self.enforcer, self._reason = None, None, self._declined or NO_WORKER


def _inode(folder: Path) -> int | None:
    """What tells a cgroup from a later one at the same place; None when there is none."""
    try:
        return folder.stat().st_ino
    except OSError:
        return None
