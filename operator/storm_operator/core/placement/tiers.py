"""Too little CPU for all: place topologies of higher priority first, as if the others were not there. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Infeasible, Supervisor
from storm_operator.core.placement.objective import cost_of, see
from storm_operator.core.placement.slots import in_slots_of_before
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.worker_overhead import worker_overhead

Place = Callable[[ClusterSnapshot, Demand, PlacementSettings], Assignment | Infeasible]


def leaves_higher_priorities_short(
    snapshot: ClusterSnapshot, assignment: Assignment, demand: Demand, settings: PlacementSettings
) -> bool:
    """Whether a topology that is not of the lowest priority shares in an overload."""
    if len(set(settings.priority.values())) < 2:
        return False
    return see(snapshot, assignment, demand, settings).outranking_millicores > 0.0


def place_tier_by_tier(
    place: Place, snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings
) -> Assignment | Infeasible:
    """The movable topologies by falling priority, each tier by `place` around those before it.

    A tier is placed wherever there is room, and also apart from what outranks it: from the highest priority, from the
    two highest, and so on. The cheapest is kept. `Infeasible` when a tier finds too few slots.
    """
    settled = snapshot.assignment
    whole = _less_overhead(snapshot)
    waiting = set(settings.movable)
    for tier in _tiers(settings):
        waiting -= tier
        present = _without(whole, waiting, settled)
        # Within a tier all count alike: no digits are lost to weights that others have.
        own = replace(settings, movable=tier, priority={})
        found = [place(around, demand, own) for around in (present, *_apart(present, tier, settings.priority))]
        feasible = [assignment for assignment in found if not isinstance(assignment, Infeasible)]
        if not feasible:
            return found[0]
        best = min(feasible, key=lambda assignment: cost_of(present, assignment, demand, settings).total)
        settled = settled.with_moves({e: slot for e, slot in best.slot_of.items() if e.topology_id in tier})
    # An early tier may have taken the slot of a worker that stays where it is.
    return in_slots_of_before(snapshot, settled, settings.movable)


def _tiers(settings: PlacementSettings) -> list[frozenset[str]]:
    """Movable topologies of the same priority, the highest first."""
    lowest = min(settings.priority.values())
    of = {topology_id: settings.priority.get(topology_id, lowest) for topology_id in settings.movable}
    return [frozenset(i for i in of if of[i] == value) for value in sorted(set(of.values()), reverse=True)]


def _less_overhead(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """The snapshot with what executors may use of supervisors as all the CPU that these have.

    What workers need beside them is told of all topologies, for every tier: with some waiting and others settled
    elsewhere it could not be told from what supervisors were measured to use.
    """
    overhead = worker_overhead(snapshot)
    shares = tuple(_share_of(supervisor, 1.0 / overhead) for supervisor in snapshot.supervisors)
    return replace(snapshot, supervisors=shares, supervisor_cpu_millicores={})


def _share_of(supervisor: Supervisor, share: float) -> Supervisor:
    """The supervisor with that share of its CPU, if that was measured."""
    capacity = supervisor.cpu_capacity_millicores
    return supervisor if capacity is None else replace(supervisor, cpu_capacity_millicores=share * capacity)


def _without(snapshot: ClusterSnapshot, gone: Iterable[str], assignment: Assignment) -> ClusterSnapshot:
    """The snapshot with `assignment` in force and without the topologies of these ids."""
    absent = frozenset(gone)
    return replace(
        snapshot,
        topologies=tuple(topology for topology in snapshot.topologies if topology.id not in absent),
        assignment=Assignment({e: slot for e, slot in assignment.slot_of.items() if e.topology_id not in absent}),
    )


def _apart(present: ClusterSnapshot, tier: frozenset[str], priority: Mapping[str, int]) -> tuple[ClusterSnapshot, ...]:
    """The same with only the supervisors that host nothing of the highest priority, of the two highest, and so on."""
    lowest = min(priority.values())
    own = max(priority.get(topology_id, lowest) for topology_id in tier)
    rank_on: dict[str, int] = {}
    for executor, slot in present.assignment.slot_of.items():
        rank = priority.get(executor.topology_id, lowest)
        rank_on[slot.supervisor_id] = max(rank, rank_on.get(slot.supervisor_id, rank))
    found = []
    for value in sorted({rank for rank in rank_on.values() if rank > own}, reverse=True):
        free = tuple(s for s in present.supervisors if rank_on.get(s.id, lowest) < value)
        if free:
            found.append(replace(present, supervisors=free))
    return tuple(found)
