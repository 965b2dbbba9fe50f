"""What is said of a metric: name, type, labels, unit, bound, meaning."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

DEFAULT_PAIR_LIMIT = 5_000
"""Pairs of tasks that an agent exports one by one, unless it is told another number."""
OTHER = "other"
"""What a label says where several series are folded into one."""


class Kind(StrEnum):
    """Prometheus' types. Histograms are classic ones: native ones are beyond Prometheus 2.42 and the text format."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Exporter(StrEnum):
    """Who exports a metric."""

    AGENT = "agent"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `labels` are in the order in which exporters give their values.

    `one_for_each` says in words how many series there are. `most_series` is a bound that the exporter keeps for each
    Storm cluster (for each agent: its setting), the largest values being kept; None where what there is one for bounds
    them.
    """

    exporter: Exporter
    name: str
    kind: Kind
    labels: tuple[str, ...]
    unit: str
    one_for_each: str
    meaning: str
    most_series: int | None = None
    buckets: tuple[float, ...] = ()
    """Upper bounds of a histogram, without the infinite one; empty where what is measured brings its own."""


CORES, SECONDS, BYTES, RATIO, TUPLES, PER_SECOND = "cores", "seconds", "bytes", "ratio", "tuples", "tuples per second"
NUMBER, ONE = "number", "always 1"


NIMBUS = ("nimbus",)
TOPOLOGY = ("nimbus", "topology")
COMPONENT = ("nimbus", "topology", "component")
SUPERVISOR_SEEN = ("nimbus", "supervisor")
CLUSTER, OF_TOPOLOGY, OF_COMPONENT, OF_SUPERVISOR = "Storm cluster", "managed topology", "component", "supervisor"
_MOST = {OF_TOPOLOGY: 2_000, OF_COMPONENT: 10_000, OF_SUPERVISOR: 2_000}


def operator_metric(
    name: str, labels: tuple[str, ...], unit: str, one_for_each: str, meaning: str, most: int | None = None
) -> Metric:
    kind = Kind.COUNTER if name.endswith("_total") else Kind.GAUGE
    most = most if most is not None else _MOST.get(one_for_each)
    return Metric(Exporter.OPERATOR, f"storm_operator_{name}", kind, labels, unit, one_for_each, meaning, most)


def durations(
    name: str, labels: tuple[str, ...], one_for_each: str, meaning: str, buckets: tuple[float, ...]
) -> Metric:
    full_name = f"storm_operator_{name}"
    return Metric(Exporter.OPERATOR, full_name, Kind.HISTOGRAM, labels, SECONDS, one_for_each, meaning, buckets=buckets)
