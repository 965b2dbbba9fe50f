"""The default policy: lower the one objective, starting from the assignment in force.

Liu's demand and his two workers for each supervisor and topology (section III-B) are kept; what is minimised is the
objective of `objective.py`, restarts included. Several starts are improved by the same local search and the cheapest
result wins: the assignment in force, the same as if restarts were free, and a multilevel partition relabelled onto
the present slots. Ties go to the earlier start, so that the assignment in force wins when nothing is gained.

Rules: one worker (two when separated) for each topology on a supervisor, ports that exist and are not held by
obstacles. CPU is kept within the headroom wherever the search finds room, since overload outprices all else; when the
demand does not fit, overload is as small as it can be made. Separation yields when there are not enough slots for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from storm_operator.core.model import Assignment, Demand, Infeasible
from storm_operator.core.placement.first_layout import lay_out
from storm_operator.core.placement.layout import Layout, smallest_gain
from storm_operator.core.placement.local_search import improve
from storm_operator.core.placement.multilevel import partition
from storm_operator.core.placement.problem import Ints, Problem, build_problem, to_assignment
from storm_operator.core.placement.relabel import relabel
from storm_operator.core.placement.separation import ways_to_separate
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot


def place_adaptive(snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings) -> Assignment | Infeasible:
    """The cheapest assignment found; `Infeasible` only when there are not enough slots, whatever is given up."""
    problems = [
        build_problem(snapshot, demand, settings, together) for together in ways_to_separate(snapshot, demand, settings)
    ]
    feasible = [problem for problem in problems if _has_slots(problem)]
    if not feasible:
        unseparated = build_problem(snapshot, demand, settings, settings.movable)
        if not _has_slots(unseparated):
            return Infeasible(_too_few_slots(unseparated))
        feasible = [unseparated]
    best: Layout | None = None
    for problem in feasible:
        for layout in _layouts(problem):
            if best is None or layout.total() < best.total() - smallest_gain(best.total()):
                best = layout
    return snapshot.assignment if best is None else to_assignment(best.problem, best.place, snapshot.assignment)


def _layouts(problem: Problem) -> Iterator[Layout]:
    """Improved layouts from each start, the one from the assignment in force first."""
    yield _improved(problem, problem.home)
    partitioned = _improved(problem.without_restarts(), partition(problem)).place
    yield _improved(problem, relabel(problem, partitioned))
    yield _improved(problem, partitioned)


def _improved(problem: Problem, start: Ints) -> Layout:
    layout = lay_out(problem, start)
    improve(layout)
    return layout


def _has_slots(problem: Problem) -> bool:
    return problem.groups <= sum(len(ports) for ports in problem.free_ports)


def _too_few_slots(problem: Problem) -> str:
    free = sum(len(ports) for ports in problem.free_ports)
    return f"{problem.groups} workers are needed (one for each topology) but only {free} slots are free"
