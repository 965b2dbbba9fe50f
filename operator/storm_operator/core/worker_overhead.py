"""What workers use beside their executors: network threads, garbage collection, compilation, the supervisor itself."""

from __future__ import annotations

import math

from storm_operator.core.snapshot import ClusterSnapshot

MOST_OVERHEAD = 1.5
"""Beyond this it is idling that is measured, or somebody else's process."""


def worker_overhead(snapshot: ClusterSnapshot) -> float:
    """How many times the CPU of all executors the supervisors that they run on use.

    At least 1, which it also is where nobody measured. Supervisors with an executor that nobody measured do not count,
    unless all have one: what that executor uses is no overhead of the others.
    """
    loads, slot_of = snapshot.loads, snapshot.assignment.slot_of
    unclear = {slot.supervisor_id for e, slot in slot_of.items() if e not in loads or loads[e].cpu_millicores is None}
    in_use = set(snapshot.assignment.used_supervisors())
    telling = in_use - unclear or in_use
    executors = math.fsum(
        load.cpu_millicores or 0.0 for e, load in loads.items() if e in slot_of and slot_of[e].supervisor_id in telling
    )
    used = math.fsum(snapshot.supervisor_cpu_millicores.get(supervisor_id, 0.0) for supervisor_id in telling)
    return min(MOST_OVERHEAD, max(1.0, used / executors)) if executors > 0.0 else 1.0
