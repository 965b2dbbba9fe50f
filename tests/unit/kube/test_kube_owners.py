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


def test_who_is_refused_is_named_with_its_topology_for_as_long_as_it_is() -> None:
    holder, late = topology_body(status=RUNS), topology_body(namespace="team-b", uid="uid-b")
    owners = owners_of(holder, late)
    (refusal,) = owners.refused
    assert refusal.topology == "words"
    assert refusal.sentence == (
        "StormTopology team-b/words: topology 'words' belongs to StormTopology streams/words; choose another"
        " topologyName, or delete that one"
    )
    owners.registry.put_topology(topology_body(spec=INVALID, status=RUNS))
    owners.registry.forget_topology(("team-b", "words"), "uid-b")
    owners.look()
    (refusal,) = owners.refused
    assert refusal.topology == "words"
    assert refusal.sentence.startswith("StormTopology streams/words: spec.scheduling.mode is 'Perhaps'")
    owners.registry.put_topology(holder)
    owners.look()
    assert owners.refused == ()
