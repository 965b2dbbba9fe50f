"""The operator's own metrics: how its loops fare. Read at each scrape, so that nothing is kept twice."""

from __future__ import annotations

import time
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from storm_operator.core.decision import Hold
from storm_operator.kube.runners import Runners


class LoopCollector(Collector):
    """One series for each Storm cluster, by its Nimbus."""

    def __init__(self, runners: Runners) -> None:
        self._runners = runners

    def collect(self) -> Iterator[Metric]:
        topologies = GaugeMetricFamily(
            "storm_operator_topologies", "StormTopology resources that are managed.", labels=["nimbus"]
        )
        age = GaugeMetricFamily(
            "storm_operator_last_pass_age_seconds", "Time since the last pass of the loop ended.", labels=["nimbus"]
        )
        passes = CounterMetricFamily("storm_operator_passes", "Passes of the loop.", labels=["nimbus"])
        failed = CounterMetricFamily(
            "storm_operator_failed_passes",
            "Passes that found Nimbus, ZooKeeper or the API out of reach.",
            labels=["nimbus"],
        )
        duration = GaugeMetricFamily(
            "storm_operator_last_pass_duration_seconds", "How long the last pass took.", labels=["nimbus"]
        )
        holding = GaugeMetricFamily(
            "storm_operator_holding",
            "Groups of topologies that are left as they are, by reason.",
            labels=["nimbus", "reason"],
        )
        for nimbus, one in list(self._runners.running.items()):
            runner = one.runner
            topologies.add_metric([nimbus], len(runner.owners))
            age.add_metric([nimbus], time.monotonic() - runner.last_pass_at)
            passes.add_metric([nimbus], runner.passes)
            failed.add_metric([nimbus], runner.failed_passes)
            duration.add_metric([nimbus], runner.last_pass_seconds)
            report = runner.publisher.last_report
            reasons = [d.reason.value for _, d in (report.decisions if report else ()) if isinstance(d, Hold)]
            for reason in sorted(set(reasons)):
                holding.add_metric([nimbus, reason], reasons.count(reason))
        yield from (topologies, age, passes, failed, duration, holding)


def serve_metrics(port: int, runners: Runners) -> None:
    """GET /metrics in a thread of its own."""
    registry = CollectorRegistry()
    registry.register(LoopCollector(runners))
    start_http_server(port, registry=registry)
