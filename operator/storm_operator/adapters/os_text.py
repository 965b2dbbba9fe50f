"""What the operating system takes as a path, or as an argument of a program."""

from __future__ import annotations

import os


def is_os_text(text: str) -> bool:
    """Whether it has neither a NUL nor half a character."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False
