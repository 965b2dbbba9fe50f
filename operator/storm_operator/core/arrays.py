"""Types of the arrays that stand for many executors or supervisors at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

NOWHERE = -1
"""The number of no row and no column: who is in no table, or lives on no supervisor."""
