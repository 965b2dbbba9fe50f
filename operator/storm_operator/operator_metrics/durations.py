"""Histograms, and the calls to peers: what is counted as it happens."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from prometheus_client import Histogram, disable_created_metrics
from prometheus_client.metrics_core import Metric as Family

from storm_operator.adapters.peer_calls import CallOutcome, Peer
from storm_operator.metric_contract import BY_NAME
from storm_operator.operator_metrics.readings import PREFIX, Reading

PASS, STEP, CALL = "pass_duration_seconds", "step_duration_seconds", "peer_call_duration_seconds"
CALLS = "peer_calls_total"

disable_created_metrics()  # type: ignore[no-untyped-call]


def histogram_of(name: str) -> Histogram:
    """The contract's histogram of that name, without observations."""
    metric = BY_NAME[PREFIX + name]
    return Histogram(metric.name, metric.meaning, metric.labels, buckets=metric.buckets, registry=None)


@dataclass(slots=True)
class Durations:
    """Of all Storm clusters. Safe for threads."""

    _passes: Histogram = field(default_factory=lambda: histogram_of(PASS))
    _steps: Histogram = field(default_factory=lambda: histogram_of(STEP))
    _calls: Histogram = field(default_factory=lambda: histogram_of(CALL))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _counts: dict[str, dict[tuple[str, ...], int]] = field(default_factory=dict)
    """By Nimbus: calls by peer, verb and outcome."""

    def of_pass(self, nimbus: str, seconds: float) -> None:
        self._passes.labels(nimbus).observe(seconds)

    def of_step(self, nimbus: str, step: str, seconds: float) -> None:
        self._steps.labels(nimbus, step).observe(seconds)

    def of_call(self, nimbus: str, peer: Peer, verb: str, outcome: CallOutcome, seconds: float) -> None:
        """`nimbus` is empty where the peer belongs to no Storm cluster."""
        self._calls.labels(nimbus, peer.value, verb).observe(seconds)
        with self._lock:
            counts = self._counts.setdefault(nimbus, {})
            for each in CallOutcome:  # from 0 on: after calls that went well, the first that does not is an increase
                counts.setdefault((peer.value, verb, each.value), 0)
            counts[peer.value, verb, outcome.value] += 1

    def calls(self) -> dict[str, tuple[Reading, ...]]:
        """Counts of calls by Nimbus."""
        with self._lock:
            return {
                nimbus: tuple(Reading(CALLS, key, count) for key, count in sorted(counts.items()))
                for nimbus, counts in self._counts.items()
            }

    def forget(self, nimbus: str) -> None:
        """A Storm cluster is no longer managed."""
        for histogram in (self._passes, self._steps, self._calls):
            histogram.remove_by_labels({"nimbus": nimbus})
        with self._lock:
            self._counts.pop(nimbus, None)

    def histograms(self) -> Iterator[Family]:
        for histogram in (self._passes, self._steps, self._calls):
            yield from histogram.collect()


@dataclass(frozen=True, slots=True)
class ClusterCalls:
    """A `CallBook` for one Storm cluster; `nimbus` empty: for the Kubernetes API."""

    nimbus: str
    durations: Durations

    def note(self, peer: Peer, verb: str, outcome: CallOutcome, seconds: float) -> None:
        self.durations.of_call(self.nimbus, peer, verb, outcome, seconds)
