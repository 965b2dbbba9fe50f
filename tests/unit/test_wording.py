"""How messages put figures, and lists that may be long."""

from __future__ import annotations

import pytest

from storm_operator.core.wording import counted, figure, first_of

LETTERS = tuple("abcdefgh")


@pytest.mark.parametrize(
    ("names", "separator", "said"),
    [
        ((), ", ", ""),
        (LETTERS[:5], ", ", "a, b, c, d, e"),
        (LETTERS, ", ", "a, b, c, d, e and 3 more"),
        (LETTERS, "; ", "a; b; c; d; e; and 3 more"),
    ],
)
def test_first_are_named_and_the_others_counted(names: tuple[str, ...], separator: str, said: str) -> None:
    assert first_of(names, separator) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "unknown"),
        (0.0, "0"),
        (0, "0"),
        (0.04, "0"),
        (5.04, "5"),
        (96.4, "96.4"),
        (99.96, "100"),
        (5.25, "5.3"),
        (5.2496, "5.3"),
        (5.249, "5.2"),
        (100.5, "101"),
        (float("inf"), "Infinity"),
        (1508.3, "1,508"),
        (-1508.3, "-1,508"),
    ],
)
def test_figures_are_as_the_page_has_them(value: float | None, said: str) -> None:
    assert figure(value) == said


def test_what_is_counted_has_its_plural() -> None:
    assert [counted(number, "executor") for number in (0, 1, 2000)] == ["0 executors", "1 executor", "2,000 executors"]
