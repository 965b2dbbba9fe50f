"""The text format as agents write it, read as the client library reads it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from prometheus_client.parser import text_string_to_metric_families

from storm_operator.adapters.metrics.exposition import read_samples
from storm_operator.core.metrics_window import SeriesKey
from storm_operator.metric_contract import AGENT_METRICS

NO_FORMAT = (ValueError, KeyError, IndexError)


def mostly(usual: str, *odd: str) -> some.SearchStrategy[str]:
    """One odd piece in four, so that most lines are odd in one place only."""
    return some.integers(0, 3).flatmap(lambda turn: some.just(usual) if turn else some.sampled_from(odd))


characters = some.sampled_from([*'a1,={}# "\\\t\r\v', "\\n", '\\"', "\\\\", "\x85", "é", "_"])
texts = mostly("1", "é:/", "") | some.lists(characters, max_size=4).map("".join)
label_names = mostly("a", "b", "b", "__name__", "__x", "9a", "é", "", " a")
labels = some.builds("{}{}{}{}".format, label_names, mostly('="', '= "', ' ="', '"', "="), texts, mostly('"', "", '" '))
label_sets = some.lists(labels, min_size=1, max_size=2).map(",".join)
pieces = (
    mostly("", " ", "\t", "#"),
    mostly("storm_x_total", "storm:y", "_", "9a", "é", "", "a b"),
    mostly("{", "", " {", "{,", "{{"),
    label_sets,
    mostly("}", "", ",}", " }", "} "),
    mostly(" ", "  ", "\t", ""),
    mostly("1", "-1.5", "1e3", "+Inf", "NaN", "1_0", "0x1", "１", "x", ""),
    mostly("", " ", "\r", " 1767268800", "\t5", " # {} 1", "x"),
)
lines = some.tuples(*pieces).map("".join) | some.tuples(*pieces[:2], *pieces[5:]).map("".join)


def by_library(line: str) -> dict[SeriesKey, str] | None:
    """None where it is not the format. NaN equals nothing, so values are texts."""
    try:
        return {
            SeriesKey.of(sample.name, sample.labels): repr(float(sample.value))
            for family in text_string_to_metric_families(line)
            for sample in family.samples
        }
    except NO_FORMAT:
        return None


def by_us(text: str) -> dict[SeriesKey, str] | None:
    try:
        return {key: repr(value) for key, value in read_samples(text)}
    except NO_FORMAT:
        return None


@settings(max_examples=300)
@given(some.lists(lines, min_size=1, max_size=4))
def test_every_line_is_read_as_the_library_reads_it(page: list[str]) -> None:
    apart = [by_library(line) for line in page]
    expected: dict[SeriesKey, str] | None = {}
    for found in apart:
        expected = None if expected is None or found is None else {**expected, **found}
    assert by_us("\n".join(page)) == expected


def test_lines_as_agents_write_them_are_not_left_to_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the reason why the page of a large supervisor is read in time."""
    monkeypatch.delattr("storm_operator.adapters.metrics.exposition.text_string_to_metric_families")
    for metric in AGENT_METRICS:
        labels = ",".join(f'{name}="a-{name}/é:1"' for name in metric.labels)
        ((key, value),) = read_samples(
            f"# HELP {metric.name} It.\n# TYPE {metric.name} gauge\n{metric.name}{{{labels}}} 1.5\n"
        )
        assert (key.name, value) == (metric.name, 1.5)
        assert dict(key.labels) == {name: f"a-{name}/é:1" for name in metric.labels}


def test_a_name_is_that_of_the_line_whatever_its_comments_say() -> None:
    """As Prometheus has it: the library would call it `storm_x_total`."""
    text = "# TYPE storm_x counter\nstorm_x 5\n"
    assert by_us(text) == {SeriesKey("storm_x"): "5.0"}


def test_series_of_the_same_labels_share_them() -> None:
    (one, _), (other, _), (third, _) = read_samples('a{x="1",y="2"} 1\nb{x="1",y="2"} 1\nc{x="1"} 1\n')
    assert one.labels is other.labels
    assert one.labels[0] is third.labels[0]
