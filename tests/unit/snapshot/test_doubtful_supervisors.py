"""A supervisor whose daemon restarts keeps its executors; to one whose agent is silent nobody comes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import chain_topology, placed, snapshot, supervisors
from storm_operator.core.doubtful_supervisors import (
    PATIENCE_SECONDS,
    LastSeen,
    held_where_away,
    with_those_away,
    without_free_slots,
)
from storm_operator.core.metrics_window import MetricsWindow
from storm_operator.core.model import Assignment, Executor, ExecutorLoad, WorkerSlot
from storm_operator.core.snapshot_builder import ClusterView
from window_builder import Scrapes

WORDS = chain_topology("words", ("spout", 1), ("count", 2))
MACHINES = supervisors(3)
HOSTS = {one.id: one.host for one in MACHINES}
WHERE = placed(WORDS, {"spout": "s1", "count": ["s1", "s2"]})
WHOLE = ClusterView(MACHINES, (WORDS,), Assignment(WHERE))
NOW = 1000.0


def without(supervisor: str, where: dict[Executor, WorkerSlot] = WHERE) -> ClusterView:
    """As Nimbus and ZooKeeper tell while that supervisor's daemon is away."""
    left = {executor: slot for executor, slot in where.items() if slot.supervisor_id != supervisor}
    return ClusterView(tuple(one for one in MACHINES if one.id != supervisor), (WORDS,), Assignment(left))


def metrics(*, dead: str = "") -> MetricsWindow:
    scrapes = Scrapes(NOW)
    scrapes.add_topology(WORDS, {e: slot for e, slot in WHERE.items() if slot.supervisor_id != dead}, HOSTS)
    for executor, slot in WHERE.items():
        if slot.supervisor_id != dead:
            scrapes.add_executor(executor, HOSTS[slot.supervisor_id], slot.port)
    return scrapes.window()


def seen(view: ClusterView = WHOLE, seconds_ago: float = 10.0) -> LastSeen:
    return LastSeen(view, {one.id: NOW - seconds_ago for one in view.supervisors})


def test_what_all_are_seen_of_is_left_as_it_is() -> None:
    view, last = with_those_away(WHOLE, metrics(), seen(), NOW)
    assert view is WHOLE
    assert last == LastSeen(WHOLE, {"s1": NOW, "s2": NOW, "s3": NOW})


def test_executors_whose_workers_run_on_stay_while_the_daemon_is_away() -> None:
    view, last = with_those_away(without("s2"), metrics(), seen(), NOW)
    assert view.assignment == WHOLE.assignment
    (away,) = [one for one in view.supervisors if one.id == "s2"]
    assert away == replace(MACHINES[1], ports=(WHERE[WORDS.executors_of("count")[1]].port,))
    sentence = f"Storm does not see the supervisor on {HOSTS['s2']}; its workers run on, and stay for now"
    assert view.problems == (sentence,)
    assert last.at_seconds == {"s1": NOW, "s2": NOW - 10.0, "s3": NOW}
    again, _ = with_those_away(without("s2"), metrics(), last, NOW)
    assert again == view, "in the next pass, too"


@pytest.mark.parametrize("seconds", [PATIENCE_SECONDS + 1.0, -1.0])
@pytest.mark.parametrize("pass_seconds", [10.0, 120.0])
def test_nobody_is_waited_for_longer_than_storm_waits(seconds: float, pass_seconds: float) -> None:
    gone = without("s2")
    _, last = with_those_away(gone, metrics(), seen(seconds_ago=pass_seconds), NOW)
    assert with_those_away(gone, metrics(), last, NOW + seconds)[0] is gone


def test_a_clock_that_was_set_back_tells_of_no_patience() -> None:
    gone = without("s2")
    assert with_those_away(gone, metrics(), seen(seconds_ago=-1.0), NOW)[0] is gone


def test_patience_begins_in_the_pass_that_first_misses_a_supervisor_however_long_ago_the_last_one_was() -> None:
    view, last = with_those_away(without("s2"), metrics(), seen(seconds_ago=120.0), NOW)
    assert view.assignment == WHOLE.assignment
    assert last.away(NOW) == {"s2"}
    later = NOW + PATIENCE_SECONDS
    again, last = with_those_away(without("s2"), metrics(), last, later)
    assert again == view
    assert last.away(later) == {"s2"}
    gone = without("s2")
    assert with_those_away(gone, metrics(), last, later + 1.0)[0] is gone
    back, last = with_those_away(WHOLE, metrics(), last, later)
    assert back is WHOLE
    assert with_those_away(without("s2"), metrics(), last, later + 120.0)[0] == view, "patience begins anew"


def test_a_supervisor_that_is_known_to_go_is_not_waited_for() -> None:
    """Nor any longer, where it is known only later: its executors can move while its workers run on."""
    gone = without("s2")
    view, last = with_those_away(gone, metrics(), seen(), NOW, lambda host: host == HOSTS["s2"])
    assert view is gone
    assert last.away(NOW) == frozenset()
    _, last = with_those_away(gone, metrics(), seen(), NOW, lambda host: host == HOSTS["s1"])
    assert last.away(NOW) == {"s2"}
    assert with_those_away(gone, metrics(), last, NOW + 10.0, lambda host: host == HOSTS["s2"])[0] is gone


def test_a_supervisor_that_storm_sees_is_there_though_it_is_known_to_go() -> None:
    assert with_those_away(WHOLE, metrics(), seen(), NOW, lambda _: True)[0] is WHOLE


def test_a_supervisor_whose_workers_have_ended_is_gone() -> None:
    gone = without("s2")
    assert with_those_away(gone, metrics(dead="s2"), seen(), NOW)[0] is gone


@pytest.mark.parametrize(
    ("executed", "queue", "stays"),
    [((0.0, 0.0), (0.0, 0.0), True), ((0.0, 0.0), (4000.0, 9000.0), False), ((1000.0, 4000.0), (0.0, 0.0), False)],
    ids=["never got a tuple", "has not come up", "got some"],
)
def test_who_never_got_a_tuple_stays_though_nobody_knows_its_thread(
    executed: tuple[float, float], queue: tuple[float, float], stays: bool
) -> None:
    idle, host = WORDS.executors_of("count")[1], HOSTS["s2"]
    scrapes = Scrapes(NOW)
    scrapes.add_topology(WORDS, WHERE, HOSTS)
    scrapes.add_executor(idle, host, WHERE[idle].port, executed=executed, emitted=(0.0, 0.0), queue=queue)
    scrapes.drop("storm_executor_cpu_seconds_total", executor=idle.label)
    view, _ = with_those_away(without("s2"), scrapes.window(), seen(), NOW)
    assert (view.assignment == WHOLE.assignment) is stays


@pytest.mark.parametrize(
    ("read_seconds_ago", "queue", "has_thread", "stays"),
    [(0.0, 4000.0, True, True), (0.0, 0.0, False, True), (0.0, 4000.0, False, False), (10.0, 0.0, True, False)],
    ids=["seen now", "seen now, and never got a tuple", "has not come up", "not seen any more"],
)
def test_one_reading_is_enough_where_it_shows_that_workers_run_on(
    read_seconds_ago: float, queue: float, has_thread: bool, stays: bool
) -> None:
    """As where the agent missed the scrape before: a node that is short of CPU is where supervisors are lost, too."""
    alone, host = WORDS.executors_of("count")[1], HOSTS["s2"]
    scrapes = Scrapes(NOW)
    scrapes.add_topology(WORDS, WHERE, HOSTS)
    scrapes.add_executor(
        alone, host, WHERE[alone].port, executed=(0.0,), emitted=(0.0,), queue=(queue,), cpu_seconds=(1.0,)
    )
    scrapes.add_worker(WORDS.id, host, WHERE[alone].port, ages=(0.5,))
    if not has_thread:
        scrapes.drop("storm_executor_cpu_seconds_total", executor=alone.label)
    scrapes.samples = {
        key: [replace(one, timestamp_seconds=NOW - read_seconds_ago) for one in samples[-1:]]
        if key.label("supervisor") == host
        else samples
        for key, samples in scrapes.samples.items()
    }
    view, _ = with_those_away(without("s2"), scrapes.window(), seen(), NOW)
    assert (view.assignment == WHOLE.assignment) is stays


def test_a_supervisor_that_nobody_was_on_is_gone() -> None:
    gone = without("s3")
    assert with_those_away(gone, metrics(), seen(), NOW)[0] is gone


def test_executors_that_are_placed_elsewhere_by_now_are_there() -> None:
    moved = WORDS.executors_of("count")[1]
    view = without("s2", {**WHERE, moved: WorkerSlot("s3", 6700)})
    assert with_those_away(view, metrics(), seen(), NOW)[0] is view


def test_executors_that_are_no_more_are_nowhere() -> None:
    fewer = chain_topology("words", ("spout", 1), ("count", 1))
    view = replace(without("s2"), topologies=(fewer,))
    assert with_those_away(view, metrics(), seen(), NOW)[0] is view


def test_a_supervisor_that_came_back_by_another_name_is_one_and_not_two() -> None:
    gone = without("s2")
    anew = replace(gone, supervisors=(*gone.supervisors, replace(MACHINES[1], id="s2-anew")))
    assert with_those_away(anew, metrics(), seen(), NOW)[0] is anew


def test_what_runs_where_a_supervisor_is_away_counts_as_unmeasured_though_its_loads_are_known() -> None:
    """No plan of it could come into force."""
    _, last = with_those_away(without("s2"), metrics(), seen(), NOW)
    assert last.away(NOW) == {"s2"}
    assert last.away(NOW) == seen(seconds_ago=0.0).away(NOW) | {"s2"}
    there = WORDS.executors_of("count")[1]
    picture = snapshot((WORDS,), MACHINES, WHERE, loads={there: ExecutorLoad(100.0)})
    held = held_where_away(picture, {"s2"})
    assert held.completeness.missing_executors == (there,)
    assert held.completeness.silent_supervisors == ("s2",)
    assert held.loads == picture.loads
    assert held_where_away(picture, ()) is picture


def test_supervisors_without_free_slots_keep_those_in_use() -> None:
    picture = snapshot((WORDS,), MACHINES, WHERE)
    assert without_free_slots(picture, ()) is picture
    shut = without_free_slots(picture, ("s2", "s3"))
    used = WHERE[WORDS.executors_of("count")[1]].port
    assert [one.ports for one in shut.supervisors] == [MACHINES[0].ports, (used,), ()]
    assert shut.assignment == picture.assignment
