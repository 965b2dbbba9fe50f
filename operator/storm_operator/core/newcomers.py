"""Topologies that were submitted lately: a change would move executors beside them, or Storm is to place them. Pure.

What runs for a while without figures must not hold plans for ever (`assumed_needs`). What was submitted a moment ago
has none yet, and will have them: until then its supervisors only look as if they had room.
"""

from __future__ import annotations

from collections.abc import Iterator

from storm_operator.core.decision import Plan, PlanCause
from storm_operator.core.load_history import periods_by_topology
from storm_operator.core.model import name_of_topology, submitted_at_seconds
from storm_operator.core.plan_record import RUNNING_TIMEOUT_SECONDS
from storm_operator.core.proposed_change import ProposedChange
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.wording import first_of


def why_newcomers_come_first(change: ProposedChange, snapshot: ClusterSnapshot, least_periods: int) -> str:
    """Who was submitted lately, and where, and is not measured for long enough; empty where nobody is in the way."""
    seen = periods_by_topology(snapshot.history)
    lately = RUNNING_TIMEOUT_SECONDS + least_periods * snapshot.period_seconds
    found = {
        (topology_id, supervisor_id)
        for topology_id, supervisor_id in _neighbours(change, snapshot)
        if seen[topology_id] < least_periods and _is_younger(topology_id, lately, snapshot.taken_at_seconds)
    }
    hosts = {supervisor.id: supervisor.host for supervisor in snapshot.all_supervisors}
    names = {topology.id: topology.name for topology in snapshot.topologies}
    return first_of(
        [
            f"{names[topology_id]} on {hosts.get(supervisor_id, supervisor_id)} was submitted lately and measured for "
            f"{seen[topology_id]} of {least_periods} periods"
            for topology_id, supervisor_id in sorted(found)
        ],
        "; ",
    )


def why_storm_places_first(plan: Plan, snapshot: ClusterSnapshot) -> str:
    """Why nobody should be asked about `plan`: what it is urgent for was submitted a moment ago, and Storm places that
    before a person could look. Empty where it is urgent for others, or Storm has had its time.
    """
    alive = {supervisor.id for supervisor in snapshot.supervisors}
    lost = [move for move in plan.moves if move.source is None or move.source.supervisor_id not in alive]
    if plan.cause is not PlanCause.WITHOUT_PLACE or any(move.source is not None for move in lost):
        return ""
    waiting = sorted({move.executor.topology_id for move in lost})
    if not all(_is_younger(one, RUNNING_TIMEOUT_SECONDS, snapshot.taken_at_seconds) for one in waiting):
        return ""
    names = first_of([name_of_topology(one) for one in waiting])
    return (
        f"{names} was submitted lately and is yet to be placed by Storm, which would outdate a plan that waits for a "
        f"person; where Storm has no place for it one is proposed {RUNNING_TIMEOUT_SECONDS:.0f} s after the submission"
    )


def _neighbours(change: ProposedChange, snapshot: ClusterSnapshot) -> Iterator[tuple[str, str]]:
    """The other topologies on supervisors that executors would move to: (topology id, supervisor id)."""
    targets = {move.target.supervisor_id for move in change.diff.moves}
    own = frozenset(change.topology_ids)
    for executor, slot in snapshot.assignment.slot_of.items():
        if slot.supervisor_id in targets and executor.topology_id not in own:
            yield executor.topology_id, slot.supervisor_id


def _is_younger(topology_id: str, seconds: float, now_seconds: float) -> bool:
    """Nimbus' clock may be a little ahead of ours."""
    submitted = submitted_at_seconds(topology_id)
    return submitted is not None and abs(now_seconds - submitted) < seconds
