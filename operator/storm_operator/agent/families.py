"""Prometheus' text format for one scrape: the metrics of the contract, and what fills them.

Own code because it must be quick: the client library takes 70 ms to write the 10,000 series of a large supervisor, most
of them for text that is the same in every scrape. Here the text of a series up to its value is made once.
"""

from __future__ import annotations

from collections.abc import Iterable

from storm_operator.metric_contract import AGENT_METRICS, BY_NAME, Kind, Metric

LATENCY = "storm_complete_latency_seconds"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

LabelValue = str | int
Labels = tuple[LabelValue, ...]
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class SeriesNames:
    """What stands before the value in the line of each series; those that a scrape did not ask for are forgotten."""

    def __init__(self, supervisor: str) -> None:
        self._supervisor = supervisor
        self._of_last_scrape: dict[tuple[str, Labels], str] = {}
        self._asked: dict[tuple[str, Labels], str] = {}

    def begin_scrape(self) -> None:
        self._of_last_scrape, self._asked = self._asked, {}

    def of(self, name: str, labels: Labels) -> str:
        """`labels` are the values of the metric's labels without the first one, the supervisor."""
        key = name, labels
        text = self._of_last_scrape.get(key)
        if text is None:
            text = series_text(name, _metric_of(name).labels, (self._supervisor, *labels))
        self._asked[key] = text
        return text

    def of_bucket(self, labels: Labels, bound: str) -> str:
        key = LATENCY, (*labels, bound)
        text = self._of_last_scrape.get(key)
        if text is None:
            names = (*_metric_of(LATENCY).labels, "le")
            text = series_text(f"{LATENCY}_bucket", names, (self._supervisor, *labels, bound))
        self._asked[key] = text
        return text


class Families:
    """One scrape's worth of metrics, all with the label `supervisor`."""

    def __init__(self, names: SeriesNames) -> None:
        names.begin_scrape()
        self._names = names
        self._lines: dict[str, list[str]] = {metric.name: [] for metric in AGENT_METRICS}

    def add(self, name: str, labels: Labels, value: float | None) -> None:
        """Adds the value of a counter or gauge; None, which is unknown, adds nothing."""
        if value is not None:
            self._lines[name].append(f"{self._names.of(name, labels)}{value!r}\n")

    def add_all(self, name: str, values: Iterable[tuple[Labels, float]]) -> None:
        """As `add`, for thousands of series of one metric."""
        name_of = self._names.of
        self._lines[name] += [f"{name_of(name, labels)}{value!r}\n" for labels, value in values]

    def latency(self, labels: Labels, buckets: Iterable[tuple[str, float]], sum_seconds: float) -> None:
        """One histogram of complete latency; `buckets` are (upper bound, cumulative count), the last infinite."""
        lines, count = self._lines[LATENCY], 0.0
        for bound, count in buckets:
            lines.append(f"{self._names.of_bucket(labels, bound)}{count!r}\n")
        lines.append(f"{self._names.of(f'{LATENCY}_count', labels)}{count!r}\n")
        lines.append(f"{self._names.of(f'{LATENCY}_sum', labels)}{sum_seconds!r}\n")

    def text(self) -> bytes:
        """The whole page; metrics without a series are left out."""
        parts: list[str] = []
        for metric in AGENT_METRICS:
            if lines := self._lines[metric.name]:
                parts.append(f"# HELP {metric.name} {_help_text(metric)}\n# TYPE {metric.name} {metric.kind.value}\n")
                parts += lines
        return "".join(parts).encode()


def series_text(name: str, label_names: tuple[str, ...], values: tuple[LabelValue, ...]) -> str:
    """`name{label="value",...} ` as the text format has it."""
    pairs = zip(label_names, values, strict=True)
    inside = ",".join(f'{label}="{str(value).translate(_ESCAPES)}"' for label, value in pairs)
    return f"{name}{{{inside}}} "


def _metric_of(name: str) -> Metric:
    metric = BY_NAME.get(name)
    if metric is not None:
        return metric
    histogram = BY_NAME[name.removesuffix("_count").removesuffix("_sum")]
    assert histogram.kind is Kind.HISTOGRAM
    return histogram


def _help_text(metric: Metric) -> str:
    return metric.meaning.replace("\\", r"\\").replace("\n", r"\n")
