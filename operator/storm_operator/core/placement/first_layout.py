"""A complete first layout from a wish: executors where they should be as far as slots allow, the others beside them."""

from __future__ import annotations

import numpy as np

from storm_operator.core.placement.layout import Layout
from storm_operator.core.placement.problem import NOWHERE, Ints, Problem


def lay_out(problem: Problem, wanted: Ints) -> Layout:
    """A complete layout with executors where `wanted` says as far as slots allow, the others where it costs least.

    Needs at least one free port for each group in the cluster.
    """
    layout = Layout(problem)
    rows = np.arange(len(wanted))
    for row in rows[wanted != NOWHERE].tolist():
        if np.isfinite(layout.deltas(row)[wanted[row]]):
            layout.move(row, int(wanted[row]))
    busiest_first = sorted(rows[layout.place == NOWHERE].tolist(), key=lambda row: (-_traffic_of(problem, row), row))
    for row in busiest_first:
        _place_somewhere(layout, row)
    return layout


def _place_somewhere(layout: Layout, row: int) -> None:
    deltas = layout.deltas(row)
    while not np.isfinite(deltas.min()):
        _free_a_port(layout)
        deltas = layout.deltas(row)
    layout.move(row, int(np.argmin(deltas)))


def _free_a_port(layout: Layout) -> None:
    """Merge the smallest worker that has a sister on another supervisor into it."""
    sizes = [
        (int(layout.count[group, column]), int(group), int(column))
        for group, column in zip(*np.nonzero(layout.count), strict=True)
        if np.count_nonzero(layout.count[group]) > 1
    ]
    _, group, column = min(sizes)
    sisters = [int(at) for at in np.flatnonzero(layout.count[group]) if at != column]
    rows = layout.members(group, column).tolist()
    best = min(sisters, key=lambda at: (float(layout.network[rows, at].sum()), at))
    layout.move_all(rows, best)


def _traffic_of(problem: Problem, row: int) -> float:
    start, end = problem.traffic.indptr[row], problem.traffic.indptr[row + 1]
    return float(problem.traffic.data[start:end].sum())
