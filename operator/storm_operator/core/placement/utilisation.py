"""How busy supervisors are; what nobody measured is estimated, never zero."""

from __future__ import annotations

from collections.abc import Mapping

from storm_operator.core.model import Assignment, Executor
from storm_operator.core.snapshot import ClusterSnapshot


def supervisor_loads(
    snapshot: ClusterSnapshot, assignment: Assignment, loads: Mapping[Executor, float]
) -> dict[str, float]:
    """Millicores in use on each supervisor: as measured, else what its executors need."""
    needed = dict.fromkeys((machine.id for machine in snapshot.supervisors), 0.0)
    for executor in sorted(assignment.slot_of):
        supervisor_id = assignment.slot_of[executor].supervisor_id
        if supervisor_id in needed:
            needed[supervisor_id] += loads.get(executor, 0.0)
    return {id_: snapshot.supervisor_cpu_millicores.get(id_, estimate) for id_, estimate in needed.items()}


def past_loads(snapshot: ClusterSnapshot, supervisor_id: str, periods: int) -> list[tuple[float, float]]:
    """Seconds (0 is now, the past is negative) and measured millicores of the last periods, as many as are known."""
    return [
        (period.ended_at_seconds - snapshot.taken_at_seconds, period.supervisor_cpu_millicores[supervisor_id])
        for period in snapshot.history[-periods:]
        if supervisor_id in period.supervisor_cpu_millicores
    ]
