"""The text format as agents write it comes back as it was, and as Prometheus' own library reads it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from storm_operator.adapters.metrics.exposition import samples
from storm_operator.agent.families import series_text

VALUES = st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=0, max_size=4)


@given(VALUES, st.floats(allow_nan=False))
def test_any_label_and_number_comes_back(values: list[str], number: float) -> None:
    names = tuple(f"label_{at}" for at in range(len(values)))
    line = series_text("storm_x_total", names, tuple(values)) + f"{number!r}\n"
    assert list(samples(line)) == [("storm_x_total", dict(zip(names, values, strict=True)), number)]


@given(st.text('ab_{}=",\\n01.e+- #\t', max_size=30))
def test_what_prometheus_library_does_not_read_is_not_read(line: str) -> None:
    try:
        found = list(samples(line))
    except ValueError:
        return
    theirs = [sample for family in text_string_to_metric_families(line) for sample in family.samples]
    assert [(sample.name, sample.labels, sample.value) for sample in theirs] == found
