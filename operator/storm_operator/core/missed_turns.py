"""Turns that a policy with a period of its own did not get, since nobody could hear it. Pure.

Policies keep no memory: whether their time has come they tell from the period that a snapshot stands for, and from how
long they were not heard before it. They are not heard while the plan of other topologies is in hand, while too little
is measured to decide by, and between passes that are far apart.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from storm_operator.core.decision import Decision, Hold, HoldReason
from storm_operator.core.model import read_only
from storm_operator.core.snapshot import ClusterSnapshot

NOT_HEARD = frozenset(
    {HoldReason.APPLYING, HoldReason.WARMING_UP, HoldReason.METRICS_INCOMPLETE, HoldReason.METRICS_STALE}
)


@dataclass(frozen=True, slots=True)
class MissedTurns:
    """Until when the policies of these topologies (ids) have been heard; of others nobody knows."""

    heard_until_seconds: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "heard_until_seconds", read_only(self.heard_until_seconds))

    def made_up_for(self, topology_ids: Sequence[str], snapshot: ClusterSnapshot) -> ClusterSnapshot:
        """`snapshot` for the policy of these topologies: it tells for how long that was not heard."""
        unheard_seconds = max(_began(snapshot) - self._until(topology_id, snapshot) for topology_id in topology_ids)
        return replace(snapshot, unheard_seconds=unheard_seconds) if unheard_seconds else snapshot

    def after(
        self, topology_ids: Sequence[str], snapshot: ClusterSnapshot, decision: Decision, in_hand: Collection[str]
    ) -> Mapping[str, float]:
        """Until when these have been heard, after `decision`; `in_hand` are the topologies of the plan in hand.

        A policy whose own plan is in hand waits for its next turn.
        """
        is_held = isinstance(decision, Hold) and decision.reason in NOT_HEARD
        if is_held and not set(in_hand).intersection(topology_ids):
            return {topology_id: self._until(topology_id, snapshot) for topology_id in topology_ids}
        return dict.fromkeys(topology_ids, snapshot.taken_at_seconds)

    def _until(self, topology_id: str, snapshot: ClusterSnapshot) -> float:
        """No later than the period of `snapshot` began: that is yet to be heard of."""
        began = _began(snapshot)
        return min(began, self.heard_until_seconds.get(topology_id, began))


def _began(snapshot: ClusterSnapshot) -> float:
    return snapshot.taken_at_seconds - snapshot.period_seconds
