"""When what failed is tried again: at once if something else is wanted, else after pauses that double. Pure."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_RETRY_SECONDS = 10.0
SLOWEST_RETRY_SECONDS = 300.0
LONGEST_PASS_RETRY_SECONDS = 10.0
"""A pass that failed, or that left a plan half done, is followed by the next so soon, however long the period."""


@dataclass(frozen=True, slots=True)
class Retry:
    """What failed `failures` times in a row: not tried again before `not_before_seconds`.

    `identity` is of what was tried; something else may be tried at once.
    """

    identity: str
    not_before_seconds: float
    pause_seconds: float
    failures: int = 1


def may_try(last: Retry | None, identity: str, now_seconds: float) -> bool:
    """`last` None: it has not failed."""
    if last is None or last.identity != identity:
        return True
    left_seconds = last.not_before_seconds - now_seconds
    # More than the pause (and what rounding adds) is left only where the clock was set back since: by hours, perhaps.
    return left_seconds <= 0.0 or left_seconds > last.pause_seconds + 1.0


def put_off(last: Retry | None, identity: str, now_seconds: float) -> Retry:
    """After one more failure."""
    if last is None or last.identity != identity:
        return Retry(identity, now_seconds + FIRST_RETRY_SECONDS, FIRST_RETRY_SECONDS)
    pause = min(last.pause_seconds * 2, SLOWEST_RETRY_SECONDS)
    return Retry(identity, now_seconds + pause, pause, last.failures + 1)
