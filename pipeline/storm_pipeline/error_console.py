"""Where the jobs say what went wrong: beside their tables, which are for stdout."""

from __future__ import annotations

from rich.console import Console


def error_console() -> Console:
    """Stderr as it is now."""
    return Console(stderr=True, highlight=False)
