"""The cluster in a scenario file: distances, how long Storm takes, state that is restored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storm_operator.scenario_fields import InvalidScenario
from storm_operator.scenario_file import ScenarioFile, parse_scenario, read_scenario
from storm_operator.simulated_loop import simulate
from storm_operator.simulation_report import SimulationReport
from storm_operator.simulator.model import Timings

EXAMPLE = Path(__file__).parents[3] / "examples" / "simulations" / "zones.yaml"


def scenario(**more: object) -> ScenarioFile:
    """WordCount on two machines with two workers, in which nothing happens unless `more` says so."""
    topology = {"workload": "wordcount", "workers": 2, "messageTimeoutSeconds": 10}
    given: dict[str, Any] = {"durationSeconds": 120, "supervisors": 2, "topologies": [topology]}
    return parse_scenario(given | more, "x")


def alone(**more: object) -> SimulationReport:
    return simulate(scenario(**more).scenario)


def test_supervisors_are_as_far_from_each_other_as_the_pair_says_both_ways() -> None:
    far = {"from": ["supervisor-1", "supervisor-2"], "to": "supervisor-3", "roundTripMs": 8}
    nearer = {"from": "supervisor-3", "to": "supervisor-1", "roundTripMs": 5}
    distances = scenario(supervisors=3, roundTripMs=2, distances=[far, nearer]).scenario.model.distances
    pairs = [(1, 2), (2, 1), (1, 3), (3, 1), (2, 3), (3, 2)]
    told = [distances.between_supervisors(f"supervisor-{one}", f"supervisor-{other}") for one, other in pairs]
    assert told == [2.0, 2.0, 5.0, 5.0, 8.0, 8.0]


def test_tuples_take_longer_between_supervisors_that_are_far_apart() -> None:
    far = [{"from": "supervisor-1", "to": "supervisor-2", "roundTripMs": 60}]
    near, distant = (run.mean_latency_ms() for run in (alone(), alone(distances=far)))
    assert near is not None
    assert distant is not None
    assert distant > near + 0.1 * 30.0  # shuffle prefers the near: few cross


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"from": "s1"},
            ".from is 's1': a supervisor, or a list of such, is right; there are supervisor-1 to supervisor-2",
        ),
        ({"to": []}, ".to is []: a supervisor, or a list of such, is right; there are supervisor-1 to supervisor-2"),
        (
            {"to": ["supervisor-2", 3]},
            ".to is 3: a supervisor, or a list of such, is right; there are supervisor-1 to supervisor-2",
        ),
        ({"to": ["supervisor-2", "supervisor-1"]}, ": supervisor-1 is in both from and to: two supervisors are right"),
        ({"roundTripMs": -1}, ".roundTripMs is -1: a number of 0 or more is right"),
        ({"ms": 3}, " has the unknown field 'ms': only from, to, roundTripMs are known"),
    ],
)
def test_what_is_wrong_in_a_distance_is_named_by_its_path(change: dict[str, object], message: str) -> None:
    pair: dict[str, object] = {"from": "supervisor-1", "to": "supervisor-2", "roundTripMs": 1}
    with pytest.raises(InvalidScenario) as refused:
        scenario(distances=[pair | change])
    assert str(refused.value) == f"distances[0]{message}"


def test_a_plan_keeps_the_example_within_one_of_its_zones() -> None:
    """WordCount needs two of the four supervisors, of which two are near to each other and two far from those."""
    example = read_scenario(EXAMPLE)
    spread, gathered = (simulate(example.scenario, specs).points[-1] for specs in (None, example.specs))
    assert (spread.supervisors_used, gathered.supervisors_used) == (4, 2)
    apart, together = (spread.topologies["wordcount"], gathered.topologies["wordcount"])
    assert apart.latency_mean_ms is not None
    assert together.latency_mean_ms is not None
    assert together.latency_mean_ms < apart.latency_mean_ms - 0.5 * 8.0


def test_so_many_distances_that_nothing_would_be_seen_for_minutes_are_refused() -> None:
    names = [f"supervisor-{number}" for number in range(1, 1501)]
    with pytest.raises(InvalidScenario, match="up to 500,000 pairs may have a distance of their own"):
        scenario(supervisors=1500, distances=[{"from": names[:750], "to": names[750:], "roundTripMs": 8}])


def test_storm_takes_as_long_as_the_file_says_and_else_as_a_real_one() -> None:
    told = {"workerStartSeconds": 20, "supervisorTimeoutSeconds": 60}
    assert scenario(timings=told).scenario.model.timings == Timings(
        worker_start_seconds=20.0, supervisor_timeout_seconds=60.0
    )
    assert scenario().scenario.model.timings == Timings()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"schedulingSeconds": 0}, "timings.schedulingSeconds is 0: a number of 0.1 or more is right"),
        ({"workerStartSeconds": "6s"}, "timings.workerStartSeconds is '6s': a number of 0 or more is right"),
        (3, "timings is 3: a mapping is right"),
    ],
)
def test_what_is_wrong_in_timings_is_named(given: object, message: str) -> None:
    with pytest.raises(InvalidScenario) as refused:
        scenario(timings=given)
    assert str(refused.value) == message


def test_all_of_them_may_be_as_short_as_can_be() -> None:
    shortest = {"noticeSeconds": 0, "workerStartSeconds": 0, "spoutPauseSeconds": 0, "schedulingSeconds": 0.1}
    dies = [{"kind": "dies", "supervisor": "supervisor-1", "atSeconds": 30, "untilSeconds": 60}]
    report = alone(timings={**shortest, "supervisorTimeoutSeconds": 0.001}, faults=dies)
    assert report.sums.acked > 0.9 * report.sums.offered


def outage(**more: object) -> float:
    """How many tuples were not acked of a run in which the machine with the counters dies and comes back at once."""
    topology = {"workload": "wordcount", "parallelism": {"split": 1, "count": 1}, "messageTimeoutSeconds": 10}
    dies = [{"kind": "dies", "supervisor": "supervisor-1", "atSeconds": 30, "untilSeconds": 31}]
    sums = alone(supervisors=1, topologies=[{**topology, **more}], faults=dies).sums
    return sums.offered - sums.acked


def test_a_worker_that_restores_state_is_missing_for_longer() -> None:
    assert outage(stateRestoreSeconds={"count": 20}) > outage() + 15 * 100.0


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        ("wordcount", "split: one of count is right"),
        ("http-monitor", "split: one of stat-country, stat-isp, stat-prefix is right"),
        ("application", "split: none of this workload's components has state"),
    ],
)
def test_only_what_has_state_restores_it(workload: str, message: str) -> None:
    with pytest.raises(InvalidScenario) as refused:
        scenario(topologies=[{"workload": workload, "stateRestoreSeconds": {"split": 3}}])
    assert str(refused.value) == f"topologies[0].stateRestoreSeconds.{message}"


def test_state_of_the_reference_chain_goes_by_kind() -> None:
    chain = {"workload": "reference-chain", "stages": 5, "stateRestoreSeconds": {"stateful": 4}}
    components = scenario(topologies=[chain]).scenario.model.topologies[0].components
    assert {one.name: one.state_restore_seconds for one in components if one.stateful} == {"stateful3": 4.0}
    assert {one.state_restore_seconds for one in components if not one.stateful} == {0.0}
