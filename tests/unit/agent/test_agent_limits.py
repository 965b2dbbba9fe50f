from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from eventually import eventually
from kazoo.client import KazooState

from storm_operator.agent import limits
from storm_operator.agent.limits import ExecutorKey, LimitsError, LimitsReader, parse_limits

HOSTS = "127.0.0.1:1"


def document(**fields: Any) -> bytes:
    limits = [{"task_start": 1, "task_end": 2, "millicores": 400}]
    return json.dumps({"version": 1, "topology_id": "t-1", "plan_id": "p-1", "limits": limits} | fields).encode()


def test_reads_millicores_per_executor() -> None:
    assert parse_limits(document(), "t-1") == {ExecutorKey("t-1", 1, 2): 400.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", "not JSON"),
        (None, "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "must be a JSON object"),
        (document(version=2), "version is 2"),
        (document(topology_id="t-2"), "topology_id is 't-2', the node is named 't-1'"),
        (document(limits=None), "limits must be a list"),
        (
            document(limits=[{"task_start": 1, "task_end": 1, "millicores": 0}]),
            r"limits\[0\].millicores must be .* above 0",
        ),
        (
            document(limits=[{"task_start": 1, "task_end": 1, "millicores": 10**400}]),
            r"limits\[0\].millicores must be .* at most 1000000000, not a whole number of over 300 digits",
        ),
        (document(limits=[{"task_start": 1, "task_end": 1, "millicores": True}]), "must be a number, not True"),
        (document(limits=[{"task_start": 1, "millicores": 5}]), r"limits\[0\].task_end must be a whole number"),
    ],
)
def test_names_the_field_that_is_wrong(text: bytes | None, message: str) -> None:
    with pytest.raises(LimitsError, match=message):
        parse_limits(text, "t-1")


@pytest.mark.parametrize("deep", [b"[" * 600 + b"]" * 600, b'"' + b"x" * 1_000_000 + b'"'])
@pytest.mark.parametrize("field", ["version", "topology_id", "limits", "task_start", "millicores"])
def test_what_is_wrong_is_never_shown_at_length(field: str, deep: bytes) -> None:
    row = {"task_start": 1, "task_end": 1, "millicores": 5}
    bad = document(**({field: "HERE"} if field not in row else {"limits": [row | {field: "HERE"}]}))
    with pytest.raises(LimitsError) as raised:
        parse_limits(bad.replace(b'"HERE"', deep), "t-1")
    assert len(str(raised.value)) < 300


class SilentZooKeeper:
    """A client of kazoo's whose ZooKeeper answers when the test says so; there are no limits in it."""

    def __init__(self, **_: Any) -> None:
        self.answers = False
        self.looks = self.asked = 0

    @property
    def connected(self) -> bool:
        self.looks += 1
        return self.answers

    def add_listener(self, listener: Callable[[str], None]) -> None:
        self._tell = listener

    def answer(self, connected: bool) -> None:
        self.answers = connected
        self._tell(KazooState.CONNECTED if connected else KazooState.SUSPENDED)

    def get_children(self, path: str, watch: object) -> list[str]:
        self.asked += 1
        return []

    def ensure_path(self, path: str) -> None: ...

    def start_async(self) -> None: ...

    def stop(self) -> None: ...

    def close(self) -> None: ...


def test_zookeeper_that_never_answers_is_said_once_and_so_is_its_first_answer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    client = SilentZooKeeper()
    monkeypatch.setattr(limits, "KazooClient", lambda **_: client)
    monkeypatch.setattr(limits, "UNANSWERED_SECONDS", 0.02)
    monkeypatch.setattr(limits, "RESYNC_SECONDS", 0.02)
    reader = LimitsReader(HOSTS, "/storm/storm-operator", lambda: None)
    reader.start()
    try:
        eventually(lambda: client.looks > 10, "it looks again and again")
        ((_, level, words),) = caplog.record_tuples
        assert level == logging.WARNING
        assert f"ZooKeeper {HOSTS} has not answered" in words
        assert "--zookeeper" in words
        client.answer(True)
        eventually(lambda: client.asked > 1, "limits are read")
        assert caplog.messages[1:] == [f"ZooKeeper {HOSTS} answers: following its CPU limits"]
        client.answer(False)
        client.answer(True)
        eventually(lambda: len(caplog.records) > 3, "both are said")
        assert "keeping the CPU limits last known" in caplog.messages[2]
        assert caplog.messages[3:] == [f"ZooKeeper {HOSTS} answers: following its CPU limits"]
    finally:
        reader.stop()
