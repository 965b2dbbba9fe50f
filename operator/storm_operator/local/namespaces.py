"""Entering a named network namespace from Python (os.setns came only with 3.12)."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CLONE_NEWNET = 0x40000000
NAMED = Path("/run/netns")

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def inside_namespace(name: str | None) -> Iterator[None]:
    """Run the body in the network namespace `name` (this thread alone); None is where the process is already."""
    if name is None:
        yield
        return
    here = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(NAMED / name, os.O_RDONLY)
    try:
        _enter(there, name)
        yield
    finally:
        _enter(here, "back")
        os.close(here)
        os.close(there)


def _enter(descriptor: int, name: str) -> None:
    if _libc.setns(descriptor, CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot enter network namespace {name}: {os.strerror(number)}")
