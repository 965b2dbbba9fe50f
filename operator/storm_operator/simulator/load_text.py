"""Load shapes written as the example topologies' `--rate` is: `steady:300`, `sine:100..500/120s`, ..."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from storm_operator.core.short_repr import short_repr
from storm_operator.simulator.load import Constant, LoadShape, Periodic, RandomLevels, Sine, Spiky, Step

NUMBER = r"(\d+(?:\.\d+)?)"
PERIOD = rf"(?:/{NUMBER}s)?"
WAVE = rf"{NUMBER}\.\.{NUMBER}/{NUMBER}s"
STEP_TO = re.compile(rf"{NUMBER}@{NUMBER}s?")
LARGEST = 1e18
"""Of numbers in a load: of a seed's size. No sum of such ones overflows."""
LEVELS = 1000
"""Into how many levels a random range is cut: the shape draws whole numbers."""


def parse_load(text: str) -> LoadShape:
    """The shape; ValueError naming the text and the right form. The grammar is that of examples/README.md.

    `random` draws other numbers than the Java topologies do for the same seed.
    """
    kind, colon, rest = text.strip().partition(":")
    if not colon:
        kind, rest = "steady", text.strip()
    if kind not in _FORMS:
        raise ValueError(f"load {text!r}: one of {', '.join(f'{name}:' for name in _FORMS)} or a plain number is right")
    pattern, right, make = _FORMS[kind]
    match = re.fullmatch(pattern, rest)
    if match is None:
        raise ValueError(f"load {short_repr(text)}: {right} is right")
    if max(map(float, re.findall(NUMBER, rest))) > LARGEST:
        raise ValueError(f"load {short_repr(text)}: numbers up to {LARGEST:g} are right")
    return make(match)


def _steps(match: re.Match[str]) -> LoadShape:
    steps = [(0.0, float(match[1]))]
    for part in match[2].split(",")[1:]:
        found = STEP_TO.fullmatch(part)
        if found is None:
            raise ValueError(f"load step {part!r}: RATE@SECONDS is right, e.g. 600@60")
        before = steps[-1][0]
        if float(found[2]) <= before:
            raise ValueError(f"load step {part!r}: a time after {before:g} s, when the one before begins, is right")
        steps.append((float(found[2]), float(found[1])))
    return _repeated(Step(tuple(steps)), match[3], steps[-1][0])


def _repeated(shape: LoadShape, period: str | None, held_seconds: float) -> LoadShape:
    return shape if period is None else Periodic(shape, _seconds("period", period, held_seconds))


def _seconds(what: str, text: str, least: float = 0.0) -> float:
    seconds = float(text)
    if seconds <= 0.0 or seconds < least:
        right = f"{least:g} s, what it holds, or more" if least else "more than 0 s"
        raise ValueError(f"load {what} '{text}s': {right} is right")
    return seconds


def _range(match: re.Match[str]) -> tuple[float, float]:
    low, high = float(match[1]), float(match[2])
    if high < low:
        raise ValueError(f"load range '{match[1]}..{match[2]}': LOW..HIGH with LOW at most HIGH is right")
    return low, high


def _sine(match: re.Match[str]) -> LoadShape:
    low, high = _range(match)
    return Sine(low, high, _seconds("period", match[3]))


def _random(match: re.Match[str]) -> LoadShape:
    low, high = _range(match)
    seconds, seed = _seconds("period", match[3]), int(match[4] or 0)
    return RandomLevels((high - low) / LEVELS, 0, LEVELS, seconds, seed, always_per_second=low)


def _spike(match: re.Match[str]) -> LoadShape:
    base, high = float(match[1]), float(match[2])
    start, length = float(match[3]), _seconds("length", match[4])
    spike: LoadShape = (
        Step(((start, high), (start + length, 0.0)))
        if base <= 0.0
        else Spiky(Constant(base), (start,), length, high / base)
    )
    return _repeated(spike, match[5], start + length)


_FORMS: Mapping[str, tuple[str, str, Callable[[re.Match[str]], LoadShape]]] = {
    "steady": (NUMBER, "steady:RATE, e.g. steady:300", lambda m: Constant(float(m[1]))),
    "step": (
        rf"{NUMBER}((?:,[^,/]+)+){PERIOD}",
        "step:RATE,RATE@SECONDS,...[/PERIODs], e.g. step:300,600@60",
        _steps,
    ),
    "sine": (
        WAVE,
        "sine:LOW..HIGH/PERIODs, e.g. sine:100..500/120s",
        _sine,
    ),
    "random": (
        rf"{WAVE}(?:;seed=(\d{{1,18}}))?",
        "random:LOW..HIGH/PERIODs[;seed=N], e.g. random:50..400/10s;seed=7",
        _random,
    ),
    "spike": (
        rf"{NUMBER},{NUMBER}@{NUMBER}s?\+{NUMBER}s{PERIOD}",
        "spike:RATE,HIGH@SECONDS+SECONDSs[/PERIODs], e.g. spike:200,900@60+10s",
        _spike,
    ),
}
