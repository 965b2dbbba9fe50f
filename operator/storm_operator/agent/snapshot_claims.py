"""What one worker's snapshot may claim of what all workers of a supervisor share: names, tasks, room on the page."""

from __future__ import annotations

from dataclasses import replace
from heapq import nlargest
from itertools import pairwise
from operator import attrgetter

from storm_operator.agent.snapshot_fields import SnapshotError
from storm_operator.agent.snapshot_files import SUFFIX
from storm_operator.agent.worker_series import page_bytes
from storm_operator.agent.worker_snapshot import WorkerSnapshot

MOST_TASKS = 100_000
"""Of all executors of one worker: whoever reads their labels may look at task by task."""
MOST_PAIRS = 100_000
"""Of tasks that exchange tuples: those with most. Workers of a few dozen tasks that shuffle to thousands have more.

So many, or so large a page, take the agent a second; the operator waits for three.
"""
MOST_PAGE_BYTES = 16 * 1024 * 1024
"""A worker of a thousand executors fills 3 MB, or 14 MB when all of them are spouts with names of a dozen letters."""


def with_largest_flows(worker: WorkerSnapshot) -> WorkerSnapshot:
    """The same worker with the `MOST_PAIRS` largest of its flows: what else it says is believed all the same."""
    if len(worker.traffic) <= MOST_PAIRS:
        return worker
    return replace(worker, traffic=tuple(nlargest(MOST_PAIRS, worker.traffic, key=attrgetter("tuples"))))


def check_claims(worker: WorkerSnapshot, file_name: str) -> None:
    """SnapshotError when the snapshot speaks for another worker than its file, or claims more than one worker may.

    No two files of a folder are then of the same worker, and no two executors of a worker have a task in common.
    """
    own_name = f"{worker.topology_id}@{worker.port}{SUFFIX}"
    if file_name != own_name:
        raise SnapshotError(f"topology_id and port are those of another file, {own_name!r}")
    executors = sorted(worker.executors, key=lambda executor: (executor.task_start, executor.task_end))
    for one, next_one in pairwise(executors):
        if next_one.task_start <= one.task_end:
            raise SnapshotError(f"executors {one.label} and {next_one.label} have tasks in common")
    tasks = sum(executor.task_end - executor.task_start + 1 for executor in executors)
    if tasks > MOST_TASKS:
        raise SnapshotError(f"executors have {tasks} tasks, one worker has at most {MOST_TASKS}")
    latencies = [row.task for row in worker.complete_latency]
    if len(set(latencies)) < len(latencies):
        raise SnapshotError("complete_latency has a task more than once")
    needed = page_bytes(worker)
    if needed > MOST_PAGE_BYTES:
        raise SnapshotError(f"would take some {needed} bytes of the page, one worker has at most {MOST_PAGE_BYTES}")
