from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from eventually import eventually
from kazoo.client import KazooState
from kazoo.exceptions import ConnectionLoss, NoNodeError
from kazoo.protocol.states import EventType, KeeperState, WatchedEvent

from storm_operator.agent import limits
from storm_operator.agent.limits import ExecutorKey, LimitsError, LimitsReader, parse_limits

HOSTS = "127.0.0.1:1"
LIMITS = "/storm/storm-operator/cpu-limits"


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
        self.has_node = True
        self.watches: list[Callable[[object], None]] = []

    @property
    def connected(self) -> bool:
        self.looks += 1
        return self.answers

    def add_listener(self, listener: Callable[[str], None]) -> None:
        self._tell = listener

    def answer(self, connected: bool) -> None:
        self.answers = connected
        self._tell(KazooState.CONNECTED if connected else KazooState.SUSPENDED)

    def get_children(self, path: str, watch: Callable[[WatchedEvent], None]) -> list[str]:
        self.asked += 1
        return []

    def exists(self, path: str, watch: Callable[[object], None]) -> object:
        self.watches.append(watch)
        return object() if self.has_node else None

    def start_async(self) -> None: ...

    def stop(self) -> None: ...

    def close(self) -> None: ...


@pytest.mark.slow
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


@pytest.mark.slow
def test_node_that_nobody_has_made_yet_is_said_once_and_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is not made by who only reads it: under a wrong root nobody else would ever look there."""
    caplog.set_level(logging.INFO)
    client = SilentZooKeeper()
    client.has_node = False
    monkeypatch.setattr(limits, "KazooClient", lambda **_: client)
    monkeypatch.setattr(limits, "RESYNC_SECONDS", 0.02)
    reader = LimitsReader(HOSTS, "/blue/storm-operator", lambda: None)
    reader.start()
    try:
        client.answer(True)
        eventually(lambda: len(client.watches) > 3, "it looks again and again")
        (words,) = caplog.messages
        assert "there is no /blue/storm-operator/cpu-limits" in words
        assert "--zookeeper-root" in words
        assert client.asked == 0
        client.has_node = True
        client.watches[-1](WatchedEvent(EventType.CREATED, KeeperState.CONNECTED, "/blue/storm-operator/cpu-limits"))
        eventually(lambda: client.asked > 0, "limits are read")
    finally:
        reader.stop()


class LimitsInZooKeeper(SilentZooKeeper):
    """Answers at once; there are limits of as many topologies as `nodes` has. Watches are told as ZooKeeper does."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes: dict[str, bytes] = {}
        self.gets: list[str] = []
        self.watched: dict[str, Callable[[WatchedEvent], None]] = {}
        self.fails = 0

    def get_children(self, path: str, watch: Callable[[WatchedEvent], None]) -> list[str]:
        self.watched[path] = watch
        super().get_children(path, watch)
        return list(self.nodes)

    def get(self, path: str, watch: Callable[[WatchedEvent], None]) -> tuple[bytes, None]:
        if self.fails:
            self.fails -= 1
            raise ConnectionLoss
        name = path.rsplit("/", 1)[1]
        self.gets.append(name)
        if name not in self.nodes:
            raise NoNodeError
        self.watched[path] = watch
        return self.nodes[name], None

    def put(self, name: str, millicores: float) -> None:
        is_new = name not in self.nodes
        rows = [{"task_start": 1, "task_end": 1, "millicores": millicores}]
        self.nodes[name] = document(topology_id=name, limits=rows)
        self._changed(LIMITS if is_new else f"{LIMITS}/{name}", EventType.CHILD if is_new else EventType.CHANGED)

    def remove(self, name: str) -> None:
        del self.nodes[name]
        self._changed(f"{LIMITS}/{name}", EventType.DELETED)
        self._changed(LIMITS, EventType.CHILD)

    def lose_watches(self) -> None:
        for path in list(self.watched):
            self._changed(path, EventType.NONE, told=None)

    def _changed(self, path: str, what: str, told: str | None = "") -> None:
        watch = self.watched.pop(path, None)
        if watch is not None:
            watch(WatchedEvent(what, KeeperState.CONNECTED, path if told == "" else told))


@pytest.fixture
def zookeeper(monkeypatch: pytest.MonkeyPatch) -> LimitsInZooKeeper:
    client = LimitsInZooKeeper()
    for number in range(50):
        client.put(f"t-{number}", 100.0)
    monkeypatch.setattr(limits, "KazooClient", lambda **_: client)
    return client


@pytest.fixture
def reader(zookeeper: LimitsInZooKeeper) -> Iterator[LimitsReader]:
    """One that has read all of them."""
    reader = LimitsReader(HOSTS, "storm//storm-operator/", lambda: None)
    reader.start()
    zookeeper.answer(True)
    try:
        eventually(lambda: len(reader.limits()) == 50, "all limits are read")
        zookeeper.gets.clear()
        zookeeper.asked = 0
        yield reader
    finally:
        reader.stop()


def knows(reader: LimitsReader, name: str, millicores: float) -> Callable[[], bool]:
    return lambda: reader.limits().get(ExecutorKey(name, 1, 1)) == millicores


@pytest.mark.slow
def test_a_changed_limit_is_read_and_no_other(zookeeper: LimitsInZooKeeper, reader: LimitsReader) -> None:
    """Every agent follows the limits of all topologies, and with demand they change in every period."""
    for millicores in (200.0, 300.0):
        zookeeper.put("t-7", millicores)
        eventually(knows(reader, "t-7", millicores), "the change is known")
    assert (zookeeper.gets, zookeeper.asked) == (["t-7", "t-7"], 0)


@pytest.mark.slow
def test_topologies_that_come_and_go_are_found(zookeeper: LimitsInZooKeeper, reader: LimitsReader) -> None:
    zookeeper.put("new-1", 400.0)
    eventually(knows(reader, "new-1", 400.0), "the new one is known")
    assert (zookeeper.gets, zookeeper.asked) == (["new-1"], 1)
    zookeeper.put("new-1", 500.0)
    eventually(knows(reader, "new-1", 500.0), "its change is known")
    zookeeper.remove("new-1")
    eventually(lambda: len(reader.limits()) == 50, "it is gone")
    zookeeper.put("new-1", 600.0)
    eventually(knows(reader, "new-1", 600.0), "it is there again")
    assert set(zookeeper.gets) == {"new-1"}


@pytest.mark.slow
@pytest.mark.parametrize("how", ["watches are lost", "a read fails"])
def test_all_are_read_anew_where_a_change_may_have_been_missed(
    monkeypatch: pytest.MonkeyPatch, zookeeper: LimitsInZooKeeper, reader: LimitsReader, how: str
) -> None:
    monkeypatch.setattr(limits, "RETRY_SECONDS", 0.01)
    if how == "a read fails":
        zookeeper.fails = 1
        zookeeper.put("t-7", 200.0)
    else:
        zookeeper.lose_watches()
    eventually(lambda: set(zookeeper.gets) == zookeeper.nodes.keys(), "all are read")
    zookeeper.put("t-9", 300.0)
    eventually(knows(reader, "t-9", 300.0), "watches are there again")


@pytest.mark.slow
def test_limits_that_cannot_be_read_are_said_once_each_time(
    monkeypatch: pytest.MonkeyPatch,
    zookeeper: LimitsInZooKeeper,
    reader: LimitsReader,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As where the agent lacks the right to: it would be told every three seconds."""
    monkeypatch.setattr(limits, "RETRY_SECONDS", 0.01)
    for time, millicores in ((1, 200.0), (2, 300.0)):
        zookeeper.fails = 5
        zookeeper.put("t-7", millicores)
        eventually(knows(reader, "t-7", millicores), "it is read in the end")
        (*_, last) = said = [words for words in caplog.messages if words.startswith("cannot read")]
        assert len(said) == time
        assert "ConnectionLoss" in last


@pytest.mark.slow
def test_all_are_read_anew_now_and_then(monkeypatch: pytest.MonkeyPatch, zookeeper: LimitsInZooKeeper) -> None:
    monkeypatch.setattr(limits, "RESYNC_SECONDS", 0.02)
    reader = LimitsReader(HOSTS, "/storm/storm-operator", lambda: None)
    reader.start()
    try:
        zookeeper.answer(True)
        eventually(lambda: zookeeper.gets.count("t-7") > 2, "it looks again and again")
    finally:
        reader.stop()
