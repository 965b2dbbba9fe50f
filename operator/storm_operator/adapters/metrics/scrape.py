"""ScrapeSource: asks every agent for /metrics itself and remembers the last scrapes. Needs no Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from storm_operator.adapters.metrics.exposition import ExpositionError, samples
from storm_operator.adapters.metrics.page import NoAnswer, ScrapeError, fetch_text
from storm_operator.adapters.peer_calls import CallBook, NoBook, Peer, noted
from storm_operator.core.metrics_window import MetricsWindow, Sample, SeriesKey, window_of_samples
from storm_operator.core.prometheus_matrix import METRIC_PREFIX
from storm_operator.core.server_url import without_userinfo
from storm_operator.core.short_repr import short_repr

Targets = Mapping[str, str]
MAXIMUM_CONCURRENT_SCRAPES = 16


@dataclass(frozen=True, slots=True)
class Scrape:
    """All series of one agent at one moment."""

    timestamp_seconds: float
    values: Mapping[SeriesKey, float]


class ScrapeSource:
    """A `MetricsSource` over the agents themselves.

    `targets` gives URL by supervisor host, asked for at each reading because supervisors come and go. Every call
    of `read_window` scrapes all agents once, so the window holds two readings from the second call on.
    Scrapes are remembered for `retention_seconds`, or as long as the window asked for if that is longer. Not
    thread-safe: one caller.
    """

    def __init__(
        self,
        targets: Callable[[], Targets],
        timeout_seconds: float = 3.0,
        retention_seconds: float = 120.0,
        book: CallBook | None = None,
    ) -> None:
        self._targets = targets
        self._timeout_seconds = timeout_seconds
        self._retention_seconds = retention_seconds
        self._book = book or NoBook()
        self._scrapes: dict[str, list[Scrape]] = {}

    def read_window(
        self, now_seconds: float, window_seconds: float, since_seconds: float | None = None
    ) -> MetricsWindow:
        """Scrape all agents now; the window is made of this scrape and the remembered ones."""
        targets = dict(self._targets())
        self._forget_where_clock_was_set_back(now_seconds)
        problems = self._scrape_all(targets, now_seconds)
        self._forget(targets, now_seconds - max(window_seconds, self._retention_seconds))
        samples = self._samples(since_seconds=now_seconds - window_seconds)
        return window_of_samples(samples, now_seconds, window_seconds, problems, since_seconds)

    def _scrape_all(self, targets: Targets, now_seconds: float) -> Sequence[str]:
        if not targets:
            return ("no agent to scrape is known",)
        hosts = sorted(targets)
        with ThreadPoolExecutor(min(len(hosts), MAXIMUM_CONCURRENT_SCRAPES), "scrape") as pool:
            outcomes = list(pool.map(lambda host: self._try_scrape(host, targets[host]), hosts))
        problems = []
        for host, outcome in zip(hosts, outcomes, strict=True):
            if isinstance(outcome, ScrapeError):
                problems.append(f"the agent of {host} at {without_userinfo(targets[host])} {outcome}")
            else:
                self._scrapes.setdefault(host, []).append(Scrape(now_seconds, outcome))
        return problems

    def _try_scrape(self, host: str, url: str) -> Mapping[SeriesKey, float] | ScrapeError:
        try:
            with noted(self._book, Peer.AGENT, "scrape", (NoAnswer,)):
                text = fetch_text(url, self._timeout_seconds)
            values = parse_metrics(text)
            check_supervisor(values, host)
            return values
        except ScrapeError as error:
            return error

    def _forget_where_clock_was_set_back(self, now_seconds: float) -> None:
        """How long ago scrapes of the future were is not known, nor how long ago those before them."""
        if any(scrape.timestamp_seconds > now_seconds for scrapes in self._scrapes.values() for scrape in scrapes):
            self._scrapes = {}

    def _forget(self, targets: Targets, oldest_seconds: float) -> None:
        """Drop old scrapes, and those of agents that are no longer targets: their supervisors are gone."""
        kept = {
            host: [scrape for scrape in scrapes if scrape.timestamp_seconds > oldest_seconds]
            for host, scrapes in self._scrapes.items()
            if host in targets
        }
        self._scrapes = {host: scrapes for host, scrapes in kept.items() if scrapes}

    def _samples(self, since_seconds: float) -> Mapping[SeriesKey, list[Sample]]:
        samples: dict[SeriesKey, list[Sample]] = {}
        recent = (s for scrapes in self._scrapes.values() for s in scrapes if s.timestamp_seconds > since_seconds)
        for scrape in recent:
            for key, value in scrape.values.items():
                samples.setdefault(key, []).append(Sample(value, scrape.timestamp_seconds))
        return samples


def parse_metrics(text: str) -> Mapping[SeriesKey, float]:
    """The `storm_*` series of an exposition; ScrapeError when it is not the Prometheus text format."""
    values: dict[SeriesKey, float] = {}
    try:
        for name, labels, value in samples(text):
            if name.startswith(METRIC_PREFIX) and not name.endswith("_created"):
                values[SeriesKey.of(name, labels)] = value
    except ExpositionError as error:
        raise ScrapeError(f"answered with something that is not the Prometheus text format: {error}") from error
    return values


def check_supervisor(values: Mapping[SeriesKey, float], host: str) -> None:
    """ScrapeError when an agent speaks of another supervisor: two agents would fill, and spoil, the same series."""
    others = {key.label("supervisor") for key in values} - {host}
    if others:
        raise ScrapeError(
            f"speaks of supervisor {short_repr(min(others))} instead of {host!r}: check the agent's --host"
        )
