"""How messages put lists that may be long."""

from __future__ import annotations

import pytest

from storm_operator.core.wording import first_of

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
