"""What CPU a supervisor pod needs: by what its executors are found to need, and by what it uses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Supervisor

SUPERVISOR_OWN_MILLICORES = 200.0
"""For the supervisor itself, garbage collection and network threads, which no executor's thread accounts for."""

MOST_USED_FRACTION, LEAST_USED_FRACTION = 0.8, 0.6
"""Of its limit that a pod may use before it is given more than its executors need, and before that is taken back."""

USE_STANDS_SECONDS = 300.0
"""A pod whose use is not known goes by what it was last seen to use for so long."""


def needed_millicores(
    supervisor: Supervisor, assignment: Assignment, demand: Demand, headroom_fraction: float
) -> float | None:
    """What a pod must be given for the executors on it; None when the demand of any is unknown."""
    executors = [e for e, slot in assignment.slot_of.items() if slot.supervisor_id == supervisor.id]
    known = [demand.millicores.get(executor) for executor in executors]
    if any(millicores is None for millicores in known):
        return None
    total = math.fsum(millicores for millicores in known if millicores is not None)
    return SUPERVISOR_OWN_MILLICORES + total / headroom_fraction


def with_use_in_mind(needed_millicores: float, used_millicores: float | None, now_millicores: float | None) -> float:
    """What a pod is to have by what its executors need, and by what it uses of what it has now.

    A pod that its limit holds back shows nothing else: its executors do less, and so seem to need less. What is more
    than they need is kept while most of it is used, so that limits do not follow every little change.
    """
    if used_millicores is None:
        return needed_millicores
    is_well_used = (
        now_millicores is not None
        and LEAST_USED_FRACTION * now_millicores <= used_millicores <= MOST_USED_FRACTION * now_millicores
    )
    if now_millicores is not None and is_well_used:
        return max(needed_millicores, now_millicores)
    return max(needed_millicores, used_millicores / MOST_USED_FRACTION)


@dataclass(frozen=True, slots=True)
class Use:
    at_seconds: float
    millicores: float


@dataclass(slots=True)
class KnownUse:
    """What supervisors were last seen to use: one whose agent missed a scrape has not stopped working."""

    last: dict[str, Use] = field(default_factory=dict)
    """By supervisor id."""

    def see(self, used_millicores: Mapping[str, float], now_seconds: float) -> None:
        """Of one pass; those that are not in it are unknown."""
        recent = {i: use for i, use in self.last.items() if now_seconds - use.at_seconds < USE_STANDS_SECONDS}
        self.last = recent | {i: Use(now_seconds, used) for i, used in used_millicores.items()}

    def of(self, supervisor_id: str) -> float | None:
        """Millicores; None where that was not known for some minutes."""
        use = self.last.get(supervisor_id)
        return use.millicores if use is not None else None
