"""More is offered than the cluster can do, and spouts wait for acks: no queue tells how much more is asked for."""

from __future__ import annotations

from typing import Any

import pytest

from simulator_scene import machines
from storm_operator.core.distances import Distances
from storm_operator.core.settings import ResourceSettings, SchedulingSettings
from storm_operator.core.topology_spec import AdoptSource, TopologySpec
from storm_operator.simulated_loop import Scenario, simulate
from storm_operator.simulation_report import SimulationReport
from storm_operator.simulator.model import ClusterModel, SimulatedTopology
from storm_operator.simulator.workloads import http_monitor, reference_chain

SECONDS, SETTLED_SECONDS = 480.0, 240.0
CPU_MS = 0.1
PENDING: dict[str, Any] = {"num_workers": 3, "max_spout_pending": 100, "message_timeout_seconds": 5.0}

CHAIN = reference_chain(
    2500.0,
    stages=5,
    parallelism={"spout": 2, "simple": 2, "stateful": 2, "ack": 2},
    cpu_ms=dict.fromkeys(("simple", "stateful", "ack"), CPU_MS),
    topology_id="chain-1",
    **PENDING,
)
HTTP = http_monitor(
    1500.0,
    parallelism={"requests": 1, "retrieve": 2},
    cpu_ms={name: CPU_MS for part in ("country", "isp", "prefix") for name in (part, f"stat-{part}")}
    | {"retrieve": CPU_MS},
    topology_id="http-1",
    **PENDING,
)


def played(topology: SimulatedTopology, *, is_managed: bool) -> SimulationReport:
    """On three machines of half a core; the second half counts."""
    quick = SchedulingSettings(
        period_seconds=5.0,
        cool_down_seconds=30.0,
        settling_seconds=15.0,
        expected_life_seconds=300.0,
        peak_seconds=15.0,
    )
    small = ResourceSettings(theta_millicores=25.0, floor_millicores=25.0)
    spec = TopologySpec(topology.name, AdoptSource(), scheduling=quick, resources=small)
    model = ClusterModel(machines(3, 500.0), (topology,), Distances({}, default_ms=4.0))
    scenario = Scenario("saturated", model, SECONDS, warm_up_seconds=SETTLED_SECONDS, step_seconds=0.5)
    return simulate(scenario, {topology.name: spec} if is_managed else None)


@pytest.mark.parametrize("topology", [CHAIN, HTTP], ids=lambda topology: str(topology.name))
def test_more_is_completed_than_under_even_and_the_plans_end(topology: SimulatedTopology) -> None:
    even, ours = (played(topology, is_managed=managed) for managed in (False, True))
    assert ours.sums.acked > 1.05 * even.sums.acked
    assert all(plan.at_seconds < SETTLED_SECONDS for plan in ours.plans)
    assert len(ours.plans) <= 2, "machines that are all full are not filled anew for a few millicores"
