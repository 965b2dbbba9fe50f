"""After each pass: what the user asked for is done at once, what the load asks for when plans may be made as well."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from loop_scene import SETTINGS, SPECS, Scene, scene
from storm_operator.adapters.errors import (
    AdapterError,
    NimbusUnreachable,
    NotLeader,
    RebalanceInProgress,
    RebalanceRefused,
)
from storm_operator.core.decision import HoldReason
from storm_operator.core.model import Assignment
from storm_operator.core.parallelism import HeldResize
from storm_operator.core.settings import ApprovalMode, ApprovalSettings, Mode, SchedulingSettings
from storm_operator.core.topology_spec import ComponentParallelism, ParallelismMode, ParallelismSpec, TopologySpec
from storm_operator.executor_counts import ExecutorCounts
from storm_operator.terminal import CountsTeller

AUTO = ParallelismSpec(ParallelismMode.AUTO)
MANUAL = ApprovalSettings(ApprovalMode.MANUAL)


class Played:
    """The loop on a fake cluster, and what Nimbus is asked for after its passes."""

    def __init__(self, loop_scene: Scene) -> None:
        self.scene = loop_scene
        self.told: list[tuple[str, str]] = []
        self.asked: list[Mapping[str, int]] = []
        self.resized: list[str] = []
        self.told_before: list[int] = []
        """How much was told when Nimbus was asked."""
        self.busy = False
        self.refuse: Callable[[Mapping[str, int]], bool] = lambda _: False
        self.counts = ExecutorCounts(
            lambda _, reason, words, __: self.told.append((reason, words)), self.resized.append, self.look
        )
        self.seen: list[Mapping[str, HeldResize]] = []

    def look(self, held: Mapping[str, HeldResize]) -> None:
        self.seen.append(dict(held))

    def change(self, name: str, executors: Mapping[str, int]) -> None:
        assert name == "words"
        self.asked.append(dict(executors))
        self.told_before.append(len(self.told))
        if self.busy:
            raise RebalanceInProgress("words is being rebalanced already")
        if self.refuse(executors):
            raise RebalanceRefused("Nimbus refuses the rebalance of words: no")

    def run(
        self,
        parallelism: ParallelismSpec,
        scheduling: SchedulingSettings = SETTINGS,
        suspend: bool = False,
        seconds: float = 10.0,
    ) -> bool:
        spec: TopologySpec = replace(SPECS["words"], parallelism=parallelism, scheduling=scheduling, suspend=suspend)
        specs = {"words": spec}
        self.scene.run(specs, seconds=seconds)
        return self.counts.follow(specs, self.scene.audience.reports[-1], self.scene.loop, self.change)


@pytest.fixture
def played() -> Played:
    """With a plan in force and verified; each executor of `split` and `count` is idle enough for one to do."""
    on_stage = scene()
    on_stage.run()
    on_stage.run(seconds=60.0)
    assert not on_stage.loop.has_pending_plan
    on_stage.run(seconds=600.0)
    return Played(on_stage)


def test_load_changes_numbers_once_and_then_cools_down(played: Played) -> None:
    assert played.run(AUTO)
    assert played.asked == [{"count": 1, "split": 1}]
    assert played.resized == ["words"]
    assert played.told == [("Resized", "executors are now to be: count 1, split 1")]
    assert played.told_before == [0], "Nimbus has accepted it before it is told"
    assert not played.run(AUTO), "the fake cluster still has as many"
    assert len(played.asked) == 1
    held = played.counts.held["words"]
    assert played.seen == [{}, {"words": held}]
    assert held.hold.reason is HoldReason.COOL_DOWN
    assert dict(held.executors) == {"count": 1, "split": 1}


def test_a_change_is_no_younger_than_now_where_the_clock_was_set_back_a_little(played: Played) -> None:
    assert played.run(AUTO)
    assert not played.run(AUTO, seconds=-30.0)
    assert "the last change is 0 s old" in played.counts.held["words"].message


@pytest.mark.parametrize(
    ("scheduling", "reason"),
    [
        (replace(SETTINGS, mode=Mode.OBSERVE), HoldReason.OBSERVE_ONLY),
        (replace(SETTINGS, mode=Mode.RECOMMEND), HoldReason.AWAITING_APPROVAL),
        (replace(SETTINGS, approval=MANUAL), HoldReason.AWAITING_APPROVAL),
    ],
)
def test_what_load_may_not_do_is_held_and_told_once(
    played: Played, scheduling: SchedulingSettings, reason: HoldReason
) -> None:
    for _ in range(3):
        assert not played.run(AUTO, scheduling)
    assert played.asked == []
    assert played.counts.held["words"].hold.reason is reason
    ((event, words),) = played.told
    assert event == "ResizeHeld"
    assert words.startswith("by load executors should be count 1, split 1; ")


def test_what_the_user_asks_for_begins_a_cool_down_for_what_can_wait(played: Played) -> None:
    one = ParallelismSpec(ParallelismMode.FIXED, {"count": ComponentParallelism(executors=1)})
    assert played.run(one)
    assert not played.run(AUTO)
    assert played.counts.held["words"].hold.reason is HoldReason.COOL_DOWN
    assert played.run(one), "the user waits for nothing"


def test_what_the_user_asks_for_is_done_in_every_mode(played: Played) -> None:
    three = ParallelismSpec(ParallelismMode.AUTO, {"count": ComponentParallelism(executors=1)})
    assert played.run(three, replace(SETTINGS, mode=Mode.OBSERVE))
    assert played.asked == [{"count": 1}]
    assert dict(played.counts.held["words"].executors) == {"split": 1}


def test_nothing_is_changed_while_a_plan_settles_or_the_topology_is_suspended() -> None:
    played = Played(scene())
    assert not played.run(AUTO), "the first plan is under way"
    assert played.scene.loop.has_pending_plan
    assert not played.run(AUTO, suspend=True)
    assert played.asked == []
    assert played.told == []


def test_rebalance_that_is_under_way_already_is_no_error(played: Played) -> None:
    played.busy = True
    assert played.run(AUTO)
    assert (played.told, played.counts.obstacles("words")) == ([], ())
    played.busy = False
    assert played.run(AUTO), "nothing was changed, so nothing has to cool down"
    assert [reason for reason, _ in played.told] == ["Resized"]


def test_change_by_load_that_is_refused_is_tried_again_slowly_and_nothing_cools_down(played: Played) -> None:
    played.refuse = lambda _: True
    before = played.scene.loop.memory.decisions
    for _ in range(6):
        assert not played.run(AUTO, seconds=10.0)
    assert len(played.asked) == 3, "after 10 s, 20 s, 40 s"
    assert {reason for reason, _ in played.told} == {"ParallelismRefused", "ResizeHeld"}
    assert played.scene.loop.memory.decisions.changed_at_seconds == before.changed_at_seconds
    held = played.counts.held["words"]
    assert held.hold.reason is HoldReason.INFEASIBLE
    assert "Nimbus refuses the rebalance of words: no" in held.message
    assert played.counts.obstacles("words") == (("ParallelismRefused", "Nimbus refuses the rebalance of words: no"),)
    played.refuse = lambda _: False
    assert played.run(AUTO, seconds=300.0)
    assert played.told[-1] == ("Resized", "executors are now to be: count 1, split 1")
    assert played.counts.obstacles("words") == ()


def test_other_numbers_by_load_are_no_reason_to_ask_again_at_once(played: Played) -> None:
    played.refuse = lambda _: True
    played.run(AUTO)
    fewer = ParallelismSpec(ParallelismMode.AUTO, {"split": ComponentParallelism(minimum=2)})
    assert not played.run(fewer, seconds=1.0)
    assert played.asked == [{"count": 1, "split": 1}]


def test_what_the_user_asks_for_does_not_wait_for_what_load_is_refused(played: Played) -> None:
    played.refuse = lambda executors: "split" in executors
    spec = ParallelismSpec(ParallelismMode.AUTO, {"count": ComponentParallelism(executors=1)})
    assert played.run(spec)
    assert played.asked == [{"count": 1, "split": 1}, {"count": 1}]
    assert ("Resized", "executors are now to be: count 1") in played.told


def test_refusal_is_forgotten_once_nobody_asks_for_it(played: Played) -> None:
    played.refuse = lambda _: True
    asked = ParallelismSpec(components={"count": ComponentParallelism(executors=1)})
    assert not played.run(asked)
    assert played.counts.obstacles("words") != ()
    assert not played.run(ParallelismSpec())
    assert played.counts.obstacles("words") == ()


def test_of_a_topology_that_has_no_place_no_number_is_changed(played: Played) -> None:
    """As where all supervisors are away for a moment: what it had is placed again as soon as they are back."""
    one = ParallelismSpec(ParallelismMode.FIXED, {"count": ComponentParallelism(executors=1)})
    placed, played.scene.cluster.assignment = played.scene.cluster.assignment, Assignment({})
    changed_before = played.scene.loop.memory.decisions.changed_at_seconds
    played.scene.observer.gone = frozenset({"s1", "s2", "s3"})
    assert not played.run(one)
    assert (played.asked, played.told, played.resized) == ([], [], [])
    assert played.scene.loop.memory.decisions.changed_at_seconds == changed_before
    played.scene.cluster.assignment, played.scene.observer.gone = placed, frozenset()
    assert played.run(one)
    assert played.asked == [{"count": 1}]


def test_what_was_refused_is_not_forgotten_while_a_topology_has_no_place(played: Played) -> None:
    """Nimbus is asked no sooner for that, and that it refused is told no second time."""
    played.refuse = lambda _: True
    one = ParallelismSpec(ParallelismMode.FIXED, {"count": ComponentParallelism(executors=1)})
    for _ in range(4):
        played.run(one)
    asked, refused, told = list(played.asked), dict(played.counts.refused), list(played.told)
    placed, played.scene.cluster.assignment = played.scene.cluster.assignment, Assignment({})
    played.scene.observer.gone = frozenset({"s1", "s2", "s3"})
    played.run(one, seconds=1.0)
    assert played.counts.refused == refused
    assert played.counts.obstacles("words") != ()
    played.scene.cluster.assignment, played.scene.observer.gone = placed, frozenset()
    played.run(one, seconds=1.0)
    assert (played.asked, played.told) == (asked, told)
    played.run(one, seconds=300.0)
    assert len(played.asked) == len(asked) + 1


@pytest.mark.parametrize("why", [NimbusUnreachable("away"), NotLeader("no leader")])
def test_nimbus_that_is_away_or_leaderless_ends_it(played: Played, why: AdapterError) -> None:
    def away(_: Mapping[str, int]) -> bool:
        raise why

    played.refuse = away
    with pytest.raises(type(why)):
        played.run(AUTO)
    assert (played.told, played.counts.refused) == ([], {})


def test_terminal_hears_each_thing_once() -> None:
    said: list[str] = []
    teller = CountsTeller(said.append)
    for words in ("4 asked for", "4 asked for", "5 asked for"):
        teller.begin_pass()
        teller.tell("words", "Parallelism", words, True)
    teller.tell("words", "Resized", "executors are now to be: count 2", False)
    assert said == [
        "words: note: 4 asked for",
        "words: note: 5 asked for",
        "words: executors are now to be: count 2",
    ]


def test_terminal_hears_two_notes_of_one_topology_once_each_until_they_change() -> None:
    said: list[str] = []
    teller = CountsTeller(said.append)
    for split, count in ((4, 5), (4, 5), (4, 6), (4, 6), (4, 5)):
        teller.begin_pass()
        teller.tell("words", "Parallelism", f"split: {split}", True)
        teller.tell("words", "Parallelism", f"count: {count}", True)
    notes = ["split: 4", "count: 5", "count: 6", "count: 5"]
    assert said == [f"words: note: {note}" for note in notes]
