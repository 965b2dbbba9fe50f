"""Waiting for what comes true by itself, for tests and benchmarks alike."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE_SECONDS = 420.0
POLL_SECONDS = 0.4

T = TypeVar("T")


def eventually(
    condition: Callable[[], T | None],
    what: str,
    seconds: float = PATIENCE_SECONDS,
    seen: Callable[[], object] = lambda: "",
) -> T:
    """The first true value of `condition`; fails with `what`, and what is `seen` instead, when none comes in time."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what} {seen()}"
        time.sleep(POLL_SECONDS)
