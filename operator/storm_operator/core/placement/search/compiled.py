"""Machine code for the inner loops of placement: plain Python functions over arrays, compiled by numba."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """`function` as machine code that Python can call; other threads of Python go on meanwhile."""
    return cast("F", _compile(function, nogil=True))


def inner(function: F) -> F:
    """`function` as machine code that only compiled functions call: it needs no door to Python, which takes time."""
    return cast("F", _compile(function, no_cpython_wrapper=True, no_cfunc_wrapper=True))


def leaf(function: F) -> F:
    """`inner` for what makes no arrays: nothing counts references there, which takes time to compile and to run.

    It is copied to where it is called: a call hands over each of the forty arrays of a search in seven parts.
    """
    return cast("F", _compile(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False, forceinline=True))


def spliced(function: F) -> F:
    """`function` as a part of the one compiled function that calls it, from which it stands apart to be read.

    Machine code of a function has in it that of all that it calls: compiled by itself, each in a chain of calls is
    compiled once more for everyone above it.
    """
    compiler: Any = numba.njit
    return cast("F", compiler(inline="always", no_cpython_wrapper=True)(function))


def _compile(function: Callable[..., object], **options: bool) -> Any:
    """Kept beside the source when that can be written, else made anew in each process."""
    compiler: Any = numba.njit
    try:
        return compiler(cache=True, **options)(function)
    except RuntimeError:  # nowhere to keep it: a read-only file system
        return compiler(**options)(function)


def forget_outdated(sources: Path) -> None:
    """Remove what was kept beside sources that have changed.

    numba itself looks at the file of a function alone. What that calls from other files is in its machine code too.
    """
    kept = sources / "__pycache__"
    made_from = kept / "machine-code.sources"
    now = hashlib.sha256(b"".join(source.read_bytes() for source in sorted(sources.glob("*.py")))).hexdigest()
    with suppress(OSError):  # a read-only file system, where nothing was kept
        if made_from.exists() and made_from.read_text() == now:
            return
        for file in [*kept.glob("*.nbi"), *kept.glob("*.nbc")]:
            file.unlink(missing_ok=True)
        kept.mkdir(exist_ok=True)
        made_from.write_text(now)


forget_outdated(Path(__file__).parent)
