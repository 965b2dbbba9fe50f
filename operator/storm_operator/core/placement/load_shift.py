"""CPU load from supervisors that are to lose some to those that may take some, in as few moves as that takes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from storm_operator.core.arrays import Floats
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Infeasible
from storm_operator.core.placement.executor_arrays import ExecutorArrays, executor_arrays
from storm_operator.core.placement.homes import Homes, with_homes
from storm_operator.core.placement.inventory import executor_loads
from storm_operator.core.placement.one_by_one import executors_in_order
from storm_operator.core.placement.parameters import Parameter
from storm_operator.core.placement.triggers import DAY_SECONDS, has_passed
from storm_operator.core.placement.utilisation import supervisor_loads
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

ADJUST = Parameter(30.0, 1.0, DAY_SECONDS, "time between adjustments", is_period=True)

NEAR_ENOUGH = 0.1
"""What is left to lose is let be when it is less than this part of what there was: small executors need not move."""


Control = Callable[[ExecutorArrays, Floats], tuple[Floats, Floats]]
"""From the millicores in use on each supervisor: how many each is to lose, and how many each may take."""


def shift_when_due(
    snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings, every_seconds: float, control: Control
) -> Assignment | Infeasible:
    """The assignment in force, adjusted as `control` says when it is time; executors without a place get one anyway."""
    settled = with_homes(snapshot, settings)
    if isinstance(settled, Infeasible) or not executors_in_order(snapshot, settings):
        return settled
    if not has_passed(snapshot, every_seconds):
        return settled
    loads = executor_loads(snapshot, demand)
    arrays = executor_arrays(snapshot, settings, loads)
    in_use = supervisor_loads(snapshot, settled, loads)
    surplus, room = control(arrays, np.array([in_use[machine.id] for machine in arrays.machines]))
    return shifted(snapshot, settled, arrays, surplus, room)


def shifted(
    snapshot: ClusterSnapshot, assignment: Assignment, arrays: ExecutorArrays, surplus: Floats, room: Floats
) -> Assignment:
    """`assignment` with executors moved until each supervisor has lost its `surplus`, or there is no `room` for more.

    Both are millicores for each column of `arrays`. The largest surplus goes first; of its executors the largest that
    does not exceed it goes first, to where its peers are, then to where most room is. No supervisor gets more than it
    has room for.
    """
    shift = _Shift(snapshot, assignment, arrays, room)
    for column in np.argsort(-surplus, kind="stable").tolist():
        if surplus[column] > 0.0:
            shift.relieve(column, float(surplus[column]))
    return shift.homes.assignment()


class _Shift:
    def __init__(self, snapshot: ClusterSnapshot, assignment: Assignment, arrays: ExecutorArrays, room: Floats) -> None:
        self.homes = Homes(snapshot, assignment)
        self._arrays = arrays
        self._ids = [machine.id for machine in arrays.machines]
        self._room = room.copy()
        self._at = arrays.supervisors_of(assignment)
        self._near = arrays.traffic_with_supervisors(self._at)

    def relieve(self, column: int, surplus: float) -> None:
        here, loads = np.flatnonzero(self._at == column), self._arrays.loads
        least = NEAR_ENOUGH * surplus
        for row in here[np.argsort(-loads[here], kind="stable")].tolist():
            if surplus <= least:
                return
            if 0.0 < loads[row] <= surplus and self._move(row, column):
                surplus -= loads[row]

    def _move(self, row: int, column: int) -> bool:
        load, rates = self._arrays.loads[row], self._arrays.rates
        fits = self._room >= load
        fits[column] = False
        if not fits.any():
            return False
        fits &= np.array(self.homes.hosts(self._ids, self._arrays.executors[row].topology_id))
        if not fits.any():
            return False
        columns = np.flatnonzero(fits)
        target = int(columns[np.lexsort((-self._room[columns], -self._near[row, columns]))[0]])
        self.homes.move(self._arrays.executors[row], self._ids[target])
        peers = slice(rates.indptr[row], rates.indptr[row + 1])
        self._near[rates.indices[peers], column] -= rates.data[peers]
        self._near[rates.indices[peers], target] += rates.data[peers]
        self._room[target] -= load
        self._at[row] = target
        return True
