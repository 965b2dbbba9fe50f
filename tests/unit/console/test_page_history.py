"""The last hours in bounded memory."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_operator.console.history import FULL_SECONDS, SPACINGS, History, KeptPass


def one(number: int, at: float, size: int = 10) -> KeptPass:
    return KeptPass(number, at, b"v" * size, b"", b"")


@cache
def recorded(period: float, hours: float, size: int = 10, most_bytes: int = 10**9) -> History:
    history = History()
    for number in range(1, int(hours * 3600 / period) + 1):
        history = history.having(one(number, number * period, size), most_bytes)
    return history


@pytest.mark.slow
def test_all_of_the_last_minutes_are_kept_and_older_ones_thinned_out() -> None:
    history = recorded(10.0, 14.0)
    now = 14.0 * 3600.0
    ages = [now - kept.at_seconds for kept in history.passes]
    assert len([age for age in ages if age <= FULL_SECONDS]) == FULL_SECONDS / 10.0 + 1
    longest, spacing = SPACINGS[-1]
    assert max(ages) <= longest
    assert max(ages) > longest - 2 * spacing
    bound = FULL_SECONDS / 10.0 + sum(up_to / every for up_to, every in SPACINGS) + 3
    assert len(history.passes) <= bound


def test_no_gap_is_longer_than_twice_the_spacing_of_its_age() -> None:
    history = recorded(10.0, 14.0)
    for older, newer in zip(history.passes, history.passes[1:], strict=False):
        age = 14.0 * 3600.0 - older.at_seconds
        spacing = 10.0 if age <= FULL_SECONDS else next(s for up_to, s in SPACINGS if age <= up_to)
        assert newer.at_seconds - older.at_seconds <= 2 * spacing


def test_beyond_its_bytes_the_oldest_go_and_the_newest_stays() -> None:
    history = recorded(10.0, 0.2, size=1000, most_bytes=5500)
    assert [kept.number for kept in history.passes] == [68, 69, 70, 71, 72]
    assert recorded(10.0, 0.1, size=1000, most_bytes=10).passes[0].number == 36


@given(st.lists(st.floats(0.1, 400.0), min_size=1, max_size=60))
def test_a_pass_is_found_by_its_time_whatever_the_gaps(gaps: list[float]) -> None:
    history, at = History(), 0.0
    for number, gap in enumerate(gaps, start=1):
        at += gap
        history = history.having(one(number, at))
    for kept in history.passes:
        assert history.at(kept.at_seconds) is kept
        assert history.since(kept.number - 1)[0] is kept
    assert history.at(0.0) is history.passes[0]
    assert history.newest is not None
    assert history.newest.at_seconds == at
    assert History().at(1.0) is None


def test_after_the_clock_was_set_back_a_pass_is_found_by_its_time() -> None:
    times = [*(7200.0 + 10.0 * number for number in range(20)), *(10.0 * number for number in range(6))]
    history = History()
    for number, at in enumerate(times, start=1):
        history = history.having(one(number, at))
    for kept in history.passes:
        assert history.at(kept.at_seconds + 0.001) is kept
