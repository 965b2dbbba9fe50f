"""Machine code for the inner loops of placement: plain Python functions over arrays, compiled by numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """`function` as machine code that Python can call."""
    return cast("F", _compile(function))


def inner(function: F) -> F:
    """`function` as machine code that only compiled functions call: it needs no door to Python, which takes time."""
    return cast("F", _compile(function, no_cpython_wrapper=True, no_cfunc_wrapper=True))


def leaf(function: F) -> F:
    """`inner` for what makes no arrays: nothing counts references there, which takes time to compile and to run."""
    return cast("F", _compile(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False))


def _compile(function: Callable[..., object], **options: bool) -> Any:
    """Kept beside the source when that can be written, else made anew in each process."""
    compiler: Any = numba.njit
    try:
        return compiler(cache=True, **options)(function)
    except RuntimeError:  # nowhere to keep it: a read-only file system
        return compiler(**options)(function)
