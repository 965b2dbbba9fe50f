"""A supervisor that cannot carry two topologies under the very same settings: priority says who is served."""

from __future__ import annotations

import pytest

from simulator_scene import cluster, spout_and_bolts
from storm_operator.core.settings import ResourceSettings, SchedulingSettings
from storm_operator.core.topology_spec import AdoptSource, TopologySpec
from storm_operator.simulated_loop import Scenario, simulate

OFFERED = 500.0
SECONDS = 300.0


def share_that_is_acked(first: int, second: int) -> tuple[float, float]:
    """Of what topologies of these priorities are offered at the end; each needs 0.7 cores, and there is one."""
    tuples = [
        spout_and_bolts(OFFERED, 1.4, topology_id=name, max_spout_pending=500) for name in ("first-1", "second-2")
    ]
    resources = ResourceSettings(theta_millicores=50.0, floor_millicores=50.0)
    scheduling = SchedulingSettings(settling_seconds=20.0)
    specs = {
        topology.name: TopologySpec(
            topology.name, AdoptSource(), scheduling=scheduling, resources=resources, priority=priority
        )
        for topology, priority in zip(tuples, (first, second), strict=True)
    }
    report = simulate(Scenario("scarce", cluster(*tuples), SECONDS, step_seconds=1.0), specs)
    acked = [report.points[-1].topologies[topology.name].acked_per_second for topology in tuples]
    assert None not in acked
    return acked[0] / OFFERED, acked[1] / OFFERED  # type: ignore[operator]


def test_higher_priority_gets_all_that_it_needs_and_the_other_what_is_left() -> None:
    high, low = share_that_is_acked(10, 0)
    assert high == pytest.approx(1.0, rel=0.05)
    assert 0.1 < low < 0.5
    low, high = share_that_is_acked(-5, 0)
    assert high == pytest.approx(1.0, rel=0.05)
    assert 0.1 < low < 0.5


def test_equal_priorities_share_the_want() -> None:
    one, other = share_that_is_acked(3, 3)
    assert one == pytest.approx(other, rel=0.1)
    assert one < 0.85
