"""Complete latency over a period, from the increases of a cumulative histogram."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

from storm_operator.core.snapshot import LatencySummary

MS_PER_SECOND = 1000.0


def summarize_latency(buckets: Mapping[float, float], sum_seconds: float) -> LatencySummary | None:
    """Mean, p50 and p99 of one period; None when nothing was measured in it.

    `buckets` are cumulative counts by upper bound in seconds, the last bound infinite; `sum_seconds` is the sum of
    all latencies.
    """
    bounds = sorted(buckets)
    count = buckets[bounds[-1]] if bounds else 0.0
    if count <= 0.0:
        return None
    return LatencySummary(
        mean_ms=MS_PER_SECOND * sum_seconds / count,
        p50_ms=MS_PER_SECOND * quantile(buckets, 0.50),
        p99_ms=MS_PER_SECOND * quantile(buckets, 0.99),
        count=count,
    )


def quantile(buckets: Mapping[float, float], fraction: float) -> float:
    """The value below which `fraction` of the counts lie, by linear interpolation within its bucket.

    As PromQL's histogram_quantile: the first bucket begins at 0, and what lies in the infinite bucket is given the
    largest finite bound. ValueError when the histogram is empty.
    """
    bounds = sorted(buckets)
    if not bounds or buckets[bounds[-1]] <= 0.0:
        raise ValueError("an empty histogram has no quantiles")
    rank = fraction * buckets[bounds[-1]]
    for lower, upper in pairwise([0.0, *bounds]):
        if buckets[upper] >= rank and buckets[upper] > buckets.get(lower, 0.0):
            if upper == float("inf"):
                return lower
            below = buckets.get(lower, 0.0)
            return lower + (upper - lower) * max(0.0, rank - below) / (buckets[upper] - below)
    return bounds[-1]


def upper_bound(label: str) -> float | None:
    """The `le` label of a bucket as a number; None when it is none."""
    try:
        bound = float(label)
    except ValueError:
        return None
    return None if math.isnan(bound) else bound
