"""Executors to workers, then workers to supervisors: both greedy, pairs with the heaviest traffic first.

Aniello, Baldoni, Querzoni, DEBS'13, Algorithm 1; the same as ETW and WTN of Jayalakshmi, Geetha, Manaswini. Of at most
9 assignments of each pair the one with the least traffic between workers (supervisors) is taken.

Where the papers are silent ("many corner cases"): M(alpha) of Aniello's section 3 bounds the executors of a worker, the
CPU bound and the free slots what a supervisor takes; an assignment that breaks a bound is not considered. Executors and
workers that no pair placed follow one by one, to where they add least traffic, then load. A worker left empty gets the
executor that is missed least (equation 2 wants all of them used). Where the CPU bound cannot be kept the least loaded
supervisor with a slot is used. An executor whose CPU nobody measured counts with its demand, a supervisor whose
capacity nobody measured as the smallest that was measured. Of equally loaded workers (supervisors) that with fewest
executors (workers) is taken: where nothing was measured yet, executors are thereby dealt out evenly, as Storm does and
Aniello's online scheduler begins (section 4.1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import chain

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import (
    Assignment,
    Executor,
    Infeasible,
    Supervisor,
    Topology,
    WorkerSlot,
)
from storm_operator.core.placement.aniello_offline import most_executors_in_slot
from storm_operator.core.placement.capacity import cpu_capacities
from storm_operator.core.placement.greedy_pairs import Bins
from storm_operator.core.placement.inventory import executor_loads, free_slots, movable_topologies, obstacles
from storm_operator.core.placement.slots import Members, on_free_slots
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot


def place_in_two_phases(
    snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings, alpha: float, capacity_fraction: float
) -> Assignment | Infeasible:
    """Every movable topology in as many workers as it asks for, or why there is no room for them.

    `alpha` bounds the executors of a worker (`most_executors_in_slot`), `capacity_fraction` a supervisor's CPU.
    """
    fixed = obstacles(snapshot, settings)
    free = free_slots(snapshot, fixed.values())
    topologies = [topology for topology in movable_topologies(snapshot, settings) if topology.executors]
    wanted = [min(max(1, topology.num_workers), len(topology.executors)) for topology in topologies]
    slots = sum(map(len, free.values()))
    if sum(wanted) > slots:
        return Infeasible(f"{sum(wanted)} workers are asked for but only {slots} slots are free")
    loads = executor_loads(snapshot, demand)
    workers = list(
        chain.from_iterable(
            _workers_of(snapshot, topology, count, alpha, loads)
            for topology, count in zip(topologies, wanted, strict=True)
        )
    )
    machines = sorted(snapshot.supervisors, key=lambda machine: machine.id)
    supervisor_of = _supervisors_of(snapshot, workers, machines, free, fixed, loads, capacity_fraction)
    there = {
        machine.id: [members for members, chosen in zip(workers, supervisor_of, strict=True) if chosen == at]
        for at, machine in enumerate(machines)
    }
    return on_free_slots(snapshot, fixed, there)


def movable_inter_supervisor(snapshot: ClusterSnapshot, settings: PlacementSettings, assignment: Assignment) -> float:
    """Tuples per second of movable topologies between supervisors: what a new schedule could lower."""
    of_each = (
        snapshot.traffic.within(t.id).inter_supervisor(assignment) for t in movable_topologies(snapshot, settings)
    )
    return math.fsum(of_each)


def _workers_of(
    snapshot: ClusterSnapshot, topology: Topology, count: int, alpha: float, loads: Mapping[Executor, float]
) -> list[Members]:
    """First phase: the topology's executors in `count` workers."""
    executors = topology.executors
    row = {executor: at for at, executor in enumerate(executors)}
    own = snapshot.traffic.within(topology.id)
    rates = {(row[a], row[b]): rate for a, b, rate in own.pairs() if a in row and b in row}
    most = most_executors_in_slot(len(executors), count, alpha)
    bins = Bins([loads[e] for e in executors], rates, [0.0] * count, [float("inf")] * count, [most] * count)
    bins.place_pairs()
    bins.place_rest()
    bins.fill_empty()
    return [
        frozenset(e for e, at in zip(executors, bins.bin_of, strict=True) if at == number) for number in range(count)
    ]


def _supervisors_of(
    snapshot: ClusterSnapshot,
    workers: list[Members],
    machines: list[Supervisor],
    free: Mapping[str, list[WorkerSlot]],
    fixed: Mapping[Executor, WorkerSlot],
    loads: Mapping[Executor, float],
    fraction: float,
) -> list[int | None]:
    """Second phase: the workers of all topologies on supervisors, as indices into `machines`."""
    worker_of = {executor: at for at, members in enumerate(workers) for executor in members}
    rates: dict[tuple[int, int], float] = {}
    for source, target, rate in snapshot.traffic.pairs():
        pair = worker_of.get(source, -1), worker_of.get(target, -1)
        if min(pair) >= 0 and pair[0] != pair[1]:
            rates[pair] = rates.get(pair, 0.0) + rate
    bins = Bins(
        [sum(loads[executor] for executor in sorted(members)) for members in workers],
        rates,
        [sum(loads.get(e, 0.0) for e, slot in fixed.items() if slot.supervisor_id == m.id) for m in machines],
        _cpu_bounds(snapshot, machines, fraction),
        [len(free[m.id]) for m in machines],
    )
    bins.place_pairs()
    bins.place_rest()
    return bins.bin_of


def _cpu_bounds(snapshot: ClusterSnapshot, machines: list[Supervisor], fraction: float) -> list[float]:
    """Millicores that each machine may have in use; without bound where nobody's capacity is known."""
    if all(machine.cpu_capacity_millicores is None for machine in machines):
        return [math.inf] * len(machines)
    capacities = cpu_capacities(snapshot)
    return [fraction * capacities[machine.id] for machine in machines]
