"""Virtual placement by springs: where operators come to rest between those that are pinned.

Cardellini et al., DEBS'15, section 2.2, after Pietzuch et al., "Network-Aware Operator Placement for Stream-Processing
Systems", ICDE 2006: operators are massless bodies, links are springs whose extension is the latency and whose constant
is the data rate. So the force of a link is rate times latency, and the rest position is that of least network usage.

Both let bodies move step by step as forces pull. Here the place where no force is left is solved for: two operators
that exchange a thousand times as much as anyone else hold each other back in each step and seem to rest where they are.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.linalg import cg

from storm_operator.core.arrays import Floats

FORCE_LEFT = 1e-12
"""Bodies are at rest when no more than this part of all force is left: rates may be millions of times each other."""


def rest_positions(start: Floats, pinned: npt.NDArray[np.bool_], rates: sparse.csr_array[np.float64]) -> Floats:
    """Where each body (row) rests; those that are pinned or have no spring stay at `start`.

    `rates` are spring constants, symmetric, with a zero diagonal. Bodies that no spring ties to a pinned one, however
    indirectly, meet where they come from, each by the strength of its springs.
    """
    constants: Floats = np.asarray(rates.sum(axis=1), dtype=np.float64).ravel()
    free = np.flatnonzero(~pinned & (constants > 0.0))
    forces = (np.asarray(rates @ start) - constants[:, None] * start)[free]
    stiffness = sparse.diags_array(constants[free]) - rates[free][:, free]
    positions = start.copy()
    for axis in range(start.shape[1]):
        way, _ = cg(stiffness, forces[:, axis], rtol=FORCE_LEFT, M=sparse.diags_array(1.0 / constants[free]))
        positions[free, axis] += way
    return positions
