"""Prometheus' text format as agents write it, read line by line.

Own code because it must be quick, and because a page may come from anywhere: the client library looks at each
character in Python (60 microseconds a line, more than a control period for the agents of 10,000 executors), and many
times at each of a line that is made for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from storm_operator.core.metrics_window import Labels, SeriesKey

MOST_LINES = 500_000
"""The 64 MiB that a page may have are some 400,000 lines of an agent's, and would be seven million short ones."""
LONGEST_LINE = 64 * 1024
SHOWN_CHARACTERS = 100

_PLAIN_LABEL = r'(?!__)[a-zA-Z_][a-zA-Z0-9_]*+="[^"\\]*+"'
_PLAIN_SERIES = re.compile(rf"([a-zA-Z_:][a-zA-Z0-9_:]*+)(?:\{{({_PLAIN_LABEL}(?:,{_PLAIN_LABEL})*+)\}})?")
_NAME_AND_VALUE = re.compile(r'([^=,]+)="([^"]*)"')

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r'\s*((?!__)[a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"([^"\\]*(?:\\.[^"\\]*)*)"\s*(?:,\s*|$)')
_ESCAPE = re.compile(r'\\([\\n"])')


class ExpositionError(ValueError):
    """A page that is not in the text format, or of a size that no agent's has; the message says what is wrong."""


def read_samples(page: str) -> Iterator[tuple[SeriesKey, float]]:
    """Each sample of a page, under the name that its line has, whatever comments say of its type; times are passed by.

    ExpositionError where a line is none. Series with the same labels share them, which keeps a page small.
    """
    lines = page.count("\n")
    if lines > MOST_LINES:
        raise ExpositionError(f"it has {lines} lines, more than {MOST_LINES}")
    known: dict[str, Labels] = {}
    pairs: dict[tuple[str, str], tuple[str, str]] = {}
    for line in page.split("\n"):
        if len(line) > LONGEST_LINE:
            raise ExpositionError(f"a line has {len(line)} characters, more than {LONGEST_LINE}: {_shown(line)}")
        series, _, number = line.rpartition(" ")
        plain, value = _PLAIN_SERIES.fullmatch(series), _value(number)
        if plain is None or value is None:
            yield from _with_care(line.strip())
            continue
        name, inside = plain.groups("")
        labels = known.get(inside)
        if labels is None:
            found = sorted(_NAME_AND_VALUE.findall(inside))
            labels = known[inside] = tuple(pairs.setdefault(pair, pair) for pair in found)
            if len(dict(labels)) < len(labels):
                raise _wrong(line)
        yield SeriesKey(name, labels), value


def _value(number: str) -> float | None:
    """None where that is no number, or may be none: Python takes more for one than the format does."""
    try:
        return None if "_" in number else float(number)
    except ValueError:
        return None


def _with_care(line: str) -> Iterator[tuple[SeriesKey, float]]:
    """A sample with escapes, a time or needless spaces; nothing for comments and empty lines."""
    if not line or line.startswith("#"):
        return
    name = _NAME.match(line)
    if name is None:
        raise _wrong(line)
    inside, brace, numbers = line[name.end() :].rpartition("}")
    inside, words = inside.strip(), numbers.split()
    if not 0 < len(words) <= 2 or not (inside.startswith("{") if brace else numbers[0].isspace()):
        raise _wrong(line)
    value, *time = map(_value, words)
    if value is None or None in time:
        raise _wrong(line)
    yield SeriesKey.of(name[0], _labels(inside[1:].lstrip(), line)), value


def _labels(inside: str, line: str) -> dict[str, str]:
    labels: dict[str, str] = {}
    at = 0
    while at < len(inside):
        found = _LABEL.match(inside, at)
        if found is None or found[1] in labels:
            raise _wrong(line)
        labels[found[1]] = _ESCAPE.sub(_unescaped, found[2]) if "\\" in found[2] else found[2]
        at = found.end()
    return labels


def _unescaped(escape: re.Match[str]) -> str:
    return "\n" if escape[1] == "n" else escape[1]


def _wrong(line: str) -> ExpositionError:
    return ExpositionError(f"no sample is {_shown(line)}")


def _shown(line: str) -> str:
    return repr(line[:SHOWN_CHARACTERS]) + ("..." if len(line) > SHOWN_CHARACTERS else "")
