"""PrometheusSource: asks a Prometheus server that already scrapes the agents."""

from __future__ import annotations

from storm_operator.adapters.peer_calls import CallBook, NoBook, Peer, noted
from storm_operator.core.metrics_window import MetricsWindow, window_of_samples
from storm_operator.core.prometheus_matrix import METRIC_PREFIX
from storm_operator.core.server_url import without_userinfo
from storm_operator.prometheus_api import NoAnswer, PrometheusError, fetch_raw_samples

MOST_BYTES = 512 * 1024 * 1024
"""Of one answer, unpacked: whatever memory there is, one without end would take it all."""


class PrometheusSource:
    """A `MetricsSource` over a Prometheus server (2.x or 3.x), asked in PromQL at `url`.

    `matchers` narrows the query when one
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
        self._told_url = without_userinfo(self._url)
        self._matchers = matchers
        self._ignored_labels = ignored_labels
        self._timeout_seconds = timeout_seconds
        self._book = book or NoBook()

    def read_window(
        self, now_seconds: float, window_seconds: float, since_seconds: float | None = None
    ) -> MetricsWindow:
        """Ask for all raw samples of the window; a server that fails gives an empty window with a problem."""
        try:
            with noted(self._book, Peer.PROMETHEUS, "query", (NoAnswer,)):
                samples = fetch_raw_samples(
                    self._url,
                    now_seconds,
                    window_seconds,
                    matchers=self._matchers,
                    ignored_labels=self._ignored_labels,
                    timeout_seconds=self._timeout_seconds,
                    most_bytes=MOST_BYTES,
                )
        except PrometheusError as error:
            return MetricsWindow(now_seconds, window_seconds, {}, (f"Prometheus at {self._told_url} {error}",))
        problems = () if samples else (f"Prometheus at {self._told_url} has no {METRIC_PREFIX}* series in this window",)
        return window_of_samples(samples, now_seconds, window_seconds, problems, since_seconds)
