"""Which executors a topology has, placed or not.

Nimbus names only executors that have a slot. The others follow from Storm's own rule: task ids count up from 1 over
the components in alphabetical order, and the tasks of a component are cut into as equal runs as possible, longer
runs first (`Utils.partitionFixed`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

TaskRange = tuple[int, int]


@dataclass(frozen=True, slots=True, order=True)
class ComponentSize:
    """How many tasks a component has, and how many executors it was given last, as far as that is known."""

    tasks: int
    executors: int


def partition_tasks(first_task: int, tasks: int, executors: int) -> tuple[TaskRange, ...]:
    """`tasks` consecutive task ids from `first_task` as at most `executors` inclusive ranges."""
    count = min(tasks, executors)
    if count < 1:
        return ()
    shorter, longer_count = divmod(tasks, count)
    lengths = [shorter + 1] * longer_count + [shorter] * (count - longer_count)
    ends = list(itertools.accumulate(lengths, initial=first_task))
    return tuple((start, end - 1) for start, end in itertools.pairwise(ends))


def first_tasks(sizes: Mapping[str, ComponentSize]) -> dict[str, int]:
    """The first task id of each component."""
    following = 1
    first: dict[str, int] = {}
    for name in sorted(sizes):
        first[name] = following
        following += sizes[name].tasks
    return first


def executor_ranges(
    sizes: Mapping[str, ComponentSize], placed: Mapping[str, Iterable[TaskRange]]
) -> dict[str, tuple[TaskRange, ...]]:
    """All executors of each component, sorted.

    The number of executors may be about to be changed by a rebalance, which Nimbus tells only through the placed ones:
    the number that explains those is taken, the one given last first. With none placed, that one stands.
    """
    first = first_tasks(sizes)
    return {name: _complete(first[name], size, frozenset(placed.get(name, ()))) for name, size in sorted(sizes.items())}


def _complete(first_task: int, size: ComponentSize, placed: frozenset[TaskRange]) -> tuple[TaskRange, ...]:
    if sum(end - start + 1 for start, end in placed) == size.tasks:
        return tuple(sorted(placed))
    for executors in (size.executors, *range(1, size.tasks + 1)):
        ranges = partition_tasks(first_task, size.tasks, executors)
        if placed.issubset(ranges):
            return ranges
    return tuple(sorted(placed))
