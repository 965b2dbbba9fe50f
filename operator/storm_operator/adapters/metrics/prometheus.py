"""PrometheusSource: asks a Prometheus server that already scrapes the agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import requests

from storm_operator.adapters.metrics.source import METRIC_PREFIX, NOT_OF_AGENTS
from storm_operator.adapters.peer_calls import CallBook, NoBook, Peer, noted
from storm_operator.core.metrics_window import MetricsWindow, Sample, SeriesKey, window_of_samples
from storm_operator.core.prometheus_matrix import LABELS_ADDED_BY_PROMETHEUS, parse_matrix


class PrometheusError(Exception):
    """The server did not give samples; the message says why."""


class NoAnswer(PrometheusError):
    """The server could not be reached, or not in time."""


class PrometheusSource:
    """A `MetricsSource` over a Prometheus server (2.x or 3.x), asked in PromQL at `url`.

    Raw samples are asked for with a range selector, not `rate()`: `rate()` extrapolates to the edges of its window,
    which turns 300 tuples into 314 and differs from what the agents said. `matchers` narrows the query when one
    server watches several Storm clusters, e.g. `cluster="blue"`; `ignored_labels` are those that the scrape
    configuration adds to every series (`instance`, `job` and what a PodMonitor adds always are). The window must be
    at least two scrape intervals of the server long.
    """

    def __init__(
        self,
        url: str,
        matchers: str = "",
        ignored_labels: frozenset[str] = frozenset(),
        timeout_seconds: float = 10.0,
        book: CallBook | None = None,
    ) -> None:
        self._url = url.rstrip("/")
        self._matchers = matchers
        self._ignored_labels = ignored_labels | LABELS_ADDED_BY_PROMETHEUS
        self._timeout_seconds = timeout_seconds
        self._book = book or NoBook()

    def read_window(self, now_seconds: float, window_seconds: float) -> MetricsWindow:
        """Ask for all raw samples of the window; a server that fails gives an empty window with a problem."""
        try:
            with noted(self._book, Peer.PROMETHEUS, "query", (NoAnswer,)):
                result = self._query(now_seconds, window_seconds)
            samples = _parsed(result, self._ignored_labels)
        except PrometheusError as error:
            return MetricsWindow(now_seconds, window_seconds, {}, (f"Prometheus at {self._url} {error}",))
        problems = () if samples else (f"Prometheus at {self._url} has no {METRIC_PREFIX}* series in this window",)
        return window_of_samples(samples, now_seconds, window_seconds, problems)

    def _query(self, now_seconds: float, window_seconds: float) -> Any:
        names = f'__name__=~"{METRIC_PREFIX}.*",__name__!~"{NOT_OF_AGENTS}"'
        matchers = f"{names},{self._matchers}" if self._matchers else names
        # Prometheus 3 leaves out the sample at the very start of a range and 2.x does not; window_of_samples decides.
        query = f"{{{matchers}}}[{round(window_seconds * 1000)}ms]"
        try:
            response = requests.post(
                f"{self._url}/api/v1/query",
                data={"query": query, "time": f"{now_seconds:.3f}"},
                timeout=self._timeout_seconds,
            )
            answer = response.json()
        except requests.Timeout as error:
            raise NoAnswer(f"did not answer within {self._timeout_seconds:g} s") from error
        except requests.JSONDecodeError as error:
            raise PrometheusError(f"answered {response.status_code} with something that is not JSON") from error
        except requests.RequestException as error:
            raise NoAnswer(f"did not answer: {error.__class__.__name__}") from error
        if not isinstance(answer, dict) or answer.get("status") != "success":
            reason = answer.get("error", answer) if isinstance(answer, dict) else answer
            raise PrometheusError(f"refused the query {query}: {reason}")
        return answer.get("data")


def _parsed(data: Any, ignored_labels: frozenset[str]) -> Mapping[SeriesKey, list[Sample]]:
    try:
        return parse_matrix(data, ignored_labels)
    except ValueError as error:
        raise PrometheusError(f"answered in an {error}") from error
