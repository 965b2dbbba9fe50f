"""Local search on a `Layout`: make it cheaper by moves, swaps, and moves of whole workers, until nothing helps.

Everything runs in a fixed order, so that the same input gives the same result.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from storm_operator.core.placement.bundle_steps import empty_supervisors, move_workers, restore_workers
from storm_operator.core.placement.layout import Layout, smallest_gain
from storm_operator.core.placement.swap_steps import push_executors, swap_executors, swap_supervisors

MOST_ROUNDS = 30


def improve(layout: Layout) -> None:
    """Lower the total until no step of any kind helps."""
    steps: tuple[Callable[[Layout], bool], ...] = (
        descend,
        move_workers,
        empty_supervisors,
        restore_workers,
        swap_executors,
        push_executors,
        swap_supervisors,
    )
    for _ in range(MOST_ROUNDS):
        before = layout.total()
        for step in steps:
            step(layout)
        if layout.total() > before - smallest_gain(before):
            return


def descend(layout: Layout) -> bool:
    """Move single executors to where they cost least, until none wants to move."""
    smallest = smallest_gain(layout.total())
    moved_any = False
    for _ in range(MOST_ROUNDS):
        promised = layout.all_deltas().min(axis=1)
        moved = False
        for row in np.argsort(promised, kind="stable")[: np.count_nonzero(promised < -smallest)].tolist():
            deltas = layout.deltas(row)
            best = int(np.argmin(deltas))
            if deltas[best] < -smallest:
                layout.move(row, best)
                moved = moved_any = True
        if not moved:
            break
    return moved_any
