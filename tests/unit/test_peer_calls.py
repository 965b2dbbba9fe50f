"""Calls to peers are noted with how they went: an answer, a refusal, or none."""

from __future__ import annotations

import time
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.client import ApiClient
from kubernetes.client.exceptions import ApiException

from http_server import serving
from storm_operator.adapters.errors import AdapterError, ZooKeeperUnreachable
from storm_operator.adapters.kube import resources
from storm_operator.adapters.kube.clients import LONGEST_RETRY_AFTER_SECONDS, NotedApiClient
from storm_operator.adapters.kube.errors import KubernetesError, NoAnswer
from storm_operator.adapters.kube.resources import TOPOLOGIES, OwnKinds
from storm_operator.adapters.metrics import PrometheusSource, ScrapeSource
from storm_operator.adapters.nimbus.connection import ConnectionBroken, NimbusAddress
from storm_operator.adapters.peer_calls import CallOutcome, NotedConnection, NotedNodes, Peer

OK, REFUSED, UNREACHABLE = CallOutcome.OK, CallOutcome.REFUSED, CallOutcome.UNREACHABLE
NOBODY_LISTENS = "http://127.0.0.1:9"


class Book:
    """All that is noted, without the times."""

    def __init__(self) -> None:
        self.calls: list[tuple[Peer, str, CallOutcome]] = []

    def note(self, peer: Peer, verb: str, outcome: CallOutcome, seconds: float) -> None:
        assert seconds >= 0.0
        self.calls.append((peer, verb, outcome))


@pytest.fixture
def book() -> Book:
    return Book()


class Nodes:
    """ZooKeeper's nodes; `failure` is what happens to every call."""

    failure: Exception | None = None

    def get(self, path: str) -> bytes | None:
        if self.failure is not None:
            raise self.failure
        return None

    def put(self, path: str, content: bytes) -> None:
        self.get(path)

    def remove(self, path: str) -> None:
        self.get(path)

    def children(self, path: str) -> tuple[str, ...]:
        self.get(path)
        return ()


def test_zookeeper(book: Book) -> None:
    nodes = Nodes()
    noted = NotedNodes(nodes, book)
    assert noted.get("/a") is None
    noted.put("/a", b"")
    noted.remove("/a")
    assert noted.children("/") == ()
    nodes.failure = ZooKeeperUnreachable("nobody there")
    with pytest.raises(ZooKeeperUnreachable):
        noted.get("/a")
    nodes.failure = AdapterError("no right")
    with pytest.raises(AdapterError):
        noted.put("/a", b"")
    expected = [("get", OK), ("put", OK), ("remove", OK), ("children", OK), ("get", UNREACHABLE), ("put", REFUSED)]
    assert book.calls == [(Peer.ZOOKEEPER, verb, outcome) for verb, outcome in expected]


def test_nimbus_that_is_not_there(book: Book) -> None:
    with pytest.raises(ConnectionBroken):
        NotedConnection(NimbusAddress("127.0.0.1", 9), 1.0, book)
    assert book.calls == [(Peer.NIMBUS, "connect", UNREACHABLE)]


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (SimpleNamespace(status=200), OK),
        (SimpleNamespace(status=409), REFUSED),
        (ApiException(status=403), REFUSED),
        (ApiException(status=0), UNREACHABLE),
        (OSError("no route"), UNREACHABLE),
    ],
)
def test_the_kubernetes_api(book: Book, monkeypatch: pytest.MonkeyPatch, answer: Any, outcome: CallOutcome) -> None:
    def call_api(*_: object, **__: object) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(ApiClient, "call_api", call_api)
    client = NotedApiClient(book)
    if isinstance(answer, Exception):
        with pytest.raises(type(answer)):
            client.call_api("PATCH", "/pods")
    else:
        assert client.call_api("PATCH", "/pods") is answer
    assert book.calls == [(Peer.KUBERNETES, "patch", outcome)]


@pytest.mark.parametrize("status", [429, 503])
def test_a_kubernetes_api_that_is_busy_is_not_waited_for_as_long_as_it_says(
    book: Book, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    client = NotedApiClient(book)
    with serving(lambda _: (status, b'{"message": "busy"}'), headers={"Retry-After": "32"}) as url:
        client.configuration.host = url
        with pytest.raises(KubernetesError, match="busy"):
            OwnKinds(client).list(TOPOLOGIES)
    assert waits == [LONGEST_RETRY_AFTER_SECONDS] * 3
    assert book.calls == [(Peer.KUBERNETES, "get", REFUSED)]


@pytest.mark.parametrize(
    ("silent", "asked", "timeout_seconds"), [(1, 2, 2.0), (9, 2, 0.1)], ids=["a connection that is dead", "hangs"]
)
def test_a_kubernetes_api_that_says_nothing_is_asked_once_more_and_not_thrice(
    book: Book, monkeypatch: pytest.MonkeyPatch, silent: int, asked: int, timeout_seconds: float
) -> None:
    monkeypatch.setattr(resources, "TIMEOUT_SECONDS", timeout_seconds)
    may_end, came = Event(), []

    def answer(path: str) -> tuple[int, bytes]:
        came.append(path)
        if len(came) <= silent:
            may_end.wait(30.0)
        return 200, b'{"items": []}'

    client = NotedApiClient(book)
    with serving(answer, headers={"Content-Type": "application/json"}) as url:
        client.configuration.host = url
        if silent < asked:
            assert OwnKinds(client).list(TOPOLOGIES) == ()
        else:
            with pytest.raises(NoAnswer, match="does not answer"):
                OwnKinds(client).list(TOPOLOGIES)
        may_end.set()
    assert len(came) == asked


def test_agents_and_prometheus_that_are_not_there(book: Book) -> None:
    window = ScrapeSource(lambda: {"h1": f"{NOBODY_LISTENS}/metrics"}, book=book).read_window(1000.0, 15.0)
    assert window.problems
    window = PrometheusSource(NOBODY_LISTENS, book=book).read_window(1000.0, 15.0)
    assert window.problems
    assert book.calls == [(Peer.AGENT, "scrape", UNREACHABLE), (Peer.PROMETHEUS, "query", UNREACHABLE)]
