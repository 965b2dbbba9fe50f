"""A snapshot of a simulated cluster is one that the rest of the program can use as if it were a real one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator_scene import all_on, cluster, engine, executor, machines, played, spout_and_bolts
from storm_operator.core.demand import cpu_per_tuple, estimate_demand
from storm_operator.core.model import ACKER_COMPONENT, Assignment, WorkerSlot
from storm_operator.core.settings import ResourceSettings
from storm_operator.core.snapshot_json import dump_snapshot, load_snapshot
from storm_operator.simulator.engine import Engine
from storm_operator.simulator.measure import Meter
from storm_operator.simulator.model import AvailabilityDrops, Costs, SupervisorDies
from storm_operator.simulator.workloads import http_monitor, word_count


def test_a_snapshot_survives_its_file() -> None:
    model = cluster(http_monitor(100.0), word_count(50.0), supervisors=2, costs=Costs())
    _, snapshot = played(model, 10.0)
    assert load_snapshot(dump_snapshot(snapshot)) == snapshot or dump_snapshot(
        load_snapshot(dump_snapshot(snapshot))
    ) == dump_snapshot(snapshot)


def test_traffic_agrees_with_what_executors_did() -> None:
    _, snapshot = played(cluster(word_count(100.0), costs=Costs()), 10.0)
    topology = snapshot.topologies[0]
    by_component: dict[tuple[str, str], float] = {}
    for source, target, rate in snapshot.traffic.pairs():
        key = (source.component, target.component)
        by_component[key] = by_component.get(key, 0.0) + rate
    assert by_component == pytest.approx(
        {
            ("sentences", "split"): 100.0,
            ("split", "count"): 500.0,
            ("sentences", ACKER_COMPONENT): 100.0,
            ("split", ACKER_COMPONENT): 100.0,
            ("count", ACKER_COMPONENT): 500.0,
            (ACKER_COMPONENT, "sentences"): 100.0,
        }
    )
    for one in topology.executors_of("count"):
        arrived = sum(snapshot.traffic.rate(source, one) for source in topology.executors_of("split"))
        assert snapshot.loads[one].arrived_per_second == pytest.approx(arrived)


def test_a_tuple_that_several_get_was_emitted_once() -> None:
    """As Storm counts, and with it the recorded history that is replayed here."""
    model = cluster(http_monitor(100.0))
    running, snapshot = played(model, 10.0)
    assert running.wiring.emitted_per_tuple[running.wiring.executors.index(executor(model, "alarm"))] == 0.0
    topology = snapshot.topologies[0]
    of_retrieve = [snapshot.loads[one] for one in topology.executors_of("retrieve")]
    assert [one.emitted_per_second for one in of_retrieve] == [one.executed_per_second for one in of_retrieve]
    received = sum(
        rate
        for source, target, rate in snapshot.traffic.pairs()
        if source.component == "retrieve" and target.component != ACKER_COMPONENT
    )
    assert received == pytest.approx(3.0 * sum(one.emitted_per_second or 0.0 for one in of_retrieve))


def test_cpu_per_tuple_and_demand_come_out_as_they_were_put_in() -> None:
    model = cluster(spout_and_bolts(40.0, 5.0))
    running = engine(model)
    meter = Meter(running)
    running.advance_to(10.0)
    snapshot = meter.read()
    component = snapshot.history[-1].components["t-1", "b1"]
    assert cpu_per_tuple([component]) == pytest.approx(5.0)
    demand = estimate_demand(snapshot, None, ResourceSettings(theta_millicores=200.0), phi=5)
    assert demand.raw_millicores[executor(model, "b1")] == pytest.approx(200.0)
    assert demand.millicores[executor(model, "b1")] == 400.0


def test_two_meters_do_not_take_from_each_other() -> None:
    model = cluster(spout_and_bolts(100.0, 1.0), supervisors=2)
    running = engine(model)
    short, whole = Meter(running), Meter(running)
    for at in (5.0, 10.0):
        running.advance_to(at)
        short.read()
    running.place(all_on(model, WorkerSlot("s2", 6700)))
    running.advance_to(30.0)
    latency = whole.mixed_latency()
    snapshot = whole.read()
    sent = 100.0 * (30.0 - 7.0)
    assert latency is not None
    assert latency.count == pytest.approx(sent, rel=0.02)
    assert snapshot.traffic.total() == 0.0  # all restarted in between: unknown, not nothing
    assert snapshot.completeness.ratio == 0.0
    assert running.totals.acked.sum() == pytest.approx(sent, rel=0.02)


def test_history_grows_by_a_period_for_each_reading() -> None:
    running = engine(cluster(spout_and_bolts(100.0, 1.0)))
    meter = Meter(running, epoch_seconds=1000.0)
    running.advance_to(10.0)
    first = meter.read()
    running.advance_to(20.0)
    second = meter.read(first.history)
    assert [period.ended_at_seconds for period in second.history] == [1010.0, 1020.0]
    assert second.taken_at_seconds == 1020.0
    assert second.period_seconds == pytest.approx(10.0)


def test_a_reading_at_once_knows_nothing() -> None:
    running = engine(cluster(spout_and_bolts(100.0, 1.0)))
    snapshot = Meter(running).read()
    assert snapshot.loads == {}
    assert snapshot.completeness.ratio == 0.0
    assert snapshot.rates["t-1"].acked_per_second is None


def test_a_spare_supervisor_that_dies_is_silent_and_nothing_is_known_of_its_cpu() -> None:
    running = engine(cluster(spout_and_bolts(100.0, 1.0), supervisors=2, faults=(SupervisorDies("s2", 15.0),)))
    meter = Meter(running)
    running.advance_to(10.0)
    before = meter.read()
    running.advance_to(20.0)
    after = meter.read()
    assert before.completeness.silent_supervisors == ()
    assert set(before.supervisor_cpu_millicores) == {"s1", "s2"}
    assert after.completeness.silent_supervisors == ("s2",)
    assert set(after.supervisor_cpu_millicores) == set(after.history[-1].supervisor_cpu_millicores) == {"s1"}
    assert after.supervisor("s2").cpu_capacity_millicores is None
    assert after.completeness.ratio == 1.0


def test_of_a_supervisor_in_an_outage_nothing_is_known_until_it_has_answered_twice() -> None:
    model = cluster(spout_and_bolts(100.0, 1.0), supervisors=2, faults=(AvailabilityDrops("s2", 10.5, 0.0, 30.0),))
    bolt = executor(model, "b1")
    running = Engine(model, Assignment({**all_on(model).slot_of, bolt: WorkerSlot("s2", 6700)}))
    meter, seen = Meter(running), []
    for at in (10.0, 20.0, 30.0, 40.0, 50.0):
        running.advance_to(at)
        seen.append(meter.read())
    assert [one.completeness.silent_supervisors for one in seen] == [(), ("s2",), (), (), ()]
    assert [bolt in one.loads for one in seen] == [True, False, False, True, True]
    assert [bolt in one.completeness.missing_executors for one in seen] == [False, True, True, False, False]
    assert ["s2" in one.supervisor_cpu_millicores for one in seen] == [True, False, False, True, True]
    assert seen[1].worker_pids.keys() == {WorkerSlot("s1", 6700)}
    assert "did not answer" in seen[1].completeness.problems[0]


def test_to_read_an_outage_does_not_change_its_course() -> None:
    model = replace(cluster(spout_and_bolts(100.0, 1.0)), supervisors=machines(2, availability=0.7))
    watched, unwatched = engine(model, seed=4), engine(model, seed=4)
    meter = Meter(watched)
    silent = 0
    for at in range(3, 300, 3):
        watched.advance_to(float(at))
        silent += len(meter.read().completeness.silent_supervisors)
    unwatched.advance_to(watched.now)
    assert silent > 20
    assert watched.totals.executed == pytest.approx(unwatched.totals.executed)
