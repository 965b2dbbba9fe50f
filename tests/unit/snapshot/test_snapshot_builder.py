"""From Nimbus' view and the agents' metrics to one snapshot."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from builders import chain_topology, graph_topology, placed, slot, supervisors
from storm_operator.core.model import Assignment, Edge, ExecutorLoad, Supervisor, WorkerSlot
from storm_operator.core.snapshot import ClusterSnapshot, LoadPeriod
from storm_operator.core.snapshot_builder import ClusterView, build_snapshot
from storm_operator.core.snapshot_document import to_document
from storm_operator.metric_contract import OTHER
from window_builder import Scrapes, executor_labels

NOW = 1000.0
MACHINES = supervisors(2, capacity=None)
HOSTS = {machine.id: machine.host for machine in MACHINES}
HOST1, HOST2 = MACHINES[0].host, MACHINES[1].host
WORDS = chain_topology("words", ("spout", 1), ("split", 1), ("count", 2))
SLOTS = placed(WORDS, {"spout": "s1", "split": "s1", "count": "s2"})
VIEW = ClusterView(MACHINES, (WORDS,), Assignment(SLOTS))
SPOUT, SPLIT, COUNT_A, COUNT_B = WORDS.executors


@pytest.fixture
def scrapes() -> Scrapes:
    """Two scrapes of both agents: everything measured."""
    metrics = Scrapes(NOW)
    metrics.add_topology(WORDS, SLOTS, HOSTS)
    for host in (HOST1, HOST2):
        metrics.add("storm_supervisor_cpu_capacity_cores", 2.0, 2.0, supervisor=host)
        metrics.add("storm_supervisor_cpu_seconds_total", 10.0, 15.0, supervisor=host)
    metrics.add("storm_traffic_tuples_total", 0, 3000, **traffic(1, 2))
    metrics.add("storm_traffic_tuples_total", 0, 1000, **traffic(2, 3))
    metrics.add("storm_traffic_tuples_total", 0, 2000, **traffic(2, 4))
    return metrics


def traffic(source: int, target: int, host: str = HOST1) -> dict[str, object]:
    return {
        "supervisor": host,
        "topology_id": "words",
        "source_task": source,
        "stream": "default",
        "target_task": target,
    }


def build(scrapes: Scrapes, view: ClusterView = VIEW, history: tuple[LoadPeriod, ...] = ()) -> ClusterSnapshot:
    return build_snapshot(view, scrapes.window(), history, NOW)


def test_complete_metrics_give_a_complete_snapshot(scrapes: Scrapes) -> None:
    snapshot = build(scrapes)
    assert snapshot.completeness.ratio == 1.0
    assert snapshot.completeness.problems == ()
    assert snapshot.completeness.expected_executors == 4
    assert snapshot.period_seconds == 10.0
    assert snapshot.loads[SPLIT] == ExecutorLoad(
        cpu_millicores=100.0,
        executed_per_second=300.0,
        emitted_per_second=300.0,
        arrived_per_second=300.0,
        queue_length=0.0,
        queue_growth_per_second=0.0,
    )


def test_an_executor_that_is_held_to_a_limit_says_how_long_it_waited(scrapes: Scrapes) -> None:
    scrapes.add("storm_executor_throttled_seconds_total", 3.0, 5.5, **executor_labels(COUNT_A, HOST2, 6700))
    seen = build(scrapes)
    assert seen.loads[COUNT_A].throttled_fraction == 0.25
    assert seen.loads[SPLIT].throttled_fraction is None, "nobody holds it to one"
    assert seen.completeness.ratio == 1.0


def test_arrivals_are_what_was_executed_and_what_the_queue_grew_by(scrapes: Scrapes) -> None:
    scrapes.add_executor(COUNT_A, HOST2, executed=(0, 1000), emitted=(0, 0), queue=(100, 600))
    load = build(scrapes).loads[COUNT_A]
    assert (load.queue_length, load.queue_growth_per_second, load.arrived_per_second) == (600, 50, 150)


@pytest.mark.parametrize("queue", [(0, 1), (1, 0)])
def test_a_flush_of_storms_own_in_a_queue_is_no_arrival(scrapes: Scrapes, queue: tuple[float, float]) -> None:
    """Its going takes nothing from what arrived at a bolt that idles: what its coming adds would stay in the sum."""
    scrapes.add_executor(COUNT_A, HOST2, executed=(0, 0), emitted=(0, 0), queue=queue)
    load = build(scrapes).loads[COUNT_A]
    assert (load.queue_growth_per_second, load.arrived_per_second) == (0, 0)


def test_a_spout_executes_what_it_emits_and_its_queue_of_acks_does_not_count(scrapes: Scrapes) -> None:
    scrapes.add_executor(SPOUT, HOST1, executed=(0, 9999), emitted=(0, 2000), queue=(0, 500))
    load = build(scrapes).loads[SPOUT]
    assert (load.executed_per_second, load.arrived_per_second, load.queue_growth_per_second) == (200, 200, 0)


def test_rates_go_by_the_time_between_the_workers_files_not_between_the_scrapes(scrapes: Scrapes) -> None:
    """The first file was 1 s old and the second fresh: 11 s of counting lie between scrapes 10 s apart."""
    scrapes.add_worker("words", HOST2, 6700, pid=10700, ages=(1.0, 0.0))
    scrapes.add_executor(COUNT_A, HOST2, executed=(0, 3300))
    load = build(scrapes).loads[COUNT_A]
    assert load.executed_per_second == pytest.approx(300.0)
    assert load.cpu_millicores == pytest.approx(100.0)  # read from the thread at the scrape itself


def test_traffic_is_by_executor(scrapes: Scrapes) -> None:
    snapshot = build(scrapes)
    rates = {(source, target): rate for source, target, rate in snapshot.traffic.pairs()}
    assert rates == pytest.approx({(SPOUT, SPLIT): 300.0, (SPLIT, COUNT_A): 100.0, (SPLIT, COUNT_B): 200.0})
    assert snapshot.traffic.executors == WORDS.executors


def test_traffic_of_several_tasks_sums_up_in_their_executors() -> None:
    topology = chain_topology("pairs", ("spout", 1), ("bolt", 1), tasks_per_executor=2)
    slots = placed(topology, {"spout": "s1", "bolt": "s1"})
    metrics = Scrapes(NOW)
    metrics.add_topology(topology, slots, HOSTS)
    for source in (1, 2):
        for target in (3, 4):
            metrics.add("storm_traffic_tuples_total", 0, 500, **{**traffic(source, target), "topology_id": topology.id})
    snapshot = build(metrics, ClusterView(MACHINES, (topology,), Assignment(slots)))
    spout, bolt = topology.executors
    assert snapshot.traffic.rate(spout, bolt) == pytest.approx(200.0)


def test_pair_that_appeared_within_the_window_counts_from_zero(scrapes: Scrapes) -> None:
    scrapes.add("storm_traffic_tuples_total", 1500, **traffic(2, 3))
    assert build(scrapes).traffic.rate(SPLIT, COUNT_A) == pytest.approx(150.0)


def test_stream_with_many_subscribers_that_appeared_within_the_window_counts_all_its_copies() -> None:
    bolts = [f"bolt{number}" for number in range(6)]
    edges = [Edge("spout", "default", bolt, "shuffle") for bolt in bolts]
    topology = graph_topology("fan", {"spout": 1, **dict.fromkeys(bolts, 1)}, edges)
    slots = placed(topology, dict.fromkeys(("spout", *bolts), "s1"))
    metrics = Scrapes(NOW)
    metrics.add_topology(topology, slots, HOSTS)
    emitted = 3000  # of the spout, as add_topology has it; each of the six subscribers gets as many
    for target in range(2, 8):
        metrics.add("storm_traffic_tuples_total", emitted, **{**traffic(1, target), "topology_id": "fan"})
    sent = {"supervisor": HOST1, "topology_id": "fan", "task": 1, "stream": "default"}
    metrics.add("storm_task_transferred_tuples_total", 6 * emitted, **sent)
    snapshot = build(metrics, ClusterView(MACHINES, (topology,), Assignment(slots)))
    spout, *others = topology.executors
    assert [snapshot.traffic.rate(spout, other) for other in others] == pytest.approx([300.0] * 6)


def test_pair_that_reappears_with_the_count_of_an_earlier_worker_does_not_count_it(scrapes: Scrapes) -> None:
    scrapes.add("storm_traffic_tuples_total", 5_000_000, **traffic(2, 3))
    assert build(scrapes).traffic.rate(SPLIT, COUNT_A) == 0.0


def test_what_a_task_sent_from_another_worker_of_its_supervisor_counts_over_that_time_too() -> None:
    """Series of tasks have no port: those of a task that moved within the window go on where its executor's begin."""
    scrapes = Scrapes(NOW, window_seconds=31.0)
    for executor in (SPOUT, COUNT_A, COUNT_B):
        host, counts = HOSTS[SLOTS[executor].supervisor_id], (0, 3000, 6000)
        scrapes.add_executor(
            executor, host, cpu_seconds=(4, 5, 6), executed=counts, emitted=counts, queue=(0.0, 0.0, 0.0)
        )
        scrapes.add_worker("words", host, 6700, pid=10700, ages=(0.0, 0.0, 0.0))
    scrapes.add_executor(SPLIT, HOST1, 6701)
    scrapes.add_worker("words", HOST1, 6701, pid=10701)
    scrapes.add("storm_traffic_tuples_total", 0, 1000, 2000, **traffic(2, 3))
    scrapes.add("storm_traffic_tuples_total", 0, 2000, 4000, **traffic(2, 4))
    view = replace(VIEW, assignment=Assignment({**SLOTS, SPLIT: slot("s1:6701")}))
    snapshot = build(scrapes, view)
    assert snapshot.completeness.missing_executors == ()
    assert snapshot.traffic.rate(SPLIT, COUNT_A) == pytest.approx(100.0)
    assert snapshot.traffic.rate(SPLIT, COUNT_B) == pytest.approx(200.0)


def test_margins_alone_are_marked_as_an_estimate(scrapes: Scrapes) -> None:
    scrapes.drop("storm_traffic_tuples_total", source_task="2")
    received = {"supervisor": HOST2, "topology_id": "words", "source_component": "split", "stream": "default"}
    scrapes.add(
        "storm_task_transferred_tuples_total", 0, 3000, supervisor=HOST1, topology_id="words", task=2, stream="default"
    )
    scrapes.add("storm_task_executed_tuples_total", 0, 1500, **received, task=3)
    scrapes.add("storm_task_executed_tuples_total", 0, 1500, **received, task=4)
    snapshot = build(scrapes)
    assert snapshot.traffic.rate(SPLIT, COUNT_A) == pytest.approx(150.0)
    assert [p for p in snapshot.completeness.problems if "split/default is an estimate" in p]


def test_flows_that_an_agent_folded_go_to_receivers_that_it_does_not_name_and_are_marked(scrapes: Scrapes) -> None:
    scrapes.drop("storm_traffic_tuples_total", source_task="2", target_task="4")
    scrapes.add("storm_traffic_tuples_total", 0, 2000, **{**traffic(2, 4), "target_task": OTHER})
    for task, tuples in ((3, 1000), (4, 2000)):
        labels = {"supervisor": HOST2, "topology_id": "words", "task": task}
        scrapes.add("storm_task_executed_tuples_total", 0, tuples, **labels, source_component="split", stream="default")
    snapshot = build(scrapes)
    assert snapshot.traffic.rate(SPLIT, COUNT_A) == pytest.approx(100.0)
    assert snapshot.traffic.rate(SPLIT, COUNT_B) == pytest.approx(200.0)
    (problem,) = snapshot.completeness.problems
    assert "split/default is in part an estimate" in problem
    assert "--pair-limit" in problem


def test_executor_that_just_moved_is_missing(scrapes: Scrapes) -> None:
    """Nimbus says s1:6701; the only series are those of the worker that it left."""
    view = replace(VIEW, assignment=Assignment({**SLOTS, COUNT_A: slot("s1:6701")}))
    snapshot = build(scrapes, view)
    assert snapshot.completeness.missing_executors == (COUNT_A,)
    assert COUNT_A not in snapshot.loads
    assert snapshot.completeness.problems == (
        f"worker {HOST1}:6701 of words, executors 3-3: no metrics of it at this worker",
    )


def test_worker_that_restarted_between_two_readings_is_missing(scrapes: Scrapes) -> None:
    """Counters go on over a restart, so only the process id tells."""
    scrapes.drop("storm_worker_info", supervisor=HOST2)
    info = {"supervisor": HOST2, "topology_id": "words", "port": 6700}
    scrapes.samples[scrapes.key("storm_worker_info", **info, pid=1)] = []
    scrapes.add("storm_worker_info", 1, **info, pid=2)
    snapshot = build(scrapes)
    assert snapshot.completeness.missing_executors == (COUNT_A, COUNT_B)
    assert "restarted between two readings" in snapshot.completeness.problems[0]
    assert snapshot.worker_pids[slot("s2")] == 2


@pytest.mark.parametrize("told_before", [True, False])
def test_an_agent_that_restarted_between_two_readings_makes_what_it_counts_unknown(
    scrapes: Scrapes, told_before: bool
) -> None:
    """Its counters begin anew, and what was counted meanwhile is not known. One of an earlier version did not tell."""
    started = (700.0, 995.0) if told_before else (995.0,)
    scrapes.add("storm_agent_start_time_seconds", *started, supervisor=HOST2)
    scrapes.add("storm_agent_start_time_seconds", 700.0, 700.0, supervisor=HOST1)
    snapshot = build(scrapes)
    assert snapshot.completeness.missing_executors == (COUNT_A, COUNT_B)
    assert "the agent beside it restarted between two readings" in snapshot.completeness.problems[0]
    assert snapshot.supervisor_cpu_millicores.keys() == {"s1"}
    assert snapshot.supervisor("s2").cpu_capacity_millicores == 2000.0


def test_an_agent_that_was_slow_to_answer_tells_how_long_it_was(scrapes: Scrapes) -> None:
    """The second page was made 12 s after the first, though the scrapes were begun 10 s apart."""
    scrapes.add("storm_agent_uptime_seconds", 300.0, 312.0, supervisor=HOST1)
    scrapes.add("storm_supervisor_cpu_seconds_total", 20.0, 23.0, supervisor=HOST1)
    snapshot = build(scrapes)
    assert snapshot.supervisor_cpu_millicores["s1"] == pytest.approx(250.0)
    assert snapshot.period_seconds == pytest.approx(12.0), "what was counted longest stands for it"
    load = snapshot.loads[SPLIT]
    assert load.cpu_millicores == pytest.approx(100.0 * 10.0 / 12.0)
    assert load.executed_per_second == pytest.approx(250.0)


@pytest.mark.parametrize("told", [(312.0,), (300.0, math.nan), (math.inf, math.inf)])
def test_what_an_agent_does_not_tell_of_both_pages_corrects_nothing(scrapes: Scrapes, told: tuple[float, ...]) -> None:
    scrapes.add("storm_agent_uptime_seconds", *told, supervisor=HOST1)
    load = build(scrapes).loads[SPLIT]
    assert (load.cpu_millicores, load.executed_per_second) == pytest.approx((100.0, 300.0))


def test_dead_agent_makes_its_executors_missing_and_only_those(scrapes: Scrapes) -> None:
    scrapes.samples = {k: v for k, v in scrapes.samples.items() if k.label("supervisor") != HOST2}
    snapshot = build_snapshot(VIEW, scrapes.window([f"the agent of {HOST2} did not answer"]), (), NOW)
    assert snapshot.completeness.missing_executors == (COUNT_A, COUNT_B)
    assert snapshot.completeness.ratio == 0.5
    assert snapshot.completeness.problems[0] == f"the agent of {HOST2} did not answer"
    assert snapshot.supervisor("s2").cpu_capacity_millicores is None


def test_one_scrape_is_not_a_pair(scrapes: Scrapes) -> None:
    scrapes.samples = {key: readings[-1:] for key, readings in scrapes.samples.items()}
    snapshot = build(scrapes)
    assert snapshot.completeness.ratio == 0.0
    assert snapshot.loads == {}
    assert "only one reading so far" in snapshot.completeness.problems[0]
    assert snapshot.history == ()


def test_two_scrapes_that_follow_each_other_at_once_are_no_pair_either(scrapes: Scrapes) -> None:
    scrapes.samples = {
        key: [replace(first, timestamp_seconds=last.timestamp_seconds - 1.5), last]
        for key, (first, last) in scrapes.samples.items()
    }
    snapshot = build(scrapes)
    assert snapshot.completeness.ratio == 0.0
    assert "its two readings are only 1.5 s apart" in snapshot.completeness.problems[0]


def test_worker_that_stopped_writing_is_missing_and_its_age_shows(scrapes: Scrapes) -> None:
    scrapes.add_worker("words", HOST2, 6700, pid=10700, ages=(30.0, 40.0))
    snapshot = build(scrapes)
    assert snapshot.completeness.missing_executors == (COUNT_A, COUNT_B)
    assert "has written no snapshot for 40.0 s" in snapshot.completeness.problems[0]
    assert snapshot.completeness.age_seconds == 40.0


@pytest.mark.parametrize("ages", [(0.4, math.nan), (math.inf, 0.4), (0.4, -1.0)])
def test_worker_of_which_nobody_can_tell_how_long_it_is_silent_is_missing(
    scrapes: Scrapes, ages: tuple[float, float]
) -> None:
    """NaN is neither more nor less than any number: compared with, it would always be fresh."""
    scrapes.add_worker("words", HOST2, 6700, pid=10700, ages=ages)
    completeness = build(scrapes).completeness
    assert completeness.missing_executors == (COUNT_A, COUNT_B)
    assert "how long ago its worker has written its snapshot is not known" in completeness.problems[0]
    assert completeness.topology_age_seconds == {"words": 0.0}


def test_age_is_that_of_the_oldest_needed_reading(scrapes: Scrapes) -> None:
    scrapes.add_worker("words", HOST2, 6700, pid=10700, ages=(0.4, 0.7))
    found = build(scrapes).completeness
    assert found.age_seconds == pytest.approx(0.7)
    assert found.topology_age_seconds == pytest.approx({"words": 0.7})


def test_of_several_topologies_each_has_its_age_and_all_that_of_the_oldest(scrapes: Scrapes) -> None:
    lines = chain_topology("lines", ("spout", 1))
    slots = placed(lines, {"spout": "s2:6701"})
    scrapes.add_topology(lines, slots, HOSTS)
    scrapes.add_worker("words", HOST2, 6700, pid=10700, ages=(0.4, 0.7))
    scrapes.add_worker("lines", HOST2, 6701, pid=10701, ages=(0.1, 0.2))
    found = build(scrapes, ClusterView(MACHINES, (WORDS, lines), Assignment({**SLOTS, **slots}))).completeness
    assert found.topology_age_seconds == pytest.approx({"words": 0.7, "lines": 0.2})
    assert found.age_seconds == pytest.approx(0.7)


def test_supervisors_whose_agent_says_nothing_are_named(scrapes: Scrapes) -> None:
    assert build(scrapes).completeness.silent_supervisors == ()
    scrapes.drop("storm_supervisor_cpu_capacity_cores", supervisor=HOST2)
    assert build(scrapes).completeness.silent_supervisors == (MACHINES[1].id,)


def test_executor_without_one_of_its_counts_is_missing_but_the_others_are_kept(scrapes: Scrapes) -> None:
    scrapes.drop("storm_executor_cpu_seconds_total", executor=SPLIT.label)
    snapshot = build(scrapes)
    assert snapshot.completeness.missing_executors == (SPLIT,)
    assert snapshot.loads[SPLIT].cpu_millicores is None
    assert snapshot.loads[SPLIT].executed_per_second == 300.0
    assert "no count of its CPU" in snapshot.completeness.problems[0]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -5.0, 1e25, 1.7e308])
def test_impossible_values_are_unknown_and_named(scrapes: Scrapes, bad: float) -> None:
    scrapes.add("storm_executor_executed_tuples_total", 0, bad, **executor_labels(SPLIT, HOST1, 6700))
    scrapes.add("storm_supervisor_cpu_capacity_cores", bad, bad, supervisor=HOST2)
    snapshot = build(scrapes)
    assert snapshot.completeness.missing_executors == (SPLIT,)
    assert snapshot.loads[SPLIT].executed_per_second is None
    assert snapshot.supervisor("s2").cpu_capacity_millicores is None
    assert any("not a number of 0 or more" in problem for problem in snapshot.completeness.problems)


def test_what_a_hostile_worker_counts_leaves_all_numbers_finite(scrapes: Scrapes) -> None:
    """Its own readings are as far apart as numbers may be, and its labels name what cannot be."""
    least, most = 1e-300, 9e18
    scrapes.add_executor(SPOUT, HOST1, executed=(0, least), emitted=(0, most), cpu_seconds=(0, most))
    scrapes.add_executor(SPLIT, HOST1, executed=(0, least), emitted=(0, least), queue=(0, most))
    scrapes.add("storm_traffic_tuples_total", 0, least, **traffic(1, 2))
    of_spout = {"supervisor": HOST1, "topology_id": "words", "component": "spout", "executor": "1-1"}
    scrapes.add("storm_complete_latency_seconds_bucket", 0, least, **of_spout, le="1")
    scrapes.add("storm_complete_latency_seconds_bucket", 0, least, **of_spout, le="+Inf")
    scrapes.add("storm_complete_latency_seconds_sum", 0, most, **of_spout)
    margin = {"supervisor": HOST1, "topology_id": "words", "task": 2, "source_component": "spout", "stream": "default"}
    scrapes.add("storm_task_executed_tuples_total", 0, 3000, **margin)
    for odd in ("9" * 5_000, "-1", ""):
        scrapes.add("storm_worker_info", 1, 1, supervisor=HOST1, topology_id="words", port=odd, pid=odd)
        scrapes.add("storm_traffic_tuples_total", 0, 1000, **{**traffic(1, 2), "target_task": odd})
    json.dumps(to_document(build(scrapes)), allow_nan=False)


def test_network_coordinates_may_be_negative(scrapes: Scrapes) -> None:
    scrapes.add("storm_supervisor_coordinate_seconds", -3.0, -2.0, supervisor=HOST1, dimension="x")
    assert build(scrapes).completeness.problems == ()


def test_supervisors_get_what_their_agents_measured(scrapes: Scrapes) -> None:
    scrapes.add("storm_supervisor_availability_ratio", 1.0, 0.9, supervisor=HOST1, peer=HOST2)
    snapshot = build(scrapes)
    assert snapshot.supervisor("s1") == replace(MACHINES[0], cpu_capacity_millicores=2000.0)
    assert snapshot.supervisor("s2") == replace(MACHINES[1], cpu_capacity_millicores=2000.0, availability=0.9)
    assert snapshot.supervisor_cpu_millicores == pytest.approx({"s1": 500.0, "s2": 500.0})


def test_two_supervisors_with_one_host_name_are_a_problem(scrapes: Scrapes) -> None:
    twin = Supervisor("s3", HOST1, (6700,))
    snapshot = build(scrapes, replace(VIEW, supervisors=(*MACHINES, twin)))
    assert any("cannot be told apart" in problem for problem in snapshot.completeness.problems)


def test_distance_is_the_mean_of_both_ways_and_the_median_for_the_rest(scrapes: Scrapes) -> None:
    machines = supervisors(4)
    hosts = [machine.host for machine in machines]
    for a, b, seconds in ((0, 1, 0.002), (1, 0, 0.004), (0, 2, 0.010), (1, 2, 0.020)):
        scrapes.add("storm_supervisor_round_trip_seconds", seconds, supervisor=hosts[a], peer=hosts[b])
    distances = build(scrapes, replace(VIEW, supervisors=machines)).distances
    assert distances.between_supervisors("s1", "s2") == pytest.approx(3.0)
    assert distances.between_supervisors("s2", "s1") == pytest.approx(3.0)
    assert distances.between_supervisors("s4", "s1") == pytest.approx(10.0)


def say_coordinate(scrapes: Scrapes, host: str, x_seconds: float, error_ratio: float = 0.1) -> None:
    for dimension, seconds in (("x", x_seconds), ("y", 0.0), ("height", 0.001)):
        scrapes.add("storm_supervisor_coordinate_seconds", seconds, supervisor=host, dimension=dimension)
    scrapes.add("storm_supervisor_coordinate_error_ratio", error_ratio, supervisor=host)


def test_pairs_that_nobody_measured_are_as_far_as_their_coordinates(scrapes: Scrapes) -> None:
    machines = supervisors(4)
    hosts = [machine.host for machine in machines]
    scrapes.add("storm_supervisor_round_trip_seconds", 0.003, supervisor=hosts[0], peer=hosts[1])
    scrapes.add("storm_supervisor_round_trip_seconds", 0.009, supervisor=hosts[0], peer=hosts[3])
    for host, x_seconds, error_ratio in zip(hosts, (0.0, -0.010, 0.007, 0.006), (0.1, 0.6, 0.1, 0.1), strict=True):
        say_coordinate(scrapes, host, x_seconds, error_ratio)
    distances = build(scrapes, replace(VIEW, supervisors=machines)).distances
    assert distances.between_supervisors("s1", "s2") == pytest.approx(3.0), "measured"
    assert distances.between_supervisors("s1", "s3") == pytest.approx(7.0 + 2 * 1.0)
    assert distances.between_supervisors("s3", "s4") == pytest.approx(3.0), "no nearer than any that was measured"
    assert distances.between_supervisors("s2", "s3") == pytest.approx(6.0), "s2 is not sure of its place: the median"


def test_coordinates_are_not_asked_where_every_pair_measured(scrapes: Scrapes) -> None:
    for host, peer in ((HOST1, HOST2), (HOST2, HOST1)):
        scrapes.add("storm_supervisor_round_trip_seconds", 0.003, supervisor=host, peer=peer)
        say_coordinate(scrapes, host, 0.5)
    assert not build(scrapes).distances.places


@pytest.mark.parametrize("height_seconds", [math.nan, -0.001])
def test_a_coordinate_that_cannot_be_is_none(scrapes: Scrapes, height_seconds: float) -> None:
    machines = supervisors(3)
    hosts = [machine.host for machine in machines]
    scrapes.add("storm_supervisor_round_trip_seconds", 0.003, supervisor=hosts[0], peer=hosts[1])
    for host in hosts:
        say_coordinate(scrapes, host, 0.5)
    labels = {"supervisor": hosts[2], "dimension": "height"}
    scrapes.drop("storm_supervisor_coordinate_seconds", **labels)
    scrapes.add("storm_supervisor_coordinate_seconds", height_seconds, **labels)
    distances = build(scrapes, replace(VIEW, supervisors=machines)).distances
    assert set(distances.places.coordinate_of) == {"s1", "s2"}


def test_nobody_measured_distances(scrapes: Scrapes) -> None:
    distances = build(scrapes).distances
    assert (dict(distances.round_trip_ms), distances.default_ms) == ({}, 1.0)


def test_agents_that_know_of_no_other_are_a_problem(scrapes: Scrapes) -> None:
    for host in (HOST1, HOST2):
        scrapes.add("storm_agent_uptime_seconds", 300.0, 310.0, supervisor=host)
    seen = build(scrapes)
    assert seen.completeness.problems == (
        "no agent measures its way to another: supervisors are taken to be 1 ms apart, and to answer always; give each"
        " agent the others as --peer HOST=ADDRESS:PORT, HOST being their storm.local.hostname",
    )
    assert seen.completeness.ratio == 1.0, "it holds up nothing"
    assert seen.distances.are_assumed
    scrapes.add("storm_supervisor_round_trip_seconds", 0.003, supervisor=HOST1, peer="another-name")
    assert build(scrapes).distances.are_assumed
    scrapes.add("storm_supervisor_round_trip_seconds", 0.003, supervisor=HOST1, peer=HOST2)
    assert build(scrapes).completeness.problems == ()


@pytest.mark.parametrize("machines", [MACHINES, MACHINES[:1]], ids=["one has just begun", "there is one alone"])
def test_agents_that_cannot_know_another_yet_are_none(scrapes: Scrapes, machines: tuple[Supervisor, ...]) -> None:
    scrapes.add("storm_agent_uptime_seconds", 300.0, 310.0, supervisor=HOST1)
    scrapes.add("storm_agent_uptime_seconds", 1.0, 11.0, supervisor=HOST2)
    problems = build(scrapes, replace(VIEW, supervisors=machines)).completeness.problems
    assert not any("--peer" in problem for problem in problems)


def test_latency_and_rates_of_a_topology(scrapes: Scrapes) -> None:
    histogram = {"supervisor": HOST1, "topology_id": "words", "component": "spout", "executor": SPOUT.label}
    for bound, count in (("0.001", 0.0), ("0.002", 50.0), ("0.004", 100.0), ("+Inf", 100.0)):
        scrapes.add("storm_complete_latency_seconds_bucket", 7.0, 7.0 + count, **histogram, le=bound)
    scrapes.add("storm_complete_latency_seconds_sum", 1.0, 1.25, **histogram)
    rates = build(scrapes).rates["words"]
    assert (rates.acked_per_second, rates.failed_per_second) == (300.0, 0.0)
    assert rates.latency is not None
    assert (rates.latency.p50_ms, rates.latency.mean_ms) == pytest.approx((2.0, 2.5))


def test_latency_that_a_spout_had_beside_another_supervisor_does_not_count(scrapes: Scrapes) -> None:
    for host, bound, seconds in ((HOST1, "0.002", 0.2), (HOST2, "8.0", 800.0)):
        histogram = {"supervisor": host, "topology_id": "words", "component": "spout", "executor": SPOUT.label}
        scrapes.add("storm_complete_latency_seconds_bucket", 0.0, 100.0, **histogram, le=bound)
        scrapes.add("storm_complete_latency_seconds_bucket", 0.0, 100.0, **histogram, le="+Inf")
        scrapes.add("storm_complete_latency_seconds_sum", 0.0, seconds, **histogram)
    latency = build(scrapes).rates["words"].latency
    assert latency is not None
    assert (latency.mean_ms, latency.count) == pytest.approx((2.0, 100.0))


@pytest.mark.parametrize("bad", ["bucket", "sum"])
def test_histogram_with_a_count_that_is_no_number_is_unknown(scrapes: Scrapes, bad: str) -> None:
    histogram = {"supervisor": HOST1, "topology_id": "words", "component": "spout", "executor": SPOUT.label}
    for bound in ("0.002", "+Inf"):
        scrapes.add("storm_complete_latency_seconds_bucket", 0.0, 100.0, **histogram, le=bound)
    scrapes.add("storm_complete_latency_seconds_sum", 0.0, 0.2, **histogram)
    assert build(scrapes).rates["words"].latency is not None
    le = {"le": "0.002"} if bad == "bucket" else {}
    scrapes.add(f"storm_complete_latency_seconds_{bad}", 0.0, math.nan, **histogram, **le)
    assert build(scrapes).rates["words"].latency is None


@pytest.mark.parametrize("bound", ["", "many", "NaN"])
def test_histogram_with_a_bound_that_is_no_number_is_unknown(scrapes: Scrapes, bound: str) -> None:
    histogram = {"supervisor": HOST1, "topology_id": "words", "component": "spout", "executor": SPOUT.label}
    scrapes.add("storm_complete_latency_seconds_bucket", 0.0, 5.0, **histogram, le=bound)
    assert build(scrapes).rates["words"].latency is None


def test_rates_are_unknown_while_a_spout_is_missing(scrapes: Scrapes) -> None:
    scrapes.drop("storm_executor_emitted_tuples_total", executor=SPOUT.label)
    rates = build(scrapes).rates["words"]
    assert (rates.acked_per_second, rates.failed_per_second, rates.latency) == (None, None, None)


def test_rates_of_one_spout_of_two_are_not_taken_for_those_of_the_topology(scrapes: Scrapes) -> None:
    words = chain_topology("words", ("spout", 2), ("count", 1))
    slots = placed(words, {"spout": ["s1", "s2"], "count": "s1"})
    view = ClusterView(MACHINES, (words,), Assignment(slots))
    scrapes.add_topology(words, slots, HOSTS)
    assert build(scrapes, view).rates["words"].acked_per_second == 600.0
    scrapes.drop("storm_executor_emitted_tuples_total", executor=words.executors[1].label)
    rates = build(scrapes, view).rates["words"]
    assert (rates.acked_per_second, rates.failed_per_second) == (None, None)


def test_process_ids_by_slot(scrapes: Scrapes) -> None:
    assert build(scrapes).worker_pids == {slot("s1"): 10700, slot("s2"): 10700}


def test_history_ends_with_this_period(scrapes: Scrapes) -> None:
    before = LoadPeriod(NOW - 10.0, 10.0, {}, {})
    history = build(scrapes, history=(before,)).history
    assert history[0] == before
    assert history[1].ended_at_seconds == NOW
    load = history[1].components["words", "count"]
    assert (load.executed_per_second, load.cpu_millicores) == pytest.approx((600.0, 200.0))
    assert history[1].supervisor_cpu_millicores == pytest.approx({"s1": 500.0, "s2": 500.0})


def test_incomplete_topology_is_not_remembered(scrapes: Scrapes) -> None:
    other = chain_topology("other", ("spout", 1))
    slots = {**SLOTS, **placed(other, {"spout": "s2:6701"})}
    view = ClusterView(MACHINES, (WORDS, other), Assignment(slots))
    assert {topology for topology, _ in build(scrapes, view).history[-1].components} == {"words"}


def test_topology_with_an_executor_that_is_not_placed_is_not_remembered(scrapes: Scrapes) -> None:
    view = replace(VIEW, assignment=Assignment({e: s for e, s in SLOTS.items() if e != COUNT_B}))
    snapshot = build(scrapes, view)
    assert snapshot.completeness.ratio == 1.0
    assert snapshot.history == ()


def test_history_keeps_the_last_sixty_and_no_period_twice(scrapes: Scrapes) -> None:
    old = tuple(LoadPeriod(NOW - 10.0 * age, 10.0, {}, {}) for age in range(70, -1, -1))
    history = build(scrapes, history=old).history
    assert len(history) == 60
    assert [period.ended_at_seconds for period in history][-2:] == [NOW - 10.0, NOW]


def test_executor_on_a_supervisor_that_nimbus_no_longer_sees(scrapes: Scrapes) -> None:
    view = replace(VIEW, assignment=Assignment({**SLOTS, COUNT_A: WorkerSlot("gone", 6700)}))
    snapshot = build(scrapes, view)
    assert snapshot.completeness.missing_executors == (COUNT_A,)
    assert "not among those that Nimbus sees" in snapshot.completeness.problems[0]


def test_empty_cluster_is_complete() -> None:
    snapshot = build(Scrapes(NOW), ClusterView((), (), Assignment({})))
    assert (snapshot.completeness.ratio, snapshot.loads, snapshot.history) == (1.0, {}, ())


def test_result_does_not_depend_on_the_order_of_series(scrapes: Scrapes) -> None:
    forward = build(scrapes)
    scrapes.samples = dict(reversed(scrapes.samples.items()))
    backward = build(scrapes)
    assert list(forward.traffic.pairs()) == list(backward.traffic.pairs())
    assert (forward.loads, forward.completeness, forward.history) == (
        backward.loads,
        backward.completeness,
        backward.history,
    )
