"""How long something took, on the clock and on the CPU: the two differ where others use the machine too."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Took:
    """CPU seconds are of all threads of this process."""

    wall_seconds: float
    cpu_seconds: float


class StopWatch:
    """Runs from the moment it is made."""

    def __init__(self) -> None:
        self._began = Took(time.perf_counter(), time.process_time())

    def took(self) -> Took:
        return Took(time.perf_counter() - self._began.wall_seconds, time.process_time() - self._began.cpu_seconds)
