"""The default policy: lower the one objective, starting from the assignment in force.

Liu's demand and his two workers for each supervisor and topology (section III-B) are kept; what is minimised is the
objective of `objective.py`, restarts included. Several starts are improved by the same local search and the cheapest
result wins: the assignment in force, and a multilevel partition, relabelled onto the present slots and as it is. Ties
go to the earlier start, so that the assignment in force wins when nothing is gained.

Rules: one worker (two when separated) for each topology on a supervisor, ports that exist and are not held by
obstacles. CPU is kept within the headroom wherever the search finds room, since overload outprices all else; when the
demand does not fit, overload is as small as it can be made, and falls on low priorities first. Separation yields when
there are not enough slots for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment, Infeasible
from storm_operator.core.placement.bearable import Bearable, bearable
from storm_operator.core.placement.objective import cost_of
from storm_operator.core.placement.prices import prices_of
from storm_operator.core.placement.search.arrays import search_of, with_own_scratch
from storm_operator.core.placement.search.multilevel import partition
from storm_operator.core.placement.search.partition_state import Search
from storm_operator.core.placement.search.problem import Problem, build_problem, build_problems, to_assignment
from storm_operator.core.placement.search.relabel import relabel
from storm_operator.core.placement.search.settling import Settled, restless, settle, settle_from_home
from storm_operator.core.placement.separation import ways_to_separate
from storm_operator.core.placement.tiers import leaves_higher_priorities_short, place_tier_by_tier
from storm_operator.core.placement.triggers import someone_has_no_place
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

SMALLEST_GAIN = 1e-6
"""As a share of the total: smaller gains are rounding."""
LOCAL_CHANGE = 0.05
"""Where no more than this share of the executors has reason to move, the search looks at them and those concerned."""
LARGE_CHANGE = 0.05
"""When the search moves this share of the executors, the assignment in force is no longer near the best one."""
HOPELESS = 0.7
"""When this share of the executors would move at once, one by one is no way to a good placement."""
MOST_PATIENCE, LEAST_PATIENCE = 2000, 20
PATIENCE_PER_EXECUTOR = 50
"""Of 1,000 small clusters none was placed better with more; with 20, three of 600 were placed up to 3.6% worse."""
GLANCE = 250
"""Kicks in vain after which the assignment in force counts as one that cannot be bettered."""
PATIENCE_EDGES = 400_000
"""Kicks in vain, times pairs of executors with traffic, until the search ends: so much time is affordable."""


def place_adaptive(
    snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings, *, if_it_pays: bool = False
) -> Assignment | Infeasible:
    """The cheapest assignment found; `Infeasible` only when there are not enough slots, whatever is given up.

    With `if_it_pays` little is searched for where nobody lacks anything and no plan could gain enough for `decide`
    (`bearable`), and what is in force stays where the first look saves nothing.

    Where what the search finds leaves topologies short that others should go short for, they are placed by priority
    instead, or stay where they are, if that is cheaper.
    """
    together = _place_together(snapshot, demand, settings, if_it_pays=if_it_pays)
    if isinstance(together, Infeasible) or together is snapshot.assignment:
        return together
    if not leaves_higher_priorities_short(snapshot, together, demand, settings):
        return together
    in_turn = place_tier_by_tier(_place_together, snapshot, demand, settings)
    found = [together] if someone_has_no_place(snapshot, settings) else [snapshot.assignment, together]
    if not isinstance(in_turn, Infeasible):
        found.append(in_turn)
    return min(found, key=lambda assignment: cost_of(snapshot, assignment, demand, settings).total)


def _place_together(
    snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings, *, if_it_pays: bool = False
) -> Assignment | Infeasible:
    prices = prices_of(snapshot, settings)
    problems = build_problems(snapshot, demand, settings, prices, ways_to_separate(snapshot, settings, prices))
    feasible = [problem for problem in problems if _has_slots(problem)]
    if not feasible:
        unseparated = build_problem(snapshot, demand, settings, settings.movable)
        if not _has_slots(unseparated):
            return Infeasible(_too_few_slots(unseparated))
        feasible = [unseparated]
    may_stay = if_it_pays and any(map(_is_in_order, feasible))
    standing = bearable(snapshot, demand, settings) if may_stay else None
    is_hopeless = standing is not None and standing.is_beyond_gain
    best: tuple[Problem, Settled] | None = None
    for problem in feasible:
        for found in _from_home(problem) if is_hopeless else _placements(problem):
            if best is None and standing and _saves_nothing(found, problem, standing, snapshot.assignment):
                return snapshot.assignment
            if best is None or found.total < best[1].total - SMALLEST_GAIN * (1.0 + abs(best[1].total)):
                best = problem, found
    return snapshot.assignment if best is None else to_assignment(best[0], best[1].place, snapshot.assignment)


def _is_in_order(problem: Problem) -> bool:
    """Whether all live in workers as the rules have them. In large clusters a search costs no more than to ask."""
    return _patience(problem) > 0 and bool(problem.settled.all())


def _saves_nothing(from_home: Settled, problem: Problem, standing: Bearable, in_force: Assignment) -> bool:
    """Whether the first look only makes room, where what is in force is as the rules have it."""
    return _is_in_order(problem) and standing.saving_of(to_assignment(problem, from_home.place, in_force)).is_none


def _from_home(problem: Problem) -> Iterator[Settled]:
    """What is better next to the assignment in force, at a glance."""
    if len(problem.executors):
        yield settle_from_home(problem, search_of(problem), patience=0)


def _placements(problem: Problem) -> Iterator[Settled]:
    """Placements from each start, the one from the assignment in force first.

    A placement of which nothing (in large clusters: hardly anything) is worth moving needs no fresh start beside it,
    and whether there is anything shows soon: patience is for fresh starts.
    """
    if not len(problem.executors):
        return
    search = search_of(problem)
    patience = _patience(problem)
    if not patience:
        yield from _placements_at_scale(problem, search)
        return
    from_home = settle_from_home(problem, search, min(patience, GLANCE))
    yield from_home
    if from_home.moved:
        partitioned = partition(problem, search)
        yield settle(problem, search, relabel(problem, partitioned), patience)
        yield settle(problem, search, partitioned, min(patience, GLANCE))


def _placements_at_scale(problem: Problem, search: Search) -> Iterator[Settled]:
    """As `_placements` where there is no patience, with fresh starts made on a second core where there is one."""
    moving = restless(search)
    share = float(moving.mean())
    if share <= LOCAL_CHANGE:
        from_home = settle_from_home(problem, search, patience=0, restless=moving)
        yield from_home
        if from_home.moved <= LARGE_CHANGE * len(problem.home):
            return
    with ThreadPoolExecutor(max_workers=1) as second_core:
        beside = with_own_scratch(search)
        partitioned = second_core.submit(partition, problem, beside)
        relabelled = second_core.submit(
            lambda: settle(problem, beside, relabel(problem, partitioned.result()), patience=0)
        )
        if LOCAL_CHANGE < share < HOPELESS:
            yield settle_from_home(problem, search, patience=0)
        if len(problem.zone_ms) > 1:
            as_it_is = settle(problem, search, partitioned.result(), patience=0)
            yield from (relabelled.result(), as_it_is)
        else:
            yield relabelled.result()


def _patience(problem: Problem) -> int:
    """How many kicks in a row may fail before the search ends; none where each would take too long."""
    affordable = PATIENCE_EDGES // (50 + problem.traffic.nnz)
    patience = min(MOST_PATIENCE, affordable, PATIENCE_PER_EXECUTOR * len(problem.executors))
    return patience if patience >= LEAST_PATIENCE else 0


def _has_slots(problem: Problem) -> bool:
    return problem.groups <= sum(len(ports) for ports in problem.free_ports)


def _too_few_slots(problem: Problem) -> str:
    free = sum(len(ports) for ports in problem.free_ports)
    return f"{problem.groups} workers are needed (one for each topology) but only {free} slots are free"
