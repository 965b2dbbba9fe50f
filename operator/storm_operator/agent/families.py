"""The metric families of an agent: name, type, what it means, labels. One table, and what fills it.

docs/reference/interfaces.md, "Agent metrics", is the contract.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

EXECUTOR = ("topology_id", "component", "executor", "port")
WORKER = ("topology_id", "port")

COUNTERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "storm_executor_cpu_seconds": ("CPU time of the executor's thread.", EXECUTOR),
    "storm_executor_executed_tuples": ("Tuples that the executor took from its queue.", EXECUTOR),
    "storm_executor_emitted_tuples": ("Tuples that the executor emitted.", EXECUTOR),
    "storm_executor_acked_tuples": ("Tuples (trees, for a spout) that the executor acked.", EXECUTOR),
    "storm_executor_failed_tuples": ("Tuples (trees, for a spout) that the executor failed.", EXECUTOR),
    "storm_executor_throttled_seconds": ("Time for which the executor's limit kept its thread waiting.", EXECUTOR),
    "storm_task_executed_tuples": (
        "Tuples that the task executed, by where they came from.",
        ("topology_id", "task", "source_component", "stream"),
    ),
    "storm_task_transferred_tuples": (
        "Tuples that the task sent on a stream, over all receivers.",
        ("topology_id", "task", "stream"),
    ),
    "storm_traffic_tuples": (
        "Tuples that went from one task to another.",
        ("topology_id", "source_task", "stream", "target_task"),
    ),
    "storm_worker_cpu_seconds": ("CPU time of the worker's process.", WORKER),
    "storm_supervisor_cpu_seconds": ("CPU time of everything on the supervisor.", ()),
    "storm_supervisor_throttled_seconds": ("Time for which the machine's own CPU limit kept it waiting.", ()),
}

GAUGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "storm_executor_queue_length": ("Tuples waiting for the executor.", EXECUTOR),
    "storm_executor_arrival_tuples_per_second": ("Tuples arriving at the executor.", EXECUTOR),
    "storm_executor_cpu_limit_millicores": ("CPU that the executor's thread may use.", EXECUTOR),
    "storm_worker_info": ("A worker that runs here.", ("topology_id", "port", "pid")),
    "storm_worker_memory_bytes": ("Resident memory of the worker's process.", WORKER),
    "storm_worker_snapshot_age_seconds": ("Age of what the worker last said.", WORKER),
    "storm_supervisor_cpu_capacity_cores": ("CPU that the supervisor's workers may use together.", ()),
    "storm_supervisor_memory_bytes": ("Resident memory of the processes on the supervisor.", ()),
    "storm_supervisor_round_trip_seconds": ("Round trip to another supervisor, smoothed.", ("peer",)),
    "storm_supervisor_coordinate_milliseconds": ("Network coordinate (Vivaldi).", ("dimension",)),
    "storm_supervisor_coordinate_error_ratio": ("The coordinate's own estimate of its relative error.", ()),
    "storm_supervisor_availability_ratio": ("Recent probes that the other supervisor answered.", ("peer",)),
    "storm_agent_enforcement": ("How executors are held to their CPU limits, and why not.", ("mode", "reason")),
}

LATENCY = "storm_complete_latency_seconds"


class Families:
    """One scrape's worth of metrics, all with the label `supervisor`."""

    def __init__(self, supervisor: str) -> None:
        self._supervisor = supervisor
        self._counters = {
            name: CounterMetricFamily(name, text, labels=("supervisor", *labels))
            for name, (text, labels) in COUNTERS.items()
        }
        self._gauges = {
            name: GaugeMetricFamily(name, text, labels=("supervisor", *labels))
            for name, (text, labels) in GAUGES.items()
        }
        self._latency = HistogramMetricFamily(
            LATENCY,
            "Time from a spout's emit to the end of its tuple tree.",
            labels=("supervisor", "topology_id", "component", "executor"),
        )

    def count(self, name: str, labels: Sequence[str], value: float | None) -> None:
        """Adds a counter's value; None, which is unknown, adds nothing."""
        if value is not None:
            self._counters[name].add_metric((self._supervisor, *labels), value)

    def gauge(self, name: str, labels: Sequence[str], value: float | None) -> None:
        """Adds a gauge's value; None, which is unknown, adds nothing."""
        if value is not None:
            self._gauges[name].add_metric((self._supervisor, *labels), value)

    def latency(self, labels: Sequence[str], buckets: list[tuple[str, float]], sum_seconds: float) -> None:
        self._latency.add_metric((self._supervisor, *labels), buckets, sum_seconds)

    def metrics(self) -> Iterator[Metric]:
        yield from self._counters.values()
        yield from self._gauges.values()
        yield self._latency
