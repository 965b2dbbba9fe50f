"""Why an HTTP request failed, in words that many may read."""

from __future__ import annotations


def innermost(error: BaseException) -> str:
    """The plain reason ("Connection refused"), which requests wraps several times.

    Its own sentence says what was asked for, and with that perhaps a token.
    """
    reason = error.args[0] if error.args else error
    reason = getattr(reason, "reason", reason)
    return str(reason).rsplit(": ", 1)[-1]
