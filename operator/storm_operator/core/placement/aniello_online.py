"""Aniello, Baldoni, Querzoni, "Adaptive Online Scheduling in Storm", DEBS'13: the online scheduler (section 3.2).

Algorithm 1 in two greedy phases: pairs of executors by descending traffic to workers, then pairs of workers by
descending traffic to supervisors; of at most 9 assignments of each pair the one with the least traffic between workers
(supervisors) is taken. Load is measured CPU in millicores, where the paper has Hz (section 3.2.1).

A new schedule is returned when a supervisor's CPU has been at its bound B for more than X seconds, or, once in P
seconds, when it lowers the traffic between supervisors by more than R percent (section 3.2.1); else the assignment in
force. The paper gives no values for B, X, P and R, and only alpha = 0 (section 4.1): P follows figure 3, where the
first new schedule comes after 40 s.

Where the paper is silent ("many corner cases"): M(alpha) of section 3 bounds the executors of a worker, B and the free
slots what a supervisor takes; an assignment that breaks a bound is not considered. Executors and workers that no pair
placed follow one by one, to where they add least traffic, then load. A worker left empty gets the executor that is
missed least (equation 2 wants all of them used). Where B cannot be kept the least loaded supervisor with a slot is
used. An executor whose CPU nobody measured counts with its demand.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from storm_operator.core.model import Assignment, Demand, Executor, Infeasible, Supervisor, Topology, WorkerSlot
from storm_operator.core.placement.aniello_offline import ALPHA, most_executors_in_slot
from storm_operator.core.placement.greedy_pairs import Bins
from storm_operator.core.placement.inventory import executor_loads, free_slots, movable_topologies, obstacles
from storm_operator.core.placement.parameters import Parameter, read_parameters
from storm_operator.core.placement.slots import Members, match_slots
from storm_operator.core.placement.triggers import has_passed, seconds_at_bound, someone_has_no_place
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

NAME = "aniello-online"

DAY_SECONDS = 86400.0
PARAMETERS = {
    "alpha": ALPHA,
    "capacity_fraction": Parameter(0.9, 0.01, 1.0, "B, as a share of a supervisor's CPU capacity"),
    "overload_seconds": Parameter(30.0, 0.0, DAY_SECONDS, "X: reschedule when CPU was at B for longer"),
    "reschedule_seconds": Parameter(40.0, 1.0, DAY_SECONDS, "P: time between comparisons with a new schedule"),
    "least_reduction_percent": Parameter(10.0, 0.0, 100.0, "R: inter-supervisor traffic must fall by more"),
}


def place_aniello_online(
    snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings
) -> Assignment | Infeasible:
    """A new schedule when a trigger of section 3.2.1 fires or an executor has no place, else the one in force."""
    values = read_parameters(NAME, PARAMETERS, settings.scheduling.parameters)
    overloaded = _overloaded(snapshot, values["capacity_fraction"], values["overload_seconds"])
    homeless = someone_has_no_place(snapshot, settings)
    if not (overloaded or homeless or has_passed(snapshot, values["reschedule_seconds"])):
        return snapshot.assignment
    schedule = _schedule(snapshot, demand, settings, values)
    if overloaded or homeless or isinstance(schedule, Infeasible):
        return schedule
    now = snapshot.traffic.inter_supervisor(snapshot.assignment)
    then = snapshot.traffic.inter_supervisor(schedule)
    return schedule if then < now * (1.0 - values["least_reduction_percent"] / 100.0) else snapshot.assignment


def _overloaded(snapshot: ClusterSnapshot, fraction: float, seconds: float) -> bool:
    """Whether some supervisor's CPU was at its bound in each of the newest periods, for more than `seconds`."""
    return any(
        seconds_at_bound(snapshot, machine.id, fraction * machine.cpu_capacity_millicores) > seconds
        for machine in snapshot.supervisors
        if machine.cpu_capacity_millicores is not None
    )


def _schedule(
    snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings, values: Mapping[str, float]
) -> Assignment | Infeasible:
    fixed = obstacles(snapshot, settings)
    free = free_slots(snapshot, fixed.values())
    topologies = movable_topologies(snapshot, settings)
    wanted = [min(max(1, topology.num_workers), len(topology.executors)) for topology in topologies]
    slots = sum(map(len, free.values()))
    if sum(wanted) > slots:
        return Infeasible(f"{sum(wanted)} workers are asked for but only {slots} slots are free")
    loads = executor_loads(snapshot, demand)
    workers = list(
        chain.from_iterable(
            _workers_of(snapshot, topology, count, values["alpha"], loads)
            for topology, count in zip(topologies, wanted, strict=True)
        )
    )
    machines = sorted(snapshot.supervisors, key=lambda machine: machine.id)
    supervisor_of = _supervisors_of(snapshot, workers, machines, free, fixed, loads, values["capacity_fraction"])
    in_force = {slot: frozenset(inside) for slot, inside in snapshot.assignment.workers().items()}
    slot_of = dict(fixed)
    for at, machine in enumerate(machines):
        here = [members for members, chosen in zip(workers, supervisor_of, strict=True) if chosen == at]
        for slot, members in match_slots(here, free[machine.id], in_force).items():
            slot_of.update(dict.fromkeys(members, slot))
    return Assignment(slot_of)


def _workers_of(
    snapshot: ClusterSnapshot, topology: Topology, count: int, alpha: float, loads: Mapping[Executor, float]
) -> list[Members]:
    """First phase: the topology's executors in `count` workers."""
    executors = topology.executors
    row = {executor: at for at, executor in enumerate(executors)}
    rates = {(row[a], row[b]): rate for a, b, rate in snapshot.traffic.pairs() if a in row and b in row}
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
        [float("inf") if m.cpu_capacity_millicores is None else fraction * m.cpu_capacity_millicores for m in machines],
        [len(free[m.id]) for m in machines],
    )
    bins.place_pairs()
    bins.place_rest()
    return bins.bin_of
