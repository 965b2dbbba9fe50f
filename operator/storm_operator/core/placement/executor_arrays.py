"""Executors and supervisors as arrays, for policies that compute with all of them at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from storm_operator.core.arrays import Floats, Ints
from storm_operator.core.model import Assignment, Executor, Supervisor
from storm_operator.core.placement.capacity import by_supervisor, cpu_capacities
from storm_operator.core.placement.inventory import free_slots, movable_topologies, obstacles
from storm_operator.core.placement.slots import on_free_slots
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

Pairs = tuple[Ints, Ints, Floats]
"""Rows of both ends, and the rate between them."""


@dataclass(frozen=True, slots=True)
class ExecutorArrays:
    """Movable executors (rows, sorted) and all supervisors (columns, by id).

    `topology_of` numbers the movable topologies by id. `rates` are tuples per second in both directions, and `pairs`
    names each pair with traffic once; `fixed_loads` are the millicores of executors that may not move, `slots` those
    that no such executor holds.
    """

    executors: tuple[Executor, ...]
    machines: tuple[Supervisor, ...]
    topology_of: Ints
    loads: Floats
    rates: sparse.csr_array[np.float64]
    pairs: Pairs
    fixed_loads: Floats
    capacities: Floats
    slots: Ints

    def supervisors_of(self, assignment: Assignment) -> Ints:
        """The column of each executor's supervisor; every executor must be on one that exists."""
        column = {machine.id: at for at, machine in enumerate(self.machines)}
        return np.array([column[assignment.slot_of[e].supervisor_id] for e in self.executors], dtype=np.int64)

    def traffic_with_supervisors(self, choice: Ints) -> Floats:
        """Tuples per second that each executor (row) exchanges with those on each supervisor (column)."""
        there = np.zeros((len(self.executors), len(self.machines)))
        there[np.arange(len(self.executors)), choice] = 1.0
        return np.asarray(self.rates @ there)


def executor_arrays(
    snapshot: ClusterSnapshot, settings: PlacementSettings, loads: Mapping[Executor, float]
) -> ExecutorArrays:
    """The arrays for a snapshot; `loads` are millicores of all executors."""
    topologies = movable_topologies(snapshot, settings)
    rows = sorted((executor, at) for at, topology in enumerate(topologies) for executor in topology.executors)
    executors = tuple(executor for executor, _ in rows)
    machines = tuple(sorted(snapshot.supervisors, key=lambda machine: machine.id))
    fixed_loads = by_supervisor(snapshot, settings, loads)
    free = free_slots(snapshot, obstacles(snapshot, settings).values())
    capacities = cpu_capacities(snapshot)
    rates = _rates(snapshot, executors)
    upper = sparse.triu(rates, k=1).tocoo()
    return ExecutorArrays(
        executors=executors,
        machines=machines,
        topology_of=np.array([at for _, at in rows], dtype=np.int64),
        loads=np.array([loads[executor] for executor in executors], dtype=np.float64),
        rates=rates,
        pairs=(upper.row.astype(np.int64), upper.col.astype(np.int64), upper.data),
        fixed_loads=np.array([fixed_loads[machine.id] for machine in machines]),
        capacities=np.array([capacities[machine.id] for machine in machines]),
        slots=np.array([len(free[machine.id]) for machine in machines], dtype=np.int64),
    )


def with_one_worker_each(
    snapshot: ClusterSnapshot, settings: PlacementSettings, arrays: ExecutorArrays, choice: Ints
) -> Assignment:
    """The assignment in which each topology has one worker on every supervisor that `choice` gives it.

    Workers get the slots in which they restart least. `choice` must keep to the number of slots.
    """
    workers: dict[str, list[frozenset[Executor]]] = {}
    for at, machine in enumerate(arrays.machines):
        inside: dict[str, set[Executor]] = {}
        for row in np.flatnonzero(choice == at).tolist():
            inside.setdefault(arrays.executors[row].topology_id, set()).add(arrays.executors[row])
        workers[machine.id] = [frozenset(members) for members in inside.values()]
    return on_free_slots(snapshot, obstacles(snapshot, settings), workers)


def _rates(snapshot: ClusterSnapshot, executors: tuple[Executor, ...]) -> sparse.csr_array[np.float64]:
    """Symmetric rates with rows as in `executors`; an executor that no measurement names exchanges nothing."""
    named = [(at, row) for at, e in enumerate(executors) if (row := snapshot.traffic.row_of(e)) is not None]
    rows = np.array([row for _, row in named], dtype=np.int64)
    known = snapshot.traffic.symmetric()[rows][:, rows].tocoo()
    at = np.array([at for at, _ in named], dtype=np.int64)
    between = known.row != known.col
    ends = at[known.row[between]], at[known.col[between]]
    return sparse.csr_array(sparse.coo_array((known.data[between], ends), shape=(len(executors), len(executors))))
