"""How messages put numbers."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """E.g. `1 executor`, `2 executors`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
