"""Spouts that a plan has paused, where its loop ends in the midst of it: nobody would resume them until it goes on."""

from __future__ import annotations

from collections.abc import Callable

from storm_operator.adapters.errors import AdapterError
from storm_operator.control_loop import ControlLoop


def resume_before_the_end(loop: ControlLoop, say: Callable[[str], None]) -> bool:
    """Resume what is paused for a plan that was cut short, and say so; a Nimbus that is away is said, too.

    It is waited for as long as in any call. Whether none is left to resume.
    """
    paused = ", ".join(loop.paused)
    if not paused:
        return True
    try:
        loop.resume_paused()
        say(f"the spouts of {paused}, which a plan had paused, are resumed")
        return True
    except AdapterError as error:
        say(f"the spouts of {paused} may stay paused: {error}; `storm activate NAME` or the next start resumes them")
        return False
