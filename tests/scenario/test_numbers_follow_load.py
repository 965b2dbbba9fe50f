"""Numbers of executors that follow the load: the very loop, on a simulated cluster with tasks to spare."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from simulator_scene import machines
from storm_operator.core.distances import Distances
from storm_operator.core.settings import Mode, SchedulingSettings
from storm_operator.core.topology_spec import (
    AdoptSource,
    ComponentParallelism,
    ParallelismMode,
    ParallelismSpec,
    TopologySpec,
)
from storm_operator.simulated_loop import Scenario, simulate
from storm_operator.simulation_report import SimulationReport
from storm_operator.simulator.load import Constant, LoadShape, Noisy, Step
from storm_operator.simulator.model import ClusterModel, SimulatedSupervisor
from storm_operator.simulator.workloads import word_count

AUTO = ParallelismSpec(ParallelismMode.AUTO)
SOME = 4
"""One executor of each of the three components, and an acker."""


def played(
    load: LoadShape,
    seconds: float,
    parallelism: ParallelismSpec = AUTO,
    supervisors: tuple[SimulatedSupervisor, ...] = machines(3, 4000.0),
    **scheduling: Any,
) -> SimulationReport:
    """A sentence costs its one splitter 2 ms: 500 a second are all that a core can do."""
    topology = word_count(
        load,
        parallelism={"split": 1, "count": 1},
        tasks={"split": 8, "count": 8},
        cpu_ms={"split": 2.0, "count": 0.02},
        num_workers=2,
        max_spout_pending=1000,
    )
    model = ClusterModel(supervisors, (topology,), Distances({}, default_ms=4.0))
    spec = TopologySpec(
        "wordcount", AdoptSource(), scheduling=SchedulingSettings(**scheduling), parallelism=parallelism
    )
    return simulate(Scenario("words", model, seconds, step_seconds=1.0), {"wordcount": spec})


def executors(report: SimulationReport) -> list[int]:
    return [point.topologies["wordcount"].executors for point in report.points]


def acked(report: SimulationReport) -> float:
    return report.points[-1].topologies["wordcount"].acked_per_second or 0.0


def test_a_component_that_one_core_is_too_little_for_gets_more_executors() -> None:
    load = Step(((0.0, 100.0), (120.0, 1200.0)))
    fixed, auto = (played(load, 900.0, ParallelismSpec(mode)) for mode in ParallelismMode)
    assert set(executors(fixed)) == {SOME}
    assert acked(fixed) == pytest.approx(500.0, rel=0.1)
    assert acked(auto) == pytest.approx(1200.0, rel=0.05)
    assert executors(auto)[-1] >= SOME + 2
    assert any("executors are now to be: split" in point.decision for point in auto.points)


def test_they_are_not_given_more_than_the_user_allows() -> None:
    bounded = ParallelismSpec(ParallelismMode.AUTO, {"split": ComponentParallelism(maximum=2)})
    report = played(Constant(1200.0), 600.0, bounded)
    assert max(executors(report)) == SOME + 1


def test_none_is_added_in_a_cluster_that_has_no_cpu_left_for_it() -> None:
    """Each would restart workers, and take CPU from those that are short of it."""
    load = Step(((0.0, 100.0), (120.0, 1200.0)))
    fixed, auto = (played(load, 600.0, ParallelismSpec(mode), machines(2)) for mode in ParallelismMode)
    assert set(executors(auto)) == {SOME}
    assert auto.sums.acked == fixed.sums.acked
    held = [point.decision for point in auto.points if "by load executors should be split" in point.decision]
    assert any("CPU left for one more executor" in decision for decision in held)


def test_they_are_added_where_the_supervisor_of_the_full_one_is_full_and_others_have_room() -> None:
    load = Step(((0.0, 100.0), (120.0, 1200.0)))
    fixed, auto = (played(load, 600.0, ParallelismSpec(mode), machines(5)) for mode in ParallelismMode)
    assert any("TooLittleCapacity" in point.decision for point in fixed.points)
    assert executors(auto)[-1] > SOME


def test_they_go_again_long_after_the_load_has() -> None:
    load = Step(((0.0, 1200.0), (600.0, 100.0)))
    numbers = executors(played(load, 1800.0, room_peak_seconds=300.0))
    assert max(numbers) > SOME
    assert numbers[62] == max(numbers), "not at the first period with less"
    assert numbers[-1] < max(numbers)


def test_the_first_change_does_not_forget_the_peak_that_was() -> None:
    load = Step(((0.0, 1200.0), (600.0, 100.0)))
    numbers = executors(played(load, 1800.0, room_peak_seconds=300.0))
    falls = [10.0 * at for at, (before, after) in enumerate(pairwise(numbers)) if after < before]
    assert len(falls) == 2
    assert falls[1] - falls[0] > 180.0, "not as soon as the cool-down is over"


def test_nobody_is_taken_away_between_two_peaks() -> None:
    peaks = [(300.0 * number, 1200.0 if number % 2 else 100.0) for number in range(6)]
    numbers = executors(played(Step(tuple(peaks)), 1800.0))
    assert all(a <= b for a, b in pairwise(numbers))
    assert numbers[-1] > SOME


def test_noise_changes_no_number_twice() -> None:
    numbers = executors(played(Noisy(Constant(900.0), 0.1), 1800.0))
    changes = [(a, b) for a, b in pairwise(numbers) if a != b]
    assert len(changes) <= 2
    assert all(a < b for a, b in changes)


def test_who_only_watches_changes_none_and_says_so() -> None:
    report = played(Constant(1200.0), 300.0, mode=Mode.OBSERVE)
    assert set(executors(report)) == {SOME}
    assert any("by load executors should be split" in point.decision for point in report.points)


def test_numbers_that_the_spec_states_are_brought_about_at_once() -> None:
    stated = ParallelismSpec(ParallelismMode.FIXED, {"split": ComponentParallelism(executors=4)})
    numbers = executors(played(Constant(100.0), 120.0, stated))
    assert numbers[0] == SOME
    assert set(numbers[2:]) == {SOME + 3}
