"""Prometheus' text format for one scrape: the metrics of the contract, and what fills them.

Own code because it must be quick: the client library spent more than half of a large supervisor's scrape on text that
is the same in every scrape. Here the text of a series up to its value is made once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from storm_operator.metric_contract import AGENT_METRICS, BY_NAME, Metric

LATENCY = "storm_complete_latency_seconds"
LATENCY_BUCKET, LATENCY_COUNT, LATENCY_SUM = (f"{LATENCY}_{part}" for part in ("bucket", "count", "sum"))
KEPT_FOR_EACH_SERIES = 2
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

LabelValue = str | int
Labels = tuple[LabelValue, ...]
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class SeriesNames:
    """What stands before the value in the line of each series, made once."""

    def __init__(self, supervisor: str) -> None:
        self._supervisor = supervisor
        self._texts: dict[str, dict[Labels, str]] = {}

    def forget_beyond(self, series: int) -> None:
        """Drops all when there are many more than `series`, which is how many there are now: most have left."""
        if sum(map(len, self._texts.values())) > KEPT_FOR_EACH_SERIES * (series + 1):
            self._texts.clear()

    def known(self, name: str) -> Mapping[Labels, str]:
        """Those made so far of one metric, by the values of its labels without the first one, the supervisor."""
        return self._texts.setdefault(name, {})

    def of(self, name: str, labels: Labels) -> str:
        """`name` is that of a metric, or of a histogram's samples; `labels` are as in `known`."""
        texts = self._texts.setdefault(name, {})
        text = texts.get(labels)
        if text is None:
            text = texts[labels] = series_text(name, _label_names(name), (self._supervisor, *labels))
        return text


class Families:
    """One scrape's worth of metrics, all with the label `supervisor`.

    Each series has one line, that of its last value: a task may for a moment be in two workers, and the count that goes
    over both is the later one.
    """

    def __init__(self, names: SeriesNames) -> None:
        self._names = names
        self._values: dict[str, dict[str, float]] = {metric.name: {} for metric in AGENT_METRICS}

    def add(self, name: str, labels: Labels, value: float | None) -> None:
        """Adds the value of a counter or gauge; None, which is unknown, adds nothing."""
        if value is not None:
            self._values[name][self._names.of(name, labels)] = value

    def add_all(self, name: str, values: Iterable[tuple[Labels, float]]) -> None:
        """As `add`, for thousands of series of one metric."""
        known, name_of = self._names.known(name).get, self._names.of
        self._values[name].update((known(labels) or name_of(name, labels), value) for labels, value in values)

    def latency(self, labels: Labels, buckets: Iterable[tuple[str, float]], sum_seconds: float) -> None:
        """One histogram of complete latency; `buckets` are (upper bound, cumulative count), the last infinite."""
        values, count = self._values[LATENCY], 0.0
        for bound, count in buckets:
            values[self._names.of(LATENCY_BUCKET, (*labels, bound))] = count
        values[self._names.of(LATENCY_COUNT, labels)] = count
        values[self._names.of(LATENCY_SUM, labels)] = sum_seconds

    def text(self) -> bytes:
        """The whole page; metrics without a series are left out."""
        parts: list[str] = []
        for metric in AGENT_METRICS:
            if values := self._values[metric.name]:
                parts.append(f"# HELP {metric.name} {_help_text(metric)}\n# TYPE {metric.name} {metric.kind.value}\n")
                parts += [f"{name}{value!r}\n" for name, value in values.items()]
        self._names.forget_beyond(sum(map(len, self._values.values())))
        return "".join(parts).encode()


def series_text(name: str, label_names: tuple[str, ...], values: tuple[LabelValue, ...]) -> str:
    """`name{label="value",...} ` as the text format has it."""
    pairs = zip(label_names, values, strict=True)
    inside = ",".join(f'{label}="{str(value).translate(_ESCAPES)}"' for label, value in pairs)
    return f"{name}{{{inside}}} "


def _label_names(name: str) -> tuple[str, ...]:
    if name == LATENCY_BUCKET:
        return (*BY_NAME[LATENCY].labels, "le")
    return BY_NAME[LATENCY if name in (LATENCY_COUNT, LATENCY_SUM) else name].labels


def _help_text(metric: Metric) -> str:
    return metric.meaning.replace("\\", r"\\").replace("\n", r"\n")
