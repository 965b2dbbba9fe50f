"""The past of a Storm cluster from a Prometheus server that scraped its agents, period by period."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from storm_operator.core.history_rows import Pass
from storm_operator.core.metrics_window import WINDOW_PERIODS, Sample, SeriesKey, window_of_samples
from storm_operator.core.model import Executor
from storm_operator.core.server_url import without_userinfo
from storm_operator.core.snapshot_builder import build_snapshot
from storm_operator.core.view_from_metrics import executor_of, view_from_metrics
from storm_operator.core.window_readings import EXECUTED
from storm_operator.prometheus_api import PrometheusError, fetch_raw_samples

PERIODS_ASKED_AT_ONCE = 60
BRIDGED_PERIODS = 6
"""So long an agent can be silent around the ends of what is asked at once, and its executors are known to be there."""


@dataclass(frozen=True, slots=True)
class PrometheusHistory:
    """Samples of the agents' metrics at `url`. `matchers` narrows to one cluster: `cluster="blue"`."""

    url: str
    matchers: str = ""
    ignored_labels: frozenset[str] = frozenset()
    timeout_seconds: float = 60.0

    def passes(self, first_seconds: float, last_seconds: float, period_seconds: float) -> Iterator[Pass | None]:
        """What the loop would have seen at the end of each period from `first_seconds` on; None: no metrics there.

        Raises `PrometheusError`.
        """
        count = int((last_seconds - first_seconds) // period_seconds)
        ends = [first_seconds + period_seconds * number for number in range(1, count + 1)]
        for start in range(0, len(ends), PERIODS_ASKED_AT_ONCE):
            chunk = ends[start : start + PERIODS_ASKED_AT_ONCE]
            beside = BRIDGED_PERIODS * period_seconds
            samples = self._samples(chunk[-1] + beside, chunk[-1] - chunk[0] + 2.0 * beside + period_seconds)
            lives = _lives(samples)
            for number, end in enumerate(chunk, start=start):
                yield self._pass(samples, lives, end, period_seconds, number)

    def _pass(
        self,
        samples: Mapping[SeriesKey, list[Sample]],
        lives: Mapping[Executor, tuple[float, float]],
        end_seconds: float,
        period_seconds: float,
        number: int,
    ) -> Pass | None:
        begin_seconds = end_seconds - period_seconds
        present = {key: own for key, own in samples.items() if _is_within(own, begin_seconds, end_seconds)}
        if not present:
            return None
        window = window_of_samples(present, end_seconds, WINDOW_PERIODS * period_seconds, since_seconds=begin_seconds)
        # Seen before and after, an executor was there, whoever could not be scraped.
        there = [one for one, (first, last) in lives.items() if first <= begin_seconds and last > end_seconds]
        view = view_from_metrics(window, there)
        snapshot = build_snapshot(view, window, (), end_seconds, period_seconds)
        return Pass(end_seconds, number, snapshot)

    def _samples(self, end_seconds: float, seconds: float) -> Mapping[SeriesKey, list[Sample]]:
        try:
            return fetch_raw_samples(
                self.url,
                end_seconds,
                seconds,
                matchers=self.matchers,
                ignored_labels=self.ignored_labels,
                timeout_seconds=self.timeout_seconds,
            )
        except PrometheusError as error:
            raise PrometheusError(f"{without_userinfo(self.url)} {error}") from error


def _lives(samples: Mapping[SeriesKey, Sequence[Sample]]) -> Mapping[Executor, tuple[float, float]]:
    """When each executor was seen first and last, wherever it lived."""
    lives: dict[Executor, tuple[float, float]] = {}
    for key, own in samples.items():
        executor = executor_of(key) if key.name == EXECUTED else None
        if executor is not None and own:
            times = [sample.timestamp_seconds for sample in own]
            first, last = lives.get(executor, (times[0], times[0]))
            lives[executor] = min(first, *times), max(last, *times)
    return lives


def _is_within(samples: Sequence[Sample], begin_seconds: float, end_seconds: float) -> bool:
    """Whether one of `samples` is of this time: what is older alone is of a series that has ended."""
    return any(begin_seconds < sample.timestamp_seconds <= end_seconds for sample in samples)
