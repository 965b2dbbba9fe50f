"""Whose a topology is, and where its plans are shown."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

from kube_builders import NIMBUS, TOPOLOGY_ID, registry_of, topology_body
from storm_operator.kube.managed import Managed
from storm_operator.kube.owners import Owners

RUNS = {"topologyId": TOPOLOGY_ID, "nimbus": NIMBUS}
INVALID = {"adopt": {}, "scheduling": {"mode": "Perhaps"}}


def owners_of(*bodies: dict[str, Any]) -> Owners:
    owners = Owners(NIMBUS, registry_of(*bodies), set(), lambda: Mock(as_known=lambda one: one))
    owners.look()
    return owners


def key(one: Managed | None) -> tuple[str, str] | None:
    return None if one is None else one.key


def test_resource_that_is_invalid_by_now_still_holds_what_runs_for_it_and_manages_it_no_more() -> None:
    owners = owners_of(topology_body(spec=INVALID, status=RUNS))
    assert owners.of_id(TOPOLOGY_ID) is None
    assert key(owners.holder_of_id(TOPOLOGY_ID)) == ("streams", "words")


def test_resource_that_is_invalid_and_runs_nothing_holds_nothing() -> None:
    assert owners_of(topology_body(spec=INVALID)).holder_of_id(TOPOLOGY_ID) is None


def test_who_manages_a_topology_holds_it() -> None:
    owners = owners_of(topology_body(status=RUNS), topology_body(namespace="team-b", uid="uid-b"))
    assert key(owners.of_id(TOPOLOGY_ID)) == key(owners.holder_of_id(TOPOLOGY_ID)) == ("streams", "words")
