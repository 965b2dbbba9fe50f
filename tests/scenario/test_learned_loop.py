"""The loop and a learned profile, end to end on the simulator: history is learned from, used, and said to be used."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from profile_gain.learning import Arrivals

from storm_operator.adapters.profile_file import ProfileFile
from storm_operator.core.learned_profile import ComponentProfile, LearnedProfile
from storm_operator.core.learned_profile_json import dump_profile
from storm_operator.core.settings import SchedulingSettings
from storm_operator.core.topology_spec import AdoptSource, TopologySpec
from storm_operator.loop_ports import PassReport
from storm_operator.simulated_loop import Scenario, SimulatedStage
from storm_operator.simulator.load import Noisy, Periodic, Step
from storm_operator.simulator.model import ClusterModel, SimulatedSupervisor
from storm_operator.simulator.workloads import word_count
from storm_operator.terminal import TerminalListener
from storm_pipeline.models.backtest import Series, judge
from storm_pipeline.models.season import Floats

CYCLE_SECONDS = 200.0
CYCLES = 7
SPIKE_PERIOD = 10
"""Of the twenty of a cycle."""
NAME = "wordcount"
CLUSTER = "blue"


def stage(audience: object) -> SimulatedStage:
    spike = 10.0 * SPIKE_PERIOD
    load = Periodic(Step(((0.0, 100.0), (spike, 400.0), (spike + 20.0, 100.0))), CYCLE_SECONDS)
    topology = word_count(Noisy(load, 0.02, 1), {"split": 2, "count": 2}, {"split": 0.6, "count": 0.15}, name=NAME)
    machines = tuple(SimulatedSupervisor(f"s{n}", f"h{n}", (6700, 6701, 6702), 4000.0) for n in (1, 2))
    scenario = Scenario(NAME, ClusterModel(machines, (topology,)), 1e9, step_seconds=1.0, drawn_trees=4)
    return SimulatedStage(scenario, audience)  # type: ignore[arg-type]


def specs() -> dict[str, TopologySpec]:
    return {NAME: TopologySpec(NAME, AdoptSource(), scheduling=replace(SchedulingSettings(), policy="even"))}


@dataclass
class Reports:
    """Every pass, and what a terminal would say."""

    reports: list[PassReport] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.terminal = TerminalListener(self.said.append)

    def on_pass(self, report: PassReport) -> None:
        self.reports.append(report)
        self.terminal.on_pass(report)

    def on_record(self, record: object) -> None:
        pass


def learned_from(past: Arrivals, made_at_seconds: float) -> LearnedProfile:
    components = {}
    for name, (times, values) in past.points.items():
        found = judge(Series(_array(times), _array(values), 10.0), CYCLE_SECONDS, 10.0, phi=3)
        components[name] = ComponentProfile(found.forecaster, found.season, found.errors)
    return LearnedProfile(CLUSTER, made_at_seconds, made_at_seconds + 1e6, {NAME: components})


def _array(values: list[float]) -> Floats:
    return np.array(values)


def test_recorded_learned_used_and_said(tmp_path: Path) -> None:
    past, reports = Arrivals(NAME), Reports()
    first = stage(past)
    for _ in range(round(CYCLES * CYCLE_SECONDS / 10.0)):
        first.run_period(specs())
    path = tmp_path / "profile.json"
    second = stage(reports)
    second.loop.profiles = ProfileFile(path, CLUSTER)
    second.run_period(specs())
    assert any("profile.json cannot be read" in sentence for sentence in reports.said)
    path.write_text(dump_profile(learned_from(past, second.cluster.clock.now())))
    for _ in range(2 * round(CYCLE_SECONDS / 10.0)):
        second.run_period(specs())
    assert any("forecast by" in sentence and "Seasonal (" in sentence for sentence in reports.said)
    # The pass before a spike: its first period is foreseen, which no look at the last periods could tell.
    seen_coming = [
        found.arrivals_per_second
        for report in reports.reports[20:]
        if round(report.at_seconds) % CYCLE_SECONDS == 10.0 * SPIKE_PERIOD
        for (_, component), found in report.forecasts.items()
        if component == "split" and found.forecaster == "Seasonal"
    ]
    assert seen_coming
    assert min(seen_coming) > 300.0
    path.write_text(dump_profile(replace(learned_from(past, 0.0), cluster="red")))
    second.run_period(specs())
    assert "is of cluster 'red', this is 'blue'" in reports.said[-1]
    assert {found.forecaster for found in reports.reports[-1].forecasts.values()} <= {"DampedTrend", "Parents"}
