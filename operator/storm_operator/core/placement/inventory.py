"""What a policy finds: what may move, what may not, what is free, what each executor needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Executor, Infeasible, Topology, WorkerSlot
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot


def movable_topologies(snapshot: ClusterSnapshot, settings: PlacementSettings) -> list[Topology]:
    """Topologies that may be changed, by id."""
    return sorted((t for t in snapshot.topologies if t.id in settings.movable), key=lambda t: t.id)


def obstacles(snapshot: ClusterSnapshot, settings: PlacementSettings) -> dict[Executor, WorkerSlot]:
    """Executors of all other topologies, with the slots that they keep."""
    return {e: slot for e, slot in snapshot.assignment.slot_of.items() if e.topology_id not in settings.movable}


def existing_slots(snapshot: ClusterSnapshot) -> frozenset[WorkerSlot]:
    """Every slot of the supervisors that are there."""
    return frozenset(slot for machine in snapshot.supervisors for slot in machine.slots)


def free_slots(snapshot: ClusterSnapshot, held: Iterable[WorkerSlot]) -> Mapping[str, list[WorkerSlot]]:
    """The slots of each supervisor but those `held`, by port."""
    taken = frozenset(held)
    return {m.id: [slot for slot in sorted(m.slots) if slot not in taken] for m in snapshot.supervisors}


def slots_missing(count: int) -> Infeasible:
    """What to say where there are `count` topologies more than slots for them."""
    return Infeasible(f"each topology needs a slot and {count} more would have to be free")


def executor_loads(snapshot: ClusterSnapshot, demand: Demand) -> Mapping[Executor, float]:
    """Millicores of every executor: as measured, where nobody measured it as demanded."""
    loads: dict[Executor, float] = {}
    for topology in snapshot.topologies:
        for executor in topology.executors:
            load = snapshot.loads.get(executor)
            measured = load.cpu_millicores if load else None
            loads[executor] = demand.millicores.get(executor, 0.0) if measured is None else measured
    return loads
