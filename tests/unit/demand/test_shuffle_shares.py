"""Who would get the tuples under another assignment: shuffle prefers receivers nearby, and their CPU goes with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from builders import graph_topology, placed, slot, snapshot, supervisors
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import ACKER_COMPONENT, Assignment, Edge, Executor, Topology
from storm_operator.core.shuffle_reach import Seats, near_first
from storm_operator.core.shuffle_shares import MOST_PAIRS, ShuffleShares
from storm_operator.core.snapshot import ClusterSnapshot

EDGES = (
    Edge("spout", "default", "split", "shuffle"),
    Edge("split", "default", "count", "fields"),
    Edge("split", "__ack_ack", ACKER_COMPONENT, "fields"),
    Edge(ACKER_COMPONENT, "__ack_ack", "spout", "direct"),
)
WORDS = graph_topology("words", {"spout": 1, "split": 2, "count": 2, ACKER_COMPONENT: 1}, EDGES)
SPOUT, SPLIT_A, SPLIT_B, COUNT_A, COUNT_B, ACKER = WORDS.executors
EVEN = {
    (SPOUT, SPLIT_A): 100.0,
    (SPOUT, SPLIT_B): 100.0,
    (SPLIT_A, COUNT_A): 300.0,
    (SPLIT_A, COUNT_B): 100.0,
    (SPLIT_B, COUNT_A): 300.0,
    (SPLIT_B, COUNT_B): 100.0,
    (SPLIT_A, ACKER): 100.0,
    (SPLIT_B, ACKER): 100.0,
    (ACKER, SPOUT): 200.0,
}
NEEDS = {SPOUT: 20.0, SPLIT_A: 150.0, SPLIT_B: 150.0, COUNT_A: 60.0, COUNT_B: 20.0, ACKER: 10.0}
APART = {"spout": "s1", "split": ["s2", "s3"], "count": "s2", ACKER_COMPONENT: "s1"}
BESIDE_A = {**APART, "split": ["s1", "s3"]}

Places = Mapping[str, str | Sequence[str]]


def shared(
    now: Places,
    then: Places,
    rates: Mapping[tuple[Executor, Executor], float] = EVEN,
    needs: Mapping[Executor, float] = NEEDS,
) -> tuple[ClusterSnapshot, Demand]:
    return shares_of(now, rates, needs).under(Assignment(placed(WORDS, then)))


def shares_of(
    now: Places,
    rates: Mapping[tuple[Executor, Executor], float],
    needs: Mapping[Executor, float],
    words: Topology = WORDS,
) -> ShuffleShares:
    seen = snapshot([words], supervisors(3), placed(words, now), rates=dict(rates))
    limits = {executor: need + 50.0 for executor, need in needs.items()}
    return ShuffleShares.of(seen, Demand(limits, needs, {e: 1.2 * need for e, need in needs.items()}), {"words"})


@pytest.mark.parametrize(
    ("then", "to_a", "to_b"),
    [
        (BESIDE_A, 200.0, 0.0),
        ({**APART, "split": ["s1:6701", "s3"]}, 200.0, 0.0),  # another worker of the same supervisor
        ({**APART, "split": ["s1", "s1:6701"]}, 200.0, 0.0),  # the own worker before the own supervisor
        ({**APART, "split": "s1"}, 100.0, 100.0),
        ({**APART, "split": ["s3", "s2"]}, 100.0, 100.0),
    ],
    ids=["own-worker", "own-supervisor", "worker-first", "both", "neither"],
)
def test_receivers_nearby_get_everything(then: Places, to_a: float, to_b: float) -> None:
    traffic = shared(APART, then)[0].traffic
    assert [traffic.rate(SPOUT, SPLIT_A), traffic.rate(SPOUT, SPLIT_B)] == pytest.approx([to_a, to_b])
    assert traffic.total() == pytest.approx(sum(EVEN.values()))


def test_what_receives_more_sends_more_by_the_same_keys() -> None:
    traffic = shared(APART, BESIDE_A)[0].traffic
    assert [traffic.rate(SPLIT_A, to) for to in (COUNT_A, COUNT_B, ACKER)] == pytest.approx([600.0, 200.0, 200.0])
    assert [traffic.rate(SPLIT_B, to) for to in (COUNT_A, COUNT_B, ACKER)] == [0.0, 0.0, 0.0]
    assert traffic.rate(ACKER, SPOUT) == 200.0


def test_cpu_goes_with_the_tuples_and_limits_only_rise() -> None:
    demand = shared(APART, BESIDE_A)[1]
    assert demand.raw_millicores == pytest.approx({**NEEDS, SPLIT_A: 300.0, SPLIT_B: 0.0})
    assert demand.room_millicores[SPLIT_A] == pytest.approx(360.0)
    assert demand.millicores == pytest.approx({e: need + 50.0 for e, need in NEEDS.items()} | {SPLIT_A: 300.0})


def test_back_from_all_to_one_needs_are_alike_again() -> None:
    """As much as both need now, idling included: CPU neither comes nor goes."""
    all_to_a = shared(APART, BESIDE_A)[0].traffic
    rates = {(a, b): rate for a, b, rate in all_to_a.pairs()}
    seen, demand = shared(BESIDE_A, APART, rates, {**NEEDS, SPLIT_A: 300.0, SPLIT_B: 11.0})
    assert seen.traffic.rate(SPOUT, SPLIT_B) == pytest.approx(100.0)
    assert seen.traffic.rate(SPLIT_B, COUNT_A) == pytest.approx(300.0), "as its component sends for each tuple"
    assert demand.raw_millicores[SPLIT_A] == demand.raw_millicores[SPLIT_B] == pytest.approx(155.5)


def test_a_trickle_tells_nothing_of_what_more_would_bring() -> None:
    """Emitted by the clock, or worked off: 50 tuples a second for half a tuple received."""
    rates = {**EVEN, (SPOUT, SPLIT_A): 199.5, (SPOUT, SPLIT_B): 0.5, (SPLIT_B, COUNT_A): 50.0, (SPLIT_B, COUNT_B): 0.0}
    seen, _ = shared(BESIDE_A, APART, rates)
    assert seen.traffic.rate(SPLIT_B, COUNT_A) == pytest.approx(100.0 * 350.0 / 200.0)


def test_who_sends_for_the_first_time_sends_to_whom_is_near() -> None:
    chain = graph_topology(
        "chain",
        {"spout": 1, "a": 2, "b": 2},
        [Edge("spout", "default", "a", "shuffle"), Edge("a", "default", "b", "shuffle")],
    )
    spout, a1, a2, b1, b2 = chain.executors
    here = placed(chain, {"spout": "s1", "a": ["s1", "s2"], "b": ["s1", "s2"]})
    seen = snapshot([chain], supervisors(2), here, rates={(spout, a1): 100.0, (a1, b1): 100.0})
    there = Assignment({**here, spout: slot("s2")})
    traffic = ShuffleShares.of(seen, Demand({}, {}), {"chain"}).under(there)[0].traffic
    assert [(source, target) for source, target, _ in traffic.pairs()] == [(spout, a2), (a2, b2)]


def test_nobody_needs_more_than_a_thread_has() -> None:
    """Spouts that held tuples back let a need look as large as it likes; what is given bounds it."""
    needs = {**NEEDS, SPLIT_A: 3000.0, SPLIT_B: 0.0}
    shares = shares_of(BESIDE_A, {(SPOUT, SPLIT_A): 200.0}, needs)
    given = replace(shares.demand, millicores={**shares.demand.millicores, SPLIT_A: 1000.0}, room_millicores={})
    demand = ShuffleShares.of(shares.snapshot, given, {"words"}).under(Assignment(placed(WORDS, APART)))[1]
    assert demand.of_now().room_millicores[SPLIT_A] == demand.of_now().room_millicores[SPLIT_B] == pytest.approx(500.0)


def test_where_nothing_changes_the_very_same_is_given_back() -> None:
    shares = shares_of(APART, EVEN, NEEDS)
    for then in (APART, {**APART, "count": "s3"}):
        seen, demand = shares.under(Assignment(placed(WORDS, then)))
        assert seen is shares.snapshot
        assert demand is shares.demand


def test_a_component_that_was_seen_to_send_far_off_goes_on_so() -> None:
    """Even although one receiver is beside the spout: load-aware messaging is off."""
    seen, _ = shared(BESIDE_A, {**APART, "split": ["s3", "s1"]})
    assert seen.traffic.rate(SPOUT, SPLIT_B) == 100.0


def test_more_than_a_thread_has_goes_to_all() -> None:
    needs = {**NEEDS, SPLIT_A: 600.0, SPLIT_B: 600.0}
    traffic = shared(APART, BESIDE_A, needs=needs)[0].traffic
    assert (traffic.rate(SPOUT, SPLIT_A), traffic.rate(SPOUT, SPLIT_B)) == (100.0, 100.0)


FULL_BESIDE = {**EVEN, (SPOUT, SPLIT_A): 200.0, (SPOUT, SPLIT_B): 0.0}
FULL = {**NEEDS, SPLIT_A: 1000.0, SPLIT_B: 11.0}
"""The spout sends to none but the receiver beside it, which can take no more."""


@pytest.mark.parametrize("place", ["s1", "s1:6701"])
def test_who_is_seen_to_stay_with_full_receivers_nearby_is_not_thought_to_leave_them(place: str) -> None:
    """Else the same arrangement on other supervisors would look like the cure, again and again."""
    now = {**APART, "split": [place, "s3"]}
    mirrored = {**APART, "spout": "s3", "split": ["s2", place.replace("s1", "s3")]}
    seen, demand = shared(now, mirrored, FULL_BESIDE, FULL)
    assert (seen.traffic.rate(SPOUT, SPLIT_A), seen.traffic.rate(SPOUT, SPLIT_B)) == pytest.approx((0.0, 200.0))
    assert demand.raw_millicores[SPLIT_B] == 1000.0
    assert demand.beyond_thread_millicores == pytest.approx({SPLIT_B: 111.0}), "1,011, of which 900 fill a thread"


def test_who_stays_with_full_receivers_nearby_sends_to_all_where_none_is_near() -> None:
    seen, demand = shared(BESIDE_A, APART, FULL_BESIDE, FULL)
    assert (seen.traffic.rate(SPOUT, SPLIT_A), seen.traffic.rate(SPOUT, SPLIT_B)) == pytest.approx((100.0, 100.0))
    assert not demand.beyond_thread_millicores


@pytest.mark.parametrize(("home", "stays"), [(10.0, False), (77.0, False), (97.0, True)])
def test_only_a_sender_with_a_full_receiver_nearby_tells_whether_it_stays(home: float, stays: bool) -> None:
    """The others keep to theirs, which have room."""
    senders = Seats(np.arange(10), np.arange(10))
    sent = np.eye(10) * 100.0
    sent[0] = [home, *[(100.0 - home) / 9.0] * 9]
    full = np.arange(10) == 0
    seen = near_first(sent, senders, senders, tasks=np.ones(10), full=full, is_own_worker_only=False)
    assert (seen.keeps_to_reach, seen.stays_when_full) == (True, stays)


HEAVY = {**NEEDS, SPLIT_A: 600.0, SPLIT_B: 600.0}


def local_or_shuffle(
    now: Places, rates: Mapping[tuple[Executor, Executor], float] = EVEN, name: str = "local_or_shuffle"
) -> ShuffleShares:
    local = replace(WORDS, edges=(Edge("spout", "default", "split", name), *EDGES[1:]))
    return shares_of(now, rates, HEAVY, local)


@pytest.mark.parametrize("name", ["local_or_shuffle", "localOrShuffle"])
def test_local_or_shuffle_stays_in_its_worker_however_full_it_is(name: str) -> None:
    seen, demand = local_or_shuffle(APART, name=name).under(Assignment(placed(WORDS, BESIDE_A)))
    assert (seen.traffic.rate(SPOUT, SPLIT_A), seen.traffic.rate(SPOUT, SPLIT_B)) == pytest.approx((200.0, 0.0))
    assert (demand.raw_millicores[SPLIT_A], demand.raw_millicores[SPLIT_B]) == (1000.0, 0.0)
    assert demand.beyond_thread_millicores == pytest.approx({SPLIT_A: 300.0}), "1,200, of which 900 fill a thread"


def test_without_a_receiver_in_its_worker_local_or_shuffle_goes_to_all_when_the_near_are_full() -> None:
    beside = Assignment(placed(WORDS, {**APART, "split": ["s1:6701", "s3"]}))
    seen, demand = local_or_shuffle(APART).under(beside)
    assert (seen.traffic.rate(SPOUT, SPLIT_A), seen.traffic.rate(SPOUT, SPLIT_B)) == (100.0, 100.0)
    assert not demand.beyond_thread_millicores


def test_without_load_aware_messaging_local_or_shuffle_still_keeps_to_its_worker() -> None:
    """A spout sends to all although one receiver is on its supervisor: supervisors do not count, workers do."""
    pair = graph_topology("pair", {"spout": 2, "bolt": 2}, [Edge("spout", "default", "bolt", "local_or_shuffle")])
    beside, other, near, far = pair.executors
    here = placed(pair, {"spout": ["s1", "s1:6701"], "bolt": ["s1", "s2"]})
    rates = {(beside, near): 200.0, (other, near): 100.0, (other, far): 100.0}
    shares = ShuffleShares.of(snapshot([pair], supervisors(2), here, rates=rates), Demand({}, {}), {"pair"})

    def sent_by(spout: Executor, at: str) -> list[float]:
        traffic = shares.under(Assignment({**here, spout: slot(at)}))[0].traffic
        return [traffic.rate(spout, near), traffic.rate(spout, far)]

    assert sent_by(other, "s1") == pytest.approx([200.0, 0.0])
    assert sent_by(beside, "s1:6702") == pytest.approx([100.0, 100.0])


def test_tasks_count_and_not_executors() -> None:
    pair = graph_topology("pair", {"spout": 1, "bolt": 2}, [Edge("spout", "default", "bolt", "shuffle")])
    spout, one, _ = pair.executors
    three = Executor("pair", 3, 5, "bolt")
    topology = replace(pair, executors=(spout, one, three))
    here = placed(topology, {"spout": "s1", "bolt": ["s1", "s2"]})
    seen = snapshot([topology], supervisors(2), here, rates={(spout, one): 400.0})
    there = Assignment(placed(topology, {"spout": "s1", "bolt": "s2"}))
    traffic = ShuffleShares.of(seen, Demand({}, {}), {topology.id}).under(there)[0].traffic
    assert [traffic.rate(spout, one), traffic.rate(spout, three)] == pytest.approx([100.0, 300.0])


def test_circles_and_large_topologies_keep_their_rates() -> None:
    circle = (*EDGES, Edge("count", "again", "split", "shuffle"))
    many = MOST_PAIRS // 100 + 1
    for topology in (
        graph_topology("circle", {"spout": 1, "split": 2, "count": 2, ACKER_COMPONENT: 1}, circle),
        graph_topology("large", {"spout": 100, "split": many}, [Edge("spout", "default", "split", "shuffle")]),
    ):
        spout, split = (topology.executors_of(name)[0] for name in ("spout", "split"))
        together = placed(topology, dict.fromkeys(("spout", "split"), "s2"))
        seen = snapshot([topology], supervisors(2), together, rates={(spout, split): 10.0})
        apart = Assignment({**together, spout: slot("s1")})
        assert ShuffleShares.of(seen, Demand({}, {}), {topology.id}).under(apart)[0] is seen
