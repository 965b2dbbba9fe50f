"""A supervisor that cannot carry two topologies under the very same settings: priority says who is served."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest
from papers.contestants import ADAPTIVE_A_FIRST
from papers.experiment import play
from papers.liu import side_by_side

from simulator_scene import cluster, machines, spout_and_bolts
from storm_operator.core.model import Assignment
from storm_operator.core.settings import ResourceSettings, SchedulingSettings
from storm_operator.core.snapshot import ClusterSnapshot, LoadPeriod
from storm_operator.core.topology_spec import AdoptSource, TopologySpec
from storm_operator.loop_ports import Observer
from storm_operator.simulated_loop import Scenario, SimulatedStage, simulate
from storm_operator.simulator.model import SupervisorDies

OFFERED = 500.0
SECONDS = 300.0
NAMES = ("first-1", "second-2")


@dataclass(slots=True)
class BlindObserver:
    """Sees nothing of loads in the passes from one number to another."""

    sighted: Observer
    blind_from: int
    blind_until: int
    passes: int = 0

    def observe(
        self,
        specs: Mapping[str, TopologySpec],
        history: tuple[LoadPeriod, ...],
        now_seconds: float,
        period_seconds: float,
        steady_since_seconds: float,
    ) -> ClusterSnapshot:
        seen = self.sighted.observe(specs, history, now_seconds, period_seconds, steady_since_seconds)
        self.passes += 1
        if self.blind_from <= self.passes < self.blind_until:
            return replace(seen, loads={}, history=())
        return seen


def scene(
    first: int, second: int, seconds: float = SECONDS, most_pending: int = 500, **model: object
) -> tuple[Scenario, Mapping[str, TopologySpec]]:
    """Topologies of these priorities on one supervisor; each needs 0.7 cores, and that has one."""
    topologies = [spout_and_bolts(OFFERED, 1.4, topology_id=name, max_spout_pending=most_pending) for name in NAMES]
    resources = ResourceSettings(theta_millicores=50.0, floor_millicores=50.0)
    scheduling = SchedulingSettings(settling_seconds=20.0)
    specs = {
        topology.name: TopologySpec(
            topology.name, AdoptSource(), scheduling=scheduling, resources=resources, priority=priority
        )
        for topology, priority in zip(topologies, (first, second), strict=True)
    }
    scarce = cluster(*topologies, **model)  # type: ignore[arg-type]
    start = Assignment({})
    for topology, slot in zip(topologies, machines(1)[0].as_supervisor().slots, strict=False):
        start = start.with_moves(dict.fromkeys(topology.as_topology().executors, slot))
    return Scenario("scarce", scarce, seconds, start=start, step_seconds=1.0), specs


def share_that_is_acked(first: int, second: int) -> tuple[float, float]:
    """Of what topologies of these priorities are offered at the end."""
    report = simulate(*scene(first, second))
    acked = [report.points[-1].topologies[name].acked_per_second for name in NAMES]
    assert None not in acked
    return acked[0] / OFFERED, acked[1] / OFFERED  # type: ignore[operator]


def test_higher_priority_gets_all_that_it_needs_and_the_other_what_is_left() -> None:
    high, low = share_that_is_acked(10, 0)
    assert high == pytest.approx(1.0, rel=0.05)
    assert 0.1 < low < 0.5
    low, high = share_that_is_acked(-5, 0)
    assert high == pytest.approx(1.0, rel=0.05)
    assert 0.1 < low < 0.5


def test_who_was_held_moves_once_there_is_room_elsewhere() -> None:
    """With few tuples in flight what a limit delays is not offered: what the topology does fits where it is."""
    report = simulate(*scene(10, 0, 400.0, 100, supervisors=2, faults=(SupervisorDies("s2", -60.0, 300.0),)))
    before, after = report.points[28], report.points[-1]
    assert [point.topologies["second-2"].acked_per_second for point in (before, after)] == [
        pytest.approx(0.27 * OFFERED, rel=0.1),
        pytest.approx(OFFERED, rel=0.05),
    ]
    assert "TooLittleCapacity" in before.decision
    assert len(report.plans) == 1


def test_who_comes_beside_a_higher_priority_is_held_as_soon_as_the_plan_is_in_force() -> None:
    """Its workers have just started, and the plan is not verified yet: the other needs its CPU all the same."""
    first, second = NAMES
    scenario, specs = scene(10, 0, supervisors=2, faults=(SupervisorDies("s2", 200.0, 1_000.0),))
    assert scenario.start is not None
    away = machines(2)[1].as_supervisor().slots[0]
    apart = {executor: away for executor in scenario.start.slot_of if executor.topology_id == second}
    stage = SimulatedStage(replace(scenario, start=scenario.start.with_moves(apart)))
    unverified = []
    while not stage.is_over:
        stage.run_period(specs)
        plans = stage.loop.memory.records
        if plans and not plans[-1].state.is_final:
            unverified.append(sum(stage.cluster.read_cpu_limits(second).values()))
    assert [plan.plan.topology_ids for plan in stage.loop.memory.records] == [(second,)]
    assert len(unverified) > 1
    assert max(unverified) <= 300.0, "of 900 millicores 700 are needed by the other, and none has less than 50"
    assert stage.points[-1].topologies[first].acked_per_second == pytest.approx(OFFERED, rel=0.05)


def test_periods_without_figures_do_not_hide_what_is_missing() -> None:
    """As after any plan: what was measured before it no longer counts."""
    scenario, specs = scene(10, 0, 300.0, 100)
    stage = SimulatedStage(scenario)
    blind = BlindObserver(stage.cluster, blind_from=15, blind_until=17)
    stage.loop.observer = blind
    while not stage.is_over:
        stage.run_period(specs)
    missing = "TooLittleCapacity: 1 supervisor lacks 327 millicores"
    assert [missing in stage.points[at].decision for at in (13, 15, 28)] == [True, False, True]


def test_who_is_served_first_stays_where_it_is_though_others_lack_cpu() -> None:
    """It gets all its CPU beside them; to be alone it would be restarted whenever their load changes."""
    run = play(side_by_side(1), ADAPTIVE_A_FIRST)
    assert run.report.plans == ()
    assert run.acked["A"] == pytest.approx(6_000.0, rel=0.01)
    assert "TooLittleCapacity" in run.report.points[-1].decision


def test_equal_priorities_share_the_want() -> None:
    one, other = share_that_is_acked(3, 3)
    assert one == pytest.approx(other, rel=0.1)
    assert one < 0.85
