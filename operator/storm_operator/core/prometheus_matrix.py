"""Samples as a Prometheus server's API gives them: the operator asks for them live, a backfill for the past."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from storm_operator.core.metrics_window import Sample, SeriesKey

METRIC_PREFIX = "storm_"
NOT_OF_AGENTS = "storm_(operator|pipeline)_.*"
"""What the operator and pipeline jobs export about themselves: nothing that an agent has measured."""
AGENTS_SERIES = f'__name__=~"{METRIC_PREFIX}.*",__name__!~"{NOT_OF_AGENTS}"'

LABELS_ADDED_BY_PROMETHEUS = frozenset(
    {"__name__", "instance", "job", "namespace", "pod", "container", "endpoint", "node", "service"}
    | {"prometheus", "prometheus_replica", "cluster"}
)
"""By itself, by the Prometheus operator's PodMonitors, and by what monitoring/ and the charts tell it (`cluster`); no
agent has a label of such a name."""


HANDOVER_SECONDS = 5.0
"""A page is as old as its scrape took to come; so far apart, the later reading of two scrapers is the newer one too."""

Scraper = tuple[tuple[str, str], ...]
"""The labels that are not the agent's own: who scraped it, as what."""


def parse_matrix(data: Any, ignored_labels: frozenset[str]) -> Mapping[SeriesKey, list[Sample]]:
    """Raw samples of a range query's `data`; ValueError when it has another form.

    Series that differ only in ignored labels or in those of LABELS_ADDED_BY_PROMETHEUS are joined. Two that overlap are
    of an agent scraped twice (under two jobs, by two servers): then the readings of the one that read more count, and
    the other's before and after them. In order of time the two would mix pages that were not made in that order, and
    each step back of a counter would be taken for a restart.
    """
    ignored = ignored_labels | LABELS_ADDED_BY_PROMETHEUS
    added = ignored - {"__name__"}
    read: dict[SeriesKey, dict[Scraper, list[Sample]]] = {}
    try:
        for series in data["result"]:
            labels = {name: value for name, value in series["metric"].items() if name not in ignored}
            key = SeriesKey.of(series["metric"]["__name__"], labels)
            scraper = tuple(sorted((name, value) for name, value in series["metric"].items() if name in added))
            samples = [Sample(float(value), float(at)) for at, value in series["values"]]
            if samples:
                read.setdefault(key, {}).setdefault(scraper, []).extend(samples)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ValueError(f"unknown form: {error.__class__.__name__}: {error}") from error
    return _joined(read)


def parse_vector(data: Any, name: str) -> Mapping[SeriesKey, float]:
    """The values of an instant query's `data`, as of series called `name`; ValueError when it has another form."""
    try:
        return {SeriesKey.of(name, series["metric"]): float(series["value"][1]) for series in data["result"]}
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ValueError(f"unknown form: {error.__class__.__name__}: {error}") from error


def _joined(read: Mapping[SeriesKey, Mapping[Scraper, list[Sample]]]) -> Mapping[SeriesKey, list[Sample]]:
    """One series of each key. All series of an agent prefer the same scraper: their readings belong together."""
    readings_of = Counter[Scraper]()
    for by_scraper in read.values():
        for scraper, samples in by_scraper.items():
            readings_of[scraper] += len(samples)

    def preference(scraper: Scraper) -> tuple[int, Scraper]:
        return -readings_of[scraper], scraper

    return {
        key: _one_after_the_other([by_scraper[scraper] for scraper in sorted(by_scraper, key=preference)])
        for key, by_scraper in read.items()
    }


def _one_after_the_other(streams: Sequence[Sequence[Sample]]) -> list[Sample]:
    """The first stream whole, of each next what lies clearly before or after all that is there."""
    when = attrgetter("timestamp_seconds")
    joined = sorted(streams[0], key=when)
    for stream in streams[1:]:
        first, last = when(joined[0]) - HANDOVER_SECONDS, when(joined[-1]) + HANDOVER_SECONDS
        outside = [sample for sample in stream if not first <= when(sample) <= last]
        joined = sorted([*joined, *outside], key=when)
    return joined
