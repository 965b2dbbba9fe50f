"""Notices executors that somebody else moved, added or took away: a person, or Storm's own scheduler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from storm_operator.core.model import Assignment
from storm_operator.core.plan_record import PlanRecord, PlanState
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.wording import counted

GRACE_PASSES = 10
"""So long after a change of our own another number of executors is taken for its effect."""


@dataclass(slots=True)
class AssignmentDrift:
    """Compares each pass with the one before. All of it can be lost: a restarted operator compares from then on."""

    last: dict[str, Assignment] = field(default_factory=dict)
    """By topology id."""
    planned: set[str] = field(default_factory=set)
    """Ids of the topologies that plans of the last pass concerned."""
    plans: frozenset[str] = frozenset()
    """Ids of the plans that had been begun, as of the last pass."""
    grace: dict[str, int] = field(default_factory=dict)
    """By topology id: passes in which another number of executors is no surprise."""

    def expect_resize(self, topology_id: str) -> None:
        """We are asking Nimbus ourselves for another number of executors."""
        self.grace[topology_id] = GRACE_PASSES

    def look_beside(self, records: Iterable[PlanRecord], snapshot: ClusterSnapshot) -> Mapping[str, str]:
        """`look`, by the `records` of all plans that were ever begun.

        Most of those that are new were begun in this pass, after the look at the cluster. Others had been begun before,
        by another manager, or in a pass that saw nothing in the end; and one that was cut short goes on before the next
        look. What has settled moves nobody any more.
        """
        known, begun = self.plans, tuple(records)
        self.plans = frozenset(record.plan.id for record in begun)
        new = [record for record in begun if record.plan.id not in known]
        earlier = [record for record in new if record.started_at_seconds < snapshot.taken_at_seconds]
        self.planned |= _topologies_of(earlier)
        later = [record for record in new if record not in earlier]
        cut_short = [record for record in begun if record.state is PlanState.APPLYING]
        return self.look(snapshot, _topologies_of([*later, *cut_short]))

    def look(self, snapshot: ClusterSnapshot, planned: Collection[str]) -> Mapping[str, str]:
        """By topology id, what changed since the last look, in a sentence.

        `planned` are those that plans of this pass concern: the snapshot that shows what they did is the next one's.
        """
        changed_by_us, self.planned = self.planned, set(planned)
        now = {topology.id: snapshot.assignment.restricted_to([topology.id]) for topology in snapshot.topologies}
        alive = {supervisor.id for supervisor in snapshot.supervisors}
        found = {}
        for topology_id, present in now.items():
            before = self.last.get(topology_id)
            if before is None or not before.slot_of or not present.slot_of or topology_id in changed_by_us:
                continue
            words = _resized(before, present)
            if words and self.grace.get(topology_id):
                continue
            words = words or _moved(before, present, alive)
            if words:
                found[topology_id] = words
        # While Nimbus places a topology anew there is nothing to compare with: it keeps what it had before.
        self.last = {
            known: present if present.slot_of else self.last.get(known, present) for known, present in now.items()
        }
        self.grace = {known: left - 1 for known, left in self.grace.items() if left > 1 and known in now}
        return found


def _topologies_of(records: Iterable[PlanRecord]) -> set[str]:
    return {topology_id for record in records for topology_id in record.plan.topology_ids}


def _resized(before: Assignment, present: Assignment) -> str:
    """Other executors have tasks that were of these. One that only is no longer placed, or is again, is none."""
    name_of = {task: executor.name for executor in before.slot_of for task in executor.tasks}
    if all(name_of.get(task, one.name) == one.name for one in present.slot_of for task in one.tasks):
        return ""
    counts, counts_now = _counts(before), _counts(present)
    changed = [name for name in sorted(counts | counts_now) if counts[name] != counts_now[name]]
    if not changed:
        return ""
    words = ", ".join(f"{name} from {counts[name]} to {counts_now[name]}" for name in changed)
    return f"somebody else changed the number of executors: {words}"


def _moved(before: Assignment, present: Assignment, alive: Collection[str]) -> str:
    moved = [e for e, slot in present.slot_of.items() if before.slot_of.get(e, slot) != slot]
    lost = [e for e in moved if before.slot_of[e].supervisor_id not in alive]
    if not moved:
        return ""
    if len(lost) == len(moved):
        return f"Storm moved {counted(len(moved), 'executor')} whose supervisor is gone"
    return f"somebody moved {counted(len(moved) - len(lost), 'executor')}, by no plan of the operator"


def _counts(assignment: Assignment) -> Counter[str]:
    return Counter(executor.component for executor in assignment.slot_of)
