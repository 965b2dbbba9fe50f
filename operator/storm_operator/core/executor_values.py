"""Values by executor as arrays, in the order that somebody wants them in.

Mostly they are in that order already, since everything is sorted; then nothing needs to be looked up, which for ten
thousand executors takes longer than what is computed of the values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from storm_operator.core.arrays import NOWHERE, Floats, Ints
from storm_operator.core.model import Executor


def values_of(values: Mapping[Executor, float], executors: tuple[Executor, ...]) -> Floats:
    """The value of each of `executors`; 0 for those that have none."""
    if len(values) == len(executors) and tuple(values) == executors:
        return np.fromiter(values.values(), dtype=np.float64, count=len(executors))
    return np.array([values.get(executor, 0.0) for executor in executors], dtype=np.float64)


def rows_of(executors: Sequence[Executor], among: tuple[Executor, ...]) -> Ints:
    """The position of each of `executors` in `among`; NOWHERE for those that are not there."""
    if executors == among:
        return np.arange(len(among), dtype=np.int64)
    row = {executor: at for at, executor in enumerate(among)}
    return np.array([row.get(executor, NOWHERE) for executor in executors], dtype=np.int64)
