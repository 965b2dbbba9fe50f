"""How far `adaptive` is from the proven optimum: `python benchmarks/optimum.py [--instances N] [--show NUMBER]`.

Small clusters of every topology shape (tests/optimum_cases.py), each solved exactly. Prints a table by shape and the
instances with a gap; the last line is JSON. `--show` prints one instance: what both assignments cost and run where.
Where the optimum is not proven within the effort, the gap is to the best assignment found and the bound is given.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from optimum_cases import SHAPES, optimum_case
from placement_cases import Case
from storm_operator.core.model import Assignment, Infeasible
from storm_operator.core.placement.adaptive import place_adaptive
from storm_operator.core.placement.objective import cost_of
from storm_operator.core.placement.optimal import OptimumResult, solve_optimum
from storm_operator.core.placement.optimal_cpsat import solve_with_cpsat
from storm_operator.core.placement.optimal_solver import ExactSolver

WORTH_LISTING_PERCENT = 0.1


@dataclass(frozen=True, slots=True)
class Measurement:
    """One instance. Seconds are CPU seconds of this process, of the exact solution."""

    number: int
    shape: str
    description: str
    gap_percent: float
    bound_gap_percent: float
    proven: bool
    seconds: float


def solver_named(name: str) -> ExactSolver:
    """Not both in one process: the two wheels carry clashing copies of HiGHS."""
    if name == "cpsat":
        return solve_with_cpsat
    from optimal_highs import solve_with_highs

    return solve_with_highs


def measure(number: int, effort: float, solver: ExactSolver) -> Measurement | None:
    """None when there is no assignment at all."""
    instance = optimum_case(number)
    started = time.process_time()
    found = solutions(instance.case, effort, solver)
    if found is None:
        return None
    adaptive, optimum = found
    cost = total(instance.case, adaptive)
    return Measurement(
        number,
        instance.shape,
        instance.description,
        optimum.gap_percent(cost),
        optimum.gap_to_bound_percent(optimum.cost),
        optimum.proven,
        time.process_time() - started,
    )


def solutions(case: Case, effort: float, solver: ExactSolver) -> tuple[Assignment, OptimumResult] | None:
    adaptive = place_adaptive(case.snapshot, case.demand, case.settings)
    optimum = solve_optimum(case.snapshot, case.demand, case.settings, effort, solver)
    if isinstance(adaptive, Infeasible) or isinstance(optimum, Infeasible):
        return None
    return adaptive, optimum


def total(case: Case, assignment: Assignment) -> float:
    return cost_of(case.snapshot, assignment, case.demand, case.settings).total


def measure_all(numbers: Sequence[int], effort: float, solver: ExactSolver, console: Console) -> list[Measurement]:
    found: list[Measurement] = []
    with Progress(console=console) as progress:
        task = progress.add_task("proving", total=len(numbers))
        for number in numbers:
            measurement = measure(number, effort, solver)
            if measurement:
                found.append(measurement)
                if measurement.gap_percent > WORTH_LISTING_PERCENT or not measurement.proven:
                    progress.console.print(line_of(measurement), highlight=False, soft_wrap=True)
            progress.advance(task)
    return found


def line_of(measurement: Measurement) -> str:
    proof = "proven" if measurement.proven else f"bound {measurement.bound_gap_percent:.2f}% below the best found"
    return (
        f"{measurement.number:4} {measurement.shape}: gap {measurement.gap_percent:.2f}%, {proof}, "
        f"{measurement.seconds:.1f} s; {measurement.description}"
    )


def table_of(measurements: Sequence[Measurement]) -> Table:
    table = Table("shape", title="Gap of adaptive to the optimum", title_justify="left")
    for caption in ("instances", "proven", "with a gap", "mean gap %", "worst gap %", "CPU s each", "CPU s worst"):
        table.add_column(caption, justify="right")
    for shape in [*SHAPES, "all"]:
        some = [m for m in measurements if shape in (m.shape, "all")]
        if some:
            table.add_row(
                shape,
                str(len(some)),
                str(sum(m.proven for m in some)),
                str(sum(m.gap_percent > WORTH_LISTING_PERCENT for m in some)),
                f"{mean(some, lambda m: m.gap_percent):.3f}",
                f"{max(m.gap_percent for m in some):.2f}",
                f"{mean(some, lambda m: m.seconds):.2f}",
                f"{max(m.seconds for m in some):.1f}",
            )
    return table


def mean(measurements: Sequence[Measurement], value: Callable[[Measurement], float]) -> float:
    return sum(value(m) for m in measurements) / len(measurements)


def show(number: int, effort: float, solver: ExactSolver) -> None:
    instance = optimum_case(number)
    case = instance.case
    print(f"{number} {instance.shape}: {instance.description}")
    for machine in case.snapshot.supervisors:
        print(f"  {machine.id}: {machine.cpu_capacity_millicores} millicores, {len(machine.ports)} slots")
    found = solutions(case, effort, solver)
    if found is None:
        print("  no assignment: too few slots")
        return
    adaptive, optimum = found
    print(
        f"  gap {optimum.gap_percent(total(case, adaptive)):.3f}%, bound {optimum.bound:.6g}, proven {optimum.proven}"
    )
    rows = (("adaptive", adaptive), ("optimum", optimum.assignment), ("in force", case.snapshot.assignment))
    for name, assignment in rows:
        print(f"  {name}: {cost_of(case.snapshot, assignment, case.demand, case.settings)}")
        for slot, executors in assignment.workers().items():
            inside = Counter(f"{e.topology_id}/{e.component}" for e in executors)
            load = case.demand.total(executors)
            print(f"    {slot.supervisor_id}:{slot.port} {load:6.0f} m ", *(f"{n} {c}" for c, n in inside.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="number of the first instance")
    parser.add_argument("--effort", type=float, default=60.0, help="deterministic seconds of CP-SAT for each instance")
    parser.add_argument("--solver", choices=("cpsat", "highs"), default="cpsat")
    parser.add_argument("--details", type=Path, metavar="FILE", help="where to write every instance, as JSON")
    parser.add_argument("--show", type=int, metavar="NUMBER", help="one instance in full")
    given = parser.parse_args()
    solver = solver_named(given.solver)
    if given.show is not None:
        show(given.show, given.effort, solver)
        return
    console = Console(stderr=True)
    numbers = range(given.first, given.first + given.instances)
    found = measure_all(numbers, given.effort, solver, console)
    console.print(table_of(found))
    if given.details:
        given.details.write_text(json.dumps([asdict(m) for m in found], indent=1) + "\n", encoding="utf-8")
    summary = {
        "instances": len(found),
        "proven": sum(m.proven for m in found),
        "mean_gap_percent": round(mean(found, lambda m: m.gap_percent), 4),
        "worst_gap_percent": round(max(m.gap_percent for m in found), 3),
        "worst_instance": max(found, key=lambda m: m.gap_percent).number,
        "seconds": round(sum(m.seconds for m in found), 1),
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
