"""What the operator tells Prometheus, in Kubernetes and standalone alike: a listener to each loop, and the page."""

from __future__ import annotations

from storm_operator.operator_metrics.cluster import ClusterMetrics
from storm_operator.operator_metrics.exporter import DEFAULT_METRICS_PORT, ListenError, OperatorMetrics, RunMode

__all__ = ["DEFAULT_METRICS_PORT", "ClusterMetrics", "ListenError", "OperatorMetrics", "RunMode"]
