"""Virtual placement by spring relaxation: where operators come to rest between those that are pinned.

Cardellini et al., DEBS'15, section 2.2, after Pietzuch et al., "Network-Aware Operator Placement for Stream-Processing
Systems", ICDE 2006: operators are massless bodies, links are springs whose extension is the latency and whose constant
is the data rate. So the force of a link is rate times latency, and the rest position is that of least network usage.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from storm_operator.core.arrays import Floats

STEP = 0.7
"""The part of the way to its own rest that a body goes at once; with all of it two could swap places for ever."""
MOST_STEPS = 1000
AT_REST = 1e-4
"""A body is at rest that has moved by less than this part of the extent of all."""


def rest_positions(start: Floats, pinned: npt.NDArray[np.bool_], rates: sparse.csr_array[np.float64]) -> Floats:
    """Where each body (row) rests; those that are pinned or have no spring stay at `start`.

    `rates` are spring constants, symmetric, with a zero diagonal.
    """
    constants: Floats = np.asarray(rates.sum(axis=1), dtype=np.float64).ravel()
    free = ~pinned & (constants > 0.0)
    positions = start.copy()
    extent = float(np.max(np.ptp(start, axis=0), initial=0.0))
    for _ in range(MOST_STEPS):
        forces = np.asarray(rates @ positions) - constants[:, None] * positions
        steps = STEP * forces[free] / constants[free, None]
        positions[free] += steps
        if np.max(np.abs(steps), initial=0.0) <= AT_REST * extent:
            break
    return positions
