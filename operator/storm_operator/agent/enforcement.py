"""Holds each executor's thread to the CPU that the plan gives it, by keeping cgroups as they should be.

`changes` is pure: what there is, what should be, what to do. The Enforcer carries it out and remembers what it did. One
executor's trouble (its thread just ended, the kernel refused) never keeps the others from their limits.
"""

from __future__ import annotations

import errno
import hashlib
import itertools
import logging
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass

from storm_operator.agent.cgroups import Bandwidth, ExecutorCgroups, bandwidth_for
from storm_operator.agent.limits import ExecutorKey, Limits
from storm_operator.agent.processes import is_thread_of
from storm_operator.agent.worker_snapshot import WorkerSnapshot
from storm_operator.core.wording import counted

GROUP_PREFIX = "storm-executor"
LONGEST_NAME = 255
"""Bytes that Linux takes as the name of a folder; long names of topologies and pods together may have more."""

_group_numbers = itertools.count()
"""Of groups, whichever Enforcer makes them: one that is made anew for the same thread counts from zero."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """One executor in one worker of this supervisor."""

    executor: ExecutorKey
    port: int


@dataclass(frozen=True, slots=True)
class ThreadLimit:
    """The thread of an executor, in which process, and what it may use."""

    pid: int
    tid: int
    bandwidth: Bandwidth


@dataclass(frozen=True, slots=True)
class Changes:
    """What to do, in this order."""

    remove: tuple[Place, ...]
    create: tuple[Place, ...]
    adjust: tuple[Place, ...]


def wanted_limits(
    workers: Iterable[WorkerSnapshot], limits: Limits, ceiling_millicores: float | None
) -> dict[Place, ThreadLimit]:
    """A limit for each executor that runs here, whose thread is known, and that has one."""
    wanted = {}
    for worker in workers:
        for executor in worker.executors:
            key = ExecutorKey(worker.topology_id, executor.task_start, executor.task_end)
            if executor.tid is not None and key in limits:
                bandwidth = bandwidth_for(limits[key], ceiling_millicores)
                wanted[Place(key, worker.port)] = ThreadLimit(worker.pid, executor.tid, bandwidth)
    return wanted


def changes(applied: Mapping[Place, ThreadLimit], wanted: Mapping[Place, ThreadLimit]) -> Changes:
    """The steps from `applied` to `wanted`; an executor with another thread gets a new group."""
    kept = {place for place in applied if place in wanted and applied[place].tid == wanted[place].tid}
    return Changes(
        remove=tuple(sorted(applied.keys() - kept)),
        create=tuple(sorted(wanted.keys() - kept)),
        adjust=tuple(sorted(place for place in kept if applied[place].bandwidth != wanted[place].bandwidth)),
    )


class Enforcer:
    """Groups of one supervisor. Other supervisors' groups in the same parent are told apart by `host`."""

    def __init__(
        self, cgroups: ExecutorCgroups, host: str, is_thread_of: Callable[[int, int], bool] = is_thread_of
    ) -> None:
        self._cgroups = cgroups
        self._is_thread_of = is_thread_of
        self._prefix = f"{GROUP_PREFIX}@{host}@"
        self._lock = threading.Lock()
        self._applied: dict[Place, ThreadLimit] = {}
        self._number_of: dict[Place, int] = {}
        self._complaints: set[tuple[str, int | None]] = set()
        self._refused: dict[Place, str] = {}
        """Of executors that are not held, though they have a limit and run: what the kernel says."""

    @property
    def mode(self) -> str:
        return self._cgroups.mode

    def start(self) -> None:
        """Checks that limits can be set (CgroupError when not) and removes what a crashed agent left behind."""
        self._cgroups.prepare()
        self.remove_leftovers()

    def can_limit(self) -> bool:
        """Whether limits can still be set, and those that were set are in force."""
        try:
            return self._cgroups.can_limit()
        except OSError:
            return False

    def remove_leftovers(self) -> None:
        """Frees threads that a crashed agent left limited."""
        for name in self._cgroups.names():
            if name.startswith(self._prefix):
                log.info("removing %s, left behind by an earlier agent", name)
                self._remove_group(name)

    def enforce(self, workers: Iterable[WorkerSnapshot], limits: Limits) -> None:
        """Brings the groups in line with who runs here and what the plan gives, with one thread in each. Writes nothing
        when they are."""
        with self._lock:
            wanted = wanted_limits(workers, limits, self._cgroups.ceiling_millicores())
            todo = changes(self._applied, wanted)
            self._refused = {place: why for place, why in self._refused.items() if place in wanted}
            for place in todo.remove:
                self._remove(place)
            for place in todo.create:
                self._create(place, wanted[place])
            for place in todo.adjust:
                self._adjust(place, wanted[place])
            for place in tuple(self._applied):
                self._keep_alone(place)
            concerned = {self._name(place) for place in (*wanted, *self._applied)}
            self._complaints = {complaint for complaint in self._complaints if complaint[0] in concerned}

    def why_not_all(self) -> str:
        """Why not all executors that have a limit are held to it; empty where all are."""
        with self._lock:
            if not self._refused:
                return ""
            number, first = counted(len(self._refused), "executor"), min(self._refused)
            return f"the kernel refuses to hold {number}, as of {first.executor.topology_id}: {self._refused[first]}"

    def limits_in_force(self) -> dict[Place, float]:
        """Millicores that each limited executor may use now."""
        with self._lock:
            return {place: limit.bandwidth.millicores for place, limit in self._applied.items()}

    def throttled_seconds(self, place: Place) -> tuple[Hashable, float] | None:
        """What tells the limited thread's group from others, and how long the thread has had to wait in it; None when
        that cannot be read."""
        limit, number = self._applied.get(place), self._number_of.get(place)
        waited = self._cgroups.throttled_seconds(self._name(place))
        return None if limit is None or number is None or waited is None else ((limit.tid, number), waited)

    def close(self) -> None:
        """Frees every thread and removes every group."""
        with self._lock:
            for place in tuple(self._applied):
                self._remove(place)
            self._cgroups.close()

    def _name(self, place: Place) -> str:
        executor = place.executor
        where = f"@{place.port}@{executor.task_start}-{executor.task_end}"
        name = f"{self._prefix}{executor.topology_id}{where}"
        if len(name.encode()) <= LONGEST_NAME:
            return name
        return f"{self._prefix}{hashlib.sha256(executor.topology_id.encode()).hexdigest()[:16]}{where}"

    def _create(self, place: Place, limit: ThreadLimit) -> None:
        name = self._name(place)
        if not self._is_thread_of(limit.pid, limit.tid):
            return  # ended meanwhile, or the snapshot names a thread of somebody else, which is none of ours
        try:
            self._cgroups.create(name)
            self._cgroups.limit(name, limit.bandwidth)
            self._cgroups.add_thread(name, limit.tid)
        except OSError as error:
            self._complain(name, "limit", error)
            self._remove_group(name)
            if error.errno != errno.ESRCH:
                self._refused[place] = error.strerror or str(error)
        else:
            self._refused.pop(place, None)
            self._number_of[place] = next(_group_numbers)
            self._applied[place] = limit

    def _adjust(self, place: Place, limit: ThreadLimit) -> None:
        try:
            self._cgroups.limit(self._name(place), limit.bandwidth)
        except FileNotFoundError:
            self._forget(place)  # somebody removed the group: the next pass makes it anew
        except OSError as error:
            self._complain(self._name(place), "change the limit of", error)
        else:
            self._applied[place] = limit

    def _keep_alone(self, place: Place) -> None:
        try:
            self._cgroups.keep_only(self._name(place), self._applied[place].tid)
        except FileNotFoundError:
            self._forget(place)
        except OSError as error:
            self._complain(self._name(place), "move what an executor started out of", error)

    def _remove(self, place: Place) -> None:
        if self._remove_group(self._name(place)):
            self._forget(place)

    def _forget(self, place: Place) -> None:
        del self._applied[place], self._number_of[place]

    def _remove_group(self, name: str) -> bool:
        try:
            self._cgroups.remove(name)
        except OSError as error:
            self._complain(name, "remove", error)
            return False
        return True

    def _complain(self, name: str, deed: str, error: OSError) -> None:
        """Says it once. ESRCH is a thread that has ended: its worker is on its way out, nothing to complain of."""
        if error.errno != errno.ESRCH and (name, error.errno) not in self._complaints:
            self._complaints.add((name, error.errno))
            log.warning("cannot %s the cgroup %s, trying again: %s", deed, name, error.strerror)
