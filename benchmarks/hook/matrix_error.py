"""How far the traffic matrix is off: snapshots of workers, fitted as the operator fits them, against the truth."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from storm_operator.core.traffic_fit import ObservedTraffic, fit_traffic

Pair = tuple[int, int]
Edge = tuple[str, str]

GROUPING_OF_EDGE: Mapping[Edge, str] = {
    ("source", "shuffled"): "shuffle",
    ("shuffled", "by-key"): "skewed fields",
    ("by-key", "by-key-again"): "fields after fields",
    ("by-key-again", "copies"): "all",
    ("by-key-again", "near"): "local or shuffle",
}
USER_STREAM = "default"
FAN_OUT = {("by-key-again", USER_STREAM): 3.0}
Json = dict[str, Any]


def errors_by_grouping(folder: Path, fit: bool = True) -> dict[str, float]:
    """Weighted error in percent: the sum of what all pairs are off by, of the sum of what was really sent.

    Keys are "<topology> / <grouping>", and "all" for everything together. Without `fit`: of the hook's own counts.
    """
    off: dict[str, float] = defaultdict(float)
    sent: dict[str, float] = defaultdict(float)
    for topology in sorted({_topology(path) for path in (folder / "end").glob("*.json")}):
        component_of, observed = _observed(folder, topology)
        counts = fit_traffic(observed).tuples if fit else observed.sampled
        measured = {
            (source, target): tuples for (source, stream, target), tuples in counts.items() if stream == USER_STREAM
        }
        truth = _truth(folder, topology)
        for source, target in truth.keys() | measured.keys():
            edge = component_of[source], component_of[target]
            difference = abs(truth.get((source, target), 0.0) - measured.get((source, target), 0.0))
            for key in ("all", f"{topology} / {GROUPING_OF_EDGE[edge]}"):
                off[key] += difference
                sent[key] += truth.get((source, target), 0.0)
    return {key: 100.0 * off[key] / sent[key] for key in sorted(sent) if sent[key] > 0.0}


def busiest_task(folder: Path) -> float:
    """Tuples per second sent by the busiest task: says how hard the case was."""
    busiest = 0.0
    for path in (folder / "end").glob("*.json"):
        end, begin = _read(path), _read(folder / "begin" / path.name)
        seconds = (end["written_at_ms"] - begin["written_at_ms"]) / 1000.0
        before = {row["task"]: row["tuples"] for row in begin["transferred"] if row["stream"] == USER_STREAM}
        for row in end["transferred"]:
            if row["stream"] == USER_STREAM:
                busiest = max(busiest, (row["tuples"] - before.get(row["task"], 0)) / seconds)
    return busiest


def _topology(path: Path) -> str:
    """`even-1-1767268800@1027.json` is of `even`."""
    return path.name.rsplit("@", 1)[0].rsplit("-", 2)[0]


def _read(path: Path) -> Json:
    document: Json = json.loads(path.read_text())
    return document


def _observed(folder: Path, topology: str) -> tuple[dict[int, str], ObservedTraffic]:
    component_of: dict[int, str] = {}
    counts: dict[str, dict[tuple[Any, ...], float]] = {"traffic": {}, "transferred": {}, "executed_from": {}}
    for sign, moment in ((1.0, "end"), (-1.0, "begin")):
        for path in (folder / moment).glob("*.json"):
            if _topology(path) != topology:
                continue
            snapshot = _read(path)
            for executor in snapshot["executors"]:
                for task in range(executor["task_start"], executor["task_end"] + 1):
                    component_of[task] = executor["component"]
            for table, rows in counts.items():
                for row in snapshot[table]:
                    key = tuple(value for name, value in row.items() if name != "tuples")
                    rows[key] = rows.get(key, 0.0) + sign * row["tuples"]
    sampled = {(source, stream, target): n for (source, stream, target), n in counts["traffic"].items()}
    received = {(task, component, stream): n for (task, component, stream), n in counts["executed_from"].items()}
    return component_of, ObservedTraffic(sampled, counts["transferred"], received, component_of, FAN_OUT)


def _truth(folder: Path, topology: str) -> dict[Pair, float]:
    truth: dict[Pair, float] = defaultdict(float)
    for sign, moment in ((1.0, "end"), (-1.0, "begin")):
        for path in (folder / moment).glob("*.truth"):
            if _topology(path) == topology:
                for line in path.read_text().splitlines():
                    source, _, target, tuples = line.split()
                    truth[int(source), int(target)] += sign * float(tuples)
    return truth
