"""The few array operations that everything here is made of, with the matrices."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from storm_operator.core.arrays import Flags, Floats, Ints

Matrix = sparse.csr_array[np.float64]


def total_by(group: Ints, amounts: Floats | Flags, groups: int) -> Floats:
    """The sum of `amounts` in each of `groups` groups."""
    return np.bincount(group, amounts, groups).astype(np.float64)


def count_by(group: Ints, groups: int) -> Floats:
    """How many there are in each of `groups` groups."""
    return np.bincount(group, minlength=groups).astype(np.float64)


def times(matrix: Matrix, vector: Floats) -> Floats:
    """The product of both."""
    return np.asarray(matrix @ vector, dtype=np.float64)


def ratio(above: Floats, below: Floats, otherwise: float) -> Floats:
    """`above` / `below` where `below` is more than 0, else `otherwise`."""
    return np.divide(above, below, out=np.full(np.shape(below), otherwise, dtype=np.float64), where=below > 0.0)
