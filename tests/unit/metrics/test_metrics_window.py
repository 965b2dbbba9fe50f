"""Windows made of raw samples."""

from __future__ import annotations

import math

import pytest

from storm_operator.core.metrics_window import (
    WINDOW_PERIODS,
    MetricsWindow,
    Sample,
    SeriesKey,
    summarize_samples,
    window_of_samples,
)

KEY = SeriesKey.of("storm_x_total", {"supervisor": "h1"})


def readings(*pairs: tuple[float, float]) -> list[Sample]:
    return [Sample(value, at) for at, value in pairs]


def test_increase_is_last_minus_first_without_extrapolation() -> None:
    series = summarize_samples(readings((0, 100), (5, 250), (10, 400)))
    assert (series.first.value, series.last.value, series.increase, series.span_seconds) == (100, 400, 300, 10)


@pytest.mark.parametrize(
    ("scraped_every", "readings_are_enough"), [(15.0, False), (10.0, False), (7.5, True), (5.0, True)]
)
def test_a_prometheus_must_scrape_every_three_quarters_of_a_period(
    scraped_every: float, readings_are_enough: bool
) -> None:
    """As the chart's values and the runbook say of the default period; whenever the pass comes."""
    period_seconds = 10.0
    samples = {KEY: readings(*((number * scraped_every, number) for number in range(100)))}
    spans = []
    for tenth in range(2000, 2300):
        window = window_of_samples(
            samples, tenth / 10, WINDOW_PERIODS * period_seconds, (), tenth / 10 - period_seconds
        )
        spans.append(window.series[KEY].span_seconds)
    assert (min(spans) > 0.0) is readings_are_enough


def test_after_a_reset_the_new_value_counts_whole() -> None:
    assert summarize_samples(readings((0, 100), (5, 130), (10, 20), (15, 50))).increase == 30 + 20 + 30


def test_one_reading_has_no_increase_and_no_span() -> None:
    series = summarize_samples(readings((3, 7)))
    assert (series.increase, series.span_seconds) == (0, 0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
def test_a_reading_that_no_counter_can_have_makes_the_increase_unknown(bad: float) -> None:
    assert math.isnan(summarize_samples(readings((0, 1), (5, bad), (10, 3))).increase)


def test_no_samples_is_an_error() -> None:
    with pytest.raises(ValueError, match="without samples"):
        summarize_samples([])


def test_window_is_open_at_its_start_and_closed_at_its_end() -> None:
    window = window_of_samples({KEY: readings((80, 1), (81, 2), (100, 3), (101, 4))}, 100, 20)
    assert (window.series[KEY].first.value, window.series[KEY].last.value) == (2, 3)


def test_windows_that_say_when_the_one_before_ended_count_everything_once() -> None:
    samples = {KEY: readings(*((at, 10 * at) for at in range(1, 62, 3)))}
    windows = [window_of_samples(samples, end, 15, since_seconds=end - 10) for end in (31, 41, 51, 61)]
    seen = [window.series[KEY] for window in windows]
    assert [later.first for later in seen[1:]] == [earlier.last for earlier in seen[:-1]]
    assert sum(one.increase for one in seen) == 10 * (61 - 19)


def test_a_series_that_is_older_than_its_first_sample_since_then_is_whole() -> None:
    samples = {KEY: readings((88, 1), (95, 4), (100, 9))}
    for since, first in ((80, 88), (88, 88), (90, 88), (95, 95), (None, 88)):
        seen = window_of_samples(samples, 100, 20, since_seconds=since).series[KEY]
        assert seen.first.timestamp_seconds == first


def test_samples_may_come_in_any_order() -> None:
    window = window_of_samples({KEY: readings((100, 9), (90, 4))}, 100, 20)
    assert window.series[KEY].increase == 5


def test_series_without_samples_inside_is_absent() -> None:
    assert window_of_samples({KEY: readings((10, 1))}, 100, 20).series == {}


def test_named_finds_series_by_name_in_order_of_labels() -> None:
    other = SeriesKey.of("storm_x_total", {"supervisor": "a"})
    one = summarize_samples(readings((1, 1)))
    window = MetricsWindow(1, 1, {KEY: one, other: one, SeriesKey("storm_y"): one})
    assert [key for key, _ in window.named("storm_x_total")] == [other, KEY]
    assert list(window.named("storm_z")) == []


def test_key_reads_like_promql_and_missing_labels_are_empty() -> None:
    assert str(KEY) == 'storm_x_total{supervisor="h1"}'
    assert KEY.label("port") == ""


@pytest.mark.parametrize("huge", [1.7e308, 1.1e24, 1e300])
def test_readings_beyond_reason_make_the_increase_unknown(huge: float) -> None:
    """Of some of these the sum is beyond all floats, and to add them up is an error."""
    assert math.isnan(
        summarize_samples(readings((0, huge), (1, huge * 0.9), (2, huge * 0.8), (3, huge * 0.7))).increase
    )


def test_an_average_that_fades_for_ever_is_zero_in_the_end() -> None:
    faded = summarize_samples(readings((0, 1e-320), (10, 1e-300)))
    assert (faded.first.value, faded.last.value, faded.increase) == (0.0, 0.0, 0.0)


def test_a_whole_number_in_a_label_is_one_that_can_be() -> None:
    key = SeriesKey.of("m", {"port": "6700", "long": "9" * 5_000, "below": "-1", "word": "x"})
    assert key.whole("port") == 6700
    assert [key.whole(name) for name in ("long", "below", "word", "none")] == [None] * 4


@pytest.mark.parametrize(
    ("label", "tasks"),
    [
        ("2-3", (2, 3)),
        ("7-7", (7, 7)),
        ("3-2", None),
        ("2", None),
        ("2-3-4", None),
        ("-2-3", None),
        ("0-2147483647", None),
        ("1-" + "9" * 5_000, None),
    ],
)
def test_an_executor_has_a_first_and_a_last_task_and_not_billions(label: str, tasks: tuple[int, int] | None) -> None:
    assert SeriesKey.of("m", {"executor": label}).executor_tasks() == tasks
