"""How long a placement takes and how good it is: `python benchmarks/placement.py [policy ...]`.

Word-count-like topologies dealt out over two racks at 60% of the CPU. Prints one line for each size and policy; the
last line is JSON. CPU seconds are of this process; wall seconds depend on who else uses the machine.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from placement_cases import Case, large_case
from storm_operator.core.model import Infeasible
from storm_operator.core.placement.objective import cost_of
from storm_operator.core.placement.registry import once_due, policy_named

SIZES = ((100, 8, 2), (300, 16, 3), (1000, 40, 4))
"""Executors, supervisors, topologies."""


def measure(policy: str, case: Case) -> dict[str, float | str]:
    """By a policy whose time has come: else it would find what is in force, at once."""
    case = case.under(policy=policy)
    snapshot = once_due(case.snapshot, case.settings.scheduling)
    wall, cpu = time.perf_counter(), time.process_time()
    result = policy_named(policy)(snapshot, case.demand, case.settings)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if isinstance(result, Infeasible):
        return {"policy": policy, "infeasible": result.reason}
    crossing = case.snapshot.traffic.inter_supervisor
    cost = cost_of(case.snapshot, result, case.demand, case.settings)
    return {
        "policy": policy,
        "wall_seconds": round(wall, 3),
        "cpu_seconds": round(cpu, 3),
        "inter_supervisor_ratio": round(crossing(result) / crossing(case.snapshot.assignment), 3),
        "supervisors": len(result.used_supervisors()),
        "total_cost": round(cost.total),
    }


def main() -> None:
    results = []
    for executors, supervisors, topologies in SIZES:
        case = large_case(executors, supervisors, topologies)
        for policy in sys.argv[1:] or ["adaptive", "liu", "aniello-online", "aniello-offline"]:
            result = {"executors": executors, "supervisors_in_cluster": supervisors, **measure(policy, case)}
            print(result, flush=True)
            results.append(result)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
