"""What is read of executors and workers before a plan and after it, and what a record says of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import chain_topology, snapshot, supervisors
from kube_builders import UNKNOWN, plan, plan_record
from storm_operator.core.model import ExecutorLoad
from storm_operator.core.plan_progress import count_kept
from storm_operator.core.plan_record import PlanState, WorkerSeen, busy_executors, timed_topologies
from storm_operator.core.snapshot import LatencySummary, TopologyRates

(KEPT,) = plan().kept_workers


@pytest.mark.parametrize(("pid_now", "kept"), [(70, 1), (71, 0), (None, None)], ids=["the same", "another", "unseen"])
def test_a_worker_was_kept_where_its_process_still_is_the_same(pid_now: int | None, kept: int | None) -> None:
    record = plan_record(worker_pids_before={KEPT: 70})
    seen = {} if pid_now is None else {KEPT: WorkerSeen(pid_now, frozenset(), frozenset())}
    assert count_kept(record, seen) == kept
    assert count_kept(plan_record(), seen) is None, "nobody saw it before"


def test_executors_that_handle_a_tuple_a_second_are_busy() -> None:
    line, other = chain_topology("line", ("spout", 1), ("a", 2)), chain_topology("other", ("spout", 1))
    spout, often, seldom = line.executors
    handled = {spout: None, often: 1.0, seldom: 0.9, other.executors[0]: 500.0}
    loads = {executor: ExecutorLoad(executed_per_second=rate) for executor, rate in handled.items()}
    assert busy_executors(snapshot((line, other), supervisors(1), loads=loads), ("line",)) == (often,)


def test_topologies_whose_complete_latency_is_known_are_timed() -> None:
    latency = LatencySummary(8.0, 8.0, 8.0, 100)
    rates = {"acks": TopologyRates(10.0, 0.0, latency), "acks-never": TopologyRates(0.0)}
    seen = snapshot((), supervisors(1), topology_rates=rates)
    assert timed_topologies(seen, ("acks", "acks-never", "unseen")) == ("acks",)


def test_what_a_plan_brought_is_unknown_where_nothing_told_of_load_before_it() -> None:
    verified = plan_record(PlanState.VERIFIED)
    assert verified.effect_is_unknown
    assert not plan_record(PlanState.SETTLING).effect_is_unknown
    assert not replace(verified, rollback_of="p-0").effect_is_unknown, "a way back is not judged"
    assert not replace(verified, before=replace(UNKNOWN, acked_per_second=100.0)).effect_is_unknown
