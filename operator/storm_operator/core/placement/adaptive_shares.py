"""The default policy where a placement changes who gets the tuples: `adaptive`, judged and mended by its own shares.

The search takes rates and needs as given, but shuffle prefers executors nearby (`shuffle_shares`). So what it finds is
looked at as it would be in force, and is searched for anew by those rates; the cheapest is mended by single moves and
swaps, each looked at in the same way. Of that and the assignment in force, the cheaper one is proposed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

from storm_operator.core.model import Assignment, Demand, Executor, Infeasible, WorkerSlot, in_order
from storm_operator.core.placement.adaptive import SMALLEST_GAIN, place_adaptive
from storm_operator.core.placement.objective import cost_seen, prices_of, see, stateful_executors
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.shuffle_shares import ShuffleShares
from storm_operator.core.snapshot import ClusterSnapshot

MOST_ROUNDS = 3
"""Of searching anew: after that, shares go in circles."""

MOST_TRIES = 400
"""Changes that mending looks at, where each takes about a millisecond."""
TRIES_EXECUTORS = 20_000
"""Tries times executors of the cluster: where there are many, each try takes longer."""

MOST_EXECUTORS = 1_000
"""Of the cluster: above, what is found by the rates in force has to do, so that plans are made within the second."""

TotalCost = Callable[[Assignment], float]


def place_adaptive_as_shared(
    snapshot: ClusterSnapshot, demand: Demand, settings: PlacementSettings
) -> Assignment | Infeasible:
    """The cheapest assignment found by the rates that it would bring itself; `Infeasible` as `place_adaptive`."""
    first = place_adaptive(snapshot, demand, settings)
    if isinstance(first, Infeasible) or first == snapshot.assignment or len(first.slot_of) > MOST_EXECUTORS:
        return first
    shares, prices = ShuffleShares.of(snapshot, demand, settings.movable), prices_of(snapshot, settings)

    def total_of(assignment: Assignment) -> float:
        then, needed = shares.under(assignment)
        return cost_seen(then, see(then, assignment, needed, settings), prices).total

    found = list(_searched_anew(first, shares, settings))
    if len(found) == 1:
        return first
    best = min(found, key=total_of)
    best = _mended(best, total_of, snapshot, settings)
    in_force = snapshot.assignment
    if in_force.slot_of.keys() == best.slot_of.keys() and not _is_cheaper(total_of(best), total_of(in_force)):
        return in_force
    return best


def _searched_anew(first: Assignment, shares: ShuffleShares, settings: PlacementSettings) -> Iterator[Assignment]:
    """`first`, and what is found by the rates that the one before would bring; it alone if it brings no other rates."""
    found: Assignment | Infeasible = first
    for _ in range(MOST_ROUNDS):
        if isinstance(found, Infeasible):
            return
        yield found
        snapshot, demand = shares.under(found)
        if snapshot is shares.snapshot:
            return
        found = place_adaptive(snapshot, demand, settings)


def _mended(
    start: Assignment, total_of: TotalCost, snapshot: ClusterSnapshot, settings: PlacementSettings
) -> Assignment:
    """`start` after the changes that lower its cost, the first such one each time."""
    best, least = start, total_of(start)
    tries = min(MOST_TRIES, TRIES_EXECUTORS // len(start.slot_of))
    is_better = True
    while is_better:
        is_better = False
        for moves in _changes(best, snapshot, settings):
            tries -= 1
            if tries < 0:
                return best
            changed = best.with_moves(moves)
            total = total_of(changed)
            if _is_cheaper(total, least):
                best, least, is_better = changed, total, True
                break
    return best


def _changes(
    assignment: Assignment, snapshot: ClusterSnapshot, settings: PlacementSettings
) -> Iterator[dict[Executor, WorkerSlot]]:
    """One executor to another worker of its kind, or two that change places; kinds: topology, with state or without."""
    stateful = stateful_executors(snapshot)
    kinds: dict[tuple[str, bool], list[Executor]] = {}
    for executor in in_order(assignment.slot_of):
        if executor.topology_id in settings.movable:
            kinds.setdefault((executor.topology_id, executor in stateful), []).append(executor)
    for executors in kinds.values():
        slots = list(dict.fromkeys(assignment.slot_of[executor] for executor in executors))
        for executor in executors:
            yield from ({executor: slot} for slot in slots if slot != assignment.slot_of[executor])
    for executors in kinds.values():
        for a, b in combinations(executors, 2):
            at_a, at_b = assignment.slot_of[a], assignment.slot_of[b]
            if at_a != at_b and a.component != b.component:
                yield {a: at_b, b: at_a}


def _is_cheaper(total: float, other: float) -> bool:
    return total < other - SMALLEST_GAIN * (1.0 + abs(other))
