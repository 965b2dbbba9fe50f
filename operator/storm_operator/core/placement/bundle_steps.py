"""Steps of the local search that move many executors as one: whole workers, whole supervisors.

Single moves cannot leave a worker that restarts anyway, or empty a supervisor, because each alone costs more than it
saves. These steps are tried as one and undone when the sum of their parts does not pay.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from storm_operator.core.placement.layout import Layout
from storm_operator.core.placement.problem import Floats, Problem

TARGETS_PER_WORKER = 3
SUPERVISORS_TO_EMPTY = 3


def move_workers(layout: Layout) -> bool:
    """Move whole workers, and all workers of one supervisor together, to another supervisor (merging them there)."""
    moved = False
    for column in range(len(layout.problem.supervisors)):
        groups = np.flatnonzero(layout.count[:, column]).tolist()
        bundles = [[group] for group in groups]
        bundles += [kin for kin in _by_topology(layout.problem, groups) if len(kin) > 1]
        for bundle in bundles:
            rows = [int(row) for group in bundle for row in layout.members(group, column)]
            at_stake = sum(layout.restart_cost_of(group, column) for group in bundle)
            for target in _nearest_in_cost(layout, rows, column, at_stake):
                if layout.attempt(partial(layout.move_all, rows, target)):
                    moved = True
                    break
    return moved


def empty_supervisors(layout: Layout) -> bool:
    """Take everything off one supervisor, least loaded first: as whole workers, or executor by executor."""
    problem = layout.problem
    emptied = False
    order = np.lexsort((np.arange(len(layout.load)), layout.load))
    for column in [at for at in order.tolist() if layout.executors_on[at]][:SUPERVISORS_TO_EMPTY]:
        room = np.maximum(problem.usable - layout.load, 0.0)[(layout.executors_on > 0) | problem.fixed_in_use]
        own = max(0.0, float(problem.usable[column] - layout.load[column]))
        if float(room.sum()) - own < layout.load[column] - problem.fixed_load[column]:
            continue
        for unpack in (_scatter_workers, _scatter_executors):
            if layout.attempt(partial(unpack, layout, column)):
                emptied = True
                break
    return emptied


def restore_workers(layout: Layout) -> bool:
    """Put workers back as they are in force, so that they need no restart, where that costs less than it saves."""
    problem = layout.problem
    restored = False
    for group, column in zip(*np.nonzero(problem.settled_size), strict=True):
        if layout.restart_cost_of(int(group), int(column)) == 0.0:
            continue

        def restore(group: int = int(group), column: int = int(column)) -> bool:
            belongs = (problem.group_of == group) & problem.settled & (problem.home == column)
            strangers = [int(row) for row in layout.members(group, column) if not belongs[row]]
            return layout.move_all(np.flatnonzero(belongs).tolist(), column) and all(
                layout.move_to_best(row, [column]) for row in strangers
            )

        restored |= layout.attempt(restore)
    return restored


def _scatter_executors(layout: Layout, column: int) -> bool:
    rows = np.flatnonzero(layout.place == column)
    order = np.lexsort((rows, -layout.problem.demand[rows]))
    return all(layout.move_to_best(int(rows[at]), [column]) for at in order)


def _scatter_workers(layout: Layout, column: int) -> bool:
    for group in np.flatnonzero(layout.count[:, column]).tolist():
        rows = layout.members(group, column).tolist()
        targets = _nearest_in_cost(layout, rows, column)
        if not targets or not layout.move_all(rows, targets[0]):
            return False
    return True


def _by_topology(problem: Problem, groups: Sequence[int]) -> list[list[int]]:
    """`groups` that belong to one topology, together."""
    kin: dict[str, list[int]] = {}
    for group in groups:
        first = int(np.argmax(problem.group_of == group))
        kin.setdefault(problem.executors[first].topology_id, []).append(group)
    return list(kin.values())


def _nearest_in_cost(layout: Layout, rows: Sequence[int], column: int, limit: float = np.inf) -> list[int]:
    """The few supervisors that are cheapest for `rows` of `column` together, by network, overload and use.

    Those that cost `limit` more than now, or worse, are left out.
    """
    delta = _delta_of_bundle(layout, rows, column)
    delta[column] = np.inf
    order = np.argsort(delta, kind="stable")[:TARGETS_PER_WORKER]
    return [int(at) for at in order if delta[at] < limit]


def _delta_of_bundle(layout: Layout, rows: Sequence[int], column: int) -> Floats:
    """Change of the total, restarts left out, for moving `rows` from `column` to each other supervisor."""
    problem = layout.problem
    network: Floats = layout.network[rows].sum(axis=0)
    inside = layout.traffic_among(rows)
    delta = network - network[column] - inside * problem.distance_ms[column]
    excess = layout.load - problem.usable
    overload = np.maximum(excess, 0.0)
    demand = float(problem.demand[rows].sum())
    added = np.maximum(excess + demand, 0.0) - overload
    relief = max(float(excess[column]) - demand, 0.0) - float(overload[column])
    unused = (layout.executors_on == 0) & ~problem.fixed_in_use
    emptied = layout.executors_on[column] == len(rows) and not problem.fixed_in_use[column]
    delta = delta + (added + relief) * problem.overload_price + (unused - float(emptied)) * problem.supervisor_price
    return np.asarray(delta, dtype=np.float64)
