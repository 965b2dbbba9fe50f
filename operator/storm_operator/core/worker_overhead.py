"""What workers use beside their executors: network threads, garbage collection, compilation, the supervisor itself."""

from __future__ import annotations

import math

from storm_operator.core.snapshot import ClusterSnapshot

MOST_OVERHEAD = 1.5
"""Beyond this it is idling that is measured, or somebody else's process."""


def worker_overhead(snapshot: ClusterSnapshot) -> float:
    """How many times the CPU of all executors the supervisors that they run on use.

    At least 1, which it also is where nobody measured.
    """
    executors = math.fsum(load.cpu_millicores or 0.0 for load in snapshot.loads.values())
    in_use = snapshot.assignment.used_supervisors()
    used = math.fsum(snapshot.supervisor_cpu_millicores.get(supervisor_id, 0.0) for supervisor_id in in_use)
    return min(MOST_OVERHEAD, max(1.0, used / executors)) if executors > 0.0 else 1.0
