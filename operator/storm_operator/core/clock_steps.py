"""Times that were noted before the clock was set back lie ahead; nobody waits until it is that late again. Pure.

Clocks of machines differ by some seconds, so that what lies a little ahead, as noted by an operator elsewhere, counts.
"""

from __future__ import annotations

MOST_AHEAD_SECONDS = 60.0
"""Further apart than that no two clocks are that are kept."""


def was_set_back(noted_seconds: float, now_seconds: float) -> bool:
    """Whether the clock was set back after it showed `noted_seconds`."""
    return noted_seconds - now_seconds > MOST_AHEAD_SECONDS


def is_younger(noted_seconds: float, than_seconds: float, now_seconds: float) -> bool:
    """Whether less than `than_seconds` have passed; not where the clock was set back since."""
    return now_seconds - noted_seconds < than_seconds and not was_set_back(noted_seconds, now_seconds)


def age_seconds(noted_seconds: float, now_seconds: float) -> float:
    """How long ago that was, for sentences; 0 where it was noted by a clock that is ahead, or before a step back."""
    return max(0.0, now_seconds - noted_seconds)
