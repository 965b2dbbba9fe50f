"""What a decision reckons with where a neighbour's need is unknown. Pure.

A decision waits for the figures of the topologies that it may move, not for those of their neighbours: one that crashes
again and again would hold every plan for ever. But a neighbour without figures is not one that needs nothing: its
supervisor would look empty, and be filled. So it is taken to need:

- what was measured of it, where only its past is too short to tell its need;
- else its part of what its supervisor was measured to use beyond all others there, and room for the most that it was
  known to need: what runs is seen in the supervisor's figure, and what is down just now comes back;
- where the supervisor was not measured either, its part of all that is left there: nobody is moved to where nobody
  knows, and nobody away from there for a guess.

These figures are for placement alone. They are no demand: no limit is set by them, and they excuse no hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from storm_operator.core.model import Demand, Executor
from storm_operator.core.placement.inventory import obstacles
from storm_operator.core.placement.objective import room_for_executors
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.worker_overhead import worker_overhead


def with_assumed_needs(snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings) -> Demand:
    """`demand` with a need for each executor that must stay where it is and that `demand` does not know."""
    strangers = [e for e in sorted(obstacles(snapshot, settings)) if e not in demand.millicores]
    if not strangers:
        return demand
    measured = {e: cpu for e in strangers if (cpu := _measured(e, snapshot)) is not None}
    seen = _having(demand, measured)
    room = room_for_executors(snapshot, settings)
    unseen = set(strangers) - measured.keys()
    parts: dict[Executor, float] = {}
    for at, residents in snapshot.assignment.residents().items():
        executors = [executor for executor in residents if executor in unseen]
        if executors and at in room:
            rest = _rest(at, residents, snapshot, seen, room[at])
            parts.update(dict.fromkeys(executors, rest / len(executors)))
    return _having(seen, parts)


def _having(demand: Demand, needs: Mapping[Executor, float]) -> Demand:
    """`demand` with these needs, and with room for the most that was known of them."""
    peaks, older = demand.peak_millicores, demand.room_peak_millicores
    return replace(
        demand,
        millicores={**demand.millicores, **needs},
        raw_millicores={**demand.raw_millicores, **needs},
        room_millicores={
            **demand.room_millicores,
            **{e: max(need, peaks.get(e, 0.0), older.get(e, 0.0)) for e, need in needs.items()},
        },
    )


def _measured(executor: Executor, snapshot: ClusterSnapshot) -> float | None:
    load = snapshot.loads.get(executor)
    return None if load is None else load.cpu_millicores


def _rest(at: str, residents: Sequence[Executor], snapshot: ClusterSnapshot, seen: Demand, room: float) -> float:
    """What supervisor `at` has for executors that nobody saw: what it used beyond the others, else what they leave."""
    used = snapshot.supervisor_cpu_millicores.get(at)
    if used is None:
        left = room - seen.total(residents)
        return max(0.0, left) if math.isfinite(left) else 0.0
    others = math.fsum(_used(executor, snapshot, seen) for executor in residents)
    return max(0.0, used / worker_overhead(snapshot) - others)


def _used(executor: Executor, snapshot: ClusterSnapshot, seen: Demand) -> float:
    measured = _measured(executor, snapshot)
    return seen.raw_millicores.get(executor, 0.0) if measured is None else measured
