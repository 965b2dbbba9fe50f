"""The engine against what must hold of any queueing system, and against what is known of single queues."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from simulator_scene import all_on, check_conservation, cluster, engine, executor, machines, played, spout_and_bolts
from storm_operator.core.model import Assignment, ComponentKind, WorkerSlot
from storm_operator.simulated_loop import even_start
from storm_operator.simulator.engine import Engine
from storm_operator.simulator.load import Constant, Noisy, Step
from storm_operator.simulator.measure import Meter
from storm_operator.simulator.model import (
    STORM_RECEIVE_QUEUE,
    ClusterModel,
    Costs,
    Grouping,
    SimulatedComponent,
    SimulatedEdge,
)
from storm_operator.simulator.workloads import http_monitor, reference_chain, word_count


def test_every_tuple_is_executed_waits_or_is_lost_also_when_workers_restart_under_overload() -> None:
    model = cluster(
        word_count(Noisy(Constant(400.0), 0.3), cpu_ms={"split": 1.0, "count": 1.0}, num_workers=3),
        http_monitor(150.0, cpu_ms={"retrieve": 2.0}, num_workers=2),
        supervisors=3,
        costs=Costs(),
    )
    running = Engine(model, even_start(model), seed=1)
    running.advance_to(20.0)
    check_conservation(running)
    running.place(all_on(model))
    running.advance_to(60.0)
    check_conservation(running)
    assert running.totals.lost.sum() > 0.0


@pytest.mark.parametrize("load", [0.3, 0.8, 0.9])
def test_mm1_has_the_latency_and_the_queue_that_theory_says(load: float) -> None:
    cpu_ms = 10.0
    model = cluster(spout_and_bolts(100.0 * load, cpu_ms, deviation=1.0))
    _, snapshot = played(model, 300.0, step_seconds=5.0, drawn_trees=1000)
    latency, executors = snapshot.rates["t-1"].latency, snapshot.loads
    assert latency is not None
    expected_ms = cpu_ms / (1.0 - load)
    assert latency.mean_ms == pytest.approx(expected_ms, rel=0.05)
    assert latency.p50_ms == pytest.approx(expected_ms * np.log(2.0), rel=0.08)  # sojourn in M/M/1 is exponential
    assert latency.p99_ms == pytest.approx(expected_ms * np.log(100.0), rel=0.12)
    waiting = executors[executor(model, "b1")].queue_length
    assert waiting == pytest.approx(load**2 / (1.0 - load), rel=0.01)  # Little's law: L_q = lambda * W_q


@pytest.mark.parametrize("load", [0.2, 0.5, 0.8])
def test_tuples_that_come_together_wait_for_what_is_before_them_once(load: float) -> None:
    """Five of 2 ms at a time, M^X/D/1: the last of them is done when all that waited and the five are."""
    one = spout_and_bolts(100.0 * load, 2.0)
    model = cluster(replace(one, edges=(SimulatedEdge("spout", "b1", tuples_per_tuple=5.0),)))
    _, snapshot = played(model, 300.0, step_seconds=5.0, drawn_trees=1000)
    latency = snapshot.rates["t-1"].latency
    assert latency is not None
    assert latency.mean_ms == pytest.approx(5 * 2.0 + load / (1.0 - load) * (5 * 2.0) / 2.0, rel=0.03)


def test_an_executor_cannot_use_more_than_a_core_and_its_queue_grows_by_the_rest() -> None:
    model = cluster(spout_and_bolts(150.0, 10.0), supervisors=1)
    running, snapshot = played(model, 20.0)
    load = snapshot.loads[executor(model, "b1")]
    assert load.executed_per_second == pytest.approx(100.0)
    assert load.cpu_millicores == pytest.approx(1000.0)
    assert load.queue_growth_per_second == pytest.approx(50.0)
    assert load.arrived_per_second == pytest.approx(150.0)
    check_conservation(running)


def test_two_on_one_core_share_it() -> None:
    model = cluster(spout_and_bolts(90.0, 10.0, 10.0))
    _, snapshot = played(model, 20.0)
    for component in ("b1", "b2"):
        assert snapshot.loads[executor(model, component)].executed_per_second == pytest.approx(50.0, rel=0.01)
    assert snapshot.supervisor_cpu_millicores["s1"] == pytest.approx(1000.0, rel=0.01)


def test_who_wants_less_than_half_gets_it_under_contention() -> None:
    model = cluster(spout_and_bolts(90.0, 2.0, 10.0))
    _, snapshot = played(model, 20.0)
    assert snapshot.loads[executor(model, "b1")].executed_per_second == pytest.approx(90.0, rel=0.01)
    assert snapshot.loads[executor(model, "b2")].executed_per_second == pytest.approx(82.0, rel=0.01)


def test_no_cpu_is_idle_where_who_is_behind_hands_on_work_to_others_on_the_machine() -> None:
    """Each tuple takes 0.2 ms of the bolt that is behind, and 0.1 ms of each of four after it."""
    after = [SimulatedComponent(f"b{n}", ComponentKind.BOLT, 1, cpu_ms_per_tuple=0.1) for n in range(2, 6)]
    one = spout_and_bolts(3000.0, 0.2)
    edges = (*one.edges, *(SimulatedEdge("b1", bolt.name) for bolt in after))
    model = cluster(replace(one, components=(*one.components, *after), edges=edges))
    _, snapshot = played(model, 20.0)
    assert snapshot.supervisor_cpu_millicores["s1"] == pytest.approx(1000.0, rel=0.02)
    for component in ("b1", "b5"):
        executed = snapshot.loads[executor(model, component)].executed_per_second
        assert executed == pytest.approx(1000.0 / 0.6, rel=0.02)


def test_idling_takes_no_more_than_a_supervisor_has() -> None:
    """Two workers and their eight executors would use 123 millicores in doing nothing."""
    load = spout_and_bolts(1.0, 0.1, 0.1)
    model = cluster(load, replace(load, id="t-2", name="t-2"), costs=Costs(), supervisors=1)
    model = replace(model, supervisors=machines(1, 50.0))
    slots = {"t-1": WorkerSlot("s1", 6700), "t-2": WorkerSlot("s1", 6701)}
    everyone = Assignment({e: slots[e.topology_id] for e in all_on(model).slot_of})
    running = engine(model, everyone)
    meter = Meter(running)
    running.advance_to(10.0)
    assert meter.read().supervisor_cpu_millicores["s1"] == pytest.approx(50.0, rel=0.1)
    assert running.totals.acked.sum() > 0.0


def test_a_limit_holds_one_executor_back_and_no_other() -> None:
    model = cluster(spout_and_bolts(90.0, 10.0, 10.0), supervisors=1)
    running = Engine(
        model, Assignment({**all_on(model).slot_of, executor(model, "b2"): WorkerSlot("s1", 6701)}), seed=0
    )
    running.cluster.set_limits("t-1", {executor(model, "b1"): 150.0, executor(model, "spout"): 900.0})
    running.advance_to(10.0)
    meter = Meter(running)
    running.advance_to(30.0)
    loads = meter.read().loads
    waited = [loads[executor(model, name)].throttled_fraction for name in ("b1", "spout", "b2")]
    assert waited == [pytest.approx(0.85), 0.0, None]  # b1 may run 15% of the time; nobody holds b2
    assert loads[executor(model, "b1")].cpu_millicores == pytest.approx(150.0)
    assert loads[executor(model, "b1")].executed_per_second == pytest.approx(15.0)
    assert loads[executor(model, "b2")].executed_per_second == pytest.approx(85.0, rel=0.01)


def wait_ms(limit: float | None, *neighbours: float) -> float:
    """The mean wait in front of a bolt that takes 28 tuples/s of 5 ms; `neighbours` are other bolts' ms."""
    model = cluster(spout_and_bolts(28.0, 5.0, *neighbours))
    running = engine(model)
    if limit is not None:
        running.cluster.set_limits("t-1", {executor(model, "b1"): limit})
    running.advance_to(20.0)
    row = running.wiring.executors.index(executor(model, "b1"))
    return float(1000.0 * running.stationary_queue[row] / 28.0)


def test_behind_a_limit_a_tuple_waits_as_without_unless_it_is_used_up() -> None:
    free = wait_ms(None)
    assert free == pytest.approx(5.0 * 0.14 / 0.86 / 2.0, rel=0.01)  # M/D/1
    assert wait_ms(1500.0) == pytest.approx(free)  # more than a thread has
    assert wait_ms(500.0) == pytest.approx(free, rel=0.02)
    assert wait_ms(200.0) - free == pytest.approx(0.76, rel=0.7)  # played out: test_cpu
    assert wait_ms(160.0) > 10.0 * wait_ms(200.0)


def test_a_limit_takes_nothing_from_the_wait_that_contention_makes() -> None:
    crowded = wait_ms(None, 40.0, 40.0)
    assert crowded > 2.0 * wait_ms(None)
    assert wait_ms(1000.0, 40.0, 40.0) == pytest.approx(crowded)


def test_on_a_full_core_who_wants_little_waits_for_as_many_turns_as_there_are_others() -> None:
    model = cluster(spout_and_bolts(10.0, 1.0), spout_and_bolts(1000.0, 10.0, 10.0, topology_id="t-2"))
    _, snapshot = played(model, 30.0, warm_up=10.0)
    assert snapshot.supervisor_cpu_millicores["s1"] == pytest.approx(1000.0, rel=0.01)
    latency = snapshot.rates["t-1"].latency
    assert latency is not None
    assert latency.p50_ms == pytest.approx(3.0, rel=0.1)  # 1 ms, in turns with two


def test_reserved_cpu_that_is_not_needed_and_needed_cpu_that_is_not_reserved_are_counted() -> None:
    model = cluster(spout_and_bolts(50.0, 10.0, 10.0), supervisors=1)
    running = engine(model)
    everyone = dict.fromkeys(all_on(model).slot_of, 0.0)
    limits = {**everyone, executor(model, "b1"): 700.0, executor(model, "b2"): 200.0}
    limits |= {e: 100.0 for e in everyone if e.component in ("spout", "__acker")}
    running.cluster.set_limits("t-1", limits)
    running.advance_to(10.0)
    assert running.totals.under_provided_ms.sum() / 10.0 == pytest.approx(300.0, rel=0.02)  # b2 wants 500, may 200
    # reserved are 1100 of which the machine has 1000; needed and given are 500 and 200
    assert running.totals.over_provided_ms.sum() / 10.0 == pytest.approx(300.0, rel=0.02)


@pytest.mark.parametrize(
    ("limit", "keeps_backlog", "over", "under"),
    [
        (600.0, False, 100.0, 0.0),
        (300.0, False, 0.0, 200.0),
        (300.0, True, 0.0, 200.0),  # what waits in the source does not count once more in each step
    ],
)
def test_what_a_spout_needs_counts_as_what_bolts_need(
    limit: float, keeps_backlog: bool, over: float, under: float
) -> None:
    topology = spout_and_bolts(100.0, source_keeps_backlog=keeps_backlog)
    spout = replace(topology.components[0], cpu_ms_per_tuple=5.0)
    model = cluster(replace(topology, components=(spout,)))
    running = engine(model)
    running.cluster.set_limits("t-1", {executor(model, "__acker"): 0.0, executor(model, "spout"): limit})
    running.advance_to(10.0)
    assert running.totals.over_provided_ms.sum() / 10.0 == pytest.approx(over, abs=1.0)
    assert running.totals.under_provided_ms.sum() / 10.0 == pytest.approx(under, abs=1.0)


def test_a_spout_that_may_not_emit_needs_no_cpu() -> None:
    topology = spout_and_bolts(100.0)
    spout = replace(topology.components[0], cpu_ms_per_tuple=5.0)
    model = cluster(replace(topology, components=(spout,)))
    running = engine(model)
    running.cluster.set_limits("t-1", {executor(model, "__acker"): 0.0, executor(model, "spout"): 300.0})
    running.cluster.inactive.add("t-1")
    running.advance_to(10.0)
    assert running.totals.under_provided_ms.sum() == 0.0
    assert running.totals.over_provided_ms.sum() / 10.0 == pytest.approx(300.0)


def test_max_spout_pending_bounds_what_is_on_its_way_and_costs_no_throughput_at_saturation() -> None:
    model = cluster(spout_and_bolts(500.0, 10.0, max_spout_pending=50, source_keeps_backlog=True))
    running, snapshot = played(model, 30.0, warm_up=10.0)
    pending = running.trees.pending.count(1)[0]
    assert 30.0 < pending < 65.0  # what is on its way is drawn, not counted
    rates = snapshot.rates["t-1"]
    assert rates.acked_per_second == pytest.approx(100.0, rel=0.05)
    assert rates.latency is not None
    assert rates.latency.mean_ms == pytest.approx(500.0, rel=0.15)  # Little's law: 50 pending, 100 per second
    assert running.sources.backlog.sum() == pytest.approx(500.0 * 40.0 - running.totals.emitted.sum())


def closed_throughput(pending: int, service_seconds: list[float]) -> float:
    """Of exponential servers one after the other, between which always so many are on their way: exact mean value
    analysis."""
    throughput, queues = 0.0, [0.0] * len(service_seconds)
    for number in range(1, pending + 1):
        sojourns = [service * (1.0 + queue) for service, queue in zip(service_seconds, queues, strict=True)]
        throughput = number / sum(sojourns)
        queues = [throughput * sojourn for sojourn in sojourns]
    return throughput


@pytest.mark.parametrize(
    ("most", "cpu_ms"),
    [
        (5, [20.0]),
        (5, [20.0, 20.0]),
        (5, [20.0, 5.0, 5.0]),
        (10, [20.0, 20.0, 20.0, 20.0]),
        (50, [4.0, 4.0]),
    ],
)
def test_few_pending_trees_do_not_wait_as_if_they_were_many(most: int, cpu_ms: list[float]) -> None:
    one = spout_and_bolts(2000.0 / cpu_ms[0], *cpu_ms, deviation=1.0, max_spout_pending=most, source_keeps_backlog=True)
    names = [component.name for component in one.components]
    in_a_row = tuple(SimulatedEdge(source, target) for source, target in pairwise(names))
    running = engine(replace(cluster(replace(one, edges=in_a_row)), supervisors=machines(1, 64_000.0)))
    pending = []
    for at in range(1, 201):
        running.advance_to(float(at))
        pending.append(running.trees.pending.trees.sum())
    expected = closed_throughput(most, [cost / 1000.0 for cost in cpu_ms])
    assert running.totals.acked.sum() / 200.0 == pytest.approx(expected, rel=0.2)
    assert np.mean(pending) <= 1.1 * most


@pytest.mark.parametrize("keeps", [False, True])
def test_a_spout_that_needs_few_places_is_not_held_back_by_one_that_takes_all(keeps: bool) -> None:
    calm = SimulatedComponent("calm", ComponentKind.SPOUT, 1, load=Constant(10.0))
    idle = SimulatedComponent("idle", ComponentKind.BOLT, 1, cpu_ms_per_tuple=1.0)
    topology = spout_and_bolts(5000.0, 2.0, max_spout_pending=100, source_keeps_backlog=keeps)
    edges = (*topology.edges, SimulatedEdge("calm", "idle"))
    topology = replace(topology, components=(*topology.components, calm, idle), edges=edges)
    model = replace(cluster(topology), supervisors=machines(1, 4000.0))
    running = engine(model)
    running.advance_to(60.0)
    sent = {name: running.totals.executed[running.row_of[executor(model, name)]] / 60.0 for name in ("calm", "spout")}
    assert sent["calm"] == pytest.approx(10.0, rel=0.01)
    assert sent["spout"] == pytest.approx(500.0, rel=0.05)


def with_a_late_spout(most: int | None) -> ClusterModel:
    """Few tuples from the beginning, and from second 10 on of another spout, whose bolt can do 100 a second, 5,000."""
    late = SimulatedComponent("late", ComponentKind.SPOUT, 1, load=Step(((10.0, 5000.0),)))
    slow = SimulatedComponent("slow", ComponentKind.BOLT, 1, cpu_ms_per_tuple=10.0)
    topology = spout_and_bolts(10.0, 0.1, max_spout_pending=most)
    edges = (*topology.edges, SimulatedEdge("late", "slow"))
    return cluster(replace(topology, components=(*topology.components, late, slow), edges=edges))


def test_max_spout_pending_holds_a_spout_back_that_had_nothing_to_send_at_first() -> None:
    running, pending = engine(with_a_late_spout(most=20)), []
    for at in range(1, 121):
        running.advance_to(at / 2.0)
        pending.append(running.trees.pending.trees.sum())
    assert max(pending) < 65.0  # 20 for each of two spouts; what is on its way is drawn, not counted
    assert running.totals.acked.sum() == pytest.approx(10.0 * 60.0 + 100.0 * 50.0, rel=0.05)


def test_back_pressure_holds_a_spout_back_that_had_nothing_to_send_at_first() -> None:
    running = engine(with_a_late_spout(most=None))
    running.advance_to(60.0)
    assert running.queue.max() == pytest.approx(STORM_RECEIVE_QUEUE)


def test_max_spout_pending_holds_nobody_back_where_nothing_is_tracked() -> None:
    model = cluster(spout_and_bolts(2000.0, 2.0, max_spout_pending=50, ackers=0))
    running = engine(model)
    running.advance_to(10.0)
    assert running.totals.emitted.sum() == pytest.approx(2000.0 * 10.0)


def test_back_pressure_leaves_who_is_behind_no_time_to_idle() -> None:
    """A bolt that can do 50,000 a second, offered 70,000: its queue is full, and it does 50,000."""
    running, seen = played(
        cluster(spout_and_bolts(70_000.0, 0.02, source_keeps_backlog=True)), 60.0, 20.0, step_seconds=1.0
    )
    acked = seen.rates["t-1"].acked_per_second
    assert acked == pytest.approx(50_000.0, rel=0.02)
    assert running.queue.max() <= STORM_RECEIVE_QUEUE + 50_000.0


def test_late_trees_fail_and_are_sent_again() -> None:
    overload = Step(((0.0, 200.0), (10.0, 0.0)))
    model = cluster(spout_and_bolts(overload, 10.0, message_timeout_seconds=3.0, replays_failed=True))
    running = engine(model)
    running.advance_to(8.0)
    assert running.totals.failed.sum() > 0.0
    assert running.totals.replayed.sum() == pytest.approx(running.totals.failed.sum())
    check_conservation(running)
    running.advance_to(60.0)
    sent_or_waiting = running.totals.emitted.sum() + running.sources.replays.sum()
    assert sent_or_waiting == pytest.approx(running.totals.offered.sum() + running.totals.replayed.sum())
    # Each late tuple is worked off in vain and sent again: the overload outlives the load, as it does in Storm.
    assert running.queue.sum() > 300.0


def test_a_tree_is_sent_again_only_once_where_its_source_does_so() -> None:
    overload = Step(((0.0, 1000.0),))
    model = cluster(
        spout_and_bolts(overload, 10.0, message_timeout_seconds=1.0, replays_failed=True, replays_once=True)
    )
    running = engine(model)
    running.advance_to(60.0)
    assert 0.0 < running.totals.replayed.sum() < 0.75 * running.totals.failed.sum()


def test_nothing_is_tracked_without_ackers() -> None:
    model = cluster(spout_and_bolts(50.0, 1.0, ackers=0))
    _, snapshot = played(model, 10.0)
    assert snapshot.rates["t-1"].latency is None
    assert snapshot.rates["t-1"].acked_per_second == pytest.approx(50.0)
    assert snapshot.traffic.total() == pytest.approx(50.0)


def test_the_same_seed_gives_the_same_course_and_another_one_another() -> None:
    model = cluster(reference_chain(Noisy(Constant(200.0), 0.2)), costs=Costs())
    first, second, other = (played(model, 20.0, seed=seed)[1] for seed in (7, 7, 8))
    assert first.rates == second.rates
    assert first.loads == second.loads
    assert first.rates != other.rates


def test_hops_between_supervisors_cost_half_a_round_trip() -> None:
    model = cluster(spout_and_bolts(10.0, 1.0), supervisors=2)
    apart = Assignment({**all_on(model).slot_of, executor(model, "b1"): WorkerSlot("s2", 6700)})
    running = Engine(model, apart)
    meter = Meter(running)
    running.advance_to(50.0)
    snapshot = meter.read()
    latency = snapshot.rates["t-1"].latency
    assert latency is not None
    assert latency.mean_ms == pytest.approx(1.0 + 2 * 2.0, rel=0.03)  # there, and its ack back: 4 ms round trip
    assert snapshot.traffic.inter_supervisor(snapshot.assignment) == pytest.approx(20.0)


@pytest.mark.parametrize(
    ("grouping", "load_aware", "near"),
    [
        (Grouping.LOCAL_OR_SHUFFLE, False, 50.0),
        (Grouping.LOCAL_OR_SHUFFLE, True, 100.0),
        (Grouping.SHUFFLE, False, 50.0),
        (Grouping.SHUFFLE, True, 100.0),
    ],
)
def test_only_load_aware_groupings_prefer_the_own_host(grouping: Grouping, load_aware: bool, near: float) -> None:
    topology = spout_and_bolts(100.0, 1.0, load_aware=load_aware)
    bolts = tuple(replace(c, executors=2) if c.name == "b1" else c for c in topology.components)
    topology = replace(topology, components=bolts, edges=(SimulatedEdge("spout", "b1", grouping),))
    model = cluster(topology, supervisors=2)
    same_host, elsewhere = topology.as_topology().executors_of("b1")
    start = {**all_on(model).slot_of, same_host: WorkerSlot("s1", 6701), elsewhere: WorkerSlot("s2", 6700)}
    running = Engine(model, Assignment(start))
    running.advance_to(10.0)
    assert running.totals.executed[running.row_of[same_host]] / 10.0 == pytest.approx(near)


def test_shuffle_prefers_the_own_worker_when_it_is_load_aware() -> None:
    for load_aware, crossing in ((True, 0.0), (False, 50.0)):
        topology = word_count(100.0, parallelism={"split": 2}, load_aware=load_aware)
        model = cluster(topology, supervisors=2)
        far = topology.as_topology().executors_of("split")[1]
        running = Engine(model, Assignment({**all_on(model).slot_of, far: WorkerSlot("s2", 6700)}))
        meter = Meter(running)
        running.advance_to(10.0)
        spout = topology.as_topology().executors_of("sentences")[0]
        assert meter.read().traffic.rate(spout, far) == pytest.approx(crossing)
