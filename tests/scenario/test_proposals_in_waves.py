"""A load that comes in waves: the plan that a person looks at is still there when the person says yes."""

from __future__ import annotations

import pytest

from simulator_scene import machines
from storm_operator.core.distances import Distances
from storm_operator.core.plan_record import PlanState
from storm_operator.core.settings import Mode, SchedulingSettings
from storm_operator.core.topology_spec import AdoptSource, TopologySpec
from storm_operator.simulated_loop import Scenario, SimulatedStage
from storm_operator.simulator.load import Sine
from storm_operator.simulator.model import ClusterModel
from storm_operator.simulator.workloads import http_monitor

BOLTS = ("retrieve", "country", "isp", "prefix", "stat-country", "stat-isp", "stat-prefix", "alarm")
CPU_MS = {"requests": 0.05, **dict.fromkeys(BOLTS, 0.3)}
SPECS = {
    "http-monitor": TopologySpec("http-monitor", AdoptSource(), scheduling=SchedulingSettings(mode=Mode.RECOMMEND))
}
WAVE_SECONDS = 120.0


@pytest.mark.parametrize(
    ("capacity_millicores", "most_per_second"), [(1000.0, 400.0), (2000.0, 400.0), (2000.0, 1200.0)]
)
def test_proposal_outlives_the_waves_of_the_load(capacity_millicores: float, most_per_second: float) -> None:
    load = Sine(most_per_second / 4.0, most_per_second, WAVE_SECONDS)
    topology = http_monitor(load, cpu_ms=CPU_MS, num_workers=4)
    model = ClusterModel(machines(4, capacity_millicores), (topology,), Distances({}, default_ms=2.0))
    stage = SimulatedStage(Scenario("waves", model, 1200.0, step_seconds=1.0))
    for _ in range(60):
        stage.run_period(SPECS)
    records = stage.notes.records.values()
    (waiting,) = stage.loop.memory.proposals.waiting
    assert sum(record.state is PlanState.EXPIRED for record in records) <= 4, "five waves, sixty periods"
    assert stage.cluster.clock.now() - waiting.plan.created_at_seconds >= 2.0 * WAVE_SECONDS
