"""The past of a Storm cluster from a Prometheus server that scraped its agents, period by period."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from storm_operator.core.history_rows import Pass
from storm_operator.core.metrics_window import WINDOW_PERIODS, Sample, SeriesKey, window_of_samples
from storm_operator.core.model import Executor
from storm_operator.core.server_url import without_userinfo
from storm_operator.core.snapshot_builder import build_snapshot
from storm_operator.core.view_from_metrics import executor_of, view_from_metrics
from storm_operator.core.window_readings import EXECUTED
from storm_operator.prometheus_api import PrometheusError, fetch_last_seen, fetch_raw_samples

PERIODS_ASKED_AT_ONCE = 60
BRIDGED_PERIODS = 6
"""So many before and after those that are asked at once are read as well, for who was there; what comes later is looked
at once in so many."""
PERIODS_LOOKED_AHEAD_AT_ONCE = 6000
"""A thousand looks: ten thousand executors are ten million points, a fifth of what a Prometheus takes at most."""
EXECUTOR_LABELS = ("topology_id", "component", "executor")
Lives = Mapping[Executor, tuple[float, float]]
"""When each executor was seen first and last, wherever it lived."""


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
        beside = BRIDGED_PERIODS * period_seconds
        ahead = self._last_seen(ends[PERIODS_ASKED_AT_ONCE:], period_seconds)
        lives: Lives = {}
        for start in range(0, len(ends), PERIODS_ASKED_AT_ONCE):
            chunk = ends[start : start + PERIODS_ASKED_AT_ONCE]
            samples = self._samples(chunk[-1] + beside, chunk[-1] - chunk[0] + 2.0 * beside + period_seconds)
            lives = _lives(samples, _lasting(lives, chunk[0] - period_seconds), ahead)
            for number, end in enumerate(chunk, start=start):
                yield self._pass(samples, lives, end, period_seconds, number)

    def _pass(
        self,
        samples: Mapping[SeriesKey, list[Sample]],
        lives: Lives,
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
        with self._named():
            return fetch_raw_samples(
                self.url,
                end_seconds,
                seconds,
                matchers=self.matchers,
                ignored_labels=self.ignored_labels,
                timeout_seconds=self.timeout_seconds,
            )

    def _last_seen(self, ends: Sequence[float], period_seconds: float) -> Mapping[Executor, float]:
        """About when each executor was seen last in periods with these ends; what is read of them tells it better."""
        found: dict[Executor, float] = {}
        beside = BRIDGED_PERIODS * period_seconds
        for start in range(0, len(ends), PERIODS_LOOKED_AHEAD_AT_ONCE):
            part = ends[start : start + PERIODS_LOOKED_AHEAD_AT_ONCE]
            with self._named():
                seen = fetch_last_seen(
                    self.url,
                    EXECUTED,
                    EXECUTOR_LABELS,
                    part[-1] + beside,
                    len(part) * period_seconds + beside,
                    beside,
                    matchers=self.matchers,
                    timeout_seconds=self.timeout_seconds,
                )
            for key, at in seen.items():
                executor = executor_of(key)
                if executor is not None:
                    found[executor] = max(at, found.get(executor, at))
        return found

    @contextmanager
    def _named(self) -> Iterator[None]:
        """What the server does wrong is said with its name."""
        try:
            yield
        except PrometheusError as error:
            raise PrometheusError(f"{without_userinfo(self.url)} {error}") from error


def _lasting(lives: Lives, since_seconds: float) -> Lives:
    return {executor: (first, last) for executor, (first, last) in lives.items() if last > since_seconds}


def _lives(samples: Mapping[SeriesKey, Sequence[Sample]], before: Lives, ahead: Mapping[Executor, float]) -> Lives:
    """Those of `samples`, of before them, and as far as they are seen again `ahead`."""
    lives = dict(before)
    for key, own in samples.items():
        executor = executor_of(key) if key.name == EXECUTED else None
        if executor is not None and own:
            times = [sample.timestamp_seconds for sample in own]
            first, last = lives.get(executor, (times[0], ahead.get(executor, times[0])))
            lives[executor] = min(first, *times), max(last, *times)
    return lives


def _is_within(samples: Sequence[Sample], begin_seconds: float, end_seconds: float) -> bool:
    """Whether one of `samples` is of this time: what is older alone is of a series that has ended."""
    return any(begin_seconds < sample.timestamp_seconds <= end_seconds for sample in samples)
