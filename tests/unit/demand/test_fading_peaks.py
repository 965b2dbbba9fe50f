"""What executors needed at most of late, also where a component has other executors by now."""

from __future__ import annotations

import pytest

from builders import chain_topology, snapshot, supervisors
from storm_operator.core.fading_peaks import fading_peaks
from storm_operator.core.model import Executor, Topology

FADE_SECONDS = 100.0
"""Ten periods."""


def of_eight_tasks(executors: int) -> Topology:
    return chain_topology("t", ("spout", executors), ("work", executors), tasks_per_executor=8 // executors)


def peaks_of(topology: Topology, known: dict[Executor, float], need: float | None) -> dict[Executor, float]:
    work = topology.executors_of("work")
    needs = {} if need is None else dict.fromkeys(work, need)
    found = fading_peaks(needs, known, snapshot((topology,), supervisors(1)), FADE_SECONDS)
    return {executor: found[executor] for executor in work}


@pytest.mark.parametrize(("before", "after", "each"), [(4, 2, 1600.0), (4, 8, 400.0), (4, 1, 3200.0)])
def test_who_takes_over_tasks_takes_over_their_part_of_the_peak(before: int, after: int, each: float) -> None:
    known = dict.fromkeys(of_eight_tasks(before).executors, 800.0)
    own = of_eight_tasks(after).executors_of("work")
    unmeasured = peaks_of(of_eight_tasks(after), known, None)
    assert unmeasured == dict.fromkeys(own, each)
    measured = peaks_of(of_eight_tasks(after), known, 100.0)
    assert measured == pytest.approx(dict.fromkeys(own, each - (each - 100.0) / 10.0))


def test_a_hot_task_brings_more_than_the_others() -> None:
    hot, *others = of_eight_tasks(4).executors_of("work")
    found = peaks_of(of_eight_tasks(2), {hot: 900.0, **dict.fromkeys(others, 100.0)}, None)
    assert list(found.values()) == pytest.approx([1000.0, 200.0])


def test_what_others_needed_and_what_nobody_knew_is_nobodys() -> None:
    stranger = chain_topology("u", ("spout", 1), ("work", 8)).executors_of("work")
    known = dict.fromkeys(stranger, 800.0)
    work = of_eight_tasks(2)
    found = fading_peaks({}, known, snapshot((work,), supervisors(1)), FADE_SECONDS)
    assert found == {}
