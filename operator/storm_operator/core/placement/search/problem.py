"""The placement problem in numbers, for the inner loops of `adaptive`: rows instead of names.

What is decided is the supervisor of each movable executor. Workers follow from that: executors of one *group*
(a topology, or its stateful or stateless part) on one supervisor share one worker. Ports are chosen at the end, so
that workers keep the slot they have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from storm_operator.core.arrays import NOWHERE, Flags, Floats, Ints
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.executor_values import rows_of, values_of
from storm_operator.core.model import Assignment, Executor, WorkerSlot, in_order
from storm_operator.core.placement.capacity import by_supervisor, declared_memory_mb, memory_capacities
from storm_operator.core.placement.objective import room_for_executors
from storm_operator.core.placement.prices import Prices, prices_of
from storm_operator.core.placement.priorities import rank_steps, ranks_of
from storm_operator.core.placement.search.zones import zones_of
from storm_operator.core.placement.slots import match_slots
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot


@dataclass(frozen=True, slots=True)
class Problem:
    """Rows are executors (sorted), columns supervisors (sorted by id). Prices are in tuple-ms/s."""

    executors: tuple[Executor, ...]
    supervisors: tuple[str, ...]
    topology_of: Ints
    group_of: Ints
    groups: int
    traffic: sparse.csr_array[np.float64]
    """Tuples per second in both directions."""
    zone_of: Ints
    """Supervisors of one zone are equally far from all others; where every distance was measured each is its own."""
    zone_ms: Floats
    """Between two supervisors of these zones."""
    between_workers_ms: float
    """Between two workers of one supervisor."""
    demand: Floats
    rank: Ints
    """Steps of each executor's topology above the lowest priority."""
    rank_steps: Floats
    """As `priorities.rank_steps` has them."""
    are_held: bool
    """Whether who outranks others is served before them."""
    usable: Floats
    fixed_load: Floats
    fixed_above: Floats
    """[n-th step, supervisor] Of `fixed_load` what is of obstacles above that step."""
    memory: Floats
    """MB that executors are declared to need."""
    usable_memory: Floats
    fixed_memory: Floats
    share: Floats
    """Tuples per second that are lost with each executor."""
    loss_ms: Floats
    """What a tuple on each supervisor costs for the time in which it does not answer."""
    fixed_in_use: Flags
    free_ports: tuple[tuple[int, ...], ...]
    """Ports of each supervisor that no obstacle holds, sorted."""
    home: Ints
    """The supervisor that each executor lives on now, or NOWHERE."""
    settled: Flags
    """Whether the executor belongs to the worker in force that its group would keep at its home."""
    kept_group: Ints
    """[supervisor, n-th]: the groups of those workers; NOWHERE fills the rows up."""
    kept_size: Ints
    """[supervisor, n-th]: how many executors they have."""
    restart_price: Floats
    overload_price: float
    overfull_price: float
    supervisor_price: float

    @property
    def is_risky(self) -> Flags:
        """Which supervisors answer less than most."""
        return self.loss_ms > (np.median(self.loss_ms) if len(self.loss_ms) else 0.0)


def build_problems(
    snapshot: ClusterSnapshot,
    demand: Demand,
    settings: PlacementSettings,
    prices: Prices,
    ways: Sequence[frozenset[str]],
) -> list[Problem]:
    """The problem of the movable topologies, once for each way: those that it names mix stateful and stateless."""
    ungrouped = _ungrouped(snapshot, demand, settings, prices)
    stateful = np.array([executor in prices.state_of for executor in ungrouped.executors], dtype=np.bool_)
    rows_in = _rows_in(snapshot.assignment, ungrouped.executors)
    return [_grouped(ungrouped, rows_in, stateful, together) for together in ways]


def build_problem(
    snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings, together: frozenset[str]
) -> Problem:
    """The problem where the topologies in `together` mix stateful and stateless executors."""
    (problem,) = build_problems(snapshot, demand, settings, prices_of(snapshot, settings), (together,))
    return problem


def _ungrouped(snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings, prices: Prices) -> Problem:
    """All of it but who shares a worker with whom, which is no group and no worker in force here."""
    movable = [topology for topology in snapshot.topologies if topology.id in settings.movable]
    executors = tuple(in_order(executor for topology in movable for executor in topology.executors))
    machines = sorted(snapshot.supervisors, key=lambda s: s.id)
    column = {machine.id: at for at, machine in enumerate(machines)}
    obstacles = {e: s for e, s in snapshot.assignment.slot_of.items() if e.topology_id not in settings.movable}
    held: dict[str, set[int]] = {}
    ranks, steps = ranks_of(settings.priority), rank_steps(settings.priority)
    fixed_load, fixed_above = np.zeros(len(machines)), np.zeros((len(steps), len(machines)))
    fixed_in_use = np.zeros(len(machines), dtype=np.bool_)
    for executor in in_order(obstacles):
        slot = obstacles[executor]
        held.setdefault(slot.supervisor_id, set()).add(slot.port)
        if slot.supervisor_id in column:
            need = demand.room_millicores.get(executor, 0.0)
            fixed_load[column[slot.supervisor_id]] += need
            fixed_above[: ranks.get(executor.topology_id, 0), column[slot.supervisor_id]] += need
            fixed_in_use[column[slot.supervisor_id]] = True
    usable = room_for_executors(snapshot, settings)
    megabytes, memory_of = declared_memory_mb(snapshot), memory_capacities(snapshot)
    fixed_memory = by_supervisor(snapshot, settings, megabytes) if megabytes else dict.fromkeys(column, 0.0)
    zones = zones_of(snapshot.distances, tuple(column))
    nobody = np.zeros(len(executors), dtype=np.int64)
    return Problem(
        executors=executors,
        supervisors=tuple(column),
        topology_of=_numbered([executor.topology_id for executor in executors]),
        group_of=nobody,
        groups=0,
        traffic=_traffic_between(snapshot, executors),
        zone_of=zones.zone_of,
        zone_ms=zones.between_ms,
        between_workers_ms=prices.between_workers_ms,
        demand=values_of(demand.room_millicores, executors),
        rank=np.array([ranks.get(executor.topology_id, 0) for executor in executors], dtype=np.int64),
        rank_steps=steps,
        are_held=settings.are_held,
        usable=np.array([usable[machine.id] for machine in machines], dtype=np.float64),
        fixed_load=fixed_load,
        fixed_above=fixed_above,
        memory=values_of(megabytes, executors),
        usable_memory=np.array([memory_of[machine.id] for machine in machines], dtype=np.float64),
        fixed_memory=np.array([fixed_memory[machine.id] for machine in machines], dtype=np.float64),
        share=values_of(prices.share_of, executors),
        loss_ms=np.array([prices.loss_ms[machine.id] for machine in machines], dtype=np.float64),
        fixed_in_use=fixed_in_use,
        free_ports=tuple(tuple(sorted(set(at.ports) - held.get(at.id, set()))) for at in machines),
        home=nobody + NOWHERE,
        settled=nobody.astype(np.bool_),
        kept_group=np.full((len(machines), 1), NOWHERE, dtype=np.int64),
        kept_size=np.zeros((len(machines), 1), dtype=np.int64),
        restart_price=values_of(prices.restart_of, executors),
        overload_price=prices.per_overloaded_millicore,
        overfull_price=prices.per_overfull_megabyte,
        supervisor_price=prices.per_supervisor,
    )


def _grouped(
    problem: Problem, rows_in: Mapping[tuple[str, int], list[int]], stateful: Flags, together: frozenset[str]
) -> Problem:
    """With its groups: topologies, of which those not in `together` are parted into stateful and stateless."""
    is_parted = np.array([executor.topology_id not in together for executor in problem.executors], dtype=np.bool_)
    names, group_of = np.unique(2 * problem.topology_of + (stateful & is_parted), return_inverse=True)
    column = {supervisor_id: at for at, supervisor_id in enumerate(problem.supervisors)}
    home, settled, kept_group, kept_size = _homes(rows_in, column, problem.free_ports, group_of)
    return replace(
        problem,
        group_of=group_of,
        groups=len(names),
        home=home,
        settled=settled,
        kept_group=kept_group,
        kept_size=kept_size,
    )


def to_assignment(problem: Problem, place: Ints, in_force: Assignment) -> Assignment:
    """Give each worker a port: the one whose worker it continues, so that as few as possible restart.

    Executors that are not part of the problem (obstacles) stay where `in_force` has them, and so do all on supervisors
    where every worker is as it is in force.
    """
    changed = _changed_columns(problem, place)
    names = {problem.supervisors[column] for column in changed}
    living_in: dict[WorkerSlot, list[Executor]] = {}
    for executor, slot in in_force.slot_of.items():
        if slot.supervisor_id in names:
            living_in.setdefault(slot, []).append(executor)
    before = {slot: frozenset(executors) for slot, executors in living_in.items()}
    slot_of: dict[Executor, WorkerSlot] = {}
    for column, workers in _workers(problem, place, changed).items():
        slots = [WorkerSlot(problem.supervisors[column], port) for port in problem.free_ports[column]]
        for slot, members in match_slots(workers, slots, before).items():
            slot_of.update(dict.fromkeys(members, slot))
    return in_force.with_moves(slot_of)


def _changed_columns(problem: Problem, place: Ints) -> frozenset[int]:
    """Supervisors that somebody leaves or comes to, or that have workers which are not as they could be kept."""
    rows = (place != problem.home) | ~problem.settled
    return frozenset(place[rows].tolist()) | frozenset(problem.home[rows].tolist()) - {NOWHERE}


def _workers(problem: Problem, place: Ints, columns: frozenset[int]) -> dict[int, list[frozenset[Executor]]]:
    """The workers of each supervisor of `columns` that is in use, by group."""
    members: dict[tuple[int, int], list[Executor]] = {}
    rows = np.flatnonzero(np.isin(place, list(columns)))
    for row, *worker in zip(rows.tolist(), place[rows].tolist(), problem.group_of[rows].tolist(), strict=True):
        members.setdefault(tuple(worker), []).append(problem.executors[row])
    workers: dict[int, list[frozenset[Executor]]] = {}
    for column, group in sorted(members):
        workers.setdefault(column, []).append(frozenset(members[column, group]))
    return workers


def _numbered(names: Sequence[Any]) -> Ints:
    """Each name by its rank among the different ones."""
    number = {name: at for at, name in enumerate(sorted(set(names)))}
    return np.array([number[name] for name in names], dtype=np.int64)


def _traffic_between(snapshot: ClusterSnapshot, executors: tuple[Executor, ...]) -> sparse.csr_array[np.float64]:
    """In both directions; an executor's traffic with itself costs nothing anywhere."""
    row_of = rows_of(snapshot.traffic.executors, executors)
    sources, targets, rates = snapshot.traffic.flows()
    sources, targets = row_of[sources], row_of[targets]
    ours = (sources != NOWHERE) & (targets != NOWHERE) & (sources != targets)
    size = len(executors)
    one_way = sparse.csr_array((rates[ours], (sources[ours], targets[ours])), shape=(size, size), dtype=np.float64)
    return sparse.csr_array(one_way + one_way.T)


def _rows_in(in_force: Assignment, executors: tuple[Executor, ...]) -> Mapping[tuple[str, int], list[int]]:
    """The rows of the executors in each slot in force (supervisor and port), slots in order."""
    rows_in: dict[tuple[str, int], list[int]] = {}
    for row, slot in enumerate(map(in_force.slot_of.get, executors)):
        if slot is not None:
            rows_in.setdefault((slot.supervisor_id, slot.port), []).append(row)
    return dict(sorted(rows_in.items()))


def _homes(
    rows_in: Mapping[tuple[str, int], list[int]],
    column: Mapping[str, int],
    free_ports: tuple[tuple[int, ...], ...],
    group_of: Ints,
) -> tuple[Ints, Flags, Ints, Ints]:
    """Where everyone lives now, and which workers could be kept as they are (the largest of each group and place)."""
    home = np.full(len(group_of), NOWHERE, dtype=np.int64)
    settled = np.zeros(len(group_of), dtype=np.bool_)
    kept_on: list[dict[int, list[int]]] = [{} for _ in column]
    groups = group_of.tolist()
    for (supervisor_id, port), rows in rows_in.items():
        at = column.get(supervisor_id, NOWHERE)
        home[rows] = at
        its_groups = {groups[row] for row in rows}
        # A slot that an executor outside the problem holds is no free port.
        if at == NOWHERE or len(its_groups) != 1 or port not in free_ports[at]:
            continue
        group = its_groups.pop()
        if len(rows) > len(kept_on[at].get(group, ())):
            kept_on[at][group] = rows
    most = max((len(workers) for workers in kept_on), default=0)
    kept = np.zeros((2, len(column), max(1, most)), dtype=np.int64)
    kept[0] = NOWHERE
    for at, workers in enumerate(kept_on):
        for n, (group, rows) in enumerate(sorted(workers.items())):
            settled[rows] = True
            kept[:, at, n] = group, len(rows)
    return home, settled, kept[0], kept[1]
