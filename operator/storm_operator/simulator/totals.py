"""What has happened since the simulation began, counted: the counters that agents would export."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from storm_operator.core.arrays import Floats
from storm_operator.simulator.arrays import Matrix, times

BY_EXECUTOR = ("executed", "arrived", "lost", "executor_cpu_ms", "throttled_ms")


@dataclass(slots=True)
class Totals:
    """By executor, by topology, by supervisor. All are counts (tuples, trees) or CPU milliseconds so far."""

    executed: Floats
    arrived: Floats
    lost: Floats
    executor_cpu_ms: Floats
    throttled_ms: Floats
    """Time for which its limit kept an executor waiting that had work left."""

    offered: Floats
    emitted: Floats
    unsent: Floats
    """Offered, but neither emitted nor kept by the source."""
    acked: Floats
    failed: Floats
    forgotten: Floats
    """Pending when their spout's process ended: nobody hears what becomes of them."""
    replayed: Floats

    supervisor_cpu_ms: Floats
    over_provided_ms: Floats
    """CPU that was reserved (limits; where there are none the whole supervisor in use) beyond what was needed."""
    under_provided_ms: Floats
    """CPU that executors on it would have needed for what arrived, spouts for what they were offered and might emit,
    beyond what they could get."""

    @classmethod
    def zero(cls, executors: int, topologies: int, supervisors: int) -> Totals:
        counts = {"executor": executors, "topology": topologies, "supervisor": supervisors}
        kinds = ["executor"] * len(BY_EXECUTOR) + ["topology"] * 7 + ["supervisor"] * 3
        return cls(*(np.zeros(counts[kind]) for kind in kinds))

    def copy(self) -> Totals:
        return Totals(*(getattr(self, entry.name).copy() for entry in fields(self)))

    def since(self, earlier: Totals) -> Totals:
        return Totals(*(getattr(self, entry.name) - getattr(earlier, entry.name) for entry in fields(self)))

    def summed(self) -> Totals:
        """With all executors as one: what is to be compared with a time at which there may be others."""
        return self._with_executors(lambda amounts: np.array([amounts.sum()]))

    def passed_on(self, heirs: Matrix) -> Totals:
        """For other executors, which take over these in the shares that the columns of `heirs` have."""
        return self._with_executors(lambda amounts: times(heirs, amounts))

    def _with_executors(self, change: Callable[[Floats], Floats]) -> Totals:
        changed = self.copy()
        for name in BY_EXECUTOR:
            setattr(changed, name, change(getattr(changed, name)))
        return changed
