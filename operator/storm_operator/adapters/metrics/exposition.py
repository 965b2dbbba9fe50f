"""Prometheus' text format, read as an agent writes it, in one walk over each line.

Own code because a page may come from anywhere: the client library's parser looks at each character in Python, and many
times at each of a line that is made for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST_LINES = 500_000
"""The 64 MiB that a page may have are some 400,000 lines of an agent's, and would be seven million short ones."""
LONGEST_LINE = 64 * 1024
SHOWN_CHARACTERS = 100

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"([^"\\]*(?:\\.[^"\\]*)*)"\s*(?:,\s*|$)')
_ESCAPE = re.compile(r'\\([\\n"])')


class ExpositionError(ValueError):
    """A page that is not in the text format, or of a size that no agent's has; the message says what is wrong."""


def samples(page: str) -> Iterator[tuple[str, dict[str, str], float]]:
    """Name, labels and value of each sample; comments and times are passed by. ExpositionError where it is none."""
    lines = page.count("\n")
    if lines > MOST_LINES:
        raise ExpositionError(f"it has {lines} lines, more than {MOST_LINES}")
    for line in page.split("\n"):
        sample = line.strip()
        if sample and not sample.startswith("#"):
            yield _sample(sample)


def _sample(line: str) -> tuple[str, dict[str, str], float]:
    if len(line) > LONGEST_LINE:
        raise ExpositionError(f"a line has {len(line)} characters, more than {LONGEST_LINE}: {_shown(line)}")
    name = _NAME.match(line)
    if name is None:
        raise _wrong(line)
    inside, brace, numbers = line[name.end() :].rpartition("}")
    inside, words = inside.strip(), numbers.split()
    if not 0 < len(words) <= 2 or not (inside.startswith("{") if brace else numbers[0].isspace()):
        raise _wrong(line)
    value, *_time = [_number(word, line) for word in words]
    return name[0], _labels(inside[1:].lstrip(), line), value


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


def _number(word: str, line: str) -> float:
    try:
        if "_" not in word:  # which Python takes amid digits
            return float(word)
    except ValueError:
        pass
    raise _wrong(line)


def _wrong(line: str) -> ExpositionError:
    return ExpositionError(f"no sample is {_shown(line)}")


def _shown(line: str) -> str:
    return repr(line[:SHOWN_CHARACTERS]) + ("..." if len(line) > SHOWN_CHARACTERS else "")
