"""Worker snapshot files (version 1), as a worker's metrics hook would write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def executor_document(task: int, component: str = "split", **fields: Any) -> dict[str, Any]:
    """One executor of one task; every count may be set."""
    return {
        "task_start": task,
        "task_end": task,
        "component": component,
        "tid": None,
        "executed": 0,
        "emitted": 0,
        "transferred": 0,
        "acked": 0,
        "failed": 0,
        "queue_length": 0,
        "queue_capacity": 32768,
        "arrival_per_second": 0.0,
    } | fields


def snapshot_document(**fields: Any) -> dict[str, Any]:
    """A worker without executors, unless given."""
    return {
        "version": 1,
        "topology_id": "wordcount-1-1767268800",
        "host": "10.77.0.11",
        "port": 6700,
        "pid": 4711,
        "started_at_ms": 1_000,
        "written_at_ms": 2_000,
        "exact": False,
        "executors": [],
        "executed_from": [],
        "transferred": [],
        "traffic": [],
        "complete_latency": [],
    } | fields


def write_snapshot(folder: Path, document: dict[str, Any]) -> Path:
    """Writes as the contract says: to a temporary name, then renamed."""
    target = folder / f"{document['topology_id']}@{document['port']}.json"
    temporary = target.with_suffix(".tmp")
    temporary.write_text(json.dumps(document))
    temporary.replace(target)
    return target
