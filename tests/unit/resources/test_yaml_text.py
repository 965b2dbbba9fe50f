"""YAML is read strictly: what it says twice, or cannot say, is an error with its place."""

from __future__ import annotations

import pytest

from storm_operator.adapters.yaml_text import InvalidYaml, yaml_document, yaml_documents


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nb: 2\na: 3", "line 3, column 1: 'a' stands here again, after line 1; say it once"),
        ("a:\n- {b: 1, c: 2, b: 3}", "line 2, column 16: 'b' stands here again, after line 2; say it once"),
        ("a: [", "line 1, column 5: expected the node content, but found '<stream end>', while parsing a flow node"),
        ("? [a]\n: b", "line 1, column 3: found unhashable key, while constructing a mapping"),
        ("a: \x00", "character 4: special characters are not allowed"),
        ("a: 2026-13-45", "month must be in 1..12"),
        (f"a:\n  b: {'9' * 5000}", "line 2, column 6: a number of over 1000 digits stands here; nothing is that large"),
        ("[" * 3000, "nested too deeply"),
        ("a: 1\n---\na: 1", "it has 2 documents (between lines of ---); one is right here"),
    ],
)
def test_a_mistake_has_its_place(text: str, words: str) -> None:
    with pytest.raises(InvalidYaml) as caught:
        yaml_document(text)
    assert str(caught.value) == words


@pytest.mark.parametrize("text", ["1e2", "1E2", "1.0e2", "1.e+2", "+1e2", "1.0e+2", "100", "100."])
def test_a_number_is_one_however_its_exponent_is_written(text: str) -> None:
    assert yaml_document(f"a: {text}") == {"a": 100.0}


@pytest.mark.parametrize("text", ["e2", "1e", "1e2s", ".e2", "1e2.5", "'1e2'"])
def test_what_is_no_number_stays_a_text(text: str) -> None:
    assert yaml_document(f"a: {text}") == {"a": text.strip("'")}


def test_what_a_merge_brings_in_may_be_said_again() -> None:
    text = "base: &base {x: 1}\ndeep: {mid: &mid {<<: *base, x: 2}}\ntop: {<<: *mid, x: 3}"
    assert yaml_document(text) == {"base": {"x": 1}, "deep": {"mid": {"x": 2}}, "top": {"x": 3}}


def test_each_document_has_keys_of_its_own() -> None:
    assert yaml_documents("a: 1\n---\na: 2") == [{"a": 1}, {"a": 2}]
