"""Which executors, and which supervisors, may be swapped without changing anything, so that only one order is searched.

Of all assignments that are the same up to such swaps, the one whose sequence of supervisor numbers comes first in the
dictionary has two properties: interchangeable executors are on supervisors in rising order, and of interchangeable
supervisors the lower is the first to be used. A program may demand both at once: that first one always has them
(Law and Lee, "Symmetry breaking constraints for value symmetries", Constraints 11, 2006).

Workers in force are what sets otherwise equal executors apart, but only those that go on unchanged do. Each demand
therefore holds *unless* one of the workers in question is kept: take the cheapest assignment with the most workers kept
and swap only what is in none of them; no swap can end a kept worker, and one that completes another only gains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

from storm_operator.core.placement.optimal_model import ExactModel, Places

Classes = tuple[tuple[int, ...], ...]


def interchangeable_executors(model: ExactModel) -> Classes:
    """Classes of two or more executors, each in rising order; equal but for the worker that they are in."""
    cost = {(p.first, p.second): p.cost for p in model.pairs}
    cost |= {(p.second, p.first): tuple(zip(*p.cost, strict=True)) for p in model.pairs}
    size = len(model.executors)

    def same(a: int, b: int) -> bool:
        alike = (
            model.group_of[a] == model.group_of[b]
            and model.demand[a] == model.demand[b]
            and model.memory[a] == model.memory[b]
            and model.place_cost[a] == model.place_cost[b]
            and cost.get((a, b)) == cost.get((b, a))
        )
        return alike and all(
            cost.get((a, other)) == cost.get((b, other)) for other in range(size) if other not in (a, b)
        )

    return _classes(size, same)


def interchangeable_supervisors(model: ExactModel) -> Classes:
    """Classes of two or more supervisors, each in rising order; equal but for the workers that they run."""
    size = len(model.supervisors)
    everywhere = range(size)

    def same(s: int, t: int) -> bool:
        swapped = [t if at == s else s if at == t else at for at in everywhere]
        return (
            model.room[s] == model.room[t]
            and model.memory_room[s] == model.memory_room[t]
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


@dataclass(frozen=True, slots=True)
class Order:
    """`low` comes before `high`, unless one of the keepable workers (by number) is kept."""

    low: int
    high: int
    unless_kept: tuple[int, ...]


def executor_orders(model: ExactModel) -> tuple[Order, ...]:
    """For each two interchangeable executors: `high` is on no lower supervisor than `low`."""
    worker_of = {at: number for number, worker in enumerate(model.keepable) for at in worker.members}
    return tuple(
        Order(a, b, () if worker_of.get(a) == worker_of.get(b) else _numbers(worker_of.get(a), worker_of.get(b)))
        for members in interchangeable_executors(model)
        for a, b in combinations(members, 2)
    )


def supervisor_orders(model: ExactModel) -> tuple[Order, ...]:
    """For each two interchangeable supervisors: whoever is on `high` has a lower executor on `low`."""
    return tuple(
        Order(s, t, tuple(n for n, worker in enumerate(model.keepable) if worker.supervisor in (s, t)))
        for members in interchangeable_supervisors(model)
        for s, t in combinations(members, 2)
    )


def first_in_order(model: ExactModel, places: Places) -> Places:
    """The same assignment with swaps undone, until both properties hold; its kept workers stay."""
    kept = [worker for worker in model.keepable if model.is_kept(worker, places)]
    settled = {at for worker in kept for at in worker.members}
    held = {worker.supervisor for worker in kept}
    executors = [[at for at in members if at not in settled] for members in interchangeable_executors(model)]
    supervisors = [[s for s in members if s not in held] for members in interchangeable_supervisors(model)]
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


def _numbers(*workers: int | None) -> tuple[int, ...]:
    return tuple(number for number in workers if number is not None)


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
