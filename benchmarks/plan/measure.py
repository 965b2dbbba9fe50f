"""Plans one instance in a process of its own: `python -m plan.measure --executors 1000 --supervisors 100`.

Prints each figure as a line of JSON as soon as it is known, so that whoever stops this after a while has the others.
The assignment goes to `--assignment`, one supervisor's number for each executor.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from plan.instance import Instance, Scale, add_scale_options, make_instance, scale_from
from plan.stop_watch import StopWatch, Took

from storm_operator.core.decide import decide
from storm_operator.core.decision import Plan
from storm_operator.core.decision_memory import DecisionMemory
from storm_operator.core.model import Assignment, Infeasible
from storm_operator.core.placement.registry import once_due, policy_named

WARM_UP = Scale(60, 6)
LOCAL_CHANGE = 1.5
MEGABYTE = 1024.0

T = TypeVar("T")


def main() -> None:
    options = _options()
    instance = make_instance(scale_from(options)).under(options.policy)
    place = policy_named(options.policy)
    small = make_instance(WARM_UP).under(options.policy)

    def plan(for_instance: Instance) -> Assignment:
        snapshot = once_due(for_instance.snapshot, for_instance.settings.scheduling)
        result = place(snapshot, for_instance.demand, for_instance.settings)
        if isinstance(result, Infeasible):
            raise SystemExit(f"{options.policy} found no plan: {result.reason}")
        return result

    tell_time("warm_up", timed(lambda: plan(small))[1])
    forget_peak_memory()
    tell("instance_mb", peak_memory_mb())
    assignment, took = timed(lambda: plan(instance))
    tell_time("plan", took)
    tell("peak_mb", peak_memory_mb())
    save(options.assignment, instance, assignment)
    _plan_again(instance, plan, options.repeats - 1)
    _decide(instance, assignment, options.repeats)
    in_force = instance.in_force(assignment)
    for what, changed in (
        ("rates", in_force.busier_topology(LOCAL_CHANGE)),
        ("death", in_force.without_supervisor()),
        ("nothing", in_force),
    ):
        for _ in range(options.repeats):
            replan, took = timed(partial(plan, changed))
            tell_time(f"replan_{what}", took)
        tell(f"replan_{what}_moves", moved(changed.snapshot.assignment, replan))


def _plan_again(instance: Instance, plan: Callable[[Instance], Assignment], times: int) -> None:
    for _ in range(times):
        tell_time("plan", timed(lambda: plan(instance))[1])


def _decide(instance: Instance, proposal: Assignment, times: int) -> None:
    """What a control period does with a proposal before it is a plan."""
    for _ in range(times):
        decision, took = timed(
            lambda: decide(
                instance.snapshot,
                instance.demand,
                proposal,
                instance.settings,
                DecisionMemory(),
                now_seconds=instance.snapshot.taken_at_seconds,
                plan_id="bench",
            )
        )
        tell_time("decide", took)
    tell("decision", "plan" if isinstance(decision, Plan) else f"{decision.reason}: {decision.message}")


def moved(before: Assignment, after: Assignment) -> int:
    """Executors that lived and go to another supervisor, or had no place and get one."""
    was = {executor: slot.supervisor_id for executor, slot in before.slot_of.items()}
    return sum(was.get(executor) != slot.supervisor_id for executor, slot in after.slot_of.items())


def save(path: Path, instance: Instance, assignment: Assignment) -> None:
    number = {machine.id: at for at, machine in enumerate(instance.snapshot.supervisors)}
    places = [number[assignment.slot_of[e].supervisor_id] for e in instance.snapshot.traffic.executors]
    np.save(path, np.array(places, dtype=np.int64))


def tell(name: str, value: Any) -> None:
    print(json.dumps({"name": name, "value": value}), flush=True)


def tell_time(what: str, took: Took) -> None:
    tell(f"{what}_seconds", took.wall_seconds)
    tell(f"{what}_cpu_seconds", took.cpu_seconds)


def timed(work: Callable[[], T]) -> tuple[T, Took]:
    watch = StopWatch()
    result = work()
    return result, watch.took()


def forget_peak_memory() -> None:
    """The peak counts from now on (Linux)."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_memory_mb() -> float:
    """The most memory that this process held since the peak was forgotten: VmHWM, resident, in megabytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / MEGABYTE


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add_scale_options(parser)
    parser.add_argument("--policy", default="adaptive")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--assignment", type=Path, required=True, help="a .npy file to write")
    return parser.parse_args()


if __name__ == "__main__":
    main()
