"""The text format as agents write it comes back as it was, and as Prometheus' own library reads it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from prometheus_client.parser import text_string_to_metric_families

from storm_operator.adapters.metrics import exposition
from storm_operator.adapters.metrics.exposition import LONGEST_LINE, MOST_LINES, ExpositionError, read_samples
from storm_operator.agent.families import series_text
from storm_operator.core.metrics_window import SeriesKey
from storm_operator.metric_contract import AGENT_METRICS

VALUES = some.lists(some.text(some.characters(exclude_categories=["Cs"])), min_size=0, max_size=4)


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
    mostly("", " ", "\r", " 1767268800", "\t5", "x"),
)
lines = some.tuples(*pieces).map("".join) | some.tuples(*pieces[:2], *pieces[5:]).map("".join)


def by_library(line: str) -> dict[SeriesKey, str]:
    """NaN equals nothing, so values are texts."""
    return {
        SeriesKey.of(sample.name, sample.labels): repr(float(sample.value))
        for family in text_string_to_metric_families(line)
        for sample in family.samples
    }


@pytest.mark.slow
@settings(max_examples=300)
@given(lines)
def test_what_the_library_does_not_read_is_not_read(line: str) -> None:
    try:
        found = {key: repr(value) for key, value in read_samples(line)}
    except ExpositionError:
        return
    assert by_library(line) == found


@given(VALUES, some.floats(allow_nan=False))
def test_any_label_and_number_comes_back(values: list[str], number: float) -> None:
    names = tuple(f"label_{at}" for at in range(len(values)))
    line = series_text("storm_x_total", names, tuple(values)) + f"{number!r}\n"
    expected = SeriesKey.of("storm_x_total", dict(zip(names, values, strict=True)))
    assert list(read_samples(line)) == [(expected, number)]


@pytest.mark.parametrize("line", ['a{x="1",} 1', "a{} 1", " a\t1", 'a { x = "1" } 1 1767268800', 'a{x="\\"\\n\\\\"} 1'])
def test_lines_as_others_write_them_are_read_as_well(line: str) -> None:
    assert {key: repr(value) for key, value in read_samples(line)} == by_library(line)


def test_lines_as_agents_write_them_are_read_in_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the reason why the page of a large supervisor is read in time."""
    monkeypatch.delattr(exposition, "_labels")
    for metric in AGENT_METRICS:
        names = ",".join(f'{name}="a-{name}/é:1"' for name in metric.labels)
        ((key, value),) = read_samples(
            f"# HELP {metric.name} It.\n# TYPE {metric.name} gauge\n{metric.name}{{{names}}} 1.5\n"
        )
        assert (key.name, value) == (metric.name, 1.5)
        assert dict(key.labels) == {name: f"a-{name}/é:1" for name in metric.labels}


def test_a_name_is_that_of_the_line_whatever_its_comments_say() -> None:
    """As Prometheus has it: the library would call it `storm_x_total`."""
    assert list(read_samples("# TYPE storm_x counter\nstorm_x 5\n")) == [(SeriesKey("storm_x"), 5.0)]


def test_series_of_the_same_labels_share_them() -> None:
    (one, _), (other, _), (third, _) = read_samples('a{x="1",y="2"} 1\nb{x="1",y="2"} 1\nc{x="1"} 1\n')
    assert one.labels is other.labels
    assert one.labels[0] is third.labels[0]


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("\n" * (MOST_LINES + 1), f"it has {MOST_LINES + 1} lines"),
        ('a{x="' + "1" * LONGEST_LINE + '"} 1', f"a line has {LONGEST_LINE + 9} characters"),
        ('a{x="1",x="2"} 1', "no sample is 'a{x="),
        ('a{x="\\\\1",x="2"} 1', "no sample is 'a{x="),
        ("<html>", "no sample is '<html>'"),
    ],
)
def test_what_no_agent_writes_is_refused_with_what_is_wrong(page: str, words: str) -> None:
    with pytest.raises(ExpositionError, match=words):
        list(read_samples(page))
