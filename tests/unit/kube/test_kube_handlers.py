"""Events of resources: accepted or refused at once, remembered, and let go only when their topology is seen to."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import kopf
import pytest

from kube_builders import NIMBUS, rebalance, topology_body
from storm_operator.kube.handlers import (
    DELETION_PATIENCE_SECONDS,
    FIRST_LOOK_SECONDS,
    Watched,
    build_registry,
    on_deletion,
    on_topology_event,
)
from storm_operator.kube.managed import Managed, Registry
from storm_operator.kube.rebalances import plan_of
from storm_operator.kube.runners import IDLE_LIMIT_SECONDS

NOW = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)
KEY = ("streams", "words")
INVALID = {"adopt": {}, "scheduling": {"mode": "Perhaps"}}


@dataclass
class Scene:
    registry: Registry = field(default_factory=lambda: Registry(NIMBUS))
    gone: set[str] = field(default_factory=set)
    told: list[tuple[str, str, str, bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.seconds = 0.0
        self.watched = Watched(self.registry, self.gone, self.tell, lambda: NOW, clock=lambda: self.seconds)

    def tell(self, managed: Managed, reason: str, message: str, warning: bool) -> None:
        self.told.append((managed.key[1], reason, message, warning))

    def event(self, kind: str | None, body: dict[str, Any]) -> dict[str, Any]:
        """What the handler wants to write to the status."""
        status: dict[str, Any] = {}
        on_topology_event(self.watched, kind, body, SimpleNamespace(status=status))
        return status

    def delete(self, seconds_ago: float = 1.0, loop_is_busy: bool = False, **fields: Any) -> None:
        """Nimbus has not answered for a day, unless the loop is busy and has not asked it. It is known since then."""
        self.watched.leaving.setdefault("uid-words", self.seconds - seconds_ago)
        if not loop_is_busy:
            self.registry.note_question(NIMBUS, NOW.timestamp() - 24 * 3600.0)
        asked_at = NOW - timedelta(seconds=seconds_ago)
        body = topology_body(deletionTimestamp=asked_at.strftime("%Y-%m-%dT%H:%M:%SZ"), **fields)
        on_deletion(self.watched, body)


class TestEvent:
    @pytest.mark.parametrize("kind", [None, "ADDED", "MODIFIED"])
    def test_new_resource_is_remembered_and_accepted(self, kind: str | None) -> None:
        played = Scene()
        status = played.event(kind, topology_body())
        assert (status["phase"], status["message"]) == ("Pending", "accepted")
        assert played.registry.topology(KEY) is not None

    def test_resource_that_has_a_status_is_left_to_the_loop(self) -> None:
        assert Scene().event("MODIFIED", topology_body(status={"phase": "Running"})) == {}

    def test_invalid_resource_is_refused_with_the_field_and_remembered(self) -> None:
        played = Scene()
        status = played.event("ADDED", topology_body(spec=INVALID))
        assert status["phase"] == "Failed"
        assert "spec.scheduling.mode" in status["message"]
        managed = played.registry.topology(KEY)
        assert managed is not None
        assert managed.spec is None

    def test_refusal_is_written_once(self) -> None:
        played = Scene()
        status = played.event("ADDED", topology_body(spec=INVALID))
        assert played.event("MODIFIED", topology_body(spec=INVALID, status=status)) == {}

    def test_resource_that_becomes_invalid_is_refused_whatever_its_status_was(self) -> None:
        assert Scene().event("MODIFIED", topology_body(spec=INVALID, status={"phase": "Running"}))["phase"] == "Failed"

    def test_resource_being_deleted_is_remembered_and_not_answered(self) -> None:
        played = Scene()
        assert played.event("MODIFIED", topology_body(deletionTimestamp="2027-01-15T08:00:00Z")) == {}
        managed = played.registry.topology(KEY)
        assert managed is not None
        assert managed.is_being_deleted

    def test_resource_that_is_gone_is_forgotten(self) -> None:
        played = Scene(gone={"uid-words", "uid-of-one-that-waits"})
        played.event("ADDED", topology_body())
        assert played.event("DELETED", topology_body()) == {}
        assert played.registry.topology(KEY) is None
        assert played.gone == {"uid-of-one-that-waits"}

    def test_resource_that_was_made_anew_stays_when_the_end_of_the_old_one_is_heard_of_late(self) -> None:
        """kopf has a queue for each uid, and does not keep the order of two."""
        played = Scene()
        played.event("ADDED", topology_body())
        played.event("ADDED", topology_body(uid="uid-anew"))
        played.event("DELETED", topology_body())
        managed = played.registry.topology(KEY)
        assert managed is not None
        assert managed.uid == "uid-anew"

    def test_resource_that_was_made_anew_stays_when_the_old_one_is_heard_of_again(self) -> None:
        played = Scene()
        played.event("ADDED", topology_body(uid="uid-anew", creationTimestamp="2027-01-15T08:00:01Z"))
        old = topology_body(creationTimestamp="2027-01-15T08:00:00Z")
        leaving = topology_body(creationTimestamp="2027-01-15T08:00:01Z", deletionTimestamp="2027-01-15T08:00:01Z")
        for kind, body in (("MODIFIED", old), ("MODIFIED", leaving), ("DELETED", leaving)):
            played.event(kind, body)
        managed = played.registry.topology(KEY)
        assert managed is not None
        assert managed.uid == "uid-anew"


class TestDeletion:
    def test_waits_for_the_topology_to_be_seen_to(self) -> None:
        with pytest.raises(kopf.TemporaryError, match="waiting for Nimbus"):
            Scene().delete()

    def test_is_known_to_the_loop_meanwhile(self) -> None:
        played = Scene()
        with pytest.raises(kopf.TemporaryError):
            played.delete()
        managed = played.registry.topology(KEY)
        assert managed is not None
        assert managed.is_being_deleted

    def test_ends_when_the_loop_is_done_with_it(self) -> None:
        played = Scene()
        played.gone.add("uid-words")
        played.delete()
        assert played.told == []

    def test_does_not_end_because_an_earlier_resource_of_that_name_is_gone(self) -> None:
        played = Scene()
        played.gone.add("uid-of-the-earlier-one")
        with pytest.raises(kopf.TemporaryError):
            played.delete()

    def test_of_an_invalid_resource_has_nothing_to_wait_for(self) -> None:
        played = Scene()
        played.delete(spec=INVALID)
        assert played.told == []

    def test_waits_as_long_as_its_patience(self) -> None:
        with pytest.raises(kopf.TemporaryError):
            Scene().delete(seconds_ago=DELETION_PATIENCE_SECONDS)

    def test_lets_go_after_that_with_a_warning(self) -> None:
        played = Scene()
        played.delete(seconds_ago=DELETION_PATIENCE_SECONDS + 10.0)
        words = f"Nimbus {NIMBUS} did not answer for 100 s; the topology may still run there"
        assert played.told == [("words", "LetGo", words, True)]

    def test_waits_for_a_loop_that_is_busy_and_has_not_asked_nimbus_yet(self) -> None:
        with pytest.raises(kopf.TemporaryError):
            Scene().delete(seconds_ago=DELETION_PATIENCE_SECONDS + IDLE_LIMIT_SECONDS, loop_is_busy=True)

    def test_does_not_wait_for_ever_for_it(self) -> None:
        played = Scene()
        played.delete(seconds_ago=DELETION_PATIENCE_SECONDS + IDLE_LIMIT_SECONDS + 10.0, loop_is_busy=True)
        words = f"nobody could see to it on Nimbus {NIMBUS} for 700 s; the topology may still run there"
        assert played.told == [("words", "LetGo", words, True)]

    def test_that_was_asked_for_while_the_operator_was_away_is_seen_to_first(self) -> None:
        """Or by a clock that is an hour behind its own."""
        slow = {"adopt": {}, "deletionPolicy": "Kill", "killWaitSeconds": 40}
        played = Scene()
        leaving = topology_body(spec=slow, deletionTimestamp="2027-01-15T07:00:00Z")
        for played.seconds in (0.0, FIRST_LOOK_SECONDS + 40.0):
            with pytest.raises(kopf.TemporaryError, match="waiting for Nimbus"):
                on_deletion(played.watched, leaving)
        played.seconds += 1.0
        on_deletion(played.watched, leaving)
        assert "nobody could see to it" in played.told[0][2]
        assert played.watched.leaving == {}

    @pytest.mark.parametrize("reason", ["SubmissionNotEnded", "KillRefused"])
    def test_names_what_could_not_be_ended_and_blames_nimbus_for_no_silence(self, reason: str) -> None:
        played = Scene()
        why = "it has not ended"
        status = {"conditions": [{"type": "Degraded", "reason": reason, "message": why}]}
        played.delete(DELETION_PATIENCE_SECONDS + IDLE_LIMIT_SECONDS + 10.0, loop_is_busy=True, status=status)
        assert played.told == [
            ("words", "LetGo", f"it was waited for 700 s: {why}; the topology may still run there", True)
        ]

    def test_patience_begins_when_nimbus_was_asked_first(self) -> None:
        played = Scene()
        played.registry.note_question(NIMBUS, NOW.timestamp() - DELETION_PATIENCE_SECONDS)
        played.registry.note_question(NIMBUS, NOW.timestamp())
        with pytest.raises(kopf.TemporaryError):
            played.delete(seconds_ago=DELETION_PATIENCE_SECONDS + 30.0, loop_is_busy=True)
        played.registry.note_answer(NIMBUS)
        played.registry.note_question(NIMBUS, NOW.timestamp() - DELETION_PATIENCE_SECONDS - 10.0)
        played.delete(seconds_ago=DELETION_PATIENCE_SECONDS + 30.0, loop_is_busy=True)
        assert "did not answer for 100 s" in played.told[0][2]

    def test_names_who_was_in_the_way_and_blames_nimbus_for_nobody_else(self) -> None:
        played = Scene()
        played.registry.note_obstacle(NIMBUS, "of another time")
        played.registry.note_question(NIMBUS, NOW.timestamp() - 24 * 3600.0)
        played.registry.note_obstacle(NIMBUS, "ZooKeeper zk:2181 did not answer")
        played.delete(seconds_ago=DELETION_PATIENCE_SECONDS + 10.0)
        words = f"nobody could see to it on Nimbus {NIMBUS} for 100 s: ZooKeeper zk:2181 did not answer"
        assert played.told == [("words", "LetGo", f"{words}; the topology may still run there", True)]

    def test_is_patient_with_a_topology_that_takes_long_to_kill(self) -> None:
        slow = {"adopt": {}, "deletionPolicy": "Kill", "killWaitSeconds": 300}
        with pytest.raises(kopf.TemporaryError):
            Scene().delete(seconds_ago=DELETION_PATIENCE_SECONDS + 200.0, spec=slow)
        played = Scene()
        played.delete(seconds_ago=DELETION_PATIENCE_SECONDS + 301.0, spec=slow)
        assert len(played.told) == 1

    def test_understands_times_with_another_offset(self) -> None:
        played = Scene()
        played.registry.note_question(NIMBUS, NOW.timestamp() - 24 * 3600.0)
        on_deletion(played.watched, topology_body(deletionTimestamp="2027-01-15T08:50:00+01:00"))
        assert "did not answer for 600 s" in played.told[0][2]

    def test_what_an_invalid_resource_leaves_running_is_told(self) -> None:
        played = Scene()
        leaving = topology_body(spec=INVALID, deletionTimestamp="2027-01-15T07:59:59Z")
        on_deletion(played.watched, leaving)
        assert played.told == [], "nothing was ever submitted"
        on_deletion(played.watched, {**leaving, "status": {"topologyId": "words-1-1"}})
        ((_, reason, message, warning),) = played.told
        assert (reason, warning) == ("LetGo", True)
        assert "words-1-1" in message

    def test_what_was_being_submitted_for_an_invalid_resource_is_told(self) -> None:
        """The Job may be faster than its end, and nobody else knows of it."""
        played = Scene()
        submission = {"job": "words-submit-1", "fingerprint": "abc"}
        for ran in ({"submittedAt": "2027-01-15T07:00:00Z"}, {}):
            played.delete(spec=INVALID, status={"nimbus": NIMBUS, "submission": {**submission, **ran}})
        words = "its spec is invalid, so nothing was killed: what its job words-submit-1 submitted may still run"
        assert played.told == [("words", "LetGo", f"{words}; `storm kill` ends it", True)]


class TestKopf:
    """What kopf is given calls what is tested above."""

    @staticmethod
    def call(played: Scene, name: str, **event: Any) -> None:
        """As kopf does it: handlers may be coroutines or not."""
        registry = build_registry(played.watched)
        known = (*registry._watching.get_all_handlers(), *registry._changing.get_all_handlers())
        (handler,) = [handler.fn for handler in known if handler.fn.__name__ == name]
        done: Any = handler(**event)
        if inspect.iscoroutine(done):
            asyncio.run(done)

    def test_topologies_are_followed(self) -> None:
        played = Scene()
        status: dict[str, Any] = {}
        patch = SimpleNamespace(status=status)
        self.call(played, "topology_seen", type="ADDED", body=topology_body(), patch=patch)
        assert played.registry.topology(KEY) is not None
        assert status["phase"] == "Pending"

    def test_rebalances_are_followed_and_forgotten(self) -> None:
        played = Scene()
        self.call(played, "rebalance_seen", type=None, body=rebalance())
        assert len(played.registry.rebalances()) == 1
        self.call(played, "rebalance_seen", type="DELETED", body=rebalance())
        assert played.registry.rebalances() == ()
        assert played.registry.take_deleted_proposals(NIMBUS) == {("streams", rebalance()["metadata"]["name"])}
        assert played.registry.take_deleted_proposals(NIMBUS) == frozenset()
        self.call(played, "rebalance_seen", type="DELETED", body=rebalance("Verified"))
        assert played.registry.take_deleted_proposals(NIMBUS) == frozenset()

    def test_plan_is_kept_until_it_is_over_and_again_once_somebody_asks_for_it(self) -> None:
        played, kept = Scene(), list[bool]()
        for body in (rebalance(), rebalance("Verified"), rebalance("Verified", ask="rollback")):
            self.call(played, "rebalance_seen", type="MODIFIED", body=body)
            kept.append(plan_of(played.registry.rebalances()[0]) is not None)
        assert kept == [True, False, True]

    def test_deletion_waits(self) -> None:
        leaving = topology_body(deletionTimestamp="2027-01-15T07:59:59Z")
        with pytest.raises(kopf.TemporaryError):
            self.call(Scene(), "topology_leaves", body=leaving)
