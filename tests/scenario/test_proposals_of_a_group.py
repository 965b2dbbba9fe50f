"""Several plans wait for topologies of one group: what a person said yes to does not wait for what nobody has."""

from __future__ import annotations

import pytest

from simulator_scene import machines
from storm_operator.core.decision import Plan
from storm_operator.core.distances import Distances
from storm_operator.core.plan_record import PlanRecord, PlanState
from storm_operator.core.settings import Mode, SchedulingSettings
from storm_operator.core.topology_spec import AdoptSource, TopologySpec
from storm_operator.simulated_loop import Scenario, SimulatedStage
from storm_operator.simulator.model import ClusterModel
from storm_operator.simulator.workloads import word_count

RECOMMEND = SchedulingSettings(mode=Mode.RECOMMEND)
SPECS = {name: TopologySpec(name, AdoptSource(), scheduling=RECOMMEND) for name in ("first", "second")}
ONLY_FIRST = {"first": SPECS["first"]}


@pytest.fixture
def stage() -> SimulatedStage:
    topologies = tuple(
        word_count(
            100.0,
            {"split": 2, "count": 2},
            {"split": 0.2, "count": 0.2},
            num_workers=4,
            name=name,
            topology_id=f"{name}-1",
        )
        for name in SPECS
    )
    model = ClusterModel(machines(4, 2000.0), topologies, Distances({}, default_ms=2.0))
    return SimulatedStage(Scenario("one group", model, 600.0, step_seconds=0.5))


def told(stage: SimulatedStage, plan: Plan) -> PlanRecord:
    return stage.notes.records[plan.id]


def plan_that_waits(stage: SimulatedStage, specs: dict[str, TopologySpec]) -> Plan:
    while not stage.loop.memory.proposals.waiting:
        stage.run_period(specs)
    (waiting,) = stage.loop.memory.proposals.waiting
    return waiting.plan


def test_way_back_is_begun_though_a_plan_of_another_topology_waits_for_somebody(stage: SimulatedStage) -> None:
    before = stage.engine.cluster.assignment
    plan = plan_that_waits(stage, ONLY_FIRST)
    assert stage.loop.desk.approve(plan.id, "ann")
    while not told(stage, plan).state.is_final:
        stage.run_period(ONLY_FIRST)
    assert plan_that_waits(stage, SPECS).topology_ids == ("second-1",)
    back = stage.loop.desk.propose_way_back(plan, "ann")
    stage.run_period(SPECS)
    assert told(stage, back).state is PlanState.SETTLING
    assert stage.engine.cluster.assignment == before
