"""What a decision reckons with where a need is unknown: of neighbours, and of a part of what may be moved. Pure.

A decision waits for the figures of the topologies that it may move, as far as `minimum_completeness` says, and not for
those of their neighbours: one that crashes again and again would hold every plan for ever. But an executor without
figures is not one that needs nothing: its supervisor would look empty, and be filled. So it is taken to need:

- what was measured of it, where only its past is too short to tell its need;
- else its part of what its supervisor was measured to use beyond all others there, and room for the most that it was
  known to need: what runs is seen in the supervisor's figure, and what is down just now comes back;
- where the supervisor was not measured either, its part of all that is left there: nobody is moved to where nobody
  knows, and nobody away from there for a guess;
- where it is on no supervisor and is to get a place, the most that it was known to need.

These figures are for placement alone. They are no demand: no limit is set by them, and they excuse no hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Executor, in_order
from storm_operator.core.placement.inventory import movable_topologies, obstacles
from storm_operator.core.placement.objective import room_for_executors
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.worker_overhead import worker_overhead


def with_assumed_needs(snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings) -> Demand:
    """`demand` with a need for each executor that it does not know, as far as anything tells of one."""
    strangers = in_order(e for e in _in_question(snapshot, settings) if e not in demand.millicores)
    if not strangers:
        return demand
    measured = {e: cpu for e in strangers if (cpu := _measured(e, snapshot)) is not None}
    seen = _having(demand, measured)
    room = room_for_executors(snapshot, settings)
    unseen = dict.fromkeys(e for e in strangers if e not in measured)
    parts = _known_of_old(unseen, demand, settings)
    for at, residents in snapshot.assignment.residents().items():
        executors = [executor for executor in residents if executor in unseen]
        if executors and at in room:
            rest = _rest(at, residents, snapshot, seen, room[at])
            parts.update(dict.fromkeys(executors, rest / len(executors)))
    return _having(seen, parts)


def _in_question(snapshot: ClusterSnapshot, settings: PlacementSettings) -> Iterator[Executor]:
    """Who stays where it is, and who may be moved or is to get a place."""
    yield from obstacles(snapshot, settings)
    for topology in movable_topologies(snapshot, settings):
        yield from topology.executors


def _known_of_old(executors: Iterable[Executor], demand: Demand, settings: PlacementSettings) -> dict[Executor, float]:
    """The most that was known of those that may be moved; the others are there to leave room for where they run."""
    mine = (executor for executor in executors if executor.topology_id in settings.movable)
    return {executor: most for executor in mine if (most := _peak(executor, demand)) > 0.0}


def _having(demand: Demand, needs: Mapping[Executor, float]) -> Demand:
    """`demand` with these needs assumed, and with room for the most that was known of them."""
    room = {executor: max(need, _peak(executor, demand)) for executor, need in needs.items()}
    return replace(
        demand,
        millicores={**demand.millicores, **needs},
        raw_millicores={**demand.raw_millicores, **needs},
        room_millicores={**demand.room_millicores, **room},
        assumed=demand.assumed | needs.keys(),
    )


def _peak(executor: Executor, demand: Demand) -> float:
    return max(demand.peak_millicores.get(executor, 0.0), demand.room_peak_millicores.get(executor, 0.0))


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
