"""Failed tuples of a plan: which counters of executors that move are kept, and what they tell."""

from __future__ import annotations

from storm_operator.core.metrics_window import SeriesKey
from storm_operator.core.plan_progress import failed_since, with_first_failures


def counter(executor: str, host: str, port: str = "6700", topology_id: str = "words-1") -> str:
    """As the agents' probe names it."""
    labels = {
        "supervisor": host,
        "topology_id": topology_id,
        "component": "split",
        "executor": executor,
        "port": port,
    }
    return str(SeriesKey.of("storm_executor_failed_tuples_total", labels))


def test_counter_of_a_place_that_an_executor_has_left_is_not_kept() -> None:
    before = {counter("1-1", "a"): 10.0, counter("2-2", "a"): 20.0, counter("3-3", "a"): 30.0}
    seen = {counter("1-1", "a"): 12.0, counter("2-2", "b"): 5.0, counter("3-3", "a", port="6701"): 0.0}
    kept = with_first_failures(before, seen)
    assert kept == {**seen, counter("1-1", "a"): 10.0}
    assert failed_since(kept, {**seen, counter("2-2", "b"): 6.0}) == 3.0


def test_counter_of_an_executor_that_is_seen_nowhere_yet_is_kept() -> None:
    before = {counter("1-1", "a"): 10.0, counter("2-2", "a"): 20.0}
    seen = {counter("1-1", "b"): 0.0, counter("2-2", "b", topology_id="other-1"): 0.0}
    kept = with_first_failures(before, seen)
    assert kept == {**seen, counter("2-2", "a"): 20.0}
    assert failed_since(kept, {**seen, counter("2-2", "a"): 24.0}) == 4.0, "its worker was only slow to start"


def test_counter_of_a_worker_on_its_way_out_is_kept_beside_the_one_in_its_place() -> None:
    before = {counter("1-1", "a"): 10.0}
    seen = {counter("1-1", "a"): 11.0, counter("1-1", "b"): 0.0}
    assert with_first_failures(before, seen) == {counter("1-1", "a"): 10.0, counter("1-1", "b"): 0.0}


def test_what_was_unknown_stays_so() -> None:
    assert with_first_failures(None, {counter("1-1", "a"): 1.0}) is None
    assert with_first_failures({counter("1-1", "a"): 1.0}, None) == {counter("1-1", "a"): 1.0}
