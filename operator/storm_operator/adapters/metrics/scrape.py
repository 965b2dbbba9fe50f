"""ScrapeSource: asks every agent for /metrics itself and remembers the last scrapes. Needs no Prometheus."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter

from storm_operator.adapters.metrics.exposition import ExpositionError, read_samples
from storm_operator.adapters.metrics.page import NoAnswer, ScrapeError, fetch_text
from storm_operator.adapters.peer_calls import CallBook, NoBook, Peer, noted
from storm_operator.core.metrics_window import MetricsWindow, Sample, SeriesKey, window_of_samples
from storm_operator.core.prometheus_matrix import METRIC_PREFIX
from storm_operator.core.server_url import without_userinfo
from storm_operator.core.short_repr import short_repr

Targets = Mapping[str, str]
MAXIMUM_CONCURRENT_SCRAPES = 32
LEAST_PATIENCE_SECONDS = 0.2
"""An agent that was silent last time is given no less, however many there are of them."""


@dataclass(frozen=True, slots=True)
class Scrape:
    """All series of one agent at one moment."""

    timestamp_seconds: float
    values: Mapping[SeriesKey, float]


class ScrapeSource:
    """A `MetricsSource` over the agents themselves.

    `targets` gives URL by supervisor host, asked for at each reading because supervisors come and go. Every call
    of `read_window` scrapes all agents once, so the window holds two readings from the second call on.
    Agents that were silent last time are asked after all others, and share the time that one of them would be given.
    Scrapes are large: no more of them are remembered than a window needs that begins when the last one ended. Whoever
    asks for windows that reach back further than the one before says in `retention_seconds` how far. Not thread-safe:
    one caller.
    """

    def __init__(
        self,
        targets: Callable[[], Targets],
        timeout_seconds: float = 3.0,
        retention_seconds: float = 0.0,
        book: CallBook | None = None,
    ) -> None:
        self._targets = targets
        self._timeout_seconds = timeout_seconds
        self._retention_seconds = retention_seconds
        self._book = book or NoBook()
        self._scrapes: dict[str, list[Scrape]] = {}
        self._silent: frozenset[str] = frozenset()

    def read_window(
        self, now_seconds: float, window_seconds: float, since_seconds: float | None = None
    ) -> MetricsWindow:
        """Scrape all agents now; the window is made of this scrape and the remembered ones."""
        targets = dict(self._targets())
        self._forget_where_clock_was_set_back(now_seconds)
        self._forget(targets, now_seconds, window_seconds, since_seconds)
        problems = self._scrape_all(targets, now_seconds)
        samples = self._samples(since_seconds=now_seconds - window_seconds)
        return window_of_samples(samples, now_seconds, window_seconds, problems, since_seconds)

    def _scrape_all(self, targets: Targets, now_seconds: float) -> Sequence[str]:
        if not targets:
            return ("no agent to scrape is known",)
        failed: dict[str, ScrapeError] = {}
        for host, page in self._fetch_all(targets):
            outcome = _try_parse(page, host)
            if isinstance(outcome, ScrapeError):
                failed[host] = outcome
            else:
                scrapes = self._scrapes.setdefault(host, [])
                scrapes.append(Scrape(now_seconds, _with_keys_of(scrapes[-1:], outcome)))
        self._silent = frozenset(host for host, error in failed.items() if isinstance(error, NoAnswer))
        return [
            f"the agent of {host} at {without_userinfo(targets[host])} {error}"
            for host, error in sorted(failed.items(), key=itemgetter(0))
        ]

    def _fetch_all(self, targets: Targets) -> Iterator[tuple[str, str | ScrapeError]]:
        """Each host and what its agent answered, or why it did not, as they come.

        The next is asked when one was taken: all pages of a large cluster at once are many.
        """
        silent = self._silent & targets.keys()
        turns = math.ceil(len(silent) / MAXIMUM_CONCURRENT_SCRAPES)
        patience_seconds = max(LEAST_PATIENCE_SECONDS, round(self._timeout_seconds / max(turns, 1), 1))
        hosts = iter([*sorted(targets.keys() - silent), *sorted(silent)])
        with ThreadPoolExecutor(min(len(targets), MAXIMUM_CONCURRENT_SCRAPES), "scrape") as pool:

            def ask(count: int) -> Iterator[tuple[Future[str | ScrapeError], str]]:
                for host in islice(hosts, count):
                    timeout_seconds = patience_seconds if host in silent else self._timeout_seconds
                    yield pool.submit(self._try_fetch, targets[host], timeout_seconds), host

            asked = dict(ask(MAXIMUM_CONCURRENT_SCRAPES))
            while asked:
                for done in wait(asked, return_when=FIRST_COMPLETED).done:
                    yield asked.pop(done), done.result()
                    asked.update(ask(1))

    def _try_fetch(self, url: str, timeout_seconds: float) -> str | ScrapeError:
        try:
            with noted(self._book, Peer.AGENT, "scrape", (NoAnswer,)):
                return fetch_text(url, timeout_seconds)
        except ScrapeError as error:
            return error

    def _forget_where_clock_was_set_back(self, now_seconds: float) -> None:
        """How long ago scrapes of the future were is not known, nor how long ago those before them."""
        if any(scrape.timestamp_seconds > now_seconds for scrapes in self._scrapes.values() for scrape in scrapes):
            self._scrapes = {}

    def _forget(self, targets: Targets, now_seconds: float, window_seconds: float, since_seconds: float | None) -> None:
        """Drop what no window needs, and what is of agents that are no longer targets: their supervisors are gone."""
        oldest_seconds = now_seconds - max(window_seconds, self._retention_seconds)
        begins_seconds = oldest_seconds if since_seconds is None else since_seconds
        begins_seconds = min(begins_seconds, now_seconds - self._retention_seconds)
        kept = {
            host: _since(begins_seconds, [scrape for scrape in scrapes if scrape.timestamp_seconds > oldest_seconds])
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


def _since(begins_seconds: float, scrapes: list[Scrape]) -> list[Scrape]:
    """The last of `scrapes` up to that time, and those after it."""
    earlier = sum(scrape.timestamp_seconds <= begins_seconds for scrape in scrapes)
    return scrapes[max(0, earlier - 1) :]


def _with_keys_of(earlier: Sequence[Scrape], values: Mapping[SeriesKey, float]) -> Mapping[SeriesKey, float]:
    """The same, in which series that were there before have the very key that they had: it takes more than a value."""
    keys = {key: key for scrape in earlier for key in scrape.values}
    return {keys.get(key, key): value for key, value in values.items()}


def _try_parse(page: str | ScrapeError, host: str) -> Mapping[SeriesKey, float] | ScrapeError:
    """Of one page after another: threads that parse are no quicker, and keep the interpreter from all others."""
    try:
        if isinstance(page, ScrapeError):
            return page
        values = parse_metrics(page)
        check_supervisor(values, host)
        return values
    except ScrapeError as error:
        return error


def parse_metrics(text: str) -> Mapping[SeriesKey, float]:
    """The `storm_*` series of an exposition; ScrapeError when it is not the Prometheus text format."""
    try:
        return {
            key: value
            for key, value in read_samples(text)
            if key.name.startswith(METRIC_PREFIX) and not key.name.endswith("_created")
        }
    except ExpositionError as error:
        raise ScrapeError(f"answered with something that is not the Prometheus text format: {error}") from error


def check_supervisor(values: Mapping[SeriesKey, float], host: str) -> None:
    """ScrapeError when an agent speaks of another supervisor: two agents would fill, and spoil, the same series.

    Also of a page without any series: each agent tells of itself, however idle its supervisor is.
    """
    named = {key.label("supervisor") for key in values}
    if not named:
        raise ScrapeError(f"shows no {METRIC_PREFIX}* series: check that it is an agent, and no other program there")
    others = named - {host}
    if others:
        raise ScrapeError(
            f"speaks of supervisor {short_repr(min(others))} instead of {host!r}: check the agent's --host"
        )
