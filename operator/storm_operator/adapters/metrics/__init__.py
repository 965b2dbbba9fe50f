"""Where measurements come from: the agents themselves, or a Prometheus server."""

from __future__ import annotations

from storm_operator.adapters.metrics.prometheus import PrometheusSource
from storm_operator.adapters.metrics.scrape import ScrapeSource
from storm_operator.adapters.metrics.source import MetricsSource

__all__ = ["MetricsSource", "PrometheusSource", "ScrapeSource"]
