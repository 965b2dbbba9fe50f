"""What earlier plans taught, for the decisions to come."""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from storm_operator.core.backoff import Retry, put_off
from storm_operator.core.clock_steps import is_younger, was_set_back
from storm_operator.core.decision import NOTHING_BETTER, Decision, Hold, HoldReason, Plan, PlanCause
from storm_operator.core.model import Assignment, WorkerSlot, in_order, read_only
from storm_operator.core.plan_record import PlanRecord, PlanState

KNOWN_BAD_SECONDS = 86_400.0
"""What was measured holds for the load and the cluster of then; a target that always is bad costs one try a day."""
KNOWN_BAD_KEPT = 1000
"""No more are made in a day; it bounds what is remembered all the same."""
RESTARTS_KEPT = 9
ASSUMED_RESTART_SECONDS = 8.0

ANY_PLAN = "any plan"
"""Identity of what failed: another target from the same start mostly meets the same obstacle."""

TELL_WHO_IS_SHORT = frozenset({HoldReason.TOO_LITTLE_CAPACITY, HoldReason.NOT_DUE, *NOTHING_BETTER})


@dataclass(frozen=True, slots=True)
class KnownBad:
    """What is remembered of a target that nobody wants again: which slots it used, who sat with whom, and whose it is.

    `rolled_back_at_seconds` None: a person has refused it, which stands.
    """

    target_hash: str
    arrangement_hash: str
    rolled_back_at_seconds: float | None = None
    topology_ids: frozenset[str] = frozenset()

    @classmethod
    def of(cls, target: Assignment, rolled_back_at_seconds: float | None = None) -> KnownBad:
        topology_ids = frozenset(executor.topology_id for executor in target.slot_of)
        return cls(assignment_hash(target), arrangement_hash(target), rolled_back_at_seconds, topology_ids)

    def counts_at(self, now_seconds: float) -> bool:
        """Whether it still is a reason against such a target."""
        at = self.rolled_back_at_seconds
        return at is None or is_younger(at, KNOWN_BAD_SECONDS, now_seconds)

    def in_words(self, now_seconds: float) -> str:
        """What became of it, and when it may be tried again."""
        if self.rolled_back_at_seconds is None:
            return "was refused by a person before"
        hours = (self.rolled_back_at_seconds + KNOWN_BAD_SECONDS - now_seconds) / 3600.0
        return f"was rolled back before, and may be tried again in {hours:.1f} h"


@dataclass(frozen=True, slots=True)
class Setback:
    """The last of a topology's plans that failed in a row, and when the next may be tried, whatever it moves."""

    plan_id: str
    retry: Retry

    def after(self, plan_id: str, at_seconds: float) -> Setback:
        """With one more failure, that of `plan_id`; the same one may be told again."""
        return self if plan_id == self.plan_id else Setback(plan_id, put_off(self.retry, ANY_PLAN, at_seconds))

    def is_to_be_waited_for(self, now_seconds: float) -> bool:
        """Not where the clock was set back since."""
        failed_at_seconds = self.retry.not_before_seconds - self.retry.pause_seconds
        return is_younger(failed_at_seconds, self.retry.pause_seconds, now_seconds)

    @classmethod
    def first(cls, plan_id: str, at_seconds: float) -> Setback:
        return cls(plan_id, put_off(None, ANY_PLAN, at_seconds))


@dataclass(frozen=True, slots=True)
class DecisionMemory:
    """What earlier plans taught: when each topology was last changed, how long restarts take, what went wrong."""

    changed_at_seconds: Mapping[str, float] = field(default_factory=dict)
    measured_restarts: tuple[tuple[str, float], ...] = ()
    """(plan id, seconds from in force until all moved executors ran again), newest last."""
    known_bad: tuple[KnownBad, ...] = ()
    """Targets that were rolled back within a day, or refused by a person; newest last."""
    short_topologies: frozenset[str] = frozenset()
    """Ids of those that were last found to get less CPU than they need."""
    unhelped_topologies: frozenset[str] = frozenset()
    """Those of them for which the policy, when it last looked, knew nothing better."""
    setbacks: Mapping[str, Setback] = field(default_factory=dict)
    """By topology id; of those that no plan could be put in force for since."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "setbacks", read_only(self.setbacks))
        object.__setattr__(self, "changed_at_seconds", read_only(self.changed_at_seconds))

    @property
    def topology_ids(self) -> frozenset[str]:
        """Of all that anything is remembered of, but for targets: those are bounded."""
        return self.short_topologies | self.unhelped_topologies | {*self.changed_at_seconds, *self.setbacks}

    def without(self, ended: AbstractSet[str]) -> DecisionMemory:
        """With nothing of topologies that have `ended`, but for targets: who is submitted anew has another id."""
        return replace(
            self,
            changed_at_seconds={t: at for t, at in self.changed_at_seconds.items() if t not in ended},
            short_topologies=self.short_topologies - ended,
            unhelped_topologies=self.unhelped_topologies - ended,
            setbacks={t: setback for t, setback in self.setbacks.items() if t not in ended},
        )

    @property
    def restart_seconds(self) -> float:
        """The median of the restarts measured so far; 8 s before the first."""
        return statistics.median([seconds for _, seconds in self.measured_restarts] or [ASSUMED_RESTART_SECONDS])

    def with_known_bad(self, target: Assignment, rolled_back_at_seconds: float | None = None) -> DecisionMemory:
        """Remember a target that was rolled back then, or (None) that a person has refused."""
        bad = KnownBad.of(target, rolled_back_at_seconds)
        if KnownBad.of(target) in self.known_bad:
            bad = KnownBad.of(target)  # it was refused, whatever was measured
        others = (known for known in self.known_bad if known.target_hash != bad.target_hash)
        if rolled_back_at_seconds is not None:
            others = (known for known in others if known.counts_at(rolled_back_at_seconds))
        return replace(self, known_bad=(*others, bad)[-KNOWN_BAD_KEPT:])

    def with_way_back(self, plan: Plan, at_seconds: float) -> DecisionMemory:
        """Remember where the way back `plan` leads away from: what did harm is measured, what a person asks back
        stands."""
        is_asked_for = plan.cause is PlanCause.TAKEN_BACK
        return self.with_known_bad(plan.base, None if is_asked_for else at_seconds)

    def known_bad_like(self, target: Assignment, now_seconds: float, *, exactly: bool) -> KnownBad | None:
        """What is known against `target`; unless `exactly`, also in other slots."""
        asked = KnownBad.of(target)
        return next(
            (
                known
                for known in reversed(self.known_bad)
                if known.counts_at(now_seconds)
                and (
                    known.target_hash == asked.target_hash
                    or (not exactly and known.arrangement_hash == asked.arrangement_hash)
                )
            ),
            None,
        )

    def rolled_back_lately(self, topology_ids: Iterable[str], now_seconds: float) -> int:
        """How many targets of any of these topologies were rolled back within a day."""
        asked = frozenset(topology_ids)
        return sum(
            known.rolled_back_at_seconds is not None and known.counts_at(now_seconds)
            for known in self.known_bad
            if known.topology_ids & asked
        )

    def with_decision(self, topology_ids: Iterable[str], decision: Decision) -> DecisionMemory:
        """Remember who was found short of CPU, and whom nothing helps; what says nothing about that changes nothing."""
        asked = frozenset(topology_ids)
        if not isinstance(decision, Hold):
            return replace(self, unhelped_topologies=self.unhelped_topologies - asked)
        if decision.reason not in TELL_WHO_IS_SHORT:
            return self
        short = asked.intersection(decision.short_topologies)
        unhelped = short & self.unhelped_topologies if decision.reason is HoldReason.NOT_DUE else short
        return replace(
            self,
            short_topologies=(self.short_topologies - asked) | short,
            unhelped_topologies=(self.unhelped_topologies - asked) | unhelped,
        )

    def with_change(self, topology_id: str, at_seconds: float) -> DecisionMemory:
        """Remember that workers of a topology were restarted, though by no plan: what could wait waits from then on."""
        return replace(self, changed_at_seconds={**self.changed_at_seconds, topology_id: at_seconds})

    def with_record(self, record: PlanRecord) -> DecisionMemory:
        """Remember what became of a plan; the same plan may be told again as it goes on."""
        if record.state is PlanState.PROPOSED:
            return self
        at = record.started_at_seconds if record.in_force_at_seconds is None else record.in_force_at_seconds
        known = self.changed_at_seconds
        changed = {topology: _later(known.get(topology, at), at) for topology in record.plan.topology_ids}
        came_in_force = record.in_force_at_seconds is not None and record.state is not PlanState.FAILED
        restarts = tuple(pair for pair in self.measured_restarts if pair[0] != record.plan.id)
        if record.seconds_to_running is not None:
            restarts = (*restarts, (record.plan.id, record.seconds_to_running))[-RESTARTS_KEPT:]
        learnt = replace(
            self,
            changed_at_seconds={**self.changed_at_seconds, **changed},
            measured_restarts=restarts,
            setbacks={t: s for t, s in self.setbacks.items() if t not in changed or not came_in_force},
        )
        return learnt.with_way_back(record.plan, at) if record.rollback_of else learnt

    def with_failure(self, plan: Plan, at_seconds: float) -> DecisionMemory:
        """Remember that `plan` could not be put in force; its failure may be told again."""
        known = self.setbacks
        later = {
            topology_id: known[topology_id].after(plan.id, at_seconds)
            if topology_id in known
            else Setback.first(plan.id, at_seconds)
            for topology_id in plan.topology_ids
        }
        return replace(self, setbacks={**known, **later})

    def setback_of(self, topology_ids: Iterable[str], now_seconds: float) -> Setback | None:
        """The failure for which a plan for any of these topologies still has to wait; the longest wait."""
        known = (self.setbacks[topology_id] for topology_id in topology_ids if topology_id in self.setbacks)
        waiting = [setback for setback in known if setback.is_to_be_waited_for(now_seconds)]
        return max(waiting, key=lambda setback: setback.retry.not_before_seconds, default=None)


def _later(known_seconds: float, at_seconds: float) -> float:
    return at_seconds if was_set_back(known_seconds, at_seconds) else max(known_seconds, at_seconds)


def assignment_hash(assignment: Assignment) -> str:
    """The same for equal assignments in any process: 16 hexadecimal digits."""
    lines = [
        f"{executor.topology_id} {executor.label} {slot.supervisor_id} {slot.port}"
        for executor in in_order(assignment.slot_of)
        for slot in (assignment.slot_of[executor],)
    ]
    return _short_hash(lines)


def arrangement_hash(assignment: Assignment) -> str:
    """The same for assignments that differ in the names of slots and supervisors alone: who shares what with whom."""
    supervisors: dict[str, int] = {}
    workers: dict[WorkerSlot, int] = {}
    lines = [
        f"{executor.topology_id} {executor.label} {supervisors.setdefault(slot.supervisor_id, len(supervisors))} "
        f"{workers.setdefault(slot, len(workers))}"
        for executor in in_order(assignment.slot_of)
        for slot in (assignment.slot_of[executor],)
    ]
    return _short_hash(lines)


def _short_hash(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
