"""How messages put figures, and lists that may be long."""

from __future__ import annotations

import pytest

from storm_operator.core.wording import counted, figure, figure_beside, first_of

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


@pytest.mark.parametrize("bound", [10.0, 62.5, 120.0, 300.0, 1500.0])
@pytest.mark.parametrize("off", [0.0003, 0.03, 0.3, 3.0])
def test_what_misses_a_bound_does_not_read_as_if_it_met_it(bound: float, off: float) -> None:
    for value in (bound - off, bound + off):
        assert float(figure_beside(value, bound).replace(",", "")) != bound
        assert float(figure_beside(value, bound).replace(",", "")) == pytest.approx(value, rel=0.05, abs=0.01)
    assert figure_beside(bound, bound) == figure(bound)


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
        (0.4496, "0.4"),
        (0.0496, "0"),
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
