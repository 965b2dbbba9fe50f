"""Histories for tests: the real loop on a small simulated cluster, recorded."""

from __future__ import annotations

from pathlib import Path

from storm_operator.core.settings import ResourceSettings, SchedulingSettings
from storm_operator.core.topology_spec import AdoptSource, TopologySpec
from storm_operator.history.recorder import DirectRecorder
from storm_operator.history.store import HistoryStore, Limits
from storm_operator.simulated_loop import Scenario, SimulatedStage
from storm_operator.simulator.load_text import parse_load
from storm_operator.simulator.model import ClusterModel, SimulatedSupervisor
from storm_operator.simulator.workloads import word_count


def small_scenario(periods: int = 30) -> Scenario:
    """WordCount on two supervisors, spread out by Even: the loop gathers it, so that there is a plan to record."""
    supervisors = tuple(SimulatedSupervisor(f"s{n}", f"h{n}", (6700, 6701, 6702, 6703), 2000.0) for n in (1, 2))
    topology = word_count(parse_load("sine:50..200/120s"), {"split": 2, "count": 2}, num_workers=4)
    return Scenario("small", ClusterModel(supervisors, (topology,)), 10.0 * periods, drawn_trees=8)


def specs_of(scenario: Scenario) -> dict[str, TopologySpec]:
    scheduling = SchedulingSettings(policy="liu", history_periods=3)
    return {
        topology.name: TopologySpec(topology.name, AdoptSource(), scheduling=scheduling, resources=ResourceSettings())
        for topology in scenario.model.topologies
    }


def record(root: Path, periods: int = 30, cluster: str = "blue", run_id: str = "run-1", **limits: object) -> None:
    """Play `small_scenario` and record it below `root`."""
    store = HistoryStore.at(str(root), cluster, run_id, Limits(**limits), survives_death=False)  # type: ignore[arg-type]
    recorder = DirectRecorder(store)
    scenario = small_scenario(periods)
    stage = SimulatedStage(scenario, recorder)
    for _ in range(periods):
        stage.run_period(specs_of(scenario))
    recorder.close()
