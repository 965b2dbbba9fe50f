"""Finding and ending the processes of a cluster, also those whose parent died: by a mark in their environment."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from storm_operator.local.daemons import CLUSTER_MARK, MACHINE_MARK

PROC = Path("/proc")
WORKER_MAIN = b"org.apache.storm.daemon.worker.Worker"
LOG_WRITER_MAIN = b"org.apache.storm.LogWriter"


@dataclass(frozen=True, slots=True)
class WorkerProcess:
    """A running Storm worker."""

    pid: int
    machine: str
    topology_id: str
    port: int


def marked_processes(cluster: str, machine: str | None = None) -> dict[int, str | None]:
    """Ids of all living processes of the cluster (or of one of its machines), each with its machine if it has one."""
    found: dict[int, str | None] = {}
    for pid, environment in _environments():
        if environment.get(CLUSTER_MARK) == cluster and machine in (None, environment.get(MACHINE_MARK)):
            found[pid] = environment.get(MACHINE_MARK)
    return found


def end_processes(cluster: str, machine: str | None = None, patience_seconds: float = 10.0) -> None:
    """Kill every process of the cluster (or machine) but this one, and wait until none is left."""
    deadline = time.monotonic() + patience_seconds
    while True:
        left = [pid for pid in marked_processes(cluster, machine) if pid != os.getpid()]
        if not left:
            return
        if time.monotonic() > deadline:
            raise OSError(f"processes {left} of cluster {cluster!r} do not end")
        for pid in left:
            send_signal(pid, signal.SIGKILL)
        time.sleep(0.02)


def send_signal(pid: int, number: int) -> None:
    """Signal a process that may be gone already."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def worker_processes(cluster: str) -> tuple[WorkerProcess, ...]:
    """The cluster's workers, sorted by machine and port. A worker's last arguments: topology, supervisor, port, id."""
    workers = []
    for pid, machine in marked_processes(cluster).items():
        arguments = _command_line(pid)
        if WORKER_MAIN not in arguments or LOG_WRITER_MAIN in arguments:
            continue
        rest = arguments[arguments.index(WORKER_MAIN) + 1 :]
        # topology id, supervisor id, supervisor's own port, worker's port, worker id
        workers.append(WorkerProcess(pid, machine or "", rest[0].decode(), int(rest[-2])))
    return tuple(sorted(workers, key=lambda worker: (worker.machine, worker.port)))


def _environments() -> Iterator[tuple[int, Mapping[str, str]]]:
    for entry in PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            raw = (entry / "environ").read_bytes()
        except OSError:
            # Ended meanwhile, or another user's: not one of ours.
            continue
        if CLUSTER_MARK.encode() in raw:
            pairs = (item.partition(b"=") for item in raw.split(b"\0") if item)
            yield int(entry.name), {name.decode(errors="replace"): v.decode(errors="replace") for name, _, v in pairs}


def _command_line(pid: int) -> list[bytes]:
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return []
