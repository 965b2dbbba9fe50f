"""The first look at a Storm cluster: where its Nimbuses and its ZooKeeper are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from storm_operator.adapters.errors import NimbusUnreachable
from storm_operator.adapters.nimbus.client import NimbusClient
from storm_operator.adapters.nimbus.connection import ConnectionBroken, NimbusAddress
from storm_operator.kube import connecting
from storm_operator.kube.connecting import RunnerSettings, discover, other_nimbuses
from storm_operator.kube.submission import JobSettings

FIRST, SECOND = "nimbus1.example.com", "nimbus2.example.com"
SETTINGS = RunnerSettings(JobSettings("storm"), 9464)


class Nimbuses:
    """Two hosts, of which one leads; `dead` ones take no connection, and `tried` has whom it was tried with."""

    def __init__(self) -> None:
        self.leads, self.dead, self.tried = FIRST, set[str](), list[str]()
        self.seconds = 0.0

    def connect(self, address: NimbusAddress, _: float) -> Any:
        self.tried.append(address.host)
        if address.host in self.dead:
            raise ConnectionBroken("Connection refused")
        return SimpleNamespace(call=lambda method, *_: self.answer(address.host, method), close=lambda: None)

    def answer(self, host: str, method: str) -> Any:
        if host in self.dead:
            raise ConnectionBroken("reset")
        if method == "getLeader":
            return SimpleNamespace(host=self.leads, port=6627, isLeader=True, uptime_secs=1, version="2.8.3")
        conf = {"nimbus.seeds": [FIRST, SECOND], "storm.zookeeper.servers": ["zk1.example.com"]}
        return json.dumps(conf)

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds

    def client(self, seeds: tuple[str, ...], **options: Any) -> NimbusClient:
        return NimbusClient(seeds, connect=self.connect, clock=lambda: self.seconds, sleep=self.sleep, **options)


@pytest.fixture
def nimbuses(monkeypatch: pytest.MonkeyPatch) -> Nimbuses:
    nimbuses = Nimbuses()
    monkeypatch.setattr(connecting, "NimbusClient", nimbuses.client)
    return nimbuses


def test_leader_is_found_where_the_only_host_that_was_named_has_died(nimbuses: Nimbuses) -> None:
    found = discover(f"{FIRST}:6627", SETTINGS)
    assert (found.nimbus, found.zookeeper) == ((f"{FIRST}:6627", f"{SECOND}:6627"), "zk1.example.com:2181")
    client = nimbuses.client(found.nimbus)
    client.nimbus_conf()
    nimbuses.leads = SECOND
    nimbuses.dead = {FIRST}
    assert client.nimbus_conf()["nimbus.seeds"] == [FIRST, SECOND]


def test_others_are_asked_only_while_the_one_that_was_named_does_not_answer(nimbuses: Nimbuses) -> None:
    client = nimbuses.client(discover(f"{FIRST}:6627", SETTINGS).nimbus)
    for _ in range(3):
        client.nimbus_conf()
        client.close()
    assert set(nimbuses.tried) == {FIRST}


def test_where_the_address_comes_from_is_told_when_nobody_answers(nimbuses: Nimbuses) -> None:
    named_by = discover(f"{FIRST}:6627", SETTINGS).nimbus_named_by
    nimbuses.dead = {FIRST, SECOND}
    with pytest.raises(NimbusUnreachable, match=r"its address is right in spec\.nimbus \(or --nimbus\)$"):
        discover(f"{FIRST}:6627", SETTINGS)
    assert named_by == "spec.nimbus (or --nimbus)"


@pytest.mark.parametrize(
    ("conf", "others"),
    [
        ({"nimbus.seeds": [FIRST, SECOND]}, (f"{SECOND}:6627",)),
        ({"nimbus.seeds": [SECOND, "10.0.0.7", "fd00::7"]}, (f"{SECOND}:6627", "10.0.0.7:6627", "[fd00::7]:6627")),
        ({"nimbus.seeds": [FIRST, SECOND], "nimbus.thrift.port": 7000}, (f"{FIRST}:7000", f"{SECOND}:7000")),
        ({"nimbus.seeds": [SECOND, SECOND]}, (f"{SECOND}:6627",)),
        ({"nimbus.seeds": [SECOND]}, ()),  # the only one: the one that was named
        ({"nimbus.seeds": ["localhost", "nimbus2"]}, ()),
        ({"nimbus.seeds": SECOND}, ()),
        ({}, ()),
    ],
)
def test_seeds_of_nimbus_own_conf_are_the_others(conf: Mapping[str, Any], others: tuple[str, ...]) -> None:
    assert other_nimbuses(f"{FIRST}:6627", conf) == others


def test_seed_that_is_the_service_that_was_named_is_no_other() -> None:
    seeds = [f"storm-nimbus{tail}.storm.svc.cluster.local" for tail in ("", "-1")]
    assert other_nimbuses("storm-nimbus.storm:6627", {"nimbus.seeds": seeds}) == (f"{seeds[1]}:6627",)
