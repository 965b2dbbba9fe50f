"""Two groups whose policies look every 300 s: the one that comes second is heard, too, and not five minutes later."""

from __future__ import annotations

from dataclasses import replace

from simulator_scene import machines
from storm_operator.core.distances import Distances
from storm_operator.core.settings import SchedulingSettings, Trigger
from storm_operator.core.topology_spec import AdoptSource, TopologySpec
from storm_operator.simulated_loop import Scenario, simulate
from storm_operator.simulator.model import ClusterModel
from storm_operator.simulator.workloads import word_count

SETTLING_SECONDS, PERIOD_SECONDS = 20.0, 10.0
T_STORM = SchedulingSettings(policy="t-storm", trigger=Trigger.POLICY, settling_seconds=SETTLING_SECONDS)


def test_who_is_due_while_the_plan_of_another_group_is_in_hand_is_heard_after_it() -> None:
    topologies = tuple(
        word_count(
            100.0,
            {"split": 2, "count": 2},
            {"split": 0.2, "count": 0.2},
            num_workers=4,
            name=name,
            topology_id=f"{name}-1",
        )
        for name in ("first", "second")
    )
    model = ClusterModel(machines(4, 2000.0), topologies, Distances({}, default_ms=2.0))
    specs = {
        "first": TopologySpec("first", AdoptSource(), scheduling=T_STORM),
        "second": TopologySpec("second", AdoptSource(), scheduling=replace(T_STORM, cool_down_seconds=61.0)),
    }
    report = simulate(Scenario("two groups", model, 450.0, step_seconds=0.5), specs)
    first, second = report.plans[:2]
    assert first.at_seconds == 300.0
    assert second.at_seconds < 300.0 + 60.0
    assert len(report.plans) == 2, "what was made up for is not made up for again"
