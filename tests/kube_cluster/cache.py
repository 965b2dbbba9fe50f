"""The folder of everything that can be built again, and who may build there."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from storm_operator.local.paths import cache_dir

Say = Callable[[str], None]


def kubernetes_cache() -> Path:
    """In the user's cache; safe to remove while no cluster is up."""
    return cache_dir() / "kubernetes"


@contextmanager
def one_at_a_time(what: str, say: Say) -> Iterator[None]:
    """Two processes must not build the same thing at once: the second waits, and finds it built."""
    kubernetes_cache().mkdir(parents=True, exist_ok=True)
    with (kubernetes_cache() / f".{what}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting: another process is building {what}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
