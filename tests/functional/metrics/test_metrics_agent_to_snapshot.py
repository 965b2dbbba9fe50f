"""The whole way of a count: worker's file -> real agent -> HTTP -> ScrapeSource -> snapshot.

This process plays the worker.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builders import chain_topology, placed, slot, supervisors
from storm_operator.adapters.metrics import ScrapeSource
from storm_operator.agent.options import AgentOptions
from storm_operator.agent.service import AgentService
from storm_operator.core.model import Assignment
from storm_operator.core.snapshot_builder import ClusterView, build_snapshot

pytestmark = pytest.mark.functional

MACHINES = supervisors(1)
HOST = MACHINES[0].host
WORDS = chain_topology("words", ("spout", 1), ("count", 2))
SPOUT, COUNT_A, COUNT_B = WORDS.executors
SLOTS = placed(WORDS, {"spout": "s1", "count": "s1"})
VIEW = ClusterView(MACHINES, (WORDS,), Assignment(SLOTS))
PERIOD_SECONDS = 3.0
WINDOW_SECONDS = 10.0


def worker_file(seconds: float, pid: int) -> dict[str, Any]:
    """What a worker that has run for `seconds` writes: 300 tuples/s from the spout, a third and two thirds of them."""
    tid = threading.get_native_id()
    counts = {SPOUT: 300 * seconds, COUNT_A: 100 * seconds, COUNT_B: 200 * seconds}
    return {
        "version": 1,
        "topology_id": "words",
        "host": HOST,
        "port": 6700,
        "pid": pid,
        "started_at_ms": 0,
        "written_at_ms": time.time() * 1000,
        "exact": True,
        "executors": [
            {
                "task_start": executor.task_start,
                "task_end": executor.task_end,
                "component": executor.component,
                "tid": tid,
                "executed": count,
                "emitted": count if executor == SPOUT else 0,
                "transferred": 0,
                "acked": count,
                "failed": 0,
                "queue_length": 0 if executor == SPOUT else 5 * seconds,
                "queue_capacity": 32768,
                "arrival_per_second": 0.0,
            }
            for executor, count in counts.items()
        ],
        "executed_from": [
            {"task": e.task_start, "source_component": "spout", "stream": "default", "tuples": counts[e]}
            for e in (COUNT_A, COUNT_B)
        ],
        "transferred": [{"task": 1, "stream": "default", "tuples": 300 * seconds}],
        "traffic": [
            {"source_task": 1, "stream": "default", "target_task": e.task_start, "tuples": counts[e]}
            for e in (COUNT_A, COUNT_B)
        ],
        "complete_latency": [
            {
                "task": 1,
                "sum_ms": 600 * seconds,
                "count": 300 * seconds,
                "buckets": [[1, 0], [2, 150 * seconds], [4, 300 * seconds], [None, 300 * seconds]],
            }
        ],
    }


@pytest.fixture
def metrics_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "metrics"
    folder.mkdir()
    return folder


@pytest.fixture
def agent_url(metrics_dir: Path) -> Iterator[str]:
    service = AgentService(
        AgentOptions(
            host=HOST,
            metrics_dir=metrics_dir,
            listen=("127.0.0.1", 0),
            zookeeper=None,
            zookeeper_root="/storm/storm-operator",
            peers={},
            cgroup=None,
            cpu_capacity_millicores=1500.0,
            enforce=False,
        )
    )
    port = service.start()
    loop = threading.Thread(target=service.run, daemon=True)
    loop.start()
    try:
        yield f"http://127.0.0.1:{port}/metrics"
    finally:
        service.stop()
        loop.join(10)


def write(metrics_dir: Path, document: dict[str, Any]) -> None:
    temporary = metrics_dir / "new.tmp"
    temporary.write_text(json.dumps(document))
    temporary.replace(metrics_dir / "words@6700.json")


def test_what_workers_write_is_what_the_snapshot_says(metrics_dir: Path, agent_url: str) -> None:
    source = ScrapeSource(lambda: {HOST: agent_url})
    began = time.monotonic()
    write(metrics_dir, worker_file(time.monotonic() - began, os.getpid()))
    source.read_window(time.time(), WINDOW_SECONDS)
    time.sleep(PERIOD_SECONDS)
    write(metrics_dir, worker_file(time.monotonic() - began, os.getpid()))
    now_seconds = time.time()
    snapshot = build_snapshot(VIEW, source.read_window(now_seconds, WINDOW_SECONDS), (), now_seconds)

    # However slow the machine: agents tell how old the files are, and how long it is since the page before.
    assert snapshot.completeness.problems == ()
    assert snapshot.completeness.ratio == 1.0
    load = snapshot.loads[COUNT_B]
    assert load.executed_per_second == pytest.approx(200.0, rel=0.1)
    assert load.queue_growth_per_second == pytest.approx(5.0, rel=0.1)
    assert load.cpu_millicores is not None
    assert snapshot.loads[SPOUT].emitted_per_second == pytest.approx(300.0, rel=0.1)
    assert snapshot.traffic.rate(SPOUT, COUNT_A) == pytest.approx(100.0, rel=0.1)
    assert snapshot.traffic.rate(SPOUT, COUNT_B) == pytest.approx(200.0, rel=0.1)
    rates = snapshot.rates["words"]
    assert rates.acked_per_second == pytest.approx(300.0, rel=0.1)
    assert rates.latency is not None
    assert (rates.latency.mean_ms, rates.latency.p50_ms) == pytest.approx((2.0, 2.0))
    assert snapshot.supervisor("s1").cpu_capacity_millicores == 1500.0
    assert snapshot.worker_pids == {slot("s1"): os.getpid()}
    assert len(snapshot.history) == 1
