"""What the kernel knows about workers' processes and threads. A thing that cannot be read is None.

A worker's own count of CPU would be a sampled one; the kernel's is exact, to the nanosecond, per thread.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from storm_operator.core.short_repr import short_repr

NANOSECONDS = 1e9
START_TIME_FIELD = 22  # of /proc/PID/stat, counted from 1 as in proc(5)
CREATE_TIME_TOLERANCE_SECONDS = 1.0  # the kernel tells it in ticks after a boot time rounded to seconds
STORM_CLASSES = "org.apache.storm."
LOG_WRITER_CLASS = "org.apache.storm.LogWriter"

DEPARTED_KEPT = 256
"""Processes that are remembered although they are not among those read: one that comes back is not counted again."""

PROC = Path("/proc")
LONGEST_OF_THREAD_BYTES = 4096
"""Of what the kernel says of a thread in one line."""


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """What one process has used since it started, at `started` seconds since 1970 as the clock has it now.

    `started_ticks` after boot tell it from a later one with the same pid, whatever becomes of the clock.
    """

    pid: int
    started_ticks: int
    started: float
    cpu_seconds: float
    memory_bytes: int


def is_writer_alive(pid: int, written_at_seconds: float) -> bool:
    """Whether the process that wrote a file at `written_at_seconds` still lives: not gone, dead, or another by now."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return process.create_time() <= written_at_seconds + CREATE_TIME_TOLERANCE_SECONDS
    except psutil.Error:
        return False


def objection_to_writer(pid: int, owner: int, topology_id: str, port: int) -> str:
    """Why process `pid` did not write a file of user `owner` as that worker; empty: nothing speaks against it.

    Storm starts a worker's JVM with its topology's id and its port behind the main class. What workers of one user
    start themselves cannot be told apart.
    """
    try:
        process = psutil.Process(pid)
        user, words = process.uids().effective, process.cmdline()
    except psutil.Error:
        return ""
    if user != owner:
        return f"the file is user {owner}'s, and process {pid} user {user}'s"
    at = max((at for at, word in enumerate(words) if word.startswith(STORM_CLASSES)), default=None)
    if at is None:
        return ""
    main, *arguments = words[at:]
    if arguments[:1] == [topology_id] and str(port) in arguments[1:]:
        return ""
    return f"process {pid} is another's: it runs {main} {short_repr(' '.join(arguments))}"


def thread_start_ticks(pid: int, tid: int) -> int | None:
    """When the thread started, in clock ticks after boot; with its tid it names the thread uniquely."""
    try:
        stat = _read_of_thread(pid, tid, "stat")
        # The name, field 2, is in parentheses and may hold anything, so count from its end.
        return int(stat.rpartition(")")[2].split()[START_TIME_FIELD - 3])
    except (OSError, ValueError, IndexError):
        return None


def is_thread_of(pid: int, tid: int) -> bool:
    return (PROC / str(pid) / "task" / str(tid)).exists()


def thread_cpu_seconds(pid: int, tid: int) -> float | None:
    """Seconds that the thread has been on a CPU since it started."""
    try:
        return int(_read_of_thread(pid, tid, "schedstat").split()[0]) / NANOSECONDS
    except (OSError, ValueError, IndexError):
        return None


def _read_of_thread(pid: int, tid: int, name: str) -> str:
    # Hundreds of times in each scrape: a Path and a text file for each would take longer than the reading.
    descriptor = os.open(f"{PROC}/{pid}/task/{tid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, LONGEST_OF_THREAD_BYTES).decode("utf-8", "replace")
    finally:
        os.close(descriptor)


def process_use(pid: int) -> ProcessUse | None:
    """CPU and memory of one process, without its children."""
    started_ticks = thread_start_ticks(pid, pid)
    if started_ticks is None:
        return None
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            times = process.cpu_times()
            cpu_seconds = times.user + times.system
            return ProcessUse(pid, started_ticks, process.create_time(), cpu_seconds, process.memory_info().rss)
    except psutil.Error:
        return None


def with_log_writers(worker_pids: Iterable[int]) -> tuple[int, ...]:
    """The workers and the log writers that Storm starts them under."""
    pids = set(worker_pids)
    for pid in tuple(pids):
        try:
            parent = psutil.Process(pid).parent()
            if parent is not None and LOG_WRITER_CLASS in parent.cmdline():
                pids.add(parent.pid)
        except psutil.Error:
            continue
    return tuple(sorted(pids))


class ThreadClock:
    """CPU seconds of threads, which refuses a tid that the kernel has given to another thread meanwhile."""

    def __init__(self) -> None:
        self._started: dict[tuple[int, int], int] = {}

    def cpu_seconds(self, pid: int, tid: int) -> float | None:
        started = thread_start_ticks(pid, tid)
        if started is None or self._started.setdefault((pid, tid), started) != started:
            return None
        return thread_cpu_seconds(pid, tid)

    def forget_all_but(self, pids: Iterable[int]) -> None:
        kept = frozenset(pids)
        self._started = {thread: started for thread, started in self._started.items() if thread[0] in kept}


class ProcessCpuMeter:
    """CPU seconds used by a changing set of processes together: never falls when one of them ends.

    What processes had used before `began_at_seconds`, since 1970, is not counted: an earlier agent did.
    """

    def __init__(self, began_at_seconds: float) -> None:
        self.total_seconds = 0.0
        self._began_at_seconds = began_at_seconds
        self._last: dict[tuple[int, int], float] = {}

    def add(self, uses: Iterable[ProcessUse]) -> float:
        """The total after these readings."""
        readings = {(use.pid, use.started_ticks): use for use in uses}
        self.total_seconds += sum(
            max(0.0, use.cpu_seconds - self._counted(process, use)) for process, use in readings.items()
        )
        departed = [known for known in self._last.items() if known[0] not in readings]
        self._last = dict(departed[-DEPARTED_KEPT:]) | {process: use.cpu_seconds for process, use in readings.items()}
        return self.total_seconds

    def _counted(self, process: tuple[int, int], use: ProcessUse) -> float:
        is_older = use.started < self._began_at_seconds
        return self._last.get(process, use.cpu_seconds if is_older else 0.0)
