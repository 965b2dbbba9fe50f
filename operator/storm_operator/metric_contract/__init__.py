"""Every metric that agents and the operator export, declared once: exporters, docs, rules and dashboards go by this.

Names follow Prometheus' conventions: base units (seconds, bytes, cores, ratios of 0..1), `_total` for counters. A name
here is the one that a query uses, but for a histogram, which has `_bucket`, `_sum` and `_count`. A series whose value
is not known is absent: unknown is never zero. Nothing beyond the standard library is imported, so that an agent can.

docs/reference/metrics.md is made from this file (`make manifests`).
"""

from __future__ import annotations

from storm_operator.metric_contract.agent import AGENT_METRICS
from storm_operator.metric_contract.decisions import DECISION_METRICS
from storm_operator.metric_contract.load import SUPERVISOR_METRICS, TOPOLOGY_METRICS
from storm_operator.metric_contract.loop import LOOP_METRICS, PROCESS_METRICS
from storm_operator.metric_contract.metric import DEFAULT_PAIR_LIMIT, OTHER, Exporter, Kind, Metric

__all__ = [
    "AGENT_METRICS",
    "BY_NAME",
    "DEFAULT_PAIR_LIMIT",
    "METRICS",
    "OPERATOR_METRICS",
    "OTHER",
    "Exporter",
    "Kind",
    "Metric",
]

OPERATOR_METRICS: tuple[Metric, ...] = (
    *LOOP_METRICS,
    *TOPOLOGY_METRICS,
    *SUPERVISOR_METRICS,
    *DECISION_METRICS,
    *PROCESS_METRICS,
)
METRICS: tuple[Metric, ...] = (*AGENT_METRICS, *OPERATOR_METRICS)
BY_NAME = {metric.name: metric for metric in METRICS}
