"""Topologies under the very same settings are placed together, but each is held to what it needs itself."""

from __future__ import annotations

from dataclasses import dataclass, replace

from simulator_scene import machines
from storm_operator.core.distances import Distances
from storm_operator.core.measurement_check import UNTRUSTED
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.topology_spec import AdoptSource, TopologySpec
from storm_operator.loop_ports import Observer
from storm_operator.simulated_loop import Scenario, SimulatedStage
from storm_operator.simulator.load import Step
from storm_operator.simulator.model import ClusterModel
from storm_operator.simulator.workloads import word_count

SPECS = {name: TopologySpec(name, AdoptSource()) for name in ("rising", "silent")}
SILENT_FROM_SECONDS, RISES_AT_SECONDS = 110.0, 130.0


@dataclass
class OneGoesSilent:
    """From some time on nothing of one topology is measured."""

    stage: SimulatedStage
    observer: Observer

    def observe(self, *asked: object) -> ClusterSnapshot:
        seen = self.observer.observe(*asked)  # type: ignore[arg-type]
        if self.stage.engine.now < SILENT_FROM_SECONDS:
            return seen
        missing = tuple(executor for executor in seen.assignment.slot_of if executor.topology_id == "silent-1")
        loads = {executor: load for executor, load in seen.loads.items() if executor not in missing}
        history = tuple(
            replace(period, components={own: load for own, load in period.components.items() if own[0] != "silent-1"})
            for period in seen.history
        )
        completeness = replace(seen.completeness, missing_executors=missing)
        return replace(seen, loads=loads, history=history, completeness=completeness)


def test_limits_follow_the_load_of_one_that_is_measured_while_another_of_its_group_is_not() -> None:
    topologies = tuple(
        word_count(
            load,
            {"split": 1, "count": 1},
            {"split": 1.5, "count": 0.1},
            num_workers=2,
            name=name,
            topology_id=f"{name}-1",
        )
        for name, load in (("rising", Step(((0.0, 100.0), (RISES_AT_SECONDS, 450.0)))), ("silent", 50.0))
    )
    model = ClusterModel(machines(3, 4000.0), topologies, Distances({}, default_ms=2.0))
    stage = SimulatedStage(Scenario("two of a group", model, 250.0, step_seconds=0.5))
    stage.loop.observer = OneGoesSilent(stage, stage.loop.observer)
    while stage.engine.now < SILENT_FROM_SECONDS:
        stage.run_period(SPECS)
    before = {name: stage.cluster.read_cpu_limits(f"{name}-1") for name in SPECS}
    while not stage.is_over:
        stage.run_period(SPECS)
    last = stage.points[-1]
    assert any(reason in last.decision for reason in UNTRUSTED), "what is placed together is held together"
    rising = last.topologies["rising"]
    assert rising.acked_per_second is not None
    assert rising.acked_per_second > 0.95 * rising.offered_per_second
    for executor, limit in stage.cluster.read_cpu_limits("rising-1").items():
        assert (limit > before["rising"][executor]) is (executor.component in {"split", "count"})
    assert stage.cluster.read_cpu_limits("silent-1") == before["silent"]
