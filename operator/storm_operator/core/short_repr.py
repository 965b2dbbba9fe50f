"""How a message shows a value that somebody else sent, who may send anything: never at length, whatever it is."""

from __future__ import annotations

import reprlib

MOST_CHARACTERS = 100
MOST_PARTS = 4
MOST_LEVELS = 3

_short = reprlib.Repr()
_short.maxlevel = MOST_LEVELS
_short.maxdict = _short.maxlist = _short.maxtuple = MOST_PARTS
_short.maxstring = _short.maxlong = _short.maxother = MOST_CHARACTERS


def short_repr(value: object) -> str:
    """As `repr`, with the middle of long texts and the rest of long or deep collections left out."""
    return _short.repr(value)
