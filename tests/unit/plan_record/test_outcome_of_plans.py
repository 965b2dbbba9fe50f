"""By what figures a plan is judged: what spouts emit, and how long tuples wait."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import chain_topology, placed, snapshot, supervisors
from kube_builders import plan_record
from storm_operator.core.model import Executor, ExecutorLoad
from storm_operator.core.plan_outcome import no_longer_timed, outcome_of
from storm_operator.core.plan_record import Outcome
from storm_operator.core.snapshot import LatencySummary, TopologyRates
from storm_operator.core.verify import judge, why_no_verdict

WORDS = chain_topology("words", ("spout", 1), ("split", 2))
EMITS = ExecutorLoad(100.0, 500.0, 500.0, 500.0)
EXECUTES = 250.0


def measured(
    *queues: tuple[float | None, float],
    emits: ExecutorLoad = EMITS,
    executes: float | None = EXECUTES,
    latency_ms: float | None = None,
) -> Outcome:
    """With one (length, growth) for each of the two bolts."""
    spout, *bolts = WORDS.executors
    loads = {spout: emits} | {
        bolt: ExecutorLoad(executed_per_second=executes, queue_length=length, queue_growth_per_second=growth)
        for bolt, (length, growth) in zip(bolts, queues, strict=True)
    }
    places = placed(WORDS, {"spout": "s1", "split": ["s1", "s2"]})
    latency = None if latency_ms is None else LatencySummary(latency_ms, latency_ms, latency_ms, 100)
    rates = {WORDS.id: TopologyRates(0.0, 0.0, latency)}
    return outcome_of(snapshot((WORDS,), supervisors(2), places, loads=loads, topology_rates=rates), (WORDS.id,))


@pytest.mark.parametrize(
    ("queues", "waiting_ms"),
    [
        (((0.0, 0.0), (0.0, 0.0)), 0.0),
        (((1000.0, 0.0), (500.0, 5.0)), 3000.0),
        (((1000.0, -100.0), (500.0, 0.0)), 1000.0),
        (((1000.0, -1.0), (500.0, 0.0)), 3000.0),
        (((None, 0.0), (500.0, 0.0)), None),
        (((1.0, 0.1), (1.0, 0.0)), 0.0),
    ],
    ids=["empty", "full", "one is worked off", "hardly", "one is unknown", "flush tuples of Storm's own"],
)
def test_what_waits_in_queues_tells_how_long(
    queues: tuple[tuple[float | None, float], ...], waiting_ms: float | None
) -> None:
    outcome = measured(*queues)
    assert (outcome.emitted_per_second, outcome.waiting_ms) == (500.0, waiting_ms)


@pytest.mark.parametrize(("executes", "queued", "waiting_ms"), [(0.0, 0.0, 0.0), (0.0, 9.0, None), (None, 9.0, None)])
def test_nobody_knows_how_long_tuples_wait_where_none_are_executed(
    executes: float | None, queued: float, waiting_ms: float | None
) -> None:
    assert measured((queued, 0.0), (queued, 0.0), executes=executes).waiting_ms == waiting_ms


def test_a_bolt_that_stands_still_while_its_queue_grows_makes_a_plan_worse() -> None:
    """What lies there has waited for as long as it took to come."""
    still = measured((9000.0, 300.0), (9000.0, 300.0), executes=0.0)
    assert still.waiting_ms == 30_000.0
    record = replace(plan_record(), before=measured((0.0, 0.0), (0.0, 0.0)))
    assert why_no_verdict(record, still) == ""
    assert judge(record, still, 25.0).worse


def test_no_plan_is_worse_for_a_flush_tuple_that_lies_in_the_queue_of_a_bolt_with_little_to_do() -> None:
    """Of a topology that batches and never acks; of what it executes nothing at all in a period, too."""
    before, after = (measured((length, 0.0), (0.0, 0.0), executes=0.2) for length in (0.0, 1.0))
    record = replace(plan_record(), before=before)
    assert not why_no_verdict(record, after)
    assert not judge(record, after, 25.0).worse
    assert measured((1.0, 0.0), (0.0, 0.0), executes=0.0).waiting_ms == 0.0


@pytest.mark.parametrize(("latency_ms", "waiting_ms"), [(8.0, None), (0.0, 3000.0), (None, 3000.0)])
def test_waiting_is_told_where_no_complete_latency_is(latency_ms: float | None, waiting_ms: float | None) -> None:
    assert measured((1000.0, 0.0), (500.0, 0.0), latency_ms=latency_ms).waiting_ms == waiting_ms


def test_what_others_emit_and_what_waits_for_them_is_not_counted() -> None:
    other = chain_topology("lines", ("spout", 1), ("split", 1))
    theirs = dict.fromkeys(other.executors, replace(EMITS, queue_length=9000.0, queue_growth_per_second=0.0))
    own = dict.fromkeys(WORDS.executors, replace(EMITS, queue_length=0.0, queue_growth_per_second=0.0))
    outcome = outcome_of(snapshot((other, WORDS), supervisors(1), loads=theirs | own), (WORDS.id,))
    assert (outcome.emitted_per_second, outcome.waiting_ms) == (500.0, 0.0)


def outcome_of_two(words: TopologyRates, lines: TopologyRates, timed_before: tuple[str, ...] | None = None) -> Outcome:
    other = chain_topology("lines", ("spout", 1))
    both = (WORDS.id, other.id)
    rates = dict(zip(both, (words, lines), strict=True))
    places = placed(WORDS, {"spout": "s1", "split": "s1"}) | placed(other, {"spout": "s1"})
    return outcome_of(snapshot((WORDS, other), supervisors(1), places, topology_rates=rates), both, timed_before)


def test_of_several_topologies_the_latency_is_that_of_the_slowest() -> None:
    quick, slow = LatencySummary(3.0, 2.0, 90.0, 100), LatencySummary(5.0, 4.0, 9.0, 100)
    for two in ((quick, slow), (slow, quick)):
        words, lines = (TopologyRates(10.0, 0.0, one) for one in two)
        outcome = outcome_of_two(words, lines)
        figures = (outcome.complete_latency_mean_ms, outcome.complete_latency_p50_ms, outcome.complete_latency_p99_ms)
        assert figures == (slow.mean_ms, slow.p50_ms, slow.p99_ms)


@pytest.mark.parametrize(("timed_before", "p50_ms"), [(None, 4.0), ((WORDS.id,), 2.0), ((), 4.0)])
def test_latency_is_of_those_that_can_be_compared_and_of_all_where_none_can(
    timed_before: tuple[str, ...] | None, p50_ms: float
) -> None:
    quick, slow = (TopologyRates(10.0, 0.0, LatencySummary(9.0, p50, 90.0, 100)) for p50 in (2.0, 4.0))
    assert outcome_of_two(quick, slow, timed_before).complete_latency_p50_ms == p50_ms


def test_a_topology_that_is_no_longer_timed_does_not_hide_behind_another() -> None:
    acks, never = TopologyRates(1000.0, 0.0, LatencySummary(5.0, 5.0, 5.0, 100)), TopologyRates(0.0, 0.0)
    rates = {"acks-1-1": acks, "stopped-1-1": never, "acks-never-1-1": never}
    seen = snapshot((), supervisors(1), topology_rates=rates)
    assert no_longer_timed(seen, ("acks-1-1", "stopped-1-1", "ended-1-1")) == ("stopped-1-1",)
    assert no_longer_timed(seen, None) == ()


@pytest.mark.parametrize(("other", "acked"), [(5.0, 15.0), (None, None)])
def test_throughput_is_unknown_where_that_of_one_topology_is(other: float | None, acked: float | None) -> None:
    assert outcome_of_two(TopologyRates(10.0), TopologyRates(other)).acked_per_second == acked


def test_traffic_is_unknown_where_an_executor_of_the_plans_own_topologies_is() -> None:
    other = chain_topology("lines", ("spout", 1))
    places = placed(WORDS, {"spout": "s1", "split": "s2"}) | placed(other, {"spout": "s1"})
    pair = (WORDS.executors[0], WORDS.executors[1])

    def traffic(*missing: Executor) -> float | None:
        seen = snapshot((WORDS, other), supervisors(2), places, rates={pair: 70.0}, missing=missing)
        return outcome_of(seen, (WORDS.id,)).inter_supervisor_tuples_per_second

    assert (traffic(), traffic(*other.executors), traffic(WORDS.executors[2])) == (70.0, 70.0, None)


@pytest.mark.parametrize(
    ("seen", "traffic"),
    [
        (ExecutorLoad(None, 0.0, 0.0, 0.0, 0.0, 0.0), 70.0),
        (ExecutorLoad(None, 0.0, 0.0, 0.1, 1.0, 0.1), 70.0),
        (ExecutorLoad(None, 0.0, 0.0, 500.0, 9000.0, 500.0), None),
        (ExecutorLoad(None, 0.0, 0.0, 0.0, 9000.0, 0.0), None),
        (ExecutorLoad(None, 0.0, 0.0), None),
        (ExecutorLoad(None, 30.0, 0.0, 30.0, 0.0, 0.0), None),
        (ExecutorLoad(None, 0.0, None, 0.0, 0.0, 0.0), None),
        (ExecutorLoad(), None),
    ],
    ids=[
        "never got a tuple",
        "a flush of Storm's own waits",
        "it has not come up",
        "nor has it with a queue that is full",
        "its queue is unknown",
        "got one",
        "one count is unknown",
        "nobody saw it",
    ],
)
def test_an_executor_that_never_got_a_tuple_sends_nothing(seen: ExecutorLoad, traffic: float | None) -> None:
    """Its thread is not known, so that it is not measured completely, for as long as it idles."""
    places = placed(WORDS, {"spout": "s1", "split": "s2"})
    spout, busy, idle = WORDS.executors
    sent = {(spout, busy): 70.0}
    told = snapshot((WORDS,), supervisors(2), places, loads={idle: seen}, rates=sent, missing=(idle,))
    assert outcome_of(told, (WORDS.id,)).inter_supervisor_tuples_per_second == traffic


def test_of_a_topology_that_nobody_sees_nothing_is_known() -> None:
    outcome = outcome_of(snapshot((), supervisors(1)), (WORDS.id,))
    assert (outcome.acked_per_second, outcome.complete_latency_p50_ms, outcome.emitted_per_second) == (None, None, None)
