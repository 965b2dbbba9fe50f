"""Why an HTTP request failed, in words that many may read."""

from __future__ import annotations


def innermost(error: BaseException) -> str:
    """The plain reason ("Connection refused"), which requests wraps several times.

    Its own sentence says what was asked for, and with that perhaps a token.
    """
    wrapped = (part for part in (getattr(error, "reason", None), *error.args) if isinstance(part, BaseException))
    inner = next(wrapped, None)
    return str(error).rsplit(": ", 1)[-1] if inner is None else innermost(inner)
