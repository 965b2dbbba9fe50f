"""MetricsWindow: what every series did over the last seconds, whoever collected it.

Adapters bring raw samples (value, timestamp); this module alone turns them into first, last and increase, so that
every source of metrics gives the same numbers from the same samples.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import attrgetter

from storm_operator.core.finite import LEAST_MEASURED, is_measure
from storm_operator.core.model import read_only

Labels = tuple[tuple[str, str], ...]
WINDOW_PERIODS = 1.5
"""A pass that comes late must still find the reading of the one before."""
LONGEST_WHOLE = 18
MOST_TASKS = 100_000
"""Of one executor. Whoever reads the label looks at task by task, however many it claims."""


@dataclass(frozen=True, slots=True, order=True)
class SeriesKey:
    """A series' name and its labels, sorted by label name."""

    name: str
    labels: Labels = ()

    @classmethod
    def of(cls, name: str, labels: Mapping[str, str]) -> SeriesKey:
        return cls(name, tuple(sorted(labels.items())))

    def label(self, name: str) -> str:
        """The value of label `name`; empty when the series has no such label (as in Prometheus)."""
        for key, value in self.labels:
            if key == name:
                return value
        return ""

    def whole(self, name: str) -> int | None:
        """The value of label `name` where it is a whole number of 0 or more, of a length that one can have."""
        return _whole(self.label(name))

    def executor_tasks(self) -> tuple[int, int] | None:
        """First and last task by label `executor`; None where that names none, or more than an executor can have."""
        first, last = map(_whole, self.label("executor").partition("-")[::2])
        if first is None or last is None or not first <= last < first + MOST_TASKS:
            return None
        return first, last

    def __str__(self) -> str:
        inside = ",".join(f'{name}="{value}"' for name, value in self.labels)
        return f"{self.name}{{{inside}}}"


@dataclass(frozen=True, slots=True)
class Sample:
    """One reading as the exporter gave it: nothing is corrected here, NaN and infinity included."""

    value: float
    timestamp_seconds: float


@dataclass(frozen=True, slots=True)
class SeriesWindow:
    """One series within a window.

    `increase` is that of a counter between `first` and `last`, resets taken into account (after a reset the new
    value counts whole, as in PromQL, but nothing is extrapolated). It is NaN when any reading is not a number that can
    be measured (`is_measure`): such a counter says nothing. For a gauge look at `first` and `last` only.
    """

    first: Sample
    last: Sample
    increase: float

    @property
    def span_seconds(self) -> float:
        """Time between the two readings; 0 when there is only one."""
        return self.last.timestamp_seconds - self.first.timestamp_seconds


@dataclass(frozen=True, slots=True)
class MetricsWindow:
    """All series seen in (end_seconds - window_seconds, end_seconds]; `problems` says which sources failed and how."""

    end_seconds: float
    window_seconds: float
    series: Mapping[SeriesKey, SeriesWindow]
    problems: tuple[str, ...] = ()
    _by_name: Mapping[str, tuple[SeriesKey, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names: dict[str, list[SeriesKey]] = {}
        for key in sorted(self.series, key=attrgetter("name", "labels")):  # C compares those, not Python
            names.setdefault(key.name, []).append(key)
        object.__setattr__(self, "series", read_only(self.series))
        object.__setattr__(self, "_by_name", read_only({name: tuple(keys) for name, keys in names.items()}))

    def named(self, name: str) -> Iterator[tuple[SeriesKey, SeriesWindow]]:
        """All series called `name`, in the order of their labels."""
        for key in self._by_name.get(name, ()):
            yield key, self.series[key]


def _whole(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) <= LONGEST_WHOLE else None


def summarize_samples(samples: Sequence[Sample]) -> SeriesWindow:
    """First, last and increase of samples in order of time; ValueError when there is none.

    What is nearer to 0 than anything that is measured, as an average that fades for ever, is 0.
    """
    if not samples:
        raise ValueError("a series without samples has no window")
    if any(0.0 < abs(sample.value) < LEAST_MEASURED for sample in samples):
        samples = [s if abs(s.value) >= LEAST_MEASURED else replace(s, value=0.0) for s in samples]
    return SeriesWindow(first=samples[0], last=samples[-1], increase=_increase(samples))


def _increase(samples: Sequence[Sample]) -> float:
    if not all(is_measure(sample.value) for sample in samples):
        return math.nan
    return math.fsum(
        later.value - earlier.value if later.value >= earlier.value else later.value
        for earlier, later in pairwise(samples)
    )


def window_of_samples(
    samples: Mapping[SeriesKey, Iterable[Sample]],
    end_seconds: float,
    window_seconds: float,
    problems: Sequence[str] = (),
    since_seconds: float | None = None,
) -> MetricsWindow:
    """The window of raw samples; those at or before its start, or after its end, are left out.

    Of those up to `since_seconds`, when the window before ended, only the last counts: windows then follow each other
    as that one's last reading is this one's first, however often somebody scrapes.
    """
    start_seconds = end_seconds - window_seconds
    series = {}
    for key, readings in samples.items():
        inside = sorted(
            (sample for sample in readings if start_seconds < sample.timestamp_seconds <= end_seconds),
            key=lambda sample: sample.timestamp_seconds,
        )
        if inside:
            series[key] = summarize_samples(_since(inside, since_seconds))
    return MetricsWindow(end_seconds, window_seconds, series, tuple(problems))


def _since(samples: Sequence[Sample], since_seconds: float | None) -> Sequence[Sample]:
    """The last of `samples` up to `since_seconds`, and those after it."""
    if since_seconds is None:
        return samples
    earlier = bisect_right(samples, since_seconds, key=attrgetter("timestamp_seconds"))
    return samples[max(0, earlier - 1) :]
