"""Which executors, and which supervisors, may be swapped without changing anything, so that only one order is searched.

Of all assignments that are the same up to such swaps, the one whose sequence of supervisor numbers comes first in the
dictionary has two properties: interchangeable executors are on supervisors in rising order, and of interchangeable
supervisors the lower is the first to be used. A program may demand both at once: that first one always has them
(Law and Lee, "Symmetry breaking constraints for value symmetries", Constraints 11, 2006).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from storm_operator.core.placement.optimal_model import ExactModel, Places

Classes = tuple[tuple[int, ...], ...]


def interchangeable_executors(model: ExactModel) -> Classes:
    """Classes of two or more executors, each in rising order."""
    cost = {(p.first, p.second): p.cost for p in model.pairs}
    cost |= {(p.second, p.first): tuple(zip(*p.cost, strict=True)) for p in model.pairs}
    size = len(model.executors)
    worker_of = {at: number for number, worker in enumerate(model.keepable) for at in worker.members}

    def same(a: int, b: int) -> bool:
        alike = (
            model.group_of[a] == model.group_of[b]
            and model.demand[a] == model.demand[b]
            and model.place_cost[a] == model.place_cost[b]
            and worker_of.get(a) == worker_of.get(b)
            and cost.get((a, b)) == cost.get((b, a))
        )
        return alike and all(
            cost.get((a, other)) == cost.get((b, other)) for other in range(size) if other not in (a, b)
        )

    return _classes(size, same)


def interchangeable_supervisors(model: ExactModel) -> Classes:
    """Classes of two or more supervisors, each in rising order."""
    special = {worker.supervisor for worker in model.keepable}
    size = len(model.supervisors)
    everywhere = range(size)

    def same(s: int, t: int) -> bool:
        if s in special or t in special:
            return False
        swapped = [t if at == s else s if at == t else at for at in everywhere]
        return (
            model.room[s] == model.room[t]
            and len(model.free_slots[s]) == len(model.free_slots[t])
            and model.in_use_anyway[s] == model.in_use_anyway[t]
            and all(row[s] == row[t] for row in model.place_cost)
            and all(
                pair.cost[a][b] == pair.cost[swapped[a]][swapped[b]]
                for pair in model.pairs
                for a in everywhere
                for b in everywhere
            )
        )

    return _classes(size, same)


def first_in_order(places: Places, executors: Classes, supervisors: Classes) -> Places:
    """The same assignment with swaps undone, until both properties hold."""
    now = list(places)
    while True:
        before = tuple(now)
        for members in supervisors:
            used = list(dict.fromkeys(place for place in now if place in members))
            renamed = dict(zip(used, members, strict=False))
            now = [renamed.get(place, place) for place in now]
        for members in executors:
            for at, place in zip(members, sorted(now[at] for at in members), strict=True):
                now[at] = place
        if tuple(now) == before:
            return before


def neighbours_in(classes: Classes) -> tuple[tuple[int, int], ...]:
    """Each member with the next of its class."""
    return tuple(pair for members in classes for pair in pairwise(members))


def _classes(size: int, same: Callable[[int, int], bool]) -> Classes:
    """Being interchangeable is transitive, so that comparing with the first of each class is enough."""
    classes: list[list[int]] = []
    for at in range(size):
        for members in classes:
            if same(members[0], at):
                members.append(at)
                break
        else:
            classes.append([at])
    return tuple(tuple(members) for members in classes if len(members) > 1)
