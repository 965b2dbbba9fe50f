"""Other numbers of executors while a simulated topology runs: tasks keep what they had, workers restart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator_scene import all_on, check_conservation, cluster, machines, spout_and_bolts
from storm_operator.core.model import ACKER_COMPONENT, Assignment, WorkerSlot
from storm_operator.simulated_cluster import EPOCH_SECONDS, SimulatedCluster
from storm_operator.simulator.engine import Engine
from storm_operator.simulator.heirs import heirs
from storm_operator.simulator.measure import Meter
from storm_operator.simulator.model import SimulatedTopology, SupervisorDies, Timings

HOME, AWAY = WorkerSlot("s1", 6700), WorkerSlot("s2", 6700)


def with_spare_tasks(per_second: float, cpu_ms: float, tasks: int = 4, **settings: object) -> SimulatedTopology:
    """One executor for all tasks of `b1`."""
    topology = spout_and_bolts(per_second, cpu_ms, **settings)  # type: ignore[arg-type]
    return replace(
        topology, components=tuple(replace(c, tasks=tasks) if c.name == "b1" else c for c in topology.components)
    )


def of_component(running: Engine, name: str) -> list[tuple[int, int]]:
    return [(e.task_start, e.task_end) for e in running.wiring.executors if e.component == name]


def test_more_executors_take_over_the_tasks_and_get_through_what_one_could_not() -> None:
    model = replace(cluster(with_spare_tasks(180.0, 10.0)), supervisors=machines(1, 4000.0))
    running = Engine(model, all_on(model))
    running.advance_to(20.0)
    assert running.queue.sum() == pytest.approx(80.0 * 20.0, rel=0.01)
    running.resize("t-1", {"b1": 2})
    assert of_component(running, "b1") == [(2, 3), (4, 5)]
    assert running.totals.lost.sum() == pytest.approx(80.0 * 20.0, rel=0.01), "its worker restarted"
    running.advance_to(30.0)
    begun = running.totals.executed.sum()
    running.advance_to(60.0)
    assert running.queue.sum() == pytest.approx(0.0, abs=1.0)
    assert (running.totals.executed.sum() - begun) / 30.0 == pytest.approx(4 * 180.0, rel=0.01), "with two acks"
    check_conservation(running)


def test_fewer_executors_take_over_all_tasks() -> None:
    model = cluster(with_spare_tasks(50.0, 1.0).with_executors({"b1": 4, ACKER_COMPONENT: 1}))
    running = Engine(model, all_on(model))
    running.advance_to(10.0)
    done = running.totals.executed.sum()
    running.resize("t-1", {"b1": 1})
    assert of_component(running, "b1") == [(2, 5)]
    assert running.totals.executed.sum() == pytest.approx(done)
    running.advance_to(40.0)
    check_conservation(running)


def test_workers_whose_executors_stay_the_same_run_on() -> None:
    others = spout_and_bolts(50.0, 1.0, topology_id="t-2")
    model = cluster(with_spare_tasks(50.0, 1.0), others, supervisors=2)
    start = Assignment({e: HOME if e.topology_id == "t-1" else AWAY for e in all_on(model).slot_of})
    running = Engine(model, start)
    running.advance_to(10.0)
    before = dict(running.cluster.workers)
    running.resize("t-1", {"b1": 3})
    after = running.cluster.workers
    assert after[AWAY] == before[AWAY]
    assert after[HOME].pid != before[HOME].pid
    assert running.cluster.restarts == 1


def test_new_executors_go_where_the_topology_has_fewest() -> None:
    model = cluster(with_spare_tasks(50.0, 1.0), supervisors=2)
    start = {e: AWAY if e.component == "b1" else HOME for e in all_on(model).slot_of}
    running = Engine(model, Assignment(start))
    running.resize("t-1", {"b1": 4})
    workers = running.cluster.assignment.workers()
    assert {slot: len(executors) for slot, executors in workers.items()} == {HOME: 3, AWAY: 3}


def test_what_waits_in_a_source_is_kept_and_replays_go_to_who_has_the_spouts_task_now() -> None:
    topology = with_spare_tasks(200.0, 10.0, source_keeps_backlog=True, replays_failed=True, max_spout_pending=100)
    topology = replace(topology, components=tuple(replace(c, tasks=4) for c in topology.components))
    model = cluster(topology)
    running = Engine(model, all_on(model))
    running.advance_to(30.0)
    waiting = running.sources.backlog.sum()
    assert waiting > 1000.0
    running.resize("t-1", {"spout": 2, "b1": 2})
    assert running.sources.backlog.sum() == pytest.approx(waiting)
    running.advance_to(120.0)
    offered = running.totals.offered.sum() + running.totals.replayed.sum()
    kept = running.sources.backlog.sum() + running.sources.replays.sum()
    assert running.totals.emitted.sum() + running.totals.unsent.sum() + kept == pytest.approx(offered)
    assert running.totals.replayed.sum() > 0.0
    assert running.sources.replays[~running.wiring.is_spout].sum() == 0.0
    check_conservation(running)


def test_a_reading_begins_anew_and_lacks_those_that_are_new() -> None:
    model = cluster(with_spare_tasks(50.0, 1.0))
    running = Engine(model, all_on(model))
    meter = Meter(running)
    running.advance_to(4.0)
    running.resize("t-1", {"b1": 2})
    running.advance_to(10.0)
    seen = meter.read()
    assert seen.period_seconds == pytest.approx(6.0)
    assert {e.component for e in seen.completeness.missing_executors} == {"spout", "b1", ACKER_COMPONENT}
    running.advance_to(20.0)
    meter.read()
    running.advance_to(30.0)
    after = meter.read()
    of_b1 = [load for executor, load in after.loads.items() if executor.component == "b1"]
    assert [load.executed_per_second for load in of_b1] == pytest.approx([25.0, 25.0])


def test_limits_of_executors_that_are_gone_are_forgotten() -> None:
    model = cluster(with_spare_tasks(50.0, 1.0))
    running = Engine(model, all_on(model))
    running.cluster.set_limits("t-1", dict.fromkeys(running.wiring.executors, 200.0))
    running.resize("t-1", {"b1": 2})
    assert {e.component for e in running.cluster.limits["t-1"]} == {"spout", ACKER_COMPONENT}


def test_executors_of_a_topology_that_has_no_slot_wait_for_the_first_that_is_free() -> None:
    timings = Timings(scheduling_seconds=1.0, supervisor_timeout_seconds=2.0)
    model = cluster(with_spare_tasks(50.0, 1.0), timings=timings, faults=(SupervisorDies("s1", 5.0, 20.0),))
    running = Engine(model, all_on(model))
    running.advance_to(10.0)
    assert not running.cluster.assignment.slot_of
    running.resize("t-1", {"b1": 2})
    running.advance_to(30.0)
    assert set(running.cluster.assignment.slot_of) == set(running.wiring.executors)


def test_nimbus_changes_numbers_a_moment_after_it_is_asked_and_pauses_the_spouts() -> None:
    model = cluster(with_spare_tasks(50.0, 1.0))
    simulated = SimulatedCluster(Engine(model, all_on(model)))
    simulated.clock.sleep(10.0)
    simulated.change_counts("t-1", {"b1": 2})
    assert simulated.engine.cluster.is_spout_paused("t-1", simulated.clock.now() - EPOCH_SECONDS)
    assert len(of_component(simulated.engine, "b1")) == 1
    simulated.clock.sleep(1.0)
    assert len(of_component(simulated.engine, "b1")) == 2


def test_every_task_has_one_heir() -> None:
    before = with_spare_tasks(1.0, 1.0, tasks=5).as_topology().executors
    after = with_spare_tasks(1.0, 1.0, tasks=5).with_executors({"b1": 2}).as_topology().executors
    passed_on = heirs(before, after)
    assert passed_on.shares.toarray().sum(axis=0) == pytest.approx([1.0] * len(before))
    column = [e.component for e in before].index("b1")
    assert sorted(passed_on.shares.toarray()[:, column])[-2:] == pytest.approx([0.4, 0.6])
    assert after[passed_on.of_first_task[column]].tasks == range(2, 5)
