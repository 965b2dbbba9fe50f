"""Machine code for the inner loops of placement: plain Python functions over arrays, compiled by numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """`function` as machine code, kept beside the source when that can be written, else made anew in each process."""
    try:
        return cast("F", numba.njit(cache=True)(function))
    except RuntimeError:  # nowhere to keep it: a read-only file system
        return cast("F", numba.njit(function))
