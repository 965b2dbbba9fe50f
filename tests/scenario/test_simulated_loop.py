"""The control loop on a simulated cluster: the very loop, with all three ways to apply a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from simulator_scene import all_on, cluster, machines, spout_and_bolts
from storm_operator.core.distances import Distances
from storm_operator.core.load_history import EVERY_EXECUTOR
from storm_operator.core.model import Assignment, WorkerSlot
from storm_operator.core.plan_record import PlanState
from storm_operator.core.settings import ApplyMethod, Enforcement, Mode, ResourceSettings, SchedulingSettings
from storm_operator.core.snapshot import ClusterSnapshot, LoadPeriod
from storm_operator.core.topology_spec import AdoptSource, TopologySpec
from storm_operator.demo.figures import nothing_compared
from storm_operator.demo.scenario import EVEN, durations
from storm_operator.demo.simulated import play, simulated_demo
from storm_operator.simulated_cluster import SimulatedCluster
from storm_operator.simulated_loop import Scenario, SimulatedStage, even_start, simulate
from storm_operator.simulation_report import SimulationReport
from storm_operator.simulator.engine import Engine
from storm_operator.simulator.load import Constant, LoadShape, Noisy, Step
from storm_operator.simulator.model import AvailabilityDrops, ClusterModel, SupervisorDies
from storm_operator.simulator.workloads import word_count

SETTINGS = SchedulingSettings(settling_seconds=20.0)
RESOURCES = ResourceSettings(theta_millicores=50.0, floor_millicores=50.0)


def scenario(load: LoadShape, seconds: float, **model: object) -> Scenario:
    topology = word_count(load, num_workers=4, cpu_ms={"split": 0.2, "count": 0.25}, message_timeout_seconds=10.0)
    words = ClusterModel(machines(4), (topology,), Distances({}, default_ms=4.0), **model)  # type: ignore[arg-type]
    return Scenario("words", words, seconds, step_seconds=1.0)


def specs(**scheduling: object) -> dict[str, TopologySpec]:
    settings = replace(SETTINGS, **scheduling)  # type: ignore[arg-type]
    return {"wordcount": TopologySpec("wordcount", AdoptSource(), scheduling=settings, resources=RESOURCES)}


@pytest.mark.parametrize("method", list(ApplyMethod))
def test_a_plan_is_made_applied_and_verified(method: ApplyMethod) -> None:
    played = scenario(Constant(100.0), 120.0)
    managed, fixed = simulate(played, specs(apply_method=method)), simulate(played)
    assert [plan.state for plan in managed.plans] == ["Verified"]
    (plan,) = managed.plans
    assert plan.seconds_to_running is not None
    assert 5.0 < plan.seconds_to_running < 12.0
    last = managed.points[-1]
    assert last.supervisors_used < fixed.points[-1].supervisors_used
    crossing = [point.inter_supervisor_tuples_per_second for point in managed.points]
    assert crossing[3] is None, "the workers that the plan started had just begun"
    always = fixed.points[-1].inter_supervisor_tuples_per_second
    assert always is not None
    known = [one for one in crossing if one is not None]
    assert known[-1] < 0.4 * always
    assert managed.mean_of("inter_supervisor_tuples_per_second") == pytest.approx(sum(known) / len(known))
    latency = last.topologies["wordcount"].latency_p50_ms
    before = fixed.points[-1].topologies["wordcount"].latency_p50_ms
    assert latency is not None
    assert before is not None
    assert latency < 0.7 * before
    if method is ApplyMethod.DRAIN:
        assert managed.sums.failed == 0.0


def test_a_latency_that_was_unknown_before_a_plan_speaks_not_against_it() -> None:
    """The slow topology acks now and then, as windows do: in the period before the plan it had no latency."""
    fast, slow = spout_and_bolts(300.0, 0.5, topology_id="fast-1"), spout_and_bolts(0.06, 800.0, topology_id="slow-2")
    model = cluster(fast, slow, supervisors=3)
    start = Assignment(
        {
            executor: WorkerSlot(supervisor.id, supervisor.ports[at])
            for at, topology in enumerate((fast, slow))
            for executor, supervisor in zip(topology.as_topology().executors, model.supervisors, strict=True)
        }
    )
    stage = SimulatedStage(Scenario("now and then", model, 150.0, start=start, step_seconds=1.0))
    read = stage.cluster.meter.read

    def read_late(
        history: tuple[LoadPeriod, ...] = (), least_shares: Mapping[str, float] = EVERY_EXECUTOR
    ) -> ClusterSnapshot:
        seen = read(history, least_shares)
        if stage.notes.records:
            return seen
        return replace(seen, rates={**seen.rates, slow.id: replace(seen.rates[slow.id], latency=None)})

    stage.cluster.meter.read = read_late  # type: ignore[method-assign]
    specs = {topology.name: TopologySpec(topology.name, AdoptSource()) for topology in (fast, slow)}
    while not stage.is_over:
        stage.run_period(specs)
    (record,) = stage.notes.records.values()
    assert record.plan.topology_ids == (fast.id, slow.id)
    assert record.state is PlanState.VERIFIED, record.message


@pytest.mark.parametrize(("least_share", "remembered"), [(1.0, 4), (0.5, 6)])
def test_what_is_remembered_goes_by_the_executors_that_must_be_measured_as_on_a_real_cluster(
    least_share: float, remembered: int
) -> None:
    topology = spout_and_bolts(100.0, 1.0, 1.0)
    model = cluster(topology, supervisors=2, faults=(AvailabilityDrops("s2", 15.0, 0.0, 30.0),))
    away = next(executor for executor in topology.as_topology().executors if executor.component == "b2")
    start = all_on(model).with_moves({away: WorkerSlot("s2", 6700)})
    played = SimulatedCluster(Engine(model, start, seed=3))
    scheduling = replace(SETTINGS, minimum_completeness=least_share)
    told = {topology.name: TopologySpec(topology.name, AdoptSource(), scheduling=scheduling)}
    history: tuple[LoadPeriod, ...] = ()
    for _ in range(6):
        played.clock.sleep(10.0)
        history = played.observe(told, history, played.clock.now(), 10.0, 0.0).history
    assert len(history) == remembered


def test_a_managed_scenario_ends_when_an_unmanaged_one_does_however_long_plans_take() -> None:
    played = replace(scenario(Constant(100.0), 90.0), period_seconds=3.0, warm_up_seconds=9.0)
    shares: list[float] = []
    managed, fixed = simulate(played, specs(), played=shares.append), simulate(played)
    assert managed.plans
    assert len(managed.points) < len(fixed.points) == 30
    assert managed.points[-1].at_seconds <= fixed.points[-1].at_seconds == 90.0
    assert managed.sums.offered == pytest.approx(fixed.sums.offered) == pytest.approx(81.0 * 100.0)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_what_happens_after_the_end_while_a_plan_is_applied_does_not_count() -> None:
    begin = simulate(scenario(Constant(100.0), 120.0), specs()).plans[0].at_seconds
    (plan,) = simulate(scenario(Constant(100.0), begin), specs()).plans
    report = simulate(scenario(Constant(100.0), begin), specs())
    assert report.plans == (plan,)
    assert report.sums.offered == pytest.approx(begin * 100.0)
    assert report.sums.worker_restarts == 0


def test_nothing_is_planned_where_only_watched() -> None:
    watched = simulate(scenario(Constant(100.0), 60.0), specs(mode=Mode.OBSERVE))
    assert watched.plans == ()
    assert watched.sums.worker_restarts == 0


def test_limits_follow_demand_and_are_kept() -> None:
    stage = SimulatedStage(scenario(Constant(100.0), 100.0))
    for _ in range(12):
        stage.run_period(specs())
    limits = stage.cluster.read_cpu_limits("wordcount-1")
    assert set(limits) == set(stage.engine.wiring.executors)
    used = stage.loop.memory.history[-1].components["wordcount-1", "count"].cpu_millicores
    assert sum(limit for e, limit in limits.items() if e.component == "count") > used


def test_a_step_of_the_load_makes_it_spread_again() -> None:
    report = simulate(scenario(Step(((0.0, 100.0), (120.0, 900.0))), 300.0), specs())
    assert len(report.plans) >= 2
    assert "millicores" in report.plans[1].reason
    assert report.points[-1].supervisors_used > report.points[10].supervisors_used
    assert report.points[-1].topologies["wordcount"].acked_per_second == pytest.approx(900.0, rel=0.05)


def test_it_goes_on_when_a_supervisor_dies() -> None:
    stage = SimulatedStage(scenario(Constant(100.0), 300.0))
    for _ in range(8):
        stage.run_period(specs())
    home = sorted(stage.engine.cluster.assignment.used_supervisors())[0]
    dying = scenario(Constant(100.0), 300.0, faults=(SupervisorDies(home, 100.0),))
    report = simulate(dying, specs())
    assert report.points[-1].topologies["wordcount"].acked_per_second == pytest.approx(100.0, rel=0.05)
    assert report.sums.unsent > 1000.0  # the spout was there, too


def test_a_report_survives_its_file_and_the_same_seed_gives_the_same_one() -> None:
    played = scenario(Noisy(Constant(100.0), 0.1), 60.0)
    report = simulate(played, specs())
    assert SimulationReport.from_json(report.to_json()) == report
    assert simulate(played, specs()) == report
    with pytest.raises(ValueError, match="no simulation report of version 2"):
        SimulationReport.from_json('{"version": 1}')


def test_even_start_is_where_storm_places_them() -> None:
    slots = even_start(scenario(Constant(1.0), 1.0).model)
    assert sorted({slot.supervisor_id for slot in slots.slot_of.values()}) == ["s1", "s2", "s3", "s4"]


def test_the_demo_gathers_spreads_and_gathers_again() -> None:
    demo = simulated_demo()
    baseline, managed = play(demo, durations(6.0))
    assert nothing_compared(demo.recorder) is None
    assert baseline.latency is not None
    assert managed.latency is not None
    assert managed.latency.p50_ms < 0.5 * baseline.latency.p50_ms
    assert managed.inter_supervisor_tuples_per_second == 0.0
    assert managed.supervisors_used == 1
    used = [point.supervisors_used for point in demo.recorder.points]
    assert used[0] == 4
    assert max(used[20:]) > 1
    assert used[-1] == 1


def test_traffic_of_a_phase_in_which_a_worker_restarted_is_unknown_and_not_what_the_others_sent() -> None:
    demo = simulated_demo()
    demo.run_for(20.0)
    calm = demo.measure(EVEN, 20.0)
    assert calm.inter_supervisor_tuples_per_second is not None
    assert calm.inter_supervisor_tuples_per_second > 0.0

    def restart_one() -> None:
        demo.after_period = lambda: None
        there = demo.stage.engine.cluster.assignment
        executor, slot = min(there.slot_of.items())
        unused = max(slot.port for slot in there.slot_of.values()) + 1
        demo.stage.engine.place(there.with_moves({executor: replace(slot, port=unused)}))

    demo.after_period = restart_one
    assert demo.measure(EVEN, 20.0).inter_supervisor_tuples_per_second is None


def test_without_enforcement_nobody_is_limited() -> None:
    free = {
        name: replace(spec, resources=replace(RESOURCES, enforcement=Enforcement.NONE))
        for name, spec in specs().items()
    }
    stage = SimulatedStage(scenario(Constant(100.0), 100.0))
    for _ in range(6):
        stage.run_period(free)
    assert not any(stage.engine.cluster.limits.values())


def test_no_plan_begins_workers_on_a_machine_that_is_dead_though_nimbus_still_sees_it() -> None:
    rising = scenario(Step(((0.0, 100.0), (120.0, 450.0))), 125.0)
    stage = SimulatedStage(replace(rising, model=replace(rising.model, supervisors=machines(2))))
    while not stage.is_over:
        stage.run_period(specs())
    (home,) = stage.engine.cluster.assignment.used_supervisors()
    (spare,) = {"s1", "s2"} - {home}
    dying = replace(rising.model, supervisors=machines(2), faults=(SupervisorDies(spare, 121.0),))
    report = simulate(replace(rising, model=dying, duration_seconds=260.0), specs())
    healthy = replace(dying, faults=())
    spread = simulate(replace(rising, model=healthy, duration_seconds=260.0), specs())
    assert [plan.state for plan in spread.plans if plan.at_seconds > 120.0], "it would be used if it were alive"
    assert [plan for plan in report.plans if plan.at_seconds > 120.0] == []
