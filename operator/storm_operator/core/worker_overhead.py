"""What workers use beside their executors: network threads, garbage collection, compilation, the supervisor itself."""

from __future__ import annotations

import math

from storm_operator.core.snapshot import ClusterSnapshot

MOST_OVERHEAD = 1.5
"""Beyond this it is idling that is measured, or somebody else's process."""


def worker_overhead(snapshot: ClusterSnapshot) -> float:
    """How many times the CPU of all executors the supervisors that they run on use.

    At least 1, which it also is where nobody measured. Supervisors with an executor that nobody measured do not count,
    unless all have one: what that executor uses is no overhead of the others. Nor do those whose own use is unknown.
    """
    measured_on: dict[str, list[float]] = {}
    unclear = set()
    for executor, slot in snapshot.assignment.slot_of.items():
        measured = measured_on.setdefault(slot.supervisor_id, [])
        load = snapshot.loads.get(executor)
        if load is None or load.cpu_millicores is None:
            unclear.add(slot.supervisor_id)
        else:
            measured.append(load.cpu_millicores)
    telling = (measured_on.keys() - unclear or measured_on.keys()) & snapshot.supervisor_cpu_millicores.keys()
    executors = math.fsum(millicores for supervisor_id in telling for millicores in measured_on[supervisor_id])
    used = math.fsum(snapshot.supervisor_cpu_millicores[supervisor_id] for supervisor_id in telling)
    return min(MOST_OVERHEAD, max(1.0, used / executors)) if executors > 0.0 else 1.0
