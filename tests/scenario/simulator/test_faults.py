"""Restarts, and supervisors that die, slow down or stop answering."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simulator_scene import all_on, check_conservation, cluster, engine, executor, machines, played, spout_and_bolts
from storm_operator.core.model import ACKER_COMPONENT, Assignment, WorkerSlot
from storm_operator.simulator.engine import Engine
from storm_operator.simulator.load import Step
from storm_operator.simulator.measure import Meter
from storm_operator.simulator.model import (
    AvailabilityDrops,
    ClusterModel,
    SimulatedEdge,
    SimulatedTopology,
    SupervisorDies,
    SupervisorSlows,
    Timings,
)

HOME, AWAY = WorkerSlot("s1", 6700), WorkerSlot("s2", 6700)


def split_over_two(model: ClusterModel) -> Assignment:
    return Assignment({**all_on(model).slot_of, executor(model, "b1"): AWAY})


def test_a_moved_executor_is_away_while_its_worker_starts_and_what_it_is_sent_fails() -> None:
    model = cluster(spout_and_bolts(100.0, 1.0, message_timeout_seconds=5.0), supervisors=2)
    running = Engine(model, split_over_two(model))
    running.advance_to(10.0)
    elsewhere = WorkerSlot("s2", 6701)
    running.place(running.cluster.assignment.with_moves({executor(model, "b1"): elsewhere}))
    assert running.cluster.restarts == 1
    meter = Meter(running)
    running.advance_to(20.0)
    first = meter.read()
    assert first.completeness.missing_executors == (executor(model, "b1"),)
    assert executor(model, "b1") not in first.loads
    assert elsewhere in first.worker_pids
    running.advance_to(40.0)
    second = meter.read()
    assert second.completeness.ratio == 1.0
    assert second.loads[executor(model, "b1")].executed_per_second == pytest.approx(100.0)
    away = model.timings.notice_seconds + model.timings.worker_start_seconds
    assert running.totals.lost.sum() == pytest.approx(100.0 * away)
    assert running.totals.failed.sum() == pytest.approx(100.0 * away, rel=0.05)


def test_a_worker_whose_executors_stay_lives_on() -> None:
    model = cluster(spout_and_bolts(100.0, 1.0), supervisors=2)
    running = Engine(model, split_over_two(model))
    before = dict(running.cluster.workers)
    running.place(running.cluster.assignment.with_moves({executor(model, "b1"): WorkerSlot("s2", 6701)}))
    assert running.cluster.workers[HOME] == before[HOME]
    assert running.cluster.workers[WorkerSlot("s2", 6701)].pid != before[AWAY].pid
    running.place(running.cluster.assignment)
    assert running.cluster.restarts == 1


def test_what_waited_in_a_worker_that_ends_is_lost_and_its_trees_fail() -> None:
    model = cluster(spout_and_bolts(150.0, 10.0, message_timeout_seconds=20.0), supervisors=2)
    running = Engine(model, split_over_two(model))
    running.advance_to(10.0)
    waiting = running.queue.sum()
    assert waiting == pytest.approx(500.0)
    running.place(running.cluster.assignment.with_moves({executor(model, "b1"): WorkerSlot("s2", 6701)}))
    assert running.totals.lost.sum() == pytest.approx(waiting)
    assert running.trees.pending.trees[running.trees.pending.fails].sum() == pytest.approx(waiting, rel=0.1)


def test_trees_fail_whose_tuples_come_out_of_a_backlog_to_a_worker_that_is_down() -> None:
    """The load is over, and what it left waits 20 s at the first of two bolts; the second is down for 7 s of these."""
    load = Step(((0.0, 200.0), (20.0, 0.0)))
    one = spout_and_bolts(load, 10.0, 1.0, message_timeout_seconds=60.0)
    model = cluster(replace(one, edges=(SimulatedEdge("spout", "b1"), SimulatedEdge("b1", "b2"))), supervisors=2)
    last = executor(model, "b2")
    running = Engine(model, Assignment({**all_on(model).slot_of, last: AWAY}))
    running.advance_to(20.0)
    assert running.queue.sum() == pytest.approx(2000.0)
    running.place(running.cluster.assignment.with_moves({last: WorkerSlot("s2", 6701)}))
    running.advance_to(200.0)
    assert running.totals.lost.sum() == pytest.approx(700.0)
    assert running.totals.failed.sum() == pytest.approx(700.0)
    assert running.totals.acked.sum() == pytest.approx(running.totals.executed[running.row_of[last]])


def test_no_older_tree_fails_for_what_new_ones_lose() -> None:
    """Of two spouts one is dead. The bolt to which the other sends all, since it is on the same machine, is down."""
    topology = two_lines(400.0, 5.0)
    model = cluster(topology, supervisors=2, faults=(SupervisorDies("s1", 10.0),))
    model = replace(model, supervisors=machines(2, 4000.0))
    bolts, spouts = (topology.as_topology().executors_of(name) for name in ("b1", "spout"))
    beside = {executor(model, ACKER_COMPONENT): AWAY, spouts[1]: AWAY, bolts[1]: WorkerSlot("s2", 6701)}
    running = Engine(model, Assignment({**all_on(model).slot_of, **beside}))
    running.advance_to(11.0)
    running.place(running.cluster.assignment.with_moves({bolts[1]: WorkerSlot("s2", 6702)}))
    begun, failing = running.totals.executed[running.row_of[spouts[1]]], running.trees.pending.fails
    before = running.totals.failed.sum() + running.trees.pending.trees[failing].sum()
    running.advance_to(18.0)
    begun = running.totals.executed[running.row_of[spouts[1]]] - begun
    pending = running.trees.pending
    assert begun == pytest.approx(200.0 * 7.0)
    assert running.totals.failed.sum() + pending.trees[pending.fails].sum() - before == pytest.approx(begun)


def spouts_of_two_machines(model: ClusterModel) -> Assignment:
    """Each spout with a bolt that it alone has, and an acker: the first ones on one machine, the second on another."""
    topology = model.topologies[0].as_topology()
    second = {topology.executors_of(name)[1] for name in ("spout", "b1")}
    return Assignment({e: AWAY if e in second else HOME for e in topology.executors})


def two_lines(per_second: float, cpu_ms: float = 1.0, **settings: object) -> SimulatedTopology:
    topology = spout_and_bolts(per_second, cpu_ms, **settings)  # type: ignore[arg-type]
    return replace(topology, components=tuple(replace(one, executors=2) for one in topology.components))


@pytest.mark.parametrize("replays", [False, True])
def test_a_spout_that_restarts_forgets_its_pending_trees_and_what_is_read_again_is_sent_at_once(replays: bool) -> None:
    topology = spout_and_bolts(100.0, 20.0, source_keeps_backlog=True, replays_failed=replays)
    model = cluster(topology, supervisors=2)
    running = Engine(model, split_over_two(model))  # the bolt, at its limit, is not where spout and acker are
    running.advance_to(10.0)
    pending = running.trees.pending.count(1)[0]
    assert pending > 400.0
    spout = executor(model, "spout")
    running.place(running.cluster.assignment.with_moves({spout: WorkerSlot("s1", 6701)}))
    assert running.trees.pending.count(1)[0] == 0.0
    assert running.totals.forgotten.sum() == pytest.approx(pending)
    assert running.sources.replays.sum() == pytest.approx(pending if replays else 0.0)
    acked = running.totals.acked.sum()
    running.advance_to(15.0)
    assert running.totals.acked.sum() == acked, "nobody listens while the spout starts"
    running.advance_to(18.0)
    assert running.sources.replays.sum() == 0.0
    assert running.totals.failed.sum() == 0.0
    check_conservation(running)


def saturated_with_its_acker_away(ackers: int = 1) -> tuple[ClusterModel, Assignment]:
    """All places under max spout pending are taken; the first acker is alone in its worker."""
    topology = spout_and_bolts(200.0, 20.0, max_spout_pending=500, source_keeps_backlog=True, ackers=ackers)
    model = cluster(topology, supervisors=2)
    return model, Assignment({**all_on(model).slot_of, executor(model, ACKER_COMPONENT): AWAY})


def test_what_an_acker_knows_is_gone_when_it_restarts_and_its_trees_keep_their_places_until_they_time_out() -> None:
    model, start = saturated_with_its_acker_away()
    running = Engine(model, start)
    running.advance_to(60.0)
    acked, pending = running.totals.acked.sum(), running.trees.pending.trees.sum()
    assert pending == pytest.approx(500.0, rel=0.05)
    running.place(start.with_moves({executor(model, ACKER_COMPONENT): WorkerSlot("s2", 6701)}))
    for at in (67.0, 79.0):
        running.advance_to(at)
        assert running.totals.acked.sum() == pytest.approx(acked), "nobody follows the old ones, others must wait"
        assert running.trees.pending.trees.sum() == pytest.approx(500.0, rel=0.05)
    running.advance_to(125.0)
    assert running.totals.failed.sum() == pytest.approx(pending, rel=0.1)
    assert running.totals.acked.sum() > acked + 500.0
    check_conservation(running)


def test_an_acker_that_lives_on_goes_on_with_its_trees() -> None:
    model, start = saturated_with_its_acker_away(ackers=2)
    running = Engine(model, start)
    running.advance_to(60.0)
    trees = running.trees.pending
    lives = running.row_of[model.topologies[0].as_topology().executors_of(ACKER_COMPONENT)[1]]
    of_living = trees.trees[trees.acker == lives].sum()
    running.place(start.with_moves({executor(model, ACKER_COMPONENT): WorkerSlot("s2", 6701)}))
    trees = running.trees.pending
    assert 100.0 < of_living < 400.0
    assert trees.trees[~trees.fails].sum() == pytest.approx(of_living)


def test_a_spout_that_lives_on_forgets_nothing() -> None:
    topology = two_lines(200.0, 20.0)
    model = cluster(topology, supervisors=2)
    running = Engine(model, spouts_of_two_machines(model))
    running.advance_to(10.0)
    lives, restarts = (running.row_of[spout] for spout in topology.as_topology().executors_of("spout"))
    pending, other_bolt = running.trees.pending, topology.as_topology().executors_of("b1")[1]
    before = {row: pending.trees[pending.spout == row].sum() for row in (lives, restarts)}
    assert min(before.values()) > 200.0
    running.place(running.cluster.assignment.with_moves({other_bolt: WorkerSlot("s2", 6701)}))
    assert running.totals.forgotten.sum() == pytest.approx(before[restarts]), "its worker had other executors before"
    assert running.trees.pending.trees.sum() == pytest.approx(before[lives])


@pytest.mark.parametrize("step_seconds", [1.0, 0.1])
def test_spouts_send_to_a_worker_that_is_down_as_ever_since_nothing_fills_up_there(step_seconds: float) -> None:
    model = cluster(spout_and_bolts(80_000.0, 0.001), supervisors=2)
    running = Engine(model, split_over_two(model), step_seconds=step_seconds)
    running.advance_to(10.0)
    running.place(running.cluster.assignment.with_moves({executor(model, "b1"): WorkerSlot("s2", 6701)}))
    running.advance_to(16.0)
    assert running.totals.unsent.sum() == 0.0
    assert running.totals.lost.sum() == pytest.approx(80_000.0 * 6.0)


@pytest.mark.parametrize("most", [None, 20, 100])
@pytest.mark.parametrize("keeps", [False, True])
def test_a_spout_that_is_down_takes_nothing_from_one_that_lives(most: int | None, keeps: bool) -> None:
    topology = two_lines(600.0, max_spout_pending=most, source_keeps_backlog=keeps)
    model = cluster(topology, supervisors=2, faults=(SupervisorDies("s2", 20.0, None),))
    running = Engine(model, spouts_of_two_machines(model))
    living = running.row_of[topology.as_topology().executors_of("spout")[0]]
    running.advance_to(22.0)
    begun = running.totals.executed[living]
    running.advance_to(40.0)
    assert running.totals.executed[living] - begun == pytest.approx(300.0 * 18.0, rel=0.01)


@pytest.mark.parametrize("most", [20, 100])
@pytest.mark.parametrize("keeps", [False, True])
def test_no_more_trees_are_pending_than_may_be_when_a_bolt_goes_down(most: int, keeps: bool) -> None:
    topology = spout_and_bolts(1000.0, 0.5, max_spout_pending=most, source_keeps_backlog=keeps)
    model = cluster(topology, supervisors=2)
    running = Engine(model, split_over_two(model))
    running.advance_to(10.0)
    running.place(running.cluster.assignment.with_moves({executor(model, "b1"): WorkerSlot("s2", 6701)}))
    for at in np.arange(10.5, 20.0, 0.5):
        running.advance_to(float(at))
        assert running.trees.pending.trees.sum() <= 1.05 * most
    assert running.totals.failed.sum() == 0.0, "they wait for the timeout"
    running.advance_to(80.0)
    assert running.totals.failed.sum() <= 1.05 * most
    check_conservation(running)


def test_state_is_restored_before_a_stateful_executor_works_again() -> None:
    topology = spout_and_bolts(100.0, 1.0)
    stateful = tuple(
        replace(c, stateful=True, state_restore_seconds=9.0) if c.name == "b1" else c for c in topology.components
    )
    model = cluster(replace(topology, components=stateful), supervisors=2)
    running = Engine(model, split_over_two(model))
    running.place(running.cluster.assignment.with_moves({executor(model, "b1"): WorkerSlot("s2", 6701)}))
    assert running.cluster.workers[WorkerSlot("s2", 6701)].runs_from_seconds == pytest.approx(16.0)


def test_a_dead_supervisor_disappears_and_nimbus_places_its_executors_elsewhere() -> None:
    timings = Timings(scheduling_seconds=2.0, supervisor_timeout_seconds=8.0)
    faults = (SupervisorDies("s2", 10.0, 60.0),)
    model = cluster(spout_and_bolts(100.0, 1.0), supervisors=3, timings=timings, faults=faults)
    running = Engine(model, split_over_two(model))
    meter = Meter(running)
    running.advance_to(14.0)
    seen = meter.read()
    assert len(seen.supervisors) == 3
    assert seen.completeness.missing_executors == (executor(model, "b1"),)
    running.advance_to(40.0)
    meter.read()
    running.advance_to(50.0)
    after = meter.read()
    assert [supervisor.id for supervisor in after.supervisors] == ["s1", "s3"]
    assert after.assignment.slot_of[executor(model, "b1")].supervisor_id in ("s1", "s3")
    assert after.loads[executor(model, "b1")].executed_per_second == pytest.approx(100.0)
    running.advance_to(70.0)
    assert len(meter.read().supervisors) == 3


def test_a_supervisor_that_dies_again_is_given_up_by_its_last_sign_of_life_not_by_its_first_death() -> None:
    timings = Timings(scheduling_seconds=1.0, supervisor_timeout_seconds=30.0)
    faults = (SupervisorDies("s2", 10.0, 20.0), SupervisorDies("s2", 28.0, 60.0))
    model = cluster(spout_and_bolts(100.0, 1.0), supervisors=3, timings=timings, faults=faults)
    running = Engine(model, split_over_two(model))
    running.advance_to(57.0)
    assert [one.id for one in running.cluster.live_supervisors(57.0)] == ["s1", "s2", "s3"]
    assert running.cluster.assignment == split_over_two(model)
    running.advance_to(59.5)
    assert [one.id for one in running.cluster.live_supervisors(59.5)] == ["s1", "s3"]


def test_two_deaths_without_a_moment_between_them_are_one() -> None:
    faults = (SupervisorDies("s2", 30.0, 60.0), SupervisorDies("s2", 10.0, 30.0))
    model = cluster(spout_and_bolts(100.0, 1.0), supervisors=2, faults=faults)
    state = engine(model).cluster
    assert [len(state.live_supervisors(at)) for at in (39.5, 40.5, 59.5, 60.0)] == [2, 1, 1, 2]


def test_a_supervisor_that_comes_back_in_time_starts_its_workers_again() -> None:
    model = cluster(
        spout_and_bolts(100.0, 1.0),
        supervisors=2,
        timings=Timings(scheduling_seconds=1.0),
        faults=(SupervisorDies("s2", 10.0, 20.0),),
    )
    running = Engine(model, split_over_two(model))
    pid = running.cluster.workers[AWAY].pid
    running.advance_to(40.0)
    assert running.cluster.assignment == split_over_two(model)
    assert running.cluster.workers[AWAY].pid != pid
    assert running.totals.lost.sum() == pytest.approx(100.0 * 17.5, rel=0.1)


def test_state_is_restored_too_when_a_supervisor_comes_back_and_its_workers_count_as_restarted() -> None:
    topology = spout_and_bolts(100.0, 1.0)
    stateful = tuple(
        replace(c, stateful=True, state_restore_seconds=9.0) if c.name == "b1" else c for c in topology.components
    )
    model = cluster(
        replace(topology, components=stateful),
        supervisors=2,
        timings=Timings(scheduling_seconds=1.0),
        faults=(SupervisorDies("s2", 10.0, 20.0),),
    )
    running = Engine(model, split_over_two(model))
    running.advance_to(25.0)
    assert running.cluster.workers[AWAY].runs_from_seconds == pytest.approx(36.0)
    assert running.cluster.restarts == 1


def test_executors_that_find_no_free_slot_are_placed_as_soon_as_there_is_one() -> None:
    small = tuple(replace(machine, ports=(6700,)) for machine in machines(2))
    timings = Timings(scheduling_seconds=2.0, supervisor_timeout_seconds=8.0)
    faults = (SupervisorDies("s2", 10.0, 60.0),)
    model = cluster(spout_and_bolts(100.0, 1.0), supervisors=2, timings=timings, faults=faults)
    running = Engine(replace(model, supervisors=small), split_over_two(model))
    running.advance_to(40.0)
    assert executor(model, "b1") not in running.cluster.assignment.slot_of
    running.advance_to(80.0)
    assert running.cluster.assignment == split_over_two(model)
    meter = Meter(running)
    running.advance_to(100.0)
    assert meter.read().loads[executor(model, "b1")].executed_per_second == pytest.approx(100.0)


def test_trees_whose_acker_has_no_place_fail_without_a_word_of_numpys() -> None:
    """Both ends of their latency are infinite: the difference between these is no number."""
    small = tuple(replace(machine, ports=(6700,)) for machine in machines(2))
    timings = Timings(scheduling_seconds=2.0, supervisor_timeout_seconds=8.0)
    topology, faults = spout_and_bolts(100.0, 1.0, message_timeout_seconds=5.0), (SupervisorDies("s2", 10.0),)
    model = cluster(topology, supervisors=2, timings=timings, faults=faults)
    running = Engine(
        replace(model, supervisors=small), Assignment({**all_on(model).slot_of, executor(model, ACKER_COMPONENT): AWAY})
    )
    with np.errstate(invalid="raise"):
        running.advance_to(60.0)
    assert running.totals.acked.sum() == pytest.approx(100.0 * 10.0, rel=0.01)
    assert running.totals.failed.sum() > 0.0


def test_a_worker_placed_on_a_dead_machine_starts_when_that_is_back() -> None:
    timings = Timings(scheduling_seconds=1.0)
    model = cluster(
        spout_and_bolts(100.0, 1.0), supervisors=3, timings=timings, faults=(SupervisorDies("s3", 10.0, 30.0),)
    )
    running = Engine(model, split_over_two(model))
    running.advance_to(12.0)
    there = WorkerSlot("s3", 6700)
    running.place(running.cluster.assignment.with_moves({executor(model, "b1"): there}))
    assert running.cluster.restarts == 0
    for now in (25.0, 31.0, 36.0):
        running.advance_to(now)
        assert there not in running.cluster.running_workers(now)
    running.advance_to(40.0)
    assert there in running.cluster.running_workers(40.0)
    assert running.cluster.restarts == 1


def test_a_supervisor_that_slows_down_shows_less_capacity_and_gives_less() -> None:
    faults = (SupervisorSlows("s1", 10.0, 0.3, 40.0),)
    model = cluster(spout_and_bolts(60.0, 10.0), faults=faults)
    running = engine(model)
    meter = Meter(running)
    running.advance_to(10.0)
    assert meter.read().loads[executor(model, "b1")].executed_per_second == pytest.approx(60.0)
    running.advance_to(30.0)
    slow = meter.read()
    assert slow.supervisors[0].cpu_capacity_millicores == pytest.approx(300.0)
    assert slow.loads[executor(model, "b1")].executed_per_second == pytest.approx(30.0, rel=0.02)


@pytest.mark.parametrize(("cores", "beside_them"), [(1.0, 1.9), (2.0, 1.8)])
def test_executors_wait_for_others_that_take_cpu_though_what_is_left_is_enough(
    cores: float, beside_them: float
) -> None:
    calm = replace(cluster(spout_and_bolts(10.0, 5.0)), supervisors=machines(1, 1000.0 * cores))
    disturbed = replace(calm, faults=(SupervisorSlows("s1", 0.0, 0.1),))
    _, before = played(calm, 60.0)
    _, beside = played(disturbed, 60.0)
    alone, latency = before.rates["t-1"].latency, beside.rates["t-1"].latency
    assert alone is not None
    assert latency is not None
    assert alone.mean_ms == pytest.approx(5.1, rel=0.05)
    assert latency.mean_ms / alone.mean_ms == pytest.approx(beside_them, rel=0.1), "a thread more on each core"
    assert beside.loads[executor(calm, "b1")].executed_per_second == pytest.approx(10.0)


def test_a_supervisor_that_is_not_always_available_lets_tuples_wait_and_fail() -> None:
    topology = spout_and_bolts(50.0, 1.0, message_timeout_seconds=5.0)
    model = cluster(topology, supervisors=2, faults=(AvailabilityDrops("s2", 0.0, 0.7),))
    steady = Engine(cluster(topology, supervisors=2), split_over_two(model), step_seconds=1.0)
    unsteady = Engine(model, split_over_two(model), seed=3, step_seconds=1.0)
    for running in (steady, unsteady):
        running.advance_to(300.0)
    assert steady.totals.failed.sum() == 0.0
    assert 0.05 * 50.0 * 300.0 < unsteady.totals.failed.sum() < 0.4 * 50.0 * 300.0
    assert unsteady.totals.lost.sum() == 0.0
    assert unsteady.cluster.live_supervisors(300.0)[1].availability == 0.7


@pytest.mark.parametrize("availability", [0.0, 0.05, 0.3])
def test_no_tree_is_acked_whose_tuples_wait_for_a_supervisor_that_hardly_ever_answers(availability: float) -> None:
    topology = spout_and_bolts(100.0, 5.0)
    model = cluster(topology, supervisors=2, faults=(AvailabilityDrops("s2", 1.0, availability),))
    running = Engine(model, split_over_two(model), seed=2)
    running.advance_to(600.0)
    executed = running.totals.executed[running.row_of[executor(model, "b1")]]
    assert running.totals.acked.sum() <= executed + 100.0 * running.step_seconds
    check_conservation(running)


def test_what_waits_for_a_supervisor_is_executed_when_it_always_answers_again() -> None:
    topology = spout_and_bolts(100.0, 5.0, message_timeout_seconds=60.0)
    model = cluster(topology, supervisors=2, faults=(AvailabilityDrops("s2", 10.0, 0.0, 30.0),))
    running = Engine(model, split_over_two(model))
    running.advance_to(80.0)
    assert running.totals.failed.sum() == 0.0
    assert running.totals.acked.sum() == pytest.approx(80.0 * 100.0, rel=0.01)


def test_nimbus_keeps_a_supervisor_through_an_outage_of_twice_the_time_after_which_it_gives_up_a_dead_one() -> None:
    faults = (AvailabilityDrops("s2", 10.0, 0.0, 70.0),)
    model = cluster(spout_and_bolts(100.0, 1.0, message_timeout_seconds=90.0), supervisors=3, faults=faults)
    running = Engine(model, split_over_two(model))
    running.advance_to(69.0)
    assert [one.id for one in running.cluster.live_supervisors(69.0)] == ["s1", "s2", "s3"]
    assert running.queue.sum() > 5000.0
    running.advance_to(90.0)
    assert running.cluster.assignment == split_over_two(model)
    assert running.cluster.restarts == 0
    assert running.totals.lost.sum() == 0.0


def test_the_share_of_time_that_a_supervisor_answers_is_its_availability() -> None:
    model = cluster(spout_and_bolts(1.0, 1.0), faults=(AvailabilityDrops("s1", 0.0, 0.8),))
    state = engine(model, seed=5).cluster
    silent = sum(state.silent_for_seconds(model.supervisors[0], 0.5 * n) > 0.0 for n in range(40_000))
    assert silent / 40_000 == pytest.approx(0.2, abs=0.03)


def test_faults_name_supervisors_that_exist() -> None:
    with pytest.raises(ValueError, match=r"^faults\[0\]\.supervisor: 's9' is no supervisor; there are s1"):
        cluster(spout_and_bolts(1.0, 1.0), faults=(SupervisorDies("s9", 1.0),))


def test_outages_begin_soon_after_the_availability_has_dropped() -> None:
    model = cluster(spout_and_bolts(1.0, 1.0), faults=(AvailabilityDrops("s1", 1000.0, 0.8),))
    rare = replace(model.supervisors[0], availability=0.99999)
    state = engine(replace(model, supervisors=(rare, *model.supervisors[1:])), seed=3).cluster
    silent = [state.silent_for_seconds(rare, 1.0 * n) > 0.0 for n in range(21_000)]
    assert not any(silent[:1000])
    assert 0.1 < sum(silent[1000:]) / 20_000 < 0.3
