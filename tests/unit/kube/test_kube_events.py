"""Events on resources: one for each piece of news an hour, and never in anybody's way."""

from __future__ import annotations

import contextlib
import re
import threading
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from unittest.mock import Mock

import pytest
from kubernetes.client import ApiClient

from kube_builders import api_refusal, topology_body
from storm_operator.adapters.kube import events as module
from storm_operator.adapters.kube.events import LONGEST_MESSAGE, Events, event_body

NOW = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)
WORDS = topology_body()


def body(about: dict[str, Any] = WORDS, message: str = "from 2 to 3 pods", at: datetime = NOW) -> dict[str, Any]:
    return event_body(about, "Scaled", message, False, at)


class TestBody:
    def test_is_about_the_object(self) -> None:
        made = event_body(WORDS, "Drift", "killed by somebody else", True, NOW)
        assert made["involvedObject"]["uid"] == "uid-words"
        assert made["involvedObject"]["kind"] == "StormTopology"
        assert made["metadata"]["namespace"] == made["involvedObject"]["namespace"] == "streams"
        assert (made["type"], made["reason"], made["message"]) == ("Warning", "Drift", "killed by somebody else")
        assert made["firstTimestamp"] == made["lastTimestamp"] == "2027-01-15T08:00:00Z"

    def test_news_is_normal_unless_it_is_a_warning(self) -> None:
        assert body()["type"] == "Normal"

    def test_long_message_is_cut(self) -> None:
        assert len(body(message="x" * 5000)["message"]) == LONGEST_MESSAGE

    def test_name_is_the_same_for_the_same_news_within_the_hour(self) -> None:
        assert body()["metadata"]["name"] == body(at=NOW + timedelta(minutes=59))["metadata"]["name"]

    def test_name_is_another_for_other_news_another_hour_and_another_object_of_that_name(self) -> None:
        others = [body(message="x"), body(at=NOW + timedelta(hours=1)), body(topology_body(uid="uid-again"))]
        names = {made["metadata"]["name"] for made in (body(), *others)}
        assert len(names) == 4

    @pytest.mark.parametrize("name", ["words", "w" * 253, "w" * 199 + "-x" + "w" * 40])
    def test_name_is_one_that_kubernetes_takes(self, name: str) -> None:
        made = body(topology_body(name))["metadata"]["name"]
        assert len(made) <= 253
        assert all(re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", part) for part in made.split("."))


class Scene:
    def __init__(self, api: Mock) -> None:
        self.api = api
        self.now = NOW
        self.said: list[str] = []
        self.passed = 0.0
        self.events = Events(cast("ApiClient", None), lambda: self.now, self.said.append, lambda: self.passed)

    def post(self, message: str = "from 2 to 3 pods", about: dict[str, Any] = WORDS) -> int:
        """How many were posted so far."""
        self.events.post(about, "Scaled", message)
        return int(self.api.create_namespaced_event.call_count)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    api = Mock()
    monkeypatch.setattr(module, "CoreV1Api", lambda _: api)
    return Scene(api)


class TestPost:
    def test_news_does_not_wait_until_it_is_that_late_again_where_the_clock_was_set_back(self, scene: Scene) -> None:
        assert scene.post() == 1
        scene.now = NOW - timedelta(days=1)
        assert scene.post() == 2
        assert scene.post() == 2

    def test_same_news_is_posted_once_an_hour(self, scene: Scene) -> None:
        assert scene.post() == 1
        assert scene.post() == 1
        scene.now += timedelta(hours=1)
        assert scene.post() == 2

    def test_same_news_of_two_threads_is_posted_once(self, scene: Scene) -> None:
        both = threading.Barrier(2, timeout=0.3)

        class Posted(dict[str, float]):
            def get(self, *key: Any) -> Any:
                found = super().get(*key)
                with contextlib.suppress(threading.BrokenBarrierError):
                    both.wait()  # until the other looks as well, if it can
                return found

        scene.events._posted = Posted()
        threads = [threading.Thread(target=scene.post) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert scene.api.create_namespaced_event.call_count == 1

    def test_other_news_and_other_objects_are_posted(self, scene: Scene) -> None:
        scene.post()
        assert scene.post("from 3 to 2 pods") == 2
        assert scene.post(about=topology_body("other")) == 3

    def test_event_that_another_replica_posted_is_none_to_tell_of(self, scene: Scene) -> None:
        scene.api.create_namespaced_event.side_effect = api_refusal(409)
        scene.post()
        assert scene.said == []

    def test_event_that_could_not_be_posted_is_said_and_stops_nothing(self, scene: Scene) -> None:
        scene.api.create_namespaced_event.side_effect = api_refusal(403, "may not create events")
        scene.post()
        assert scene.said == ["event Scaled on streams/words: may not create events"]

    def test_event_that_could_not_be_posted_is_posted_when_told_of_a_minute_later(self, scene: Scene) -> None:
        scene.api.create_namespaced_event.side_effect = api_refusal(503)
        assert scene.post() == 1
        scene.api.create_namespaced_event.side_effect = None
        assert scene.post() == 1
        scene.now += timedelta(minutes=1)
        assert scene.post() == 2
        assert scene.post() == 2

    def test_other_news_is_not_waited_for_too_while_the_api_server_hangs(self, scene: Scene) -> None:
        """Of a plan each topology is told at each step, while spouts may be paused."""
        scene.api.create_namespaced_event.side_effect = TimeoutError("timed out")
        tried = []
        for second in range(100):
            scene.passed = float(second)
            before = scene.api.create_namespaced_event.call_count
            if scene.post(about=topology_body(f"words-{second}")) > before:
                tried.append(second)
        assert tried == [0, 10, 30, 70]
        assert len(scene.said) == len(tried)
        scene.api.create_namespaced_event.side_effect = None
        scene.passed = 150.0
        assert [scene.post(name) for name in ("a", "b")] == [5, 6]

    def test_news_posted_again_is_not_the_oldest(self, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "KEPT", 2)
        for message in ("a", "b"):
            scene.post(message)
        scene.now += timedelta(hours=1)
        scene.post("a")
        scene.post("c")
        assert scene.post("a") == 4

    def test_memory_is_bounded_and_drops_the_oldest(self, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "KEPT", 2)
        for message in ("a", "b", "c"):
            scene.post(message)
        assert scene.post("c") == 3
        assert scene.post("a") == 4
