"""Latency quantiles from histogram increases."""

from __future__ import annotations

import math

import pytest

from storm_operator.core.latency_histogram import quantile, summarize_latency


def test_quantile_interpolates_within_its_bucket() -> None:
    buckets = {0.001: 0.0, 0.002: 50.0, 0.004: 100.0, math.inf: 100.0}
    assert quantile(buckets, 0.25) == pytest.approx(0.0015)
    assert quantile(buckets, 0.75) == pytest.approx(0.003)


def test_first_bucket_begins_at_zero() -> None:
    assert quantile({0.010: 10.0, math.inf: 10.0}, 0.5) == pytest.approx(0.005)


def test_what_lies_beyond_the_last_bound_is_given_that_bound() -> None:
    assert quantile({0.010: 1.0, math.inf: 100.0}, 0.99) == 0.010


def test_empty_buckets_between_full_ones_are_skipped() -> None:
    assert quantile({1.0: 50.0, 2.0: 50.0, 3.0: 100.0, math.inf: 100.0}, 0.51) == pytest.approx(2.02)


def test_summary_has_mean_quantiles_and_count_in_milliseconds() -> None:
    summary = summarize_latency({0.001: 0.0, 0.002: 50.0, 0.004: 100.0, math.inf: 100.0}, sum_seconds=0.25)
    assert summary is not None
    assert (summary.mean_ms, summary.p50_ms, summary.count) == pytest.approx((2.5, 2.0, 100.0))
    assert summary.p99_ms == pytest.approx(3.96)


@pytest.mark.parametrize("buckets", [{}, {0.001: 0.0, math.inf: 0.0}])
def test_nothing_measured_is_unknown(buckets: dict[float, float]) -> None:
    assert summarize_latency(buckets, 0.0) is None
    with pytest.raises(ValueError, match="empty"):
        quantile(buckets, 0.5)
