"""Whether a snapshot is complete and fresh enough to decide by."""

from __future__ import annotations

from collections.abc import Iterable

from storm_operator.core.decision import Hold, HoldReason
from storm_operator.core.demand import executors_without_demand
from storm_operator.core.model import Demand, Executor
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

NAMED_EXECUTORS = 5


def check_measurements(snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings) -> Hold | None:
    """Why what was measured allows no decision; None when it does."""
    scheduling = settings.scheduling
    completeness = snapshot.completeness
    if not snapshot.history:
        return Hold(HoldReason.WARMING_UP, "no control period has been measured yet")
    unknown = {
        executor
        for executor in executors_without_demand(snapshot, demand)
        if executor.topology_id in settings.movable and executor in snapshot.assignment.slot_of
    }.union(completeness.missing_executors)
    known_share = 1.0 - len(unknown) / max(completeness.expected_executors, len(unknown), 1)
    if known_share < scheduling.minimum_completeness:
        return Hold(HoldReason.METRICS_INCOMPLETE, _incomplete(snapshot, unknown, known_share, settings))
    if completeness.age_seconds > scheduling.maximum_age_seconds:
        return Hold(
            HoldReason.METRICS_STALE,
            f"metrics are {completeness.age_seconds:.0f} s old, at most {scheduling.maximum_age_seconds:.0f} s are "
            f"allowed{_problems(snapshot)}",
        )
    return None


def _incomplete(
    snapshot: ClusterSnapshot, unknown: Iterable[Executor], known_share: float, settings: PlacementSettings
) -> str:
    names = [f"{executor.component} {executor.label} of {executor.topology_id}" for executor in sorted(unknown)]
    more = f" and {len(names) - NAMED_EXECUTORS} more" if len(names) > NAMED_EXECUTORS else ""
    needed = settings.scheduling.minimum_completeness
    return (
        f"{100 * known_share:.0f}% of executors have metrics, {100 * needed:.0f}% are "
        f"needed; unknown: {', '.join(names[:NAMED_EXECUTORS])}{more}{_problems(snapshot)}"
    )


def _problems(snapshot: ClusterSnapshot) -> str:
    return "".join(f"; {problem}" for problem in snapshot.completeness.problems)
