"""What a Prometheus server has of agents that it scraped: for a fake one to answer from, and for a real one to load."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

TOPOLOGY = "words-1-1"
SCRAPE_SECONDS = 5
PER_SECOND = 100.0
AHEAD = "max_over_time"
"""In the query by which a backfill looks ahead; the other one is of all samples of a time."""
Interval = tuple[float, float]


@dataclass(frozen=True)
class Series:
    """Samples (seconds, value) of one series."""

    name: str
    labels: Mapping[str, str]
    samples: Sequence[tuple[float, float]]

    def within(self, begin: float, end: float) -> list[tuple[float, float]]:
        return [one for one in self.samples if begin < one[0] <= end]


def executor(
    host: str, component: str, tasks: str, begin: int, end: int, silent: Iterable[Interval] = ()
) -> list[Series]:
    """An executor that executes and emits `PER_SECOND` from `begin` to `end`, not scraped in the times `silent`."""
    times = [at for at in range(begin, end + 1, SCRAPE_SECONDS) if not any(a < at < b for a, b in silent)]
    own = {"supervisor": host, "topology_id": TOPOLOGY}
    labels = {**own, "component": component, "executor": tasks, "port": "6700"}
    rates = {
        "storm_executor_executed_tuples_total": PER_SECOND,
        "storm_executor_emitted_tuples_total": PER_SECOND,
        "storm_executor_cpu_seconds_total": 0.1,
        "storm_executor_queue_length": 0.0,
    }
    found = [Series(name, labels, [(at, rate * (at - begin)) for at in times]) for name, rate in rates.items()]
    if component != "lines":
        received = {**own, "task": tasks.partition("-")[0], "source_component": "lines", "stream": "default"}
        executed = [(at, PER_SECOND * (at - begin)) for at in times]
        found.append(Series("storm_task_executed_tuples_total", received, executed))
    return found


class FakePrometheus:
    """Answers the two queries of a backfill, and counts them."""

    def __init__(self, series: Sequence[Series]) -> None:
        self.series = series
        self.asked: Counter[str] = Counter()

    def answer(self, path: str) -> tuple[int, bytes]:
        asked = parse_qs(urlsplit(path).query)
        query, at = asked["query"][0], float(asked["time"][0])
        window, step = (int(found or 0) / 1000.0 for found in re.findall(r"\[(\d+)ms(?::(\d+)ms)?\]", query)[0])
        self.asked["ahead" if AHEAD in query else "samples"] += 1
        result = self._last_seen(at, window, step) if AHEAD in query else self._samples(at, window)
        return 200, json.dumps({"status": "success", "data": {"result": list(result)}}).encode()

    def _samples(self, at: float, window: float) -> Iterator[object]:
        for one in self.series:
            values = [(when, str(value)) for when, value in one.within(at - window, at)]
            if values:
                yield {"metric": {"__name__": one.name} | dict(one.labels), "values": values}

    def _last_seen(self, at: float, window: float, step: float) -> Iterator[object]:
        """At each multiple of `step`; what is not scraped is stale at once."""
        looks = [step * number for number in range(int((at - window) // step) + 1, int(at // step) + 1)]
        for one in self.series:
            seen = [when for look in looks for when, _ in one.within(look - SCRAPE_SECONDS, look)]
            if seen and one.name == "storm_executor_executed_tuples_total":
                metric = {name: one.labels[name] for name in ("topology_id", "component", "executor")}
                yield {"metric": metric, "value": [at, str(max(seen))]}


def open_metrics(series: Sequence[Series]) -> str:
    """The text that `promtool tsdb create-blocks-from openmetrics` reads."""
    lines = []
    for name in sorted({one.name for one in series}):
        lines.append(f"# TYPE {name} gauge")
        for one in series:
            labels = ",".join(f'{key}="{value}"' for key, value in one.labels.items())
            lines += [f"{name}{{{labels}}} {value} {at}" for at, value in one.samples if one.name == name]
    return "\n".join([*lines, "# EOF", ""])
