"""Raw samples as a Prometheus server's API gives them: the operator asks for them live, a backfill for the past."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from storm_operator.core.metrics_window import Sample, SeriesKey

METRIC_PREFIX = "storm_"
NOT_OF_AGENTS = "storm_(operator|pipeline)_.*"
"""What the operator and pipeline jobs export about themselves: nothing that an agent has measured."""
AGENTS_SERIES = f'__name__=~"{METRIC_PREFIX}.*",__name__!~"{NOT_OF_AGENTS}"'

LABELS_ADDED_BY_PROMETHEUS = frozenset(
    {"__name__", "instance", "job", "namespace", "pod", "container", "endpoint", "node", "service"}
    | {"prometheus", "prometheus_replica", "cluster"}
)
"""By itself, by the Prometheus operator's PodMonitors, and by what monitoring/ and the charts tell it (`cluster`); no
agent has a label of such a name."""


def parse_matrix(data: Any, ignored_labels: frozenset[str]) -> Mapping[SeriesKey, list[Sample]]:
    """Raw samples of a range query's `data`; ValueError when it has another form.

    Series that differ only in ignored labels or in those of LABELS_ADDED_BY_PROMETHEUS (an agent scraped under two
    jobs) are joined: of samples with the same timestamp one is kept.
    """
    ignored = ignored_labels | LABELS_ADDED_BY_PROMETHEUS
    try:
        joined: dict[SeriesKey, dict[float, float]] = {}
        for series in data["result"]:
            labels = {name: value for name, value in series["metric"].items() if name not in ignored}
            key = SeriesKey.of(series["metric"]["__name__"], labels)
            readings = joined.setdefault(key, {})
            for timestamp_seconds, value in series["values"]:
                readings.setdefault(float(timestamp_seconds), float(value))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"unknown form: {error.__class__.__name__}: {error}") from error
    return {key: [Sample(value, at) for at, value in sorted(readings.items())] for key, readings in joined.items()}
