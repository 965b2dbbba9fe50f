"""Made-up series of the right kind, and their OpenMetrics text for promtool's backfill.

Names and labels are those of the metric contract: a series that it does not declare is refused. Counters only rise,
loads follow the day, each series has its own phase.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from storm_operator.metric_contract import BY_NAME, Kind

DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Played:
    """One series. A counter grows by `level` per second on average; a gauge is about `level`. `swing` is 0 to 1."""

    name: str
    labels: dict[str, str]
    level: float
    swing: float = 0.3
    counter: bool = False

    def values(self, times: NDArray[np.float64], epoch: float) -> NDArray[np.float64]:
        """At each of `times`; counters are zero at `epoch`."""
        turn = 2 * math.pi / DAY_SECONDS
        phase = (hash_of(self) % 1000) / 1000 * 0.6
        if not self.counter:
            wave = np.sin(turn * times + phase) + 0.1 * np.sin(turn * 97 * times + 7 * phase)
            return np.asarray(np.maximum(self.level * (1 + 0.9 * self.swing * wave), 0.0))
        since = self.level * (times - epoch)
        waved = np.cos(turn * epoch + phase) - np.cos(turn * times + phase)
        return np.asarray(since + self.level * self.swing / turn * waved)


def hash_of(series: Played) -> int:
    """The same in every run, unlike Python's own."""
    return sum((place + 1) * ord(letter) for place, letter in enumerate(series.name + "".join(series.labels.values())))


def checked(series: Played) -> Played:
    """`series`, if the contract declares it; else `ValueError`."""
    base = series.name
    for suffix in ("_bucket", "_count", "_sum"):
        stem = base.removesuffix(suffix)
        if stem in BY_NAME and BY_NAME[stem].kind is Kind.HISTOGRAM:
            base = stem
    metric = BY_NAME.get(base)
    if metric is None:
        raise ValueError(f"{series.name} is not in the metric contract")
    given, declared = set(series.labels) - {"le", "instance"}, set(metric.labels)
    if given != declared:
        raise ValueError(f"{series.name} has the labels {sorted(given)}; the contract says {sorted(declared)}")
    return series


def write_openmetrics(series: Sequence[Played], times: NDArray[np.float64], epoch: float, output: TextIO) -> int:
    """Write all of `series` at `times` (unix seconds); returns how many samples."""
    stamps = [f" {at:.0f}\n" for at in times]
    for one in sorted(series, key=lambda series: series.name):  # OpenMetrics wants a metric's series together
        labels = ",".join(f'{name}="{value}"' for name, value in one.labels.items())
        start = f"{one.name}{{{labels}}} "
        values = one.values(times, epoch)
        output.write("".join([f"{start}{value:.7g}{at}" for value, at in zip(values.tolist(), stamps, strict=True)]))
    output.write("# EOF\n")
    return len(series) * len(stamps)
