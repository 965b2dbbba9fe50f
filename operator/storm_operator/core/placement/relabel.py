"""Put the parts of a fresh partition where most of their executors live already, so that few workers restart."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from storm_operator.core.placement.problem import NOWHERE, Ints, Problem


def relabel(problem: Problem, place: Ints) -> Ints:
    """`place` with its parts permuted over the supervisors: the greatest overlap with the homes, CPU permitting.

    Overlap is counted in restart prices, so that busy and stateful executors weigh most. Parts that do not fit a
    supervisor's CPU or find no port there go to it only when nothing else is left.
    """
    columns = len(problem.supervisors)
    overlap = np.zeros((columns, columns))
    known = np.flatnonzero(problem.home != NOWHERE)
    np.add.at(overlap, (place[known], problem.home[known]), problem.restart_price[known] + 1e-9)
    part_demand = np.bincount(place, weights=problem.demand, minlength=columns)
    part_groups = [len(np.unique(problem.group_of[place == part])) for part in range(columns)]
    room = problem.usable - problem.fixed_load
    misfit = part_demand[:, None] > room[None, :] + 1e-9
    misfit |= np.array([[need > len(ports) for ports in problem.free_ports] for need in part_groups])
    nobody = np.bincount(place, minlength=columns) == 0
    misfit[nobody, :] = False
    # Among equals a part stays where the partition put it.
    stay = 1e-12 * np.eye(columns)
    value = overlap + stay - misfit * (1.0 + float(overlap.sum()))
    _, new_label = linear_sum_assignment(value, maximize=True)
    return np.asarray(new_label, dtype=np.int64)[place]
