from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from agent_snapshots import executor_document, snapshot_document
from storm_operator.agent.snapshot_fields import SnapshotError
from storm_operator.agent.worker_series import counter_readings, gauge_readings, latency_histograms
from storm_operator.agent.worker_snapshot import parse_worker_snapshot

REFERENCE = Path(__file__).parents[3] / "docs/reference/interfaces.md"
FLOW = {"source_task": 1, "stream": "s", "target_task": 2, "tuples": 3}


def parse(**fields: Any) -> Any:
    return parse_worker_snapshot(json.dumps(snapshot_document(**fields)).encode())


def test_reads_every_part() -> None:
    worker = parse(
        executors=[executor_document(2, tid=4750, executed=1.5, queue_length=7)],
        executed_from=[{"task": 2, "source_component": "sentences", "stream": "default", "tuples": 11}],
        transferred=[{"task": 2, "stream": "default", "tuples": 12}],
        traffic=[{"source_task": 2, "stream": "default", "target_task": 5, "tuples": 2.5}],
        complete_latency=[{"task": 2, "sum_ms": 9.0, "count": 3, "buckets": [[0.5, 1], [1, 2], [None, 3]]}],
    )
    assert worker.incarnation == (4711, 1000.0)
    assert worker.executors[0].tid == 4750
    assert worker.executors[0].executed == 1.5
    assert worker.traffic[0].target_task == 5
    assert worker.complete_latency[0].buckets == ((0.5, 1.0), (1.0, 2.0), (math.inf, 3.0))


def test_reads_the_snapshot_that_the_reference_shows() -> None:
    _, _, section = REFERENCE.read_text().partition("## Worker snapshot, version 1")
    shown, _, _ = section.partition("```json\n")[2].partition("```")
    worker = parse_worker_snapshot(shown.encode())
    assert worker.complete_latency[0].buckets[-1] == (math.inf, 0.0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"version": 2}, "version is 2, only 1 is known"),
        ({"pid": "x"}, "^pid must be a whole number, not 'x'"),
        ({"topology_id": ""}, "^topology_id must be a non-empty string"),
        ({"executors": None}, "executors must be a list"),
        ({"executors": [3]}, r"executors\[0\] must be an object"),
        ({"executors": [executor_document(2, executed=-1)]}, r"executors\[0\].executed must be a number of at least 0"),
        ({"executors": [executor_document(2, task_end=1)]}, r"executors\[0\].task_end is 1, before task_start 2"),
        ({"executors": [executor_document(2, tid=True)]}, r"executors\[0\].tid must be a whole number"),
        ({"traffic": [{"source_task": 1, "stream": "s", "target_task": 2}]}, r"traffic\[0\].tuples must be a number"),
        ({"traffic": [FLOW, {**FLOW, "source_task": "1"}]}, r"traffic\[1\].source_task must be a whole number"),
        ({"traffic": [FLOW, {**FLOW, "target_task": True}]}, r"traffic\[1\].target_task must be a whole number"),
        ({"traffic": [FLOW, {**FLOW, "stream": ""}]}, r"traffic\[1\].stream must be a non-empty string"),
        ({"traffic": [FLOW, {**FLOW, "stream": 3}]}, r"traffic\[1\].stream must be a non-empty string"),
        ({"traffic": [FLOW, {**FLOW, "tuples": True}]}, r"traffic\[1\].tuples must be a number"),
        ({"traffic": [FLOW, {**FLOW, "tuples": "3"}]}, r"traffic\[1\].tuples must be a number"),
        ({"traffic": [FLOW, {**FLOW, "tuples": -1}]}, r"traffic\[1\].tuples must be a number"),
        ({"complete_latency": [{"task": 1, "sum_ms": 0, "count": 0}]}, "buckets must be a list"),
        ({"complete_latency": [{"task": 1, "sum_ms": 0, "count": 0, "buckets": 3}]}, "buckets must be a list"),
        ({"complete_latency": [{"task": 1, "sum_ms": 0, "count": 0, "buckets": []}]}, "buckets must be a list"),
        (
            {"complete_latency": [{"task": 1, "sum_ms": 0, "count": 0, "buckets": [[1, 0], [2, 0]]}]},
            "the last one null",
        ),
        (
            {"complete_latency": [{"task": 1, "sum_ms": 0, "count": 1, "buckets": [[1, 2], [None, 1]]}]},
            "a count falls",
        ),
    ],
)
def test_names_the_field_that_is_wrong(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SnapshotError, match=message):
        parse(**fields)


@pytest.mark.parametrize("document", [b"", b"{", b"[]", b"3", b'{"version": 1, "pid": NaN}', b"\xff"])
def test_refuses_what_is_no_snapshot(document: bytes) -> None:
    with pytest.raises(SnapshotError):
        parse_worker_snapshot(document)


def test_unknown_counts_give_no_readings() -> None:
    worker = parse(executors=[executor_document(2, executed=None, queue_length=None, emitted=4)])
    counters = {reading.metric: reading.value for reading in counter_readings(worker)}
    assert "storm_executor_executed_tuples_total" not in counters
    assert counters["storm_executor_emitted_tuples_total"] == 4.0
    assert "storm_executor_queue_length" not in {reading.metric for reading in gauge_readings(worker)}


def test_histogram_sums_the_tasks_of_an_executor_in_seconds() -> None:
    rows = [
        {"task": 1, "sum_ms": 500.0, "count": 3, "buckets": [[1, 1], [2, 2], [None, 3]]},
        {"task": 2, "sum_ms": 700.0, "count": 4, "buckets": [[2, 4], [None, 4]]},
        {"task": 3, "sum_ms": 9.0, "count": 1, "buckets": [[None, 1]]},
    ]
    worker = parse(executors=[executor_document(1, "spout", task_end=2)], complete_latency=rows)
    (histogram,) = latency_histograms(worker)
    assert histogram.labels == ("wordcount-1-1767268800", "spout", "1-2")
    assert histogram.sum_seconds == pytest.approx(1.2)
    assert histogram.buckets == ((0.001, 1.0), (0.002, 6.0), (math.inf, 7.0))


def test_histogram_of_many_tasks_with_bounds_of_their_own_has_them_all() -> None:
    tasks, bounds_each = 300, 100
    rows = [
        {
            "task": task,
            "sum_ms": 1.0,
            "count": bounds_each + 1,
            "buckets": [*([at * tasks + task, at + 1] for at in range(bounds_each)), [None, bounds_each + 1]],
        }
        for task in range(tasks)
    ]
    worker = parse(executors=[executor_document(0, "spout", task_end=tasks - 1)], complete_latency=rows)
    (histogram,) = latency_histograms(worker)
    counts = [count for _, count in histogram.buckets]
    assert counts == [*range(1, tasks * bounds_each + 1), tasks * (bounds_each + 1)]
