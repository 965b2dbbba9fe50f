"""What a simulation had counted when its time came to certain moments, whoever let the time pass."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from storm_operator.simulator.engine import Engine
from storm_operator.simulator.totals import Totals


@dataclass(frozen=True, slots=True)
class Counted:
    """Since the simulation began. `totals` have all executors as one."""

    totals: Totals
    restarts: int

    @classmethod
    def so_far(cls, engine: Engine) -> Counted:
        """By `engine` up to now."""
        return cls(engine.totals.summed(), engine.cluster.restarts)


class Milestones:
    """Advances an engine, and keeps what it had counted at each of `moments`, which are seconds of its time."""

    def __init__(self, engine: Engine, moments: Collection[float]) -> None:
        self._engine = engine
        self._ahead = sorted(moments)
        self._passed: dict[float, Counted] = {}
        self.advance_to(engine.now)

    def advance_to(self, seconds: float) -> None:
        """Simulate up to `seconds`."""
        while self._ahead and self._ahead[0] <= seconds:
            moment = self._ahead.pop(0)
            self._engine.advance_to(moment)
            self._passed[moment] = Counted.so_far(self._engine)
        self._engine.advance_to(seconds)

    def counted_at(self, moment: float) -> Counted:
        """What had been counted then; up to now where that is still to come."""
        return self._passed.get(moment) or Counted.so_far(self._engine)
