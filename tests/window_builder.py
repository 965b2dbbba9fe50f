"""Agents' metrics for tests: series as two scrapes, ten seconds apart, unless told otherwise.

metrics = Scrapes(end_seconds=1000.0)
metrics.add("storm_executor_executed_tuples_total", 0, 3000, supervisor="10.77.0.11", executor="1-1", ...)
window = metrics.window()
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from storm_operator.core.metrics_window import MetricsWindow, Sample, SeriesKey, window_of_samples
from storm_operator.core.model import Executor, Topology, WorkerSlot

PERIOD_SECONDS = 10.0


class Scrapes:
    """Readings by series; the last one is at `end_seconds`, earlier ones every `PERIOD_SECONDS` before."""

    def __init__(self, end_seconds: float = 1000.0, window_seconds: float = 12.0) -> None:
        self.end_seconds = end_seconds
        self.window_seconds = window_seconds
        self.samples: dict[SeriesKey, list[Sample]] = {}

    def add(self, name: str, *values: float, **labels: object) -> None:
        """The readings of one series, oldest first; replaces those that it had."""
        first_at = self.end_seconds - PERIOD_SECONDS * (len(values) - 1)
        self.samples[self.key(name, **labels)] = [
            Sample(float(value), first_at + PERIOD_SECONDS * at) for at, value in enumerate(values)
        ]

    def add_executor(
        self,
        executor: Executor,
        host: str,
        port: int = 6700,
        *,
        cpu_seconds: Sequence[float] = (5.0, 6.0),
        executed: Sequence[float] = (1000.0, 4000.0),
        emitted: Sequence[float] = (1000.0, 4000.0),
        queue: Sequence[float] = (0.0, 0.0),
    ) -> None:
        """An executor that executes and emits 300 tuples/s with a tenth of a core, unless told otherwise."""
        labels = executor_labels(executor, host, port)
        self.add("storm_executor_cpu_seconds_total", *cpu_seconds, **labels)
        self.add("storm_executor_executed_tuples_total", *executed, **labels)
        self.add("storm_executor_emitted_tuples_total", *emitted, **labels)
        self.add("storm_executor_acked_tuples_total", *executed, **labels)
        self.add("storm_executor_failed_tuples_total", *(0.0 for _ in executed), **labels)
        self.add("storm_executor_queue_length", *queue, **labels)

    def add_topology(
        self, topology: Topology, slot_of: Mapping[Executor, WorkerSlot], hosts: Mapping[str, str]
    ) -> None:
        """All executors of a topology, and the processes that they live in, all doing the same."""
        for executor, slot in slot_of.items():
            if executor in topology.executors:
                self.add_executor(executor, hosts[slot.supervisor_id], slot.port)
                self.add_worker(topology.id, hosts[slot.supervisor_id], slot.port, pid=4000 + slot.port)

    def add_worker(
        self, topology_id: str, host: str, port: int = 6700, *, pid: int = 4711, ages: Sequence[float] = (0.0, 0.0)
    ) -> None:
        labels = {"supervisor": host, "topology_id": topology_id, "port": port}
        self.add("storm_worker_info", *(1.0 for _ in ages), **labels, pid=pid)
        self.add("storm_worker_snapshot_age_seconds", *ages, **labels)

    def drop(self, name: str, **labels: object) -> None:
        """Forget every series called `name` that has these labels."""
        wanted = {key: str(value) for key, value in labels.items()}.items()
        self.samples = {
            key: readings
            for key, readings in self.samples.items()
            if not (key.name == name and wanted <= dict(key.labels).items())
        }

    def key(self, name: str, **labels: object) -> SeriesKey:
        return SeriesKey.of(name, {label: str(value) for label, value in labels.items()})

    def window(self, problems: Sequence[str] = ()) -> MetricsWindow:
        return window_of_samples(self.samples, self.end_seconds, self.window_seconds, problems)


def executor_labels(executor: Executor, host: str, port: int) -> dict[str, object]:
    return {
        "supervisor": host,
        "topology_id": executor.topology_id,
        "component": executor.component,
        "executor": executor.label,
        "port": port,
    }
