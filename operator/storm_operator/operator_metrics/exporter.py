"""The page at /metrics: everything is read at the moment of the scrape, and bounded as the contract says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.metadata import version

from prometheus_client import CollectorRegistry, MetricsHandler, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from storm_operator.adapters.peer_calls import CallBook
from storm_operator.core.host_and_port import host_and_port
from storm_operator.http_listening import ALL_ADDRESSES, HttpServer
from storm_operator.metric_contract import BY_NAME, OPERATOR_METRICS, Kind, Metric
from storm_operator.operator_metrics.cluster import ClusterMetrics, is_number
from storm_operator.operator_metrics.durations import ClusterCalls, Durations
from storm_operator.operator_metrics.readings import PREFIX, Reading

DEFAULT_METRICS_PORT = 9465
"""Beside the agents' 9464; in Kubernetes the operator has a pod, and port 8080, of its own."""
NO_CLUSTER = ""


class RunMode(StrEnum):
    """How the operator runs."""

    KUBERNETES = "kubernetes"
    STANDALONE = "standalone"


class ListenError(Exception):
    """The address to listen on cannot be had; the message says why."""


@dataclass(slots=True, eq=False)
class OperatorMetrics(Collector):
    """All metrics of one operator process."""

    mode: RunMode
    leads: bool = False
    """Whether this is the process that acts."""
    watch_ages: Callable[[], Mapping[str, float]] = dict
    """Seconds since each kind's watch was seen to be whole, by kind."""
    durations: Durations = field(default_factory=Durations)
    _clusters: dict[str, ClusterMetrics] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def cluster(
        self, nimbus: str, namespace_of: Callable[[str], str] = lambda _: "", resizes_pods: bool = False
    ) -> ClusterMetrics:
        """The metrics of a Storm cluster that is managed from now on."""
        with self._lock:
            made = ClusterMetrics(nimbus, self.durations, namespace_of, resizes_pods)
            self._clusters[nimbus] = made
            return made

    def forget(self, nimbus: str) -> None:
        """A Storm cluster is no longer managed: its series end."""
        with self._lock:
            self._clusters.pop(nimbus, None)
        self.durations.forget(nimbus)

    def calls(self, nimbus: str = NO_CLUSTER) -> CallBook:
        """Where calls to the peers of a Storm cluster are noted; to those of none, by default."""
        return ClusterCalls(nimbus, self.durations)

    def describe(self) -> Iterable[Family]:
        return ()

    def collect(self) -> Iterator[Family]:
        families = _Families()
        with self._lock:
            clusters = list(self._clusters.values())
        calls = self.durations.calls()
        for one in clusters:
            families.add(one.nimbus, filter(is_number, (*one.readings(), *calls.pop(one.nimbus, ()))))
        families.add(NO_CLUSTER, calls.pop(NO_CLUSTER, ()))
        families.add_plain("build_info", (version("storm-operator"), self.mode.value), 1.0)
        families.add_plain("leader", (), float(self.leads))
        for kind, age_seconds in self.watch_ages().items():
            families.add_plain("watch_age_seconds", (kind,), age_seconds)
        yield from families.present()
        yield from self.durations.histograms()

    def serve(self, port: int, address: str = ALL_ADDRESSES) -> HttpServer:
        """GET /metrics in a thread of its own. ListenError when the port cannot be had."""
        registry = CollectorRegistry()
        registry.register(self)
        ProcessCollector(registry=registry)
        try:
            server = HttpServer((address, port), MetricsHandler.factory(registry))
        except OSError as error:
            raise ListenError(f"cannot listen on {host_and_port(address, port)}: {error.strerror}") from error
        threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
        return server


class _Families:
    """The contract's families but for histograms and those of the process, being filled."""

    def __init__(self) -> None:
        self._by_name = {m.name: _family(m) for m in OPERATOR_METRICS if m.name.startswith(PREFIX) and not m.buckets}

    def add(self, nimbus: str, readings: Iterable[Reading]) -> None:
        """The readings of one cluster, of each metric no more than the contract says."""
        by_metric: dict[str, list[Reading]] = {}
        for reading in readings:
            by_metric.setdefault(reading.metric, []).append(reading)
        for name, own in by_metric.items():
            kept = bounded(BY_NAME[PREFIX + name], own)
            for reading in kept:
                self.add_plain(name, (nimbus, *reading.labels), reading.value)
            if len(kept) < len(own):
                self.add_plain("omitted_series", (nimbus, PREFIX + name), len(own) - len(kept))

    def add_plain(self, name: str, labels: Sequence[str], value: float) -> None:
        self._by_name[PREFIX + name].add_metric(labels, value)

    def present(self) -> Iterator[Family]:
        return (family for family in self._by_name.values() if family.samples)


def bounded(metric: Metric, readings: Sequence[Reading]) -> Sequence[Reading]:
    """Pure: the readings of one cluster that are exported: the largest, when there are more than may be."""
    if metric.most_series is None or len(readings) <= metric.most_series:
        return readings
    return sorted(readings, key=lambda reading: (-reading.value, reading.labels))[: metric.most_series]


def _family(metric: Metric) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
    return kind(metric.name, metric.meaning, labels=metric.labels)
