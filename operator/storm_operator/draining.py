"""Waits, while the spouts of a plan's topologies are paused, until none of their tuples is under way any more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from storm_operator.apply_ports import Clock, StormCommands, WorkerProbe
from storm_operator.core.decision import Plan
from storm_operator.core.plan_progress import (
    Component,
    InFlight,
    moved_topologies,
    queues_not_seen,
    still_reached,
    supervisors_of,
)
from storm_operator.core.wording import first_of
from storm_operator.plan_waits import Ended, wait_until

DRAIN_TIMEOUT_SECONDS = 30.0
DRAIN_POLL_SECONDS = 1.2  # longer than the workers' snapshot period: two readings are two different snapshots


def wait_until_drained(
    plan: Plan, storm: StormCommands, probe: WorkerProbe, clock: Clock, gives_up: Callable[[], bool]
) -> str:
    """Why tuples may fail when the plan is put in force now; empty: none is under way, or `gives_up` said so."""
    looks = _Looks(plan, probe, clock, Ended(plan, storm, clock))
    if wait_until(lambda: gives_up() or looks.find_nothing(), clock, DRAIN_TIMEOUT_SECONDS, DRAIN_POLL_SECONDS):
        return ""
    after = f"after {DRAIN_TIMEOUT_SECONDS:.0f} s of draining"
    if unknown := looks.why_unknown():
        return f"whether tuples were still in flight {after}, and may fail, is unknown: {unknown}"
    return f"tuples were still in flight {after} and may fail"


@dataclass(slots=True)
class _Looks:
    """One look after the other at what is in flight. `blind` is why the `latest` cannot tell; empty where it can."""

    plan: Plan
    probe: WorkerProbe
    clock: Clock
    ended: Ended
    latest: InFlight | None = field(default=None, init=False)
    blind: str = field(default="", init=False)
    before: tuple[float, InFlight] | None = field(default=None, init=False)
    """When a look before that could tell, and what was seen."""
    reached: frozenset[Component] | None = field(default=None, init=False)

    def find_nothing(self) -> bool:
        """Look once more; whether it is certain by now that nothing is under way."""
        moved = moved_topologies(self.plan)
        self.latest = self.probe.tuples_in_flight(moved, supervisors_of(self.plan, moved))
        now_tick = self.clock.monotonic()
        self.blind = self._why_blind(self.latest)
        if self.latest is None or self.blind:
            return False
        if self.before is not None:
            before_tick, before = self.before
            if self.latest.age_seconds >= now_tick - before_tick:
                return False  # until each worker has written since that look
            self.reached = still_reached(before, self.latest, now_tick - before_tick, self.reached)
        self.before = now_tick, self.latest
        return self.reached is not None and not self.reached

    def why_unknown(self) -> str:
        """Why nobody knows what is in flight; empty where the looks tell that something is."""
        if self.latest is None or self.blind:
            return self.blind
        if self.latest.age_seconds >= DRAIN_POLL_SECONDS:
            return f"a worker has told its agent nothing for {self.latest.age_seconds:.1f} s"
        return ""

    def _why_blind(self, seen: InFlight | None) -> str:
        if seen is None:
            return "an agent did not answer"
        missing = queues_not_seen(self.plan, seen, self.ended.look())
        if missing:
            return f"no agent shows the queues of {first_of([executor.name for executor in missing])}"
        return ""
