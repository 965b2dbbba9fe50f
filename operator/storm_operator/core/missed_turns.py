"""Turns that a policy with a period of its own did not get, since the plan of other topologies was in hand. Pure.

Policies keep no memory: whether their time has come they tell from the period that a snapshot stands for, and from how
long they were not heard before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from storm_operator.core.decision import Decision, Hold, HoldReason
from storm_operator.core.model import read_only
from storm_operator.core.snapshot import ClusterSnapshot

NOT_HEARD = frozenset(
    {HoldReason.APPLYING, HoldReason.WARMING_UP, HoldReason.METRICS_INCOMPLETE, HoldReason.METRICS_STALE}
)


@dataclass(frozen=True, slots=True)
class MissedTurns:
    """Since when the policies of these topologies (ids) have not been heard; others were in the pass before."""

    since_seconds: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "since_seconds", read_only(self.since_seconds))

    def made_up_for(self, topology_ids: Sequence[str], snapshot: ClusterSnapshot) -> ClusterSnapshot:
        """`snapshot` for the policy of these topologies: it tells for how long that was not heard."""
        if self.since_seconds.keys().isdisjoint(topology_ids):
            return snapshot
        began = snapshot.taken_at_seconds - snapshot.period_seconds
        return replace(snapshot, unheard_seconds=began - self._since(topology_ids, snapshot))

    def still_missed(
        self, topology_ids: Sequence[str], snapshot: ClusterSnapshot, decision: Decision, last_moved: Sequence[str]
    ) -> Mapping[str, float]:
        """Since when these have not been heard, after `decision`; `last_moved` are the topologies of the last plan.

        After a plan of its own a policy waits for its next turn.
        """
        is_by_others = bool(last_moved) and not set(last_moved).intersection(topology_ids)
        if not (is_by_others and isinstance(decision, Hold) and decision.reason in NOT_HEARD):
            return {}
        return dict.fromkeys(topology_ids, self._since(topology_ids, snapshot))

    def _since(self, topology_ids: Sequence[str], snapshot: ClusterSnapshot) -> float:
        began = snapshot.taken_at_seconds - snapshot.period_seconds
        return min([began, *(self.since_seconds[t] for t in topology_ids if t in self.since_seconds)])
