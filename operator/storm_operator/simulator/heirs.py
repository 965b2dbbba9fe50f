"""Who takes over from whom when a component gets another number of executors: each task keeps what it had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from storm_operator.core.arrays import Ints
from storm_operator.core.model import Executor
from storm_operator.simulator.arrays import Matrix


@dataclass(frozen=True, slots=True)
class Heirs:
    """`shares` has a row for each executor there is and a column for each there was; columns sum to 1.

    `of_first_task` is, by former row, who has its first task now.
    """

    shares: Matrix
    of_first_task: Ints


def heirs(before: Sequence[Executor], after: Sequence[Executor]) -> Heirs:
    """Both have the same tasks of the same components."""
    row_of = {(executor.topology_id, task): row for row, executor in enumerate(after) for task in executor.tasks}
    entries = [
        (row_of[executor.topology_id, task], column, 1.0 / len(executor.tasks))
        for column, executor in enumerate(before)
        for task in executor.tasks
    ]
    rows, columns, shares = zip(*entries, strict=True)
    first = np.array([row_of[executor.topology_id, executor.task_start] for executor in before], dtype=np.int64)
    return Heirs(sparse.csr_array((shares, (rows, columns)), shape=(len(after), len(before))), first)
