"""The one objective: what an assignment costs, in tuple-milliseconds of network per second.

Network usage is Pietzuch's (tuples per second times distance, summed over executor pairs). CPU overload,
supervisors in use and restarts are priced in the same unit, relative to the cluster's own traffic and its own
typical round trip, so that the same weights fit 10 and 100,000 tuples/s, a rack and a continent.
docs/explanation/objective.md has the formula and what each weight means.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, WorkerSlot
from storm_operator.core.placed_traffic import PlacedTraffic, place_traffic
from storm_operator.core.placement.capacity import declared_memory_mb, memory_capacities
from storm_operator.core.placement.prices import Prices, prices_of
from storm_operator.core.placement.priorities import are_ranked, outranking_millicores
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.worker_overhead import worker_overhead


@dataclass(frozen=True, slots=True)
class Cost:
    """What an assignment costs; all parts in tuple-ms/s, `restarts` spread over the plan's expected life."""

    network: float
    overload: float
    """Of CPU and of memory."""
    supervisors: float
    restarts: float
    losses: float = 0.0

    @property
    def running(self) -> float:
        """The cost that goes on as long as the assignment is in force: everything but the way there."""
        return self.network + self.overload + self.supervisors + self.losses

    @property
    def total(self) -> float:
        return self.running + self.restarts


def usable_millicores(snapshot: ClusterSnapshot, settings: PlacementSettings) -> Mapping[str, float]:
    """What may be filled of each supervisor: capacity times headroom.

    A supervisor whose capacity nobody measured counts as the smallest one that was measured, so that it is not
    filled on hope; when none was measured there is no limit to keep.
    """
    known = [s.cpu_capacity_millicores for s in snapshot.supervisors if s.cpu_capacity_millicores is not None]
    assumed = min(known, default=float("inf"))
    headroom = settings.scheduling.headroom_fraction
    return {
        s.id: headroom * (assumed if s.cpu_capacity_millicores is None else s.cpu_capacity_millicores)
        for s in snapshot.supervisors
    }


def room_for_executors(
    snapshot: ClusterSnapshot, settings: PlacementSettings, overhead: float | None = None
) -> Mapping[str, float]:
    """Millicores of each supervisor that executors may fill: the usable ones less what their workers need beside.

    `overhead` is the snapshot's `worker_overhead`, for who knows it already.
    """
    overhead = worker_overhead(snapshot) if overhead is None else overhead
    return {at: usable / overhead for at, usable in usable_millicores(snapshot, settings).items()}


def cost_of(snapshot: ClusterSnapshot, assignment: Assignment, demand: Demand, settings: PlacementSettings) -> Cost:
    """What `assignment` costs, restarts being counted from the assignment in force (`snapshot.assignment`)."""
    return cost_seen(snapshot, see(snapshot, assignment, demand, settings), prices_of(snapshot, settings))


@dataclass(frozen=True, slots=True)
class SeenAssignment:
    """An assignment with what many figures ask about it: its traffic, and the demand beyond what may be filled."""

    assignment: Assignment
    traffic: PlacedTraffic
    worker_overhead: float
    """As `worker_overhead` has it."""
    wanted_millicores: Mapping[str, float]
    """Demand by supervisor; those without any are absent."""
    overloaded_millicores: float
    """Beyond what may be filled of supervisors, and beyond the threads of executors."""
    outranking_millicores: float
    """What overload counts on top for the priority of those that share in it; 0 where all have the same."""
    overfull_megabytes: float
    """Declared memory beyond what supervisors declare."""


def see(
    snapshot: ClusterSnapshot, assignment: Assignment, demand: Demand, settings: PlacementSettings
) -> SeenAssignment:
    """`assignment` under the rates and distances of `snapshot` and the CPU of `demand`."""
    traffic = place_traffic(snapshot.traffic, snapshot.distances, assignment)
    overhead = worker_overhead(snapshot)
    cpu = _cpu_seen(snapshot, assignment, demand, settings, overhead)
    return SeenAssignment(assignment, traffic, overhead, *cpu, overfull_megabytes(snapshot, assignment))


def see_demand(
    snapshot: ClusterSnapshot, seen: SeenAssignment, demand: Demand, settings: PlacementSettings
) -> SeenAssignment:
    """The same assignment under the CPU of another `demand`."""
    cpu = _cpu_seen(snapshot, seen.assignment, demand, settings, seen.worker_overhead)
    return SeenAssignment(seen.assignment, seen.traffic, seen.worker_overhead, *cpu, seen.overfull_megabytes)


def _cpu_seen(
    snapshot: ClusterSnapshot, assignment: Assignment, demand: Demand, settings: PlacementSettings, overhead: float
) -> tuple[Mapping[str, float], float, float]:
    """What is wanted of each supervisor, the overload, and what that counts on top for priority; in millicores."""
    wanted, room = wanted_millicores(assignment, demand), room_for_executors(snapshot, settings, overhead)
    overload = excess(wanted, room) + beyond_threads(assignment, demand)
    if not overload or not are_ranked(settings.priority):
        return wanted, overload, 0.0
    by_topology = _wanted_by_topology(assignment, demand)
    outranking = outranking_millicores(by_topology, room, settings.priority, are_held=settings.are_held)
    return wanted, overload, outranking


def cost_seen(snapshot: ClusterSnapshot, seen: SeenAssignment, prices: Prices) -> Cost:
    """As `cost_of`, from what is known already."""
    return Cost(
        network=seen.traffic.network_usage(prices.between_workers_ms),
        overload=overload_cost(
            seen.overloaded_millicores + seen.outranking_millicores, seen.overfull_megabytes, prices
        ),
        supervisors=len(seen.assignment.used_supervisors()) * prices.per_supervisor,
        restarts=restarts_of(snapshot.assignment, seen.assignment, prices),
        losses=losses_of(seen.assignment, prices),
    )


def overload_cost(overloaded_millicores: float, overfull_megabytes: float, prices: Prices) -> float:
    return overloaded_millicores * prices.per_overloaded_millicore + overfull_megabytes * prices.per_overfull_megabyte


def restart_cost(snapshot: ClusterSnapshot, base: Assignment, target: Assignment, settings: PlacementSettings) -> float:
    """What going from `base` to `target` costs, in tuple-ms/s over `expected_life_seconds`.

    Times `expected_life_seconds` it is the one-off cost in tuple-ms; divided by what the target saves per second
    (`Cost.running`), that gives the payback time in seconds.
    """
    return restarts_of(base, target, prices_of(snapshot, settings))


def restarted_workers(base: Assignment, target: Assignment) -> tuple[WorkerSlot, ...]:
    """Slots that run a worker in `target` whose set of executors `base` does not have there, sorted."""
    before = base.workers()
    return tuple(slot for slot, executors in target.workers().items() if before.get(slot) != executors)


def network_usage(snapshot: ClusterSnapshot, assignment: Assignment) -> float:
    """Tuples per second times distance over all executor pairs that are placed, in tuple-ms/s."""
    distances = snapshot.distances
    return place_traffic(snapshot.traffic, distances, assignment).network_usage(distances.between_workers_ms)


def overloaded_millicores(
    snapshot: ClusterSnapshot, assignment: Assignment, demand: Demand, settings: PlacementSettings
) -> float:
    """Demand beyond what placement may fill, summed over the supervisors of the snapshot and the threads there."""
    filled = excess(wanted_millicores(assignment, demand), room_for_executors(snapshot, settings))
    return filled + beyond_threads(assignment, demand)


def beyond_threads(assignment: Assignment, demand: Demand) -> float:
    """What those that have a place would need beyond their threads, in millicores."""
    return math.fsum(need for e, need in demand.beyond_thread_millicores.items() if e in assignment.slot_of)


def wanted_millicores(assignment: Assignment, demand: Demand) -> Mapping[str, float]:
    """What is to be made room for on each supervisor; those without any executor are absent."""
    wanted: dict[str, float] = {}
    # In order, so that sums are the same to the last bit whatever the order of the input.
    for slot, executors in assignment.workers().items():
        wanted[slot.supervisor_id] = wanted.get(slot.supervisor_id, 0.0) + demand.total(executors)
    return wanted


def _wanted_by_topology(assignment: Assignment, demand: Demand) -> Mapping[str, Mapping[str, float]]:
    """As `wanted_millicores`, what each topology wants."""
    wanted: dict[str, dict[str, float]] = {}
    for slot, executors in assignment.workers().items():
        for executor in executors:
            of_topology = wanted.setdefault(executor.topology_id, {})
            need = demand.room_millicores.get(executor, 0.0)
            of_topology[slot.supervisor_id] = of_topology.get(slot.supervisor_id, 0.0) + need
    return wanted


def overfull_megabytes(snapshot: ClusterSnapshot, assignment: Assignment) -> float:
    """Declared memory beyond what supervisors declare, summed over them; 0 where nobody declares any."""
    wanted = wanted_megabytes(snapshot, assignment)
    return excess(wanted, memory_capacities(snapshot)) if wanted else 0.0


def wanted_megabytes(snapshot: ClusterSnapshot, assignment: Assignment) -> Mapping[str, float]:
    """Declared memory on each supervisor; empty where nobody declares any."""
    declared = declared_memory_mb(snapshot)
    if not declared:
        return {}
    wanted: dict[str, float] = {}
    for slot, executors in assignment.workers().items():
        megabytes = sum(declared.get(executor, 0.0) for executor in executors)
        wanted[slot.supervisor_id] = wanted.get(slot.supervisor_id, 0.0) + megabytes
    return wanted


def losses_of(assignment: Assignment, prices: Prices) -> float:
    """What is lost on supervisors that do not always answer, in tuple-ms/s."""
    if not any(prices.loss_ms.values()):
        return 0.0
    return sum(
        prices.share_of.get(executor, 0.0) * prices.loss_ms.get(slot.supervisor_id, 0.0)
        for slot, executors in assignment.workers().items()
        for executor in executors
    )


def excess(wanted: Mapping[str, float], usable: Mapping[str, float]) -> float:
    """What is wanted beyond what is usable, summed over the supervisors that `usable` names."""
    return sum(max(0.0, wanted.get(supervisor_id, 0.0) - usable[supervisor_id]) for supervisor_id in sorted(usable))


def restarts_of(base: Assignment, target: Assignment, prices: Prices) -> float:
    """As `restart_cost`, at known prices."""
    workers = target.workers()
    return sum(
        prices.restart_of.get(executor, 0.0)
        for slot in restarted_workers(base, target)
        for executor in workers[slot]
        if executor in base.slot_of
    )
