"""The past of a Storm cluster from a Prometheus server that scraped its agents, period by period."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import requests

from storm_operator.core.history_rows import Pass
from storm_operator.core.metrics_window import Sample, SeriesKey, window_of_samples
from storm_operator.core.prometheus_matrix import LABELS_ADDED_BY_PROMETHEUS, parse_matrix
from storm_operator.core.snapshot_builder import build_snapshot
from storm_operator.core.view_from_metrics import view_from_metrics

METRICS = "storm_.*"
PERIODS_ASKED_AT_ONCE = 60


class PrometheusError(Exception):
    """The server did not give samples; the message says why."""


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
            samples = self._samples(chunk[-1], chunk[-1] - chunk[0] + period_seconds)
            for number, end in enumerate(chunk, start=start):
                yield self._pass(samples, end, period_seconds, number)

    def _pass(
        self, samples: Mapping[SeriesKey, list[Sample]], end_seconds: float, period_seconds: float, number: int
    ) -> Pass | None:
        window = window_of_samples(samples, end_seconds, period_seconds)
        if not window.series:
            return None
        return Pass(end_seconds, number, build_snapshot(view_from_metrics(window), window, (), end_seconds))

    def _samples(self, end_seconds: float, seconds: float) -> Mapping[SeriesKey, list[Sample]]:
        matchers = f'__name__=~"{METRICS}"' + (f",{self.matchers}" if self.matchers else "")
        # Raw samples by a range selector: a range query would interpolate, and turn 300 tuples into 314.
        query = f"{{{matchers}}}[{round(seconds * 1000)}ms]"
        data = self._ask(query, end_seconds)
        try:
            return parse_matrix(data, self.ignored_labels | LABELS_ADDED_BY_PROMETHEUS)
        except ValueError as error:
            raise PrometheusError(f"{self.url} answered in an {error}") from error

    def _ask(self, query: str, end_seconds: float) -> Any:
        try:
            response = requests.post(
                f"{self.url.rstrip('/')}/api/v1/query",
                data={"query": query, "time": f"{end_seconds:.3f}"},
                timeout=self.timeout_seconds,
            )
            answer = response.json()
        except requests.Timeout as error:
            raise PrometheusError(f"{self.url} did not answer within {self.timeout_seconds:g} s") from error
        except requests.JSONDecodeError as error:
            raise PrometheusError(f"{self.url} answered {response.status_code}, and not in JSON") from error
        except requests.RequestException as error:
            raise PrometheusError(f"{self.url} did not answer: {type(error).__name__}") from error
        if not isinstance(answer, dict) or answer.get("status") != "success":
            reason = answer.get("error", answer) if isinstance(answer, dict) else answer
            raise PrometheusError(f"{self.url} refused the query {query}: {reason}")
        return answer.get("data")
