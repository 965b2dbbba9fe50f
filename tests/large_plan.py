"""A plan as large as they come: every executor of many topologies moves to another supervisor."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from storm_operator.core.direct_plan import direct_plan
from storm_operator.core.metrics_window import SeriesKey
from storm_operator.core.model import Assignment, Executor, WorkerSlot
from storm_operator.core.plan_progress import with_first_failures
from storm_operator.core.plan_record import Outcome, PlanRecord, PlanState
from storm_operator.core.settings import ApplyMethod

SUPERVISORS = 200
EXECUTORS_OF_A_TOPOLOGY = 500
EXECUTORS_OF_A_COMPONENT = 40


def all_moved(executors: int) -> PlanRecord:
    """The record of such a plan while it is applied. Names, ids and limits are as long and as odd as real ones."""
    chance = random.Random(1)
    supervisors = [f"{UUID(int=chance.getrandbits(128))}-10.77.0.{number}" for number in range(SUPERVISORS)]
    all_of_them = [_executor(number) for number in range(executors)]
    at = {executor: chance.randrange(SUPERVISORS) for executor in all_of_them}
    to = {executor: (place + chance.randrange(1, SUPERVISORS)) % SUPERVISORS for executor, place in at.items()}

    def assignment(places: dict[Executor, int]) -> Assignment:
        return Assignment({executor: WorkerSlot(supervisors[place], 6700) for executor, place in places.items()})

    plan = direct_plan(assignment(at), assignment(to), "p-20260101-120000-3fa9", 1767268800.5, "all of them move")
    limits = {executor: chance.uniform(10.0, 1000.0) for executor in all_of_them}
    return PlanRecord(
        replace(plan, cpu_limits_millicores=limits),
        ApplyMethod.REBALANCE,
        PlanState.APPLYING,
        Outcome(1234.5, 567.8, 9.0, 8.0, 70.0),
        1767268800.5,
        worker_pids_before={slot: chance.randrange(1, 1 << 22) for slot in set(plan.base.slot_of.values())},
        failures_before=_failures(plan.base, chance),
        busy_before=tuple(all_of_them),
    )


def settling(applied: PlanRecord) -> PlanRecord:
    """The record of `all_moved` once the plan is in force, and each executor's counter was seen where it is now."""
    seen = _failures(applied.plan.target, random.Random(2))
    return replace(
        applied,
        state=PlanState.SETTLING,
        seconds_to_in_force=1.25,
        seconds_to_running=42.5,
        in_force_at_seconds=1767268802.0,
        settling_since_seconds=1767268850.0,
        workers_kept=0,
        message="in force, but after 90 s not seen to run: component-0[1-1] and 12 more",
        failures_before=with_first_failures(applied.failures_before, seen),
    )


def _executor(number: int) -> Executor:
    topology, task = divmod(number, EXECUTORS_OF_A_TOPOLOGY)
    component = f"component-{task // EXECUTORS_OF_A_COMPONENT}"
    return Executor(f"topology-{topology}-{topology + 1}-1767268800", task + 1, task + 1, component)


def _failures(assignment: Assignment, chance: random.Random) -> Mapping[str, float]:
    """As the agents count them."""
    return {
        _failures_of(executor, slot): float(chance.randrange(100_000)) for executor, slot in assignment.slot_of.items()
    }


def _failures_of(executor: Executor, slot: WorkerSlot) -> str:
    labels = {
        "supervisor": slot.supervisor_id[len(str(UUID(int=0))) + 1 :],
        "topology_id": executor.topology_id,
        "component": executor.component,
        "executor": executor.label,
        "port": str(slot.port),
    }
    return str(SeriesKey.of("storm_executor_failed_tuples_total", labels))
