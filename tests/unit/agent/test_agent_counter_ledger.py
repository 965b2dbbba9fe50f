from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from storm_operator.agent.counter_ledger import CounterLedger


def test_first_worker_is_shown_as_it_counts() -> None:
    ledger = CounterLedger()
    assert ledger.total("a", 1, 5.0, 0.0) == 5.0
    assert ledger.total("a", 1, 8.0, 1.0) == 8.0


def test_new_worker_adds_to_what_the_old_one_last_showed() -> None:
    ledger = CounterLedger()
    ledger.total("a", 1, 100.0, 0.0)
    assert ledger.total("a", 2, 3.0, 1.0) == 103.0
    assert ledger.total("a", 2, 4.0, 2.0) == 104.0
    assert ledger.total("a", 3, 0.0, 3.0) == 104.0


def test_old_worker_that_is_read_after_the_new_one_adds_what_it_has_counted_since() -> None:
    ledger = CounterLedger()
    ledger.total("a", 1, 100.0, 0.0)
    assert ledger.total("a", 2, 3.0, 1.0) == 103.0
    assert ledger.total("a", 1, 104.0, 1.0) == 107.0
    assert ledger.total("a", 2, 5.0, 2.0) == 109.0
    assert ledger.total("a", 3, 1.0, 3.0) == 110.0


def test_worker_that_outlives_others_which_counted_beside_it_is_never_counted_again() -> None:
    """One that was silent, so that its executors ran elsewhere on its supervisor for a while, and then was so again."""
    ledger = CounterLedger()
    readings = [("silent", 1000.0), ("second", 5.0), ("silent", 1001.0), ("third", 7.0), ("silent", 1002.0)]
    totals = [ledger.total("a", worker, value, 0.0) for worker, value in readings]
    assert totals == [1000.0, 1005.0, 1006.0, 1013.0, 1014.0]
    assert ledger.total("a", "third", 8.0, 1.0) == 1015.0
    assert ledger.total("a", "second", 6.0, 1.0) == 1016.0


def test_series_do_not_mix() -> None:
    ledger = CounterLedger()
    ledger.total("a", 1, 100.0, 0.0)
    assert ledger.total("b", 1, 3.0, 0.0) == 3.0


def test_series_that_was_away_goes_on() -> None:
    ledger = CounterLedger()
    ledger.total("a", 1, 100.0, 0.0)
    ledger.forget_unseen_since(-1.0)
    assert ledger.total("a", 2, 1.0, 50.0) == 101.0


def test_series_unseen_for_long_is_forgotten() -> None:
    ledger = CounterLedger()
    ledger.total("a", 1, 100.0, 0.0)
    ledger.total("b", 1, 100.0, 10.0)
    ledger.forget_unseen_since(5.0)
    assert len(ledger) == 1
    assert ledger.total("a", 2, 1.0, 11.0) == 1.0


def test_series_that_is_seen_again_and_again_is_not_forgotten() -> None:
    ledger = CounterLedger()
    for now_seconds in (0.0, 10.0):
        ledger.total("a", 1, 100.0, now_seconds)
        ledger.totals([("b", 100.0)], 1, now_seconds)
    ledger.forget_unseen_since(5.0)
    assert ledger.total("a", 2, 1.0, 11.0) == 101.0
    assert ledger.totals([("b", 1.0)], 2, 11.0) == {"b": 101.0}


def test_slip_of_the_counter_does_not_lower_the_total() -> None:
    ledger = CounterLedger()
    ledger.total("a", 1, 10.0, 0.0)
    assert ledger.total("a", 1, 9.0, 1.0) == 10.0
    assert ledger.total("a", 1, 11.0, 2.0) == 11.0


def test_series_of_a_worker_counted_from_zero_begin_there_and_never_fall() -> None:
    ledger = CounterLedger()
    ledger.count_from_zero([1])
    assert ledger.total("a", 1, 3600.0, 0.0) == 0.0
    ledger.count_from_zero([])
    assert ledger.total("a", 1, 3601.0, 1.0) == 1.0
    assert ledger.total("a", 2, 2.0, 2.0) == 3.0
    assert ledger.total("b", 1, 5.0, 2.0) == 5.0


def test_the_past_of_a_worker_counted_from_zero_adds_nothing_to_a_dead_ones_last_words() -> None:
    ledger = CounterLedger()
    ledger.count_from_zero([1, 2])
    assert ledger.total("a", 1, 50.0, 0.0) == 0.0
    assert ledger.total("a", 2, 1e9, 0.0) == 0.0
    ledger.count_from_zero([])
    assert ledger.total("a", 2, 1e9 + 7.0, 1.0) == 7.0


@given(st.lists(st.lists(st.floats(0, 1e6), min_size=1), min_size=1))
def test_never_falls_and_ends_at_the_sum_of_what_each_worker_last_showed(growth: list[list[float]]) -> None:
    ledger = CounterLedger()
    shown = []
    expected = 0.0
    for worker, steps in enumerate(growth):
        count = 0.0
        for step in steps:
            count += step
            shown.append(ledger.total("a", worker, count, 0.0))
        expected += count
    assert shown == sorted(shown)
    assert abs(shown[-1] - expected) <= 1e-9 * max(1.0, expected)
