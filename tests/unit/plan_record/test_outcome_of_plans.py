"""By what figures a plan is judged: what spouts emit, and how long tuples wait."""

from __future__ import annotations

import pytest

from builders import chain_topology, placed, snapshot, supervisors
from storm_operator.core.model import ExecutorLoad
from storm_operator.core.plan_outcome import outcome_of
from storm_operator.core.plan_record import Outcome
from storm_operator.core.snapshot import LatencySummary, TopologyRates

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
    ],
    ids=["empty", "full", "one is worked off", "hardly", "one is unknown"],
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


@pytest.mark.parametrize(("latency_ms", "waiting_ms"), [(8.0, None), (0.0, 3000.0), (None, 3000.0)])
def test_waiting_is_told_where_no_complete_latency_is(latency_ms: float | None, waiting_ms: float | None) -> None:
    assert measured((1000.0, 0.0), (500.0, 0.0), latency_ms=latency_ms).waiting_ms == waiting_ms
