"""A watch that has frozen is noticed, one a moment behind is not; at the start all it has to tell is awaited."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

from kube_builders import registry_of, topology_body
from storm_operator.adapters.kube.errors import KubernetesError
from storm_operator.kube.canary import FIRST_LOOK_SECONDS, TOLERATED_LOOKS, WatchCanary, behind

KEY = ("streams", "words")


class Scene:
    """An API server with one resource, and a watch that delivers when it is told to."""

    def __init__(self) -> None:
        self.listed: list[dict[str, Any]] = [topology_body(resourceVersion="1")]
        self.registry = registry_of(*self.listed)
        self.error: Exception | None = None
        self.said: list[str] = []
        self.looks = 0
        self.canary = WatchCanary(
            "StormTopologies", self.list, lambda: [m.body for m in self.registry.topologies()], self.said.append
        )

    def list(self) -> tuple[dict[str, Any], ...]:
        self.looks += 1
        if self.error is not None:
            raise self.error
        return tuple(self.listed)

    def change(self, version: str) -> None:
        self.listed = [topology_body(resourceVersion=version)]

    def deliver(self) -> None:
        for body in self.listed:
            self.registry.put_topology(body)

    def look(self, times: int = 1) -> str:
        for _ in range(times):
            self.canary.look()
        return self.canary.problem()


def test_behind_is_what_the_watch_has_not_delivered() -> None:
    assert behind({KEY: "2", ("a", "b"): "5"}, {KEY: "1", ("a", "b"): "5", ("gone", "x"): "1"}) == {KEY: "2"}


def test_watch_that_follows_is_well() -> None:
    assert Scene().look(10) == ""


def test_gap_is_a_frozen_watch_after_three_looks_and_not_before() -> None:
    played = Scene()
    played.change("2")
    assert played.look(TOLERATED_LOOKS - 1) == ""
    assert played.look() == "the watch of StormTopologies is frozen: it has not seen streams/words"


def test_watch_that_catches_up_is_well_again() -> None:
    played = Scene()
    played.change("2")
    played.look(TOLERATED_LOOKS)
    played.deliver()
    assert played.look() == ""


def test_count_begins_anew_after_catching_up() -> None:
    played = Scene()
    played.change("2")
    played.look(TOLERATED_LOOKS - 1)
    played.deliver()
    played.look()
    played.change("3")
    assert played.look(TOLERATED_LOOKS - 1) == ""


def test_resource_that_changes_all_the_time_does_not_hide_a_frozen_watch() -> None:
    played = Scene()
    for version in range(2, 2 + TOLERATED_LOOKS):
        played.change(str(version))
        played.look()
    assert "streams/words" in played.canary.problem()


def test_watch_that_is_ahead_of_a_slow_listing_is_well() -> None:
    played, now = Scene(), [100.0]
    played.canary.clock = lambda: now[0]

    def list_slowly() -> tuple[dict[str, Any], ...]:
        listed = tuple(played.listed)
        played.change(str(played.looks + 2))
        played.deliver()
        played.looks += 1
        return listed

    played.canary.listed = list_slowly
    assert played.look(2 * TOLERATED_LOOKS) == ""
    assert played.canary.age_seconds() == 0.0


def test_resource_that_the_watch_never_showed_counts() -> None:
    played = Scene()
    played.listed.append(topology_body("new"))
    assert "streams/new" in played.look(TOLERATED_LOOKS)


def test_resource_that_is_gone_counts_no_more() -> None:
    played = Scene()
    played.listed.append(topology_body("new"))
    played.look(TOLERATED_LOOKS)
    played.listed.pop()
    assert played.look() == ""


def test_api_that_does_not_answer_says_nothing_about_the_watch() -> None:
    played = Scene()
    played.error = KubernetesError("list stormtopologies: down")
    assert played.look(2 * TOLERATED_LOOKS) == ""
    assert played.said[0] == "list stormtopologies: down"


def test_api_that_does_not_answer_does_not_absolve_the_watch() -> None:
    played = Scene()
    played.change("2")
    played.look(TOLERATED_LOOKS - 1)
    played.error = KubernetesError("down")
    played.look()
    played.error = None
    assert "frozen" in played.look()


def test_looks_until_it_is_stopped() -> None:
    played = Scene()
    stop = Mock()
    stop.wait.side_effect = [False, False, True]
    played.canary.look_seconds = 7.0
    played.canary.run(stop)
    assert played.looks == 2
    stop.wait.assert_called_with(7.0)


def test_age_is_that_of_the_last_look_that_found_nothing_missing() -> None:
    played = Scene()
    now = [100.0]
    played.canary.clock = lambda: now[0]
    assert played.canary.age_seconds() is None
    played.look()
    now[0] = 130.0
    played.change("2")
    played.look()
    now[0] = 160.0
    assert played.canary.age_seconds() == 60.0


class TestResourceThatTheWatchKeepsThoughItIsGone:
    @staticmethod
    def scene() -> tuple[Scene, list[str]]:
        played, ended = Scene(), list[str]()
        played.canary.ended = lambda body: ended.append(body["metadata"]["uid"])
        return played, ended

    def test_is_told_of_after_three_looks_and_not_before(self) -> None:
        played, ended = self.scene()
        played.listed = []
        assert (played.look(TOLERATED_LOOKS - 1), ended) == ("", [])
        assert (played.look(), ended) == ("", ["uid-words"])
        assert played.said == ["streams/words of StormTopologies is gone; the watch has not told of it"]

    def test_is_not_told_of_when_a_later_list_has_it(self) -> None:
        played, ended = self.scene()
        whole = played.listed
        for listed in ([], [], whole, [], []):
            played.listed = listed
            played.look()
        assert ended == []

    def test_is_not_told_of_by_lists_that_failed(self) -> None:
        played, ended = self.scene()
        played.listed = []
        played.look()
        played.error = KubernetesError("down")
        played.look(2 * TOLERATED_LOOKS)
        assert ended == []

    def test_is_not_told_of_while_nobody_can_say_whether_it_is_gone(self) -> None:
        played, ended = self.scene()
        played.canary.is_gone = Mock(side_effect=[KubernetesError("get stormtopologies: down"), False, True])
        played.listed = []
        played.look(TOLERATED_LOOKS + 1)
        assert (played.said, ended) == (["get stormtopologies: down"], [])
        played.look()
        assert ended == ["uid-words"]

    def test_is_told_of_when_another_has_its_name(self) -> None:
        played, ended = self.scene()
        played.listed = [topology_body(uid="uid-anew")]
        played.look(TOLERATED_LOOKS)
        assert ended == ["uid-words"]

    def test_is_none_that_came_while_the_list_was_under_way(self) -> None:
        played, ended = self.scene()

        def list_slowly() -> tuple[dict[str, Any], ...]:
            played.looks += 1
            played.registry.put_topology(topology_body("new", uid=f"uid-{played.looks}"))
            return tuple(played.listed)

        played.canary.listed = list_slowly
        played.look(2 * TOLERATED_LOOKS)
        assert ended == []


class TestWaitingUntilWhole:
    """At the start: what acts on what the watch delivered waits until that is all."""

    @staticmethod
    def wait(played: Scene, *meanwhile: Callable[[], None]) -> tuple[bool, list[float]]:
        """Whether it became whole, and the pauses; `meanwhile` is done in one after the other, then it is stopped."""
        pauses: list[float] = []
        left = list(meanwhile)
        stop = threading.Event()

        def wait(seconds: float) -> bool:
            pauses.append(seconds)
            left.pop(0)() if left else stop.set()
            return stop.is_set()

        whole = played.canary.wait_until_whole(Mock(is_set=stop.is_set, wait=wait))
        return whole, pauses

    def test_watch_that_has_delivered_all_is_not_waited_for(self) -> None:
        assert self.wait(Scene()) == (True, [])

    def test_what_is_missing_is_waited_for_and_said_once(self) -> None:
        played = Scene()
        played.listed.append(topology_body("new"))
        assert self.wait(played, nothing, nothing, played.deliver) == (True, [FIRST_LOOK_SECONDS] * 3)
        assert played.said == ["no loop begins before the watch of StormTopologies has delivered streams/new"]

    def test_newer_version_is_not_waited_for(self) -> None:
        played = Scene()
        played.change("2")
        assert self.wait(played) == (True, [])

    def test_what_is_deleted_meanwhile_is_not_waited_for(self) -> None:
        played = Scene()
        played.listed.append(topology_body("new"))
        assert self.wait(played, played.listed.clear)[0]
        assert [managed.key for managed in played.registry.topologies()] == [KEY]

    def test_invalid_resource_counts_as_delivered(self) -> None:
        played = Scene()
        played.listed.append(topology_body("wrong", spec={"adopt": {}, "scheduling": {"mode": "Perhaps"}}))
        assert self.wait(played, played.deliver)[0]

    def test_api_that_does_not_answer_is_asked_ever_more_slowly(self) -> None:
        played = Scene()
        played.error = KubernetesError("list stormtopologies: down")

        def back() -> None:
            played.error = None

        assert self.wait(played, nothing, nothing, back) == (True, [10.0, 20.0, 40.0])
        said = "no loop begins before the watch of StormTopologies has delivered all: list stormtopologies: down"
        assert played.said == [said] * 3

    def test_ends_when_it_is_stopped(self) -> None:
        played = Scene()
        played.listed.append(topology_body("new"))
        assert self.wait(played, nothing) == (False, [FIRST_LOOK_SECONDS] * 2)


def nothing() -> None:
    return None
