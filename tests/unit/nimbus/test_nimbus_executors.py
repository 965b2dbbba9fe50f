"""Storm's rule for task ids and executors."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from storm_operator.adapters.nimbus.executors import ComponentSize, executor_ranges, partition_tasks

SIZES = st.dictionaries(
    st.text("abc_$", min_size=1, max_size=4),
    st.builds(ComponentSize, st.integers(1, 12), st.integers(1, 12)),
    min_size=1,
    max_size=5,
)


def test_longer_runs_come_first() -> None:
    assert partition_tasks(7, 8, 3) == ((7, 9), (10, 12), (13, 14))


def test_never_more_executors_than_tasks() -> None:
    assert partition_tasks(1, 2, 5) == ((1, 1), (2, 2))
    assert partition_tasks(1, 0, 5) == ()


@given(SIZES)
def test_executors_cover_all_tasks_once(sizes: dict[str, ComponentSize]) -> None:
    found = executor_ranges(sizes, {})
    tasks = [task for name in sorted(found) for start, end in found[name] for task in range(start, end + 1)]
    assert tasks == list(range(1, sum(size.tasks for size in sizes.values()) + 1))


@given(SIZES, st.integers(1, 12), st.data())
def test_placed_executors_are_always_among_them(
    sizes: dict[str, ComponentSize], executors: int, data: st.DataObject
) -> None:
    name = min(sizes)  # its tasks start at 1
    all_placed = partition_tasks(1, sizes[name].tasks, executors)
    placed = data.draw(st.sets(st.sampled_from(all_placed)))
    assert placed <= set(executor_ranges(sizes, {name: placed})[name])
