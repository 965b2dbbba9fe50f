"""Plans and their records as JSON values, and back: the journal, `-o json` and the demo's report share this form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from types import NoneType
from typing import Any

from storm_operator.core.decision import Move, Plan, PlanCause, Prediction
from storm_operator.core.model import Assignment, Executor, WorkerSlot
from storm_operator.core.plan_record import Outcome, PlanRecord, PlanState
from storm_operator.core.settings import ApplyMethod

JOURNAL_VERSION = 1
NUMBER = (int, float)


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """`plan` as plain JSON values; `plan_from_json` gives an equal plan back."""
    return {
        "id": plan.id,
        "created_at_seconds": plan.created_at_seconds,
        "policy": plan.policy,
        "reason": plan.reason,
        "topology_ids": list(plan.topology_ids),
        "base": _assignment_to_json(plan.base),
        "target": _assignment_to_json(plan.target),
        "moves": [
            {
                "executor": _executor_to_json(move.executor),
                "source": _slot_to_json(move.source) if move.source else None,
                "target": _slot_to_json(move.target),
            }
            for move in plan.moves
        ],
        "restarted_workers": [_slot_to_json(slot) for slot in plan.restarted_workers],
        "kept_workers": [_slot_to_json(slot) for slot in plan.kept_workers],
        "cpu_limits_millicores": [
            {"executor": _executor_to_json(executor), "millicores": millicores}
            for executor, millicores in sorted(plan.cpu_limits_millicores.items())
        ],
        "before": asdict(plan.before),
        "after": asdict(plan.after),
        "payback_seconds": plan.payback_seconds,
        "gain_percent": plan.gain_percent,
        "cause": plan.cause.value,
        "cpu_ceiling_millicores": plan.cpu_ceiling_millicores,
        "beyond_threads_millicores": plan.beyond_threads_millicores,
    }


def plan_from_json(value: Mapping[str, Any]) -> Plan:
    """The plan that `plan_to_json` wrote. Raises KeyError, TypeError or ValueError on anything else."""
    plan = Plan(
        id=value["id"],
        created_at_seconds=value["created_at_seconds"],
        policy=value["policy"],
        reason=value["reason"],
        topology_ids=tuple(value["topology_ids"]),
        base=_assignment_from_json(value["base"]),
        target=_assignment_from_json(value["target"]),
        moves=tuple(
            Move(
                _executor_from_json(move["executor"]),
                _slot_from_json(move["source"]) if move["source"] else None,
                _slot_from_json(move["target"]),
            )
            for move in value["moves"]
        ),
        restarted_workers=tuple(_slot_from_json(slot) for slot in value["restarted_workers"]),
        kept_workers=tuple(_slot_from_json(slot) for slot in value["kept_workers"]),
        cpu_limits_millicores={
            _executor_from_json(limit["executor"]): limit["millicores"] for limit in value["cpu_limits_millicores"]
        },
        before=_prediction_from_json(value["before"]),
        after=_prediction_from_json(value["after"]),
        payback_seconds=value["payback_seconds"],
        gain_percent=value.get("gain_percent"),
        cause=PlanCause(value.get("cause", PlanCause.UNSTATED)),
        cpu_ceiling_millicores=value.get("cpu_ceiling_millicores"),
        beyond_threads_millicores=value.get("beyond_threads_millicores", 0.0),
    )
    _of_kind(str, plan.id, plan.policy, plan.reason, *plan.topology_ids)
    _of_kind(NUMBER, plan.created_at_seconds, plan.beyond_threads_millicores, *plan.cpu_limits_millicores.values())
    _of_kind((*NUMBER, NoneType), plan.payback_seconds, plan.gain_percent, plan.cpu_ceiling_millicores)
    return plan


def record_to_json(record: PlanRecord) -> dict[str, Any]:
    """`record` as plain JSON values; `record_from_json` gives an equal record back."""
    return {
        "version": JOURNAL_VERSION,
        "plan": plan_to_json(record.plan),
        "method": record.method.value,
        "state": record.state.value,
        "before": asdict(record.before),
        "started_at_seconds": record.started_at_seconds,
        "message": record.message,
        "seconds_to_in_force": record.seconds_to_in_force,
        "seconds_to_running": record.seconds_to_running,
        "workers_kept": record.workers_kept,
        "failed_tuples": record.failed_tuples,
        "in_force_at_seconds": record.in_force_at_seconds,
        "settling_since_seconds": record.settling_since_seconds,
        "measured": asdict(record.measured) if record.measured else None,
        "worker_pids_before": [
            {**_slot_to_json(slot), "pid": pid} for slot, pid in sorted(record.worker_pids_before.items())
        ],
        "failures_before": None if record.failures_before is None else dict(record.failures_before),
        "enforce_cpu": record.enforce_cpu,
        "rollback_of": record.rollback_of,
        "approved_by": record.approved_by,
        "approved_at_seconds": record.approved_at_seconds,
        "busy_before": [_executor_to_json(executor) for executor in record.busy_before],
        "timed_before": None if record.timed_before is None else list(record.timed_before),
        "inactive_before": list(record.inactive_before),
    }


def record_from_json(value: Mapping[str, Any]) -> PlanRecord:
    """The record that `record_to_json` wrote. Raises KeyError, TypeError or ValueError on anything else."""
    if value["version"] != JOURNAL_VERSION:
        raise ValueError(f"journal version is {value['version']!r}; this operator reads version {JOURNAL_VERSION}")
    record = PlanRecord(
        plan=plan_from_json(value["plan"]),
        method=ApplyMethod(value["method"]),
        state=PlanState(value["state"]),
        before=_outcome_from_json(value["before"]),
        started_at_seconds=value["started_at_seconds"],
        message=value["message"],
        seconds_to_in_force=value["seconds_to_in_force"],
        seconds_to_running=value["seconds_to_running"],
        workers_kept=value["workers_kept"],
        failed_tuples=value["failed_tuples"],
        in_force_at_seconds=value["in_force_at_seconds"],
        settling_since_seconds=value.get("settling_since_seconds"),
        measured=None if value["measured"] is None else _outcome_from_json(value["measured"]),
        worker_pids_before={
            _slot_from_json({"supervisor_id": worker["supervisor_id"], "port": worker["port"]}): worker["pid"]
            for worker in value["worker_pids_before"]
        },
        failures_before=None if value["failures_before"] is None else dict(value["failures_before"]),
        enforce_cpu=value["enforce_cpu"],
        rollback_of=value.get("rollback_of", ""),
        approved_by=value.get("approved_by", ""),
        approved_at_seconds=value.get("approved_at_seconds"),
        busy_before=tuple(_executor_from_json(executor) for executor in value["busy_before"]),
        timed_before=None if value.get("timed_before") is None else tuple(value["timed_before"]),
        inactive_before=tuple(value.get("inactive_before", ())),
    )
    _check_kinds(record)
    return record


def _check_kinds(record: PlanRecord) -> None:
    """Of what belongs to the record itself; its plan, places and figures have been checked."""
    _of_kind(str, record.message, record.rollback_of, record.approved_by)
    _of_kind(str, *(record.timed_before or ()), *record.inactive_before, *(record.failures_before or {}))
    _of_kind(NUMBER, record.started_at_seconds, *(record.failures_before or {}).values())
    _of_kind(
        (*NUMBER, NoneType),
        record.seconds_to_in_force,
        record.seconds_to_running,
        record.failed_tuples,
        record.in_force_at_seconds,
        record.settling_since_seconds,
        record.approved_at_seconds,
    )
    _of_kind((int, NoneType), record.workers_kept)
    _of_kind(int, *record.worker_pids_before.values())
    if not isinstance(record.enforce_cpu, bool):
        raise TypeError(f"enforce_cpu is {record.enforce_cpu!r:.100}; it must be true or false")


def _executor_to_json(executor: Executor) -> dict[str, Any]:
    return asdict(executor)


def _executor_from_json(value: Mapping[str, Any]) -> Executor:
    executor = Executor(**value)
    _of_kind(str, executor.topology_id, executor.component)
    _of_kind(int, executor.task_start, executor.task_end)
    return executor


def _slot_to_json(slot: WorkerSlot) -> dict[str, Any]:
    return asdict(slot)


def _slot_from_json(value: Mapping[str, Any]) -> WorkerSlot:
    slot = WorkerSlot(**value)
    _of_kind(str, slot.supervisor_id)
    _of_kind(int, slot.port)
    return slot


def _assignment_to_json(assignment: Assignment) -> list[dict[str, Any]]:
    return [
        {**_slot_to_json(slot), "executors": [_executor_to_json(executor) for executor in executors]}
        for slot, executors in assignment.workers().items()
    ]


def _assignment_from_json(workers: list[Mapping[str, Any]]) -> Assignment:
    slot_of: dict[Executor, WorkerSlot] = {}
    for worker in workers:
        slot = _slot_from_json({"supervisor_id": worker["supervisor_id"], "port": worker["port"]})
        slot_of |= dict.fromkeys(map(_executor_from_json, worker["executors"]), slot)
    return Assignment(slot_of)


def _outcome_from_json(value: Mapping[str, Any]) -> Outcome:
    outcome = Outcome(**value)
    _of_kind((*NUMBER, NoneType), *asdict(outcome).values())
    return outcome


def _prediction_from_json(value: Mapping[str, Any]) -> Prediction:
    prediction = Prediction(**value)
    figures = asdict(prediction)
    latency_ms = figures.pop("complete_latency_ms")
    _of_kind(NUMBER, *figures.values(), 0.0 if latency_ms is None else latency_ms)
    return prediction


def _of_kind(kind: type | tuple[type, ...], *values: Any) -> None:
    """Raises TypeError: what is of another kind would fail far from here, whenever it is reckoned with."""
    for value in values:
        if isinstance(value, bool) or not isinstance(value, kind):
            raise TypeError(f"{value!r:.100} where a plan has another kind of value")
