"""How long the steps of a pass take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class StepTimes:
    """Seconds of each step since `clear`, by this machine's own clock, also where the loop lives in simulated time."""

    stopwatch: Callable[[], float] = time.perf_counter
    _seconds: dict[str, float] = field(default_factory=dict)

    def clear(self) -> None:
        self._seconds.clear()

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time what happens inside, also when it raises."""
        started = self.stopwatch()
        try:
            yield
        finally:
            self._seconds[name] = self.stopwatch() - started

    def seconds(self) -> Mapping[str, float]:
        """By step, in the order in which they ended."""
        return dict(self._seconds)
