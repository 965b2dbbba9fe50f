"""A plan's life -> what the page and `status` show of it; and the cluster before and after it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from storm_operator.console.pass_view import Given, view_of_snapshot
from storm_operator.console.views import PassView
from storm_operator.core.decision import Plan, Prediction
from storm_operator.core.model import Assignment, WorkerSlot
from storm_operator.core.plan_record import Outcome, PlanRecord
from storm_operator.core.snapshot import ClusterSnapshot


@dataclass(frozen=True, slots=True)
class SlotView:
    """A slot by its supervisor's id and host."""

    supervisor: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class MoveView:
    """One executor that changes its slot; `source` None: it was not placed."""

    topology: str
    component: str
    tasks: str
    source: SlotView | None
    target: SlotView


@dataclass(frozen=True, slots=True)
class PlanView:
    """One plan, as far as it has come. `predicted_*` are of its making, `measured_*` of before and after it.

    What a rollback does nobody predicts: None. `effect_is_unknown` of one that is Verified since nothing speaks against
    it, with no load before it that what came after could be compared with.
    """

    id: str
    state: str
    created_at_seconds: float
    policy: str
    method: str
    reason: str
    message: str
    topologies: tuple[str, ...]
    moves: tuple[MoveView, ...]
    restarted_workers: int
    ended_workers: int
    kept_workers: int
    gain_percent: float | None
    payback_seconds: float | None
    predicted_before: Prediction | None
    predicted_after: Prediction | None
    measured_before: Outcome
    measured_after: Outcome | None
    seconds_to_in_force: float | None
    seconds_to_running: float | None
    in_force_at_seconds: float | None
    failed_tuples: float | None
    rollback_of: str
    approved_by: str
    approved_at_seconds: float | None
    waits_for_approval: bool
    effect_is_unknown: bool


@dataclass(frozen=True, slots=True)
class PlanScene:
    """The cluster that the plan was made for, as it was and as it was to be, under the traffic of that time."""

    before: PassView
    after: PassView


def view_of_plan(record: PlanRecord, hosts: Mapping[str, str]) -> PlanView:
    """`hosts` by supervisor id, as far as they are known."""
    plan = record.plan

    def place(slot: WorkerSlot) -> SlotView:
        return SlotView(slot.supervisor_id, hosts.get(slot.supervisor_id, slot.supervisor_id), slot.port)

    return PlanView(
        id=plan.id,
        state=record.state.value,
        created_at_seconds=plan.created_at_seconds,
        policy=plan.policy,
        method=record.method.value,
        reason=plan.reason,
        message=record.message,
        topologies=plan.topology_ids,
        moves=tuple(
            MoveView(
                move.executor.topology_id,
                move.executor.component,
                move.executor.label,
                place(move.source) if move.source else None,
                place(move.target),
            )
            for move in plan.moves
        ),
        restarted_workers=len(plan.started_workers),
        ended_workers=len(plan.restarted_workers) - len(plan.started_workers),
        kept_workers=len(plan.kept_workers),
        gain_percent=plan.gain_percent,
        payback_seconds=plan.payback_seconds,
        predicted_before=plan.before if plan.is_predicted else None,
        predicted_after=plan.after if plan.is_predicted else None,
        measured_before=record.before,
        measured_after=record.measured,
        seconds_to_in_force=record.seconds_to_in_force,
        seconds_to_running=record.seconds_to_running,
        in_force_at_seconds=record.in_force_at_seconds,
        failed_tuples=record.failed_tuples,
        rollback_of=record.rollback_of,
        approved_by=record.approved_by,
        approved_at_seconds=record.approved_at_seconds,
        waits_for_approval=record.state.value == "Proposed" and not record.approved_by,
        effect_is_unknown=record.effect_is_unknown,
    )


def scene_of_plan(plan: Plan, snapshot: ClusterSnapshot) -> PlanScene:
    """`snapshot` is the one that the plan was made from: what does not belong to the plan stays where it was."""
    others = Assignment(
        {e: slot for e, slot in snapshot.assignment.slot_of.items() if e.topology_id not in plan.topology_ids}
    )
    given = Given(plan.cpu_limits_millicores)
    managed = frozenset(plan.topology_ids)
    before, after = (
        view_of_snapshot(snapshot, given, managed, others.with_moves(assignment.slot_of))
        for assignment in (plan.base, plan.target)
    )
    return PlanScene(before, after)
