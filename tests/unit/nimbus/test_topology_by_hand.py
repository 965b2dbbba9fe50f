"""`storm-operator topology`: Storm's own commands, for who has no Storm client at hand, as in the Storm image."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner, Result

from fake_zookeeper import FakeSession, FakeZooKeeper
from storm_operator import cli_topology
from storm_operator.adapters.errors import NimbusUnreachable, TopologyNotAlive
from storm_operator.adapters.nimbus.values import ClusterInfo, TopologySummary
from storm_operator.cli import app

PAYMENTS = TopologySummary("payments-1-1767268800", "payments", "INACTIVE", 4, 3, 2, 3700, None)
OTHER = TopologySummary("other-2-1767268900", "other", "ACTIVE", 1, 1, 1, 60, None)
CONF = {"storm.zookeeper.servers": ["zk-0", "zk-1"], "storm.zookeeper.port": 2182, "storm.zookeeper.root": "/blue/"}


@pytest.fixture
def nimbus(monkeypatch: pytest.MonkeyPatch) -> Mock:
    client = Mock()
    client.cluster_info.return_value = ClusterInfo((), (), (OTHER, PAYMENTS))
    client.nimbus_conf.return_value = CONF
    monkeypatch.setattr(cli_topology, "NimbusClient", Mock(return_value=client))
    return client


@pytest.fixture
def zookeeper(monkeypatch: pytest.MonkeyPatch) -> tuple[FakeZooKeeper, list[str]]:
    """With what an operator kept of both topologies; and the servers that were asked."""
    asked: list[str] = []
    kinds = ("plans", "acks", "cpu-limits")
    ids = (PAYMENTS.id, OTHER.id)
    found = FakeZooKeeper({f"/blue/storm-operator/{kind}/{one}": ("", b"{}") for kind in kinds for one in ids})

    def session(servers: str) -> Mock:
        asked.append(servers)
        made = FakeSession(found, "by hand")
        return Mock(spec_set=("remove", "close"), remove=made.remove)

    monkeypatch.setattr(cli_topology, "ZooKeeperSession", session)
    return found, asked


def topology(*words: str) -> Result:
    return CliRunner().invoke(app, ["topology", *words, "--nimbus", "nimbus:6627"], env={"COLUMNS": "200"})


def test_list_tells_each_with_its_id_by_which_documents_in_zookeeper_are_named(nimbus: Mock) -> None:
    done = topology("list")
    assert done.exit_code == 0
    rows = [line.split() for line in done.output.splitlines()]
    assert rows == [
        ["TOPOLOGY", "STATE", "ID"],
        ["other", "ACTIVE", OTHER.id],
        ["payments", "INACTIVE", PAYMENTS.id],
    ]


def test_list_is_json_for_programs(nimbus: Mock) -> None:
    other, payments = json.loads(topology("list", "-o", "json").output)
    assert other == {"name": "other", "state": "ACTIVE", "id": OTHER.id}
    assert payments["state"] == "INACTIVE"


@pytest.mark.parametrize(
    ("words", "method", "options"),
    [
        (("activate", "payments"), "activate", {}),
        (("deactivate", "payments"), "deactivate", {}),
        (("kill", "payments"), "kill", {"wait_seconds": 5}),
        (("kill", "payments", "--wait-seconds", "30"), "kill", {"wait_seconds": 30}),
    ],
)
def test_nimbus_is_asked(nimbus: Mock, words: tuple[str, ...], method: str, options: Mapping[str, Any]) -> None:
    done = topology(*words)
    assert done.exit_code == 0, done.output
    getattr(nimbus, method).assert_called_once_with("payments", **options)
    assert "payments" in done.output


def test_hand_back_takes_what_an_operator_left_of_that_topology_alone(
    nimbus: Mock, zookeeper: tuple[FakeZooKeeper, list[str]]
) -> None:
    done = topology("hand-back", "payments")
    assert done.exit_code == 0, done.output
    left, asked = zookeeper
    assert asked == ["zk-0:2182,zk-1:2182"]
    assert {path.rpartition("/")[2] for path in left.nodes} == {OTHER.id}
    assert PAYMENTS.id in done.output


def test_hand_back_of_what_does_not_run_says_so_and_touches_nothing(
    nimbus: Mock, zookeeper: tuple[FakeZooKeeper, list[str]]
) -> None:
    done = topology("hand-back", "paymets")
    assert done.exit_code == 1
    assert "no topology 'paymets' runs on Nimbus nimbus:6627; those that run: other, payments" in done.output
    assert len(zookeeper[0].nodes) == 6


@pytest.mark.parametrize("trouble", [TopologyNotAlive("no topology 'payments' runs"), NimbusUnreachable("no answer")])
def test_what_nimbus_refuses_is_a_sentence_and_exit_code_1(nimbus: Mock, trouble: Exception) -> None:
    nimbus.kill.side_effect = trouble
    done = topology("kill", "payments")
    assert (done.exit_code, done.output.strip()) == (1, f"storm-operator topology kill: {trouble}")
    nimbus.close.assert_called_once_with()


def test_an_address_that_is_none_is_bad_input() -> None:
    done = CliRunner().invoke(app, ["topology", "list", "--nimbus", "nimbus:"])
    assert done.exit_code == 2
    assert "Nimbus address 'nimbus:': give host or host:port" in done.output
