"""The same for several files at once: an object store's answers each take their time."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

AT_ONCE = 8


def at_once(act: Callable[[str], Any], paths: Sequence[str]) -> list[Any]:
    """What `act` returns of each of them; raises what it raised first.

    By threads that a process does not wait for at its end, as it does for those of a pool: a disk may never answer.
    """
    found: dict[str, Any] = {}
    failures: list[Exception] = []
    left = deque(paths)

    def work() -> None:
        while not failures:
            try:
                path = left.popleft()
            except IndexError:
                return
            try:
                found[path] = act(path)
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(AT_ONCE, len(paths)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return [found[path] for path in paths]
