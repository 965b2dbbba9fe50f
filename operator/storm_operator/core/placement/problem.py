"""The placement problem in numbers, for the inner loops of `adaptive`: rows instead of names.

What is decided is the supervisor of each movable executor. Workers follow from that: executors of one *group*
(a topology, or its stateful or stateless part) on one supervisor share one worker. Ports are chosen at the end, so
that workers keep the slot they have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import sparse

from storm_operator.core.model import Assignment, Demand, Executor, WorkerSlot
from storm_operator.core.placement.objective import prices_of, stateful_executors, usable_millicores
from storm_operator.core.placement.slots import match_slots
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Problem:
    """Rows are executors (sorted), columns supervisors (sorted by id). Prices are in tuple-ms/s."""

    executors: tuple[Executor, ...]
    supervisors: tuple[str, ...]
    group_of: Ints
    groups: int
    traffic: sparse.csr_array[np.float64]
    """Tuples per second in both directions."""
    distance_ms: Floats
    """Between supervisors; the diagonal is what two workers of one supervisor pay."""
    demand: Floats
    usable: Floats
    fixed_load: Floats
    fixed_in_use: npt.NDArray[np.bool_]
    free_ports: tuple[tuple[int, ...], ...]
    """Ports of each supervisor that no obstacle holds, sorted."""
    home: Ints
    """The supervisor that each executor lives on now, or NOWHERE."""
    settled: npt.NDArray[np.bool_]
    """Whether the executor belongs to the worker in force that its group would keep at its home."""
    settled_size: Ints
    """[group, supervisor]: executors in that worker; 0 where there is none to keep."""
    restart_price: Floats
    overload_price: float
    supervisor_price: float

    def without_restarts(self) -> Problem:
        """The same problem for someone who starts afresh."""
        return replace(self, restart_price=np.zeros_like(self.restart_price))


def build_problem(
    snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings, together: frozenset[str]
) -> Problem:
    """The problem of the movable topologies; those in `together` mix stateful and stateless executors."""
    movable = sorted(
        executor
        for topology in snapshot.topologies
        if topology.id in settings.movable
        for executor in topology.executors
    )
    executors = tuple(movable)
    machines = sorted(snapshot.supervisors, key=lambda s: s.id)
    column = {machine.id: at for at, machine in enumerate(machines)}
    obstacles = {e: s for e, s in snapshot.assignment.slot_of.items() if e.topology_id not in settings.movable}
    held = set(obstacles.values())
    fixed_load = np.zeros(len(machines))
    fixed_in_use = np.zeros(len(machines), dtype=np.bool_)
    for executor, slot in sorted(obstacles.items()):
        if slot.supervisor_id in column:
            fixed_load[column[slot.supervisor_id]] += demand.millicores.get(executor, 0.0)
            fixed_in_use[column[slot.supervisor_id]] = True
    prices = prices_of(snapshot, settings)
    usable = usable_millicores(snapshot, settings)
    group_of, groups = _groups(executors, stateful_executors(snapshot), together)
    free_ports = tuple(tuple(sorted(slot.port for slot in machine.slots if slot not in held)) for machine in machines)
    home, settled, settled_size = _homes(snapshot.assignment, executors, column, free_ports, group_of, groups)
    return Problem(
        executors=executors,
        supervisors=tuple(column),
        group_of=group_of,
        groups=groups,
        traffic=_traffic_between(snapshot, executors),
        distance_ms=_distances(snapshot, tuple(column), prices.between_workers_ms),
        demand=np.array([demand.millicores.get(executor, 0.0) for executor in executors], dtype=np.float64),
        usable=np.array([usable[machine.id] for machine in machines], dtype=np.float64),
        fixed_load=fixed_load,
        fixed_in_use=fixed_in_use,
        free_ports=free_ports,
        home=home,
        settled=settled,
        settled_size=settled_size,
        restart_price=np.array([prices.restart_of.get(executor, 0.0) for executor in executors], dtype=np.float64),
        overload_price=prices.per_overloaded_millicore,
        supervisor_price=prices.per_supervisor,
    )


def to_assignment(problem: Problem, place: Ints, in_force: Assignment) -> Assignment:
    """Give each worker a port: the one whose worker it continues, so that as few as possible restart.

    Executors that are not part of the problem (obstacles) stay where `in_force` has them.
    """
    part_of_problem = frozenset(problem.executors)
    slot_of = {e: s for e, s in in_force.slot_of.items() if e not in part_of_problem}
    before = {slot: frozenset(executors) for slot, executors in in_force.workers().items()}
    for column, supervisor_id in enumerate(problem.supervisors):
        workers = _workers_on(problem, place, column)
        slots = [WorkerSlot(supervisor_id, port) for port in problem.free_ports[column]]
        for slot, members in match_slots(workers, slots, before).items():
            slot_of.update(dict.fromkeys(members, slot))
    return Assignment(slot_of)


def _workers_on(problem: Problem, place: Ints, column: int) -> list[frozenset[Executor]]:
    members: dict[int, list[Executor]] = {}
    for row in np.flatnonzero(place == column):
        members.setdefault(int(problem.group_of[row]), []).append(problem.executors[row])
    return [frozenset(members[group]) for group in sorted(members)]


def _groups(
    executors: tuple[Executor, ...], stateful: frozenset[Executor], together: frozenset[str]
) -> tuple[Ints, int]:
    names = [(e.topology_id, e in stateful and e.topology_id not in together) for e in executors]
    number = {name: at for at, name in enumerate(sorted(set(names)))}
    return np.array([number[name] for name in names], dtype=np.int64), len(number)


def _traffic_between(snapshot: ClusterSnapshot, executors: tuple[Executor, ...]) -> sparse.csr_array[np.float64]:
    row = {executor: at for at, executor in enumerate(executors)}
    found = [(row[a], row[b], rate) for a, b, rate in snapshot.traffic.pairs() if a in row and b in row and a != b]
    rates = [rate for _, _, rate in found]
    rows = [a for a, _, _ in found]
    columns = [b for _, b, _ in found]
    size = len(executors)
    one_way = sparse.csr_array((rates, (rows, columns)), shape=(size, size), dtype=np.float64)
    return sparse.csr_array(one_way + one_way.T)


def _distances(snapshot: ClusterSnapshot, supervisors: tuple[str, ...], between_workers_ms: float) -> Floats:
    places = [WorkerSlot(supervisor_id, 0) for supervisor_id in supervisors]
    matrix = np.array([[snapshot.distances.between(a, b) for b in places] for a in places], dtype=np.float64).reshape(
        len(places), len(places)
    )
    np.fill_diagonal(matrix, between_workers_ms)
    return (matrix + matrix.T) / 2.0


def _homes(
    in_force: Assignment,
    executors: tuple[Executor, ...],
    column: Mapping[str, int],
    free_ports: tuple[tuple[int, ...], ...],
    group_of: Ints,
    groups: int,
) -> tuple[Ints, npt.NDArray[np.bool_], Ints]:
    """Where everyone lives now, and which workers could be kept as they are (the largest of each group and place)."""
    row = {executor: at for at, executor in enumerate(executors)}
    home = np.full(len(executors), NOWHERE, dtype=np.int64)
    settled = np.zeros(len(executors), dtype=np.bool_)
    settled_size = np.zeros((groups, len(column)), dtype=np.int64)
    keepable: dict[tuple[int, int], list[int]] = {}
    for slot, members in in_force.workers().items():
        at = column.get(slot.supervisor_id, NOWHERE)
        rows = [row[executor] for executor in members if executor in row]
        home[rows] = at
        its_groups = {int(group_of[r]) for r in rows}
        if at == NOWHERE or len(rows) < len(members) or len(its_groups) != 1 or slot.port not in free_ports[at]:
            continue
        key = (its_groups.pop(), at)
        if len(rows) > len(keepable.get(key, ())):
            keepable[key] = rows
    for (group, at), rows in keepable.items():
        settled[rows] = True
        settled_size[group, at] = len(rows)
    return home, settled, settled_size
