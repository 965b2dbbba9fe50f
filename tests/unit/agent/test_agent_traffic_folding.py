from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_operator.agent.traffic_folding import REVIEW_SECONDS, FoldedTraffic, Pair, TrafficFolding


def pair(target: int, source: int = 1) -> Pair:
    return ("t", source, "default", target)


def totals(**by_target: float) -> Mapping[Pair, float]:
    return {pair(int(name[1:])): count for name, count in by_target.items()}


def named(folded: FoldedTraffic) -> dict[int, float]:
    return {key[3]: total for key, total in folded.pairs}


def fold_of(folded: FoldedTraffic) -> float:
    return sum(total for _, total in folded.folds)


def test_nothing_is_folded_up_to_the_limit() -> None:
    folded = TrafficFolding(2).fold(totals(t1=5.0, t2=7.0), 0.0)
    assert named(folded) == {1: 5.0, 2: 7.0}
    assert folded.folds == []
    assert not folded.folded_pairs
    assert not folded.folded_tuples


def test_beyond_the_limit_the_smallest_are_folded_by_source_and_stream() -> None:
    flows = {**totals(t1=5.0, t2=70.0, t3=6.0), pair(9, source=2): 4.0}
    folded = TrafficFolding(1).fold(flows, 0.0)
    assert named(folded) == {2: 70.0}
    assert dict(folded.folds) == {("t", 1, "default"): 11.0, ("t", 2, "default"): 4.0}
    assert folded.folded_pairs == {"t": 3}
    assert folded.folded_tuples == {"t": 15.0}


def test_a_pair_that_grows_takes_another_s_place_in_a_review_and_no_tuple_is_counted_twice() -> None:
    folding = TrafficFolding(1)
    folding.fold(totals(t1=100.0, t2=10.0), 0.0)
    early = folding.fold(totals(t1=101.0, t2=500.0), REVIEW_SECONDS / 2)
    assert named(early) == {1: 101.0}
    assert fold_of(early) == 500.0
    late = folding.fold(totals(t1=102.0, t2=700.0), REVIEW_SECONDS)
    assert named(late) == {2: 200.0}
    assert fold_of(late) == 501.0


def test_reviews_go_on_when_the_clock_is_set_back() -> None:
    folding = TrafficFolding(1)
    folding.fold(totals(t1=100.0, t2=10.0), 7200.0)
    assert named(folding.fold(totals(t1=101.0, t2=500.0), 0.0)) == {2: 490.0}
    assert named(folding.fold(totals(t1=900.0, t2=501.0), REVIEW_SECONDS / 2)) == {2: 491.0}
    assert named(folding.fold(totals(t1=901.0, t2=502.0), REVIEW_SECONDS)) == {1: 101.0}


def test_a_pair_that_carries_only_somewhat_more_stays_folded() -> None:
    folding = TrafficFolding(1)
    folding.fold(totals(t1=100.0, t2=10.0), 0.0)
    assert named(folding.fold(totals(t1=200.0, t2=190.0), REVIEW_SECONDS)) == {1: 200.0}


def test_a_place_that_is_free_is_taken_at_once() -> None:
    folding = TrafficFolding(1)
    folding.fold(totals(t1=100.0, t2=10.0, t3=20.0), 0.0)
    assert named(folding.fold(totals(t2=11.0, t3=25.0), 1.0)) == {3: 5.0}


def test_a_pair_that_was_away_goes_on_where_it_was() -> None:
    folding = TrafficFolding(1)
    folding.fold(totals(t1=100.0, t2=10.0), 0.0)
    folding.fold(totals(t1=101.0), 1.0)
    back = folding.fold(totals(t1=102.0, t2=13.0), 2.0)
    assert named(back) == {1: 102.0}
    assert fold_of(back) == 13.0


def test_what_left_for_good_is_forgotten() -> None:
    folding = TrafficFolding(1)
    folding.fold(totals(t1=100.0, t2=10.0), 0.0)
    folding.forget_unless(lambda key: key == pair(1))
    anew = folding.fold(totals(t1=100.0, t2=3.0), 1.0)
    assert fold_of(anew) == 13.0
    folding.forget_unless(lambda _: False)
    assert folding.fold({}, 2.0) == FoldedTraffic([], [], {}, {})
    assert fold_of(folding.fold(totals(t1=100.0, t2=3.0), 3.0)) == 3.0
    folding.forget_unless(lambda _: False)
    assert named(folding.fold(totals(t2=5.0), 4.0)) == {2: 5.0}


def test_what_stays_is_remembered_when_others_are_forgotten() -> None:
    folding = TrafficFolding(1)
    folding.fold(totals(t1=100.0, t2=10.0, t3=1.0), 0.0)
    folding.forget_unless(lambda key: key != pair(3))
    late = folding.fold(totals(t1=101.0, t2=700.0), REVIEW_SECONDS)
    assert (named(late), fold_of(late)) == ({2: 690.0}, 12.0), "each tuple of the second and first is in one series"
    assert late.folded_tuples == {"t": 12.0}


Steps = st.lists(st.dictionaries(st.integers(1, 6), st.integers(0, 50), max_size=6), min_size=1, max_size=12)


@pytest.mark.slow
@given(Steps, st.integers(1, 4), st.integers(1, 90))
def test_series_never_fall_and_every_tuple_is_in_exactly_one(
    steps: list[dict[int, int]], limit: int, step_seconds: int
) -> None:
    folding = TrafficFolding(limit)
    counted: dict[Pair, float] = {}
    shown: dict[object, float] = {}
    for number, step in enumerate(steps):
        for target, growth in step.items():
            counted[pair(target)] = counted.get(pair(target), 0.0) + growth
        present = {pair(target): counted[pair(target)] for target in step}
        folded = folding.fold(present, float(number * step_seconds))
        assert len(folded.pairs) <= limit
        assert sum(folded.folded_pairs.values()) == len(present) - len(folded.pairs)
        for series, total in (*folded.pairs, *folded.folds):
            assert total >= shown.get(series, 0.0)
            shown[series] = total
        assert sum(shown.values()) == sum(counted.values())
