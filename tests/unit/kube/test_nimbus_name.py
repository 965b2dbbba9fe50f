"""A Nimbus by any of the names that Kubernetes has for it is one Nimbus."""

from __future__ import annotations

import pytest

from storm_operator.core.nimbus_name import means_the_same_everywhere, nimbus_name


@pytest.mark.parametrize(
    "address",
    [
        "storm-nimbus",
        "storm-nimbus:6627",
        "storm-nimbus.storm:6627",
        "storm-nimbus.storm.svc:6627",
        "storm-nimbus.storm.svc.cluster.local",
        "storm-nimbus.storm.svc.cluster.local:6627",
        "storm-nimbus.storm.svc.cluster.local.:6627",
        "Storm-Nimbus.STORM:6627",
    ],
)
def test_all_names_of_a_service_are_one(address: str) -> None:
    assert nimbus_name(address, "storm") == "storm-nimbus.storm:6627"


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("storm-nimbus.storm:7000", "storm-nimbus.storm:7000"),
        ("storm-nimbus.other.svc:6627", "storm-nimbus.other:6627"),
        ("storm-nimbus-0.storm-nimbus.storm.svc.cluster.local:6627", "storm-nimbus-0.storm-nimbus.storm:6627"),
        ("nimbus.example.com:6627", "nimbus.example.com:6627"),
        ("nimbus.svc:6627", "nimbus.svc:6627"),
        ("nimbus.storm.svc.clusterset.local:6627", "nimbus.storm.svc.clusterset.local:6627"),
        ("10.0.0.7:6627", "10.0.0.7:6627"),
        ("[fd00::7]:6627", "[fd00::7]:6627"),
        ("[FD00:0::7]", "[fd00::7]:6627"),
        ("localhost:6627", "localhost:6627"),
        ("nimbus1.:6627", "nimbus1.:6627"),
    ],
)
def test_what_is_another_stays_another(address: str, name: str) -> None:
    assert nimbus_name(address, "storm") == name


def test_a_name_is_its_own_name() -> None:
    once = nimbus_name("storm-nimbus", "storm")
    assert nimbus_name(once, "elsewhere") == once


@pytest.mark.parametrize(
    ("host", "is_so"),
    [
        ("nimbus2.example.com", True),
        ("storm-nimbus-1.storm-nimbus.storm.svc.cluster.local", True),
        ("10.0.0.7", True),
        ("fd00::7", True),
        ("storm-nimbus-1.storm-nimbus", False),  # in a pod: of a Service of its namespace
        ("nimbus2", False),  # in a pod: a Service of its namespace, of another Storm cluster perhaps
        ("localhost", False),
        ("localhost.localdomain", False),
        ("127.0.0.1", False),
        ("::1", False),
        ("0.0.0.0", False),
    ],
)
def test_loopback_and_what_a_service_may_be_called_are_other_hosts_elsewhere(host: str, is_so: bool) -> None:
    assert means_the_same_everywhere(host) is is_so
