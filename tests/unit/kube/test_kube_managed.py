"""What the operator makes of the resources that it watches: valid or not, whose, and who has a name."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, ClassVar
from unittest.mock import Mock

import pytest

from kube_builders import NIMBUS, NOW, managed, rebalance, registry_of, topology_body
from kube_builders import plan as plan_named
from storm_operator.core.topology_spec import PAUSED_ANNOTATION
from storm_operator.kube import managed as module
from storm_operator.kube.managed import Managed, Registry, managed_from, rightful


def test_valid_resource_has_a_spec_and_the_default_nimbus() -> None:
    one = managed()
    assert one.spec is not None
    assert one.spec.name == "words"
    assert (one.key, one.nimbus, one.problem) == (("streams", "words"), NIMBUS, "")
    assert (one.uid, one.generation) == ("uid-words", 1)


def test_own_nimbus_is_before_the_default() -> None:
    assert managed(spec={"adopt": {}, "nimbus": "other.storm"}).nimbus == "other.storm:6627"


def test_one_storm_cluster_by_all_its_names_has_one_loop() -> None:
    registry = Registry("storm-nimbus.streams:6627")
    names = ("storm-nimbus", "storm-nimbus:6627", "storm-nimbus.streams", "Storm-Nimbus.streams.svc:6627")
    for at, nimbus in enumerate((*names, "storm-nimbus.streams.svc.cluster.local:6627", None)):
        spec = {"adopt": {}, **({} if nimbus is None else {"nimbus": nimbus})}
        registry.put_topology(topology_body(f"t{at}", spec=spec))
    assert registry.clusters() == {"storm-nimbus.streams:6627"}
    assert len(registry.of_cluster("storm-nimbus.streams:6627")) == 6


def test_short_name_is_of_the_resource_s_own_namespace() -> None:
    registry = Registry("storm-nimbus.streams:6627")
    for namespace in ("one", "two"):
        registry.put_topology(topology_body("words", namespace, spec={"adopt": {}, "nimbus": "storm-nimbus"}))
    assert registry.clusters() == {"storm-nimbus.one:6627", "storm-nimbus.two:6627"}


def test_resource_without_any_nimbus_is_refused_with_what_to_give() -> None:
    one = managed_from(topology_body(), None)
    assert one.spec is None
    assert one.problem == "spec.nimbus: absent, and the operator has no default; give host:port"


class TestDefaultNimbusThatChanged:
    OLD, NEW = "blue-nimbus.storm:6627", "green-nimbus.storm:6627"
    RUNS: ClassVar = {"topologyId": "words-1-1", "nimbus": OLD}
    SUBMITTING: ClassVar = {"nimbus": OLD, "conditions": [{"type": "Submitted", "reason": "Submitting"}]}

    @pytest.mark.parametrize("status", [RUNS, SUBMITTING], ids=["runs", "is being submitted"])
    @pytest.mark.parametrize("default", [NEW, None])
    def test_topology_stays_where_it_is_and_both_addresses_are_told(
        self, status: dict[str, Any], default: str | None
    ) -> None:
        """Else a second copy would begin on the new one, and nobody would see to the first."""
        one = managed_from(topology_body(status=status), default)
        assert one.spec is not None
        assert one.nimbus == self.OLD
        assert one.stays.startswith(
            f"it runs on Nimbus {self.OLD}, and stays there; spec.nimbus is absent, and the operator's default is"
            f" {default or 'none'} by now"
        )

    def test_is_followed_once_nothing_runs(self) -> None:
        ended = {"nimbus": self.OLD, "conditions": [{"type": "Submitted", "reason": "Failed"}]}
        one = managed_from(topology_body(status=ended), self.NEW)
        assert (one.nimbus, one.stays) == (self.NEW, "")

    @pytest.mark.parametrize("written", [OLD, "blue-nimbus.storm.svc", "Blue-Nimbus.storm.svc.cluster.local:6627"])
    def test_is_none_where_only_its_spelling_has(self, written: str) -> None:
        one = managed_from(topology_body(status={**self.RUNS, "nimbus": written}), self.OLD)
        assert (one.nimbus, one.stays) == (self.OLD, "")

    def test_is_nothing_to_a_resource_that_names_its_own(self) -> None:
        one = managed_from(topology_body(spec={"adopt": {}, "nimbus": self.OLD}, status=self.RUNS), self.NEW)
        assert (one.nimbus, one.stays) == (self.OLD, "")


def test_port_that_cannot_be_makes_a_resource_invalid_and_no_cluster() -> None:
    registry = registry_of(topology_body(spec={"adopt": {}, "nimbus": "storm-nimbus.storm:66270"}))
    (one,) = registry.topologies()
    assert one.problem == "spec.nimbus: the port must be 1 to 65535; found 'storm-nimbus.storm:66270'"
    assert registry.clusters() == frozenset()


def test_invalid_resource_has_a_problem_and_no_cluster() -> None:
    one = managed(spec={"adopt": {}, "scheduling": {"mode": "Perhaps"}})
    assert one.spec is None
    assert "spec.scheduling.mode" in one.problem
    assert one.nimbus == ""


def test_resource_that_cannot_be_read_is_invalid_and_heard_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """All loops wait until every resource was heard of."""
    monkeypatch.setattr(module, "parse_topology", Mock(side_effect=TypeError("nobody thought of that")))
    registry = registry_of(topology_body())
    (one,) = registry.topologies()
    assert one.problem == "the operator cannot read it (TypeError: nobody thought of that); please report it"


def test_fields_of_newer_crds_do_not_make_a_resource_invalid() -> None:
    """Defaults that the API server puts into each resource once the CRDs are there, before the new operator is."""
    known: dict[str, Any] = {
        "nimbus": NIMBUS,
        "flux": {"jar": "/f.jar", "definition": {"name": "words", "anything": [{"goes": 1}]}},
        "scheduling": {"mode": "Observe", "excludedWindows": [{"cron": "0 8 * * *", "durationSeconds": 60}]},
        "parallelism": {"components": {"count": {"executors": 2}}},
    }
    newer = deepcopy(known) | {"fairness": "Weighted"}
    newer["scheduling"] |= {"fairness": {"weight": 1}}
    newer["scheduling"]["excludedWindows"][0]["fairness"] = 1
    newer["parallelism"]["components"]["count"]["fairness"] = 1
    old, new = (managed_from(topology_body(spec=spec), None) for spec in (known, newer))
    assert (new.problem, new.spec) == ("", old.spec)
    wrong = managed_from(topology_body(spec=newer | {"priority": "high"}), None)
    assert wrong.problem.startswith("spec.priority is 'high'")


def test_resource_that_is_nested_too_deeply_is_told_as_that() -> None:
    nested: dict[str, Any] = {}
    for _ in range(2_000):
        nested = {"more": nested}
    assert managed(annotations={"deep": nested}).problem == "the document is nested too deeply"


def test_status_of_another_version_does_not_make_a_resource_invalid() -> None:
    assert managed(status={"phase": 7, "unheardOf": True}).problem == ""


@pytest.mark.parametrize(
    ("annotations", "paused"),
    [(None, False), ({}, False), ({PAUSED_ANNOTATION: "false"}, False), ({PAUSED_ANNOTATION: "true"}, True)],
)
def test_only_the_annotation_with_the_word_true_pauses(annotations: dict[str, str] | None, paused: bool) -> None:
    assert managed(annotations=annotations).is_paused is paused


def test_being_deleted_is_seen() -> None:
    assert managed(deletionTimestamp=NOW).is_being_deleted
    assert not managed().is_being_deleted


def test_of_two_resources_for_one_topology_the_older_has_it() -> None:
    young = managed("young", spec={"adopt": {}, "topologyName": "words"}, creationTimestamp="2026-02-01T00:00:00Z")
    old = managed("old", spec={"adopt": {}, "topologyName": "words"}, creationTimestamp="2026-01-01T00:00:00Z")
    other = managed("other")
    owners, late = rightful((young, old, other))
    assert owners == {"words": old, "other": other}
    assert late == {young.key: old.key}


def test_of_two_of_one_age_the_first_by_name_has_it() -> None:
    b, a = (managed(name, spec={"adopt": {}, "topologyName": "words"}) for name in ("b", "a"))
    assert rightful((b, a)) == ({"words": a}, {b.key: a.key})


def test_invalid_resource_takes_no_name() -> None:
    broken = managed("a", spec={"topologyName": "words"}, creationTimestamp="2020-01-01T00:00:00Z")
    good = managed("words")
    assert rightful((broken, good)) == ({"words": good}, {})


class TestNameOfTheTopologyThatRuns:
    """Resource `old` is older than `young`."""

    RUNS: ClassVar = {"topologyId": "words-1-1", "nimbus": NIMBUS}
    TAKEN: ClassVar = {"conditions": [{"type": "Ready", "reason": "NameTaken"}]}

    @staticmethod
    def resource(name: str, status: dict[str, Any] | None = None, **spec: Any) -> Managed:
        created = "2026-01-01T00:00:00Z" if name == "old" else "2026-02-01T00:00:00Z"
        wanted = {"adopt": {}, "topologyName": "words", **spec}
        return managed(name, spec=wanted, status=status, creationTimestamp=created)

    def test_stays_with_it_when_its_spec_becomes_invalid(self) -> None:
        old, young = self.resource("old", self.RUNS, suspend="perhaps"), self.resource("young", self.TAKEN)
        assert old.spec is None
        assert rightful((old, young)) == ({}, {young.key: old.key})

    def test_stays_with_the_younger_when_the_spec_of_the_older_becomes_valid(self) -> None:
        old, young = self.resource("old"), self.resource("young", self.RUNS)
        assert rightful((old, young)) == ({"words": young}, {old.key: young.key})

    def test_stays_with_it_while_its_next_version_begins(self) -> None:
        old, young = self.resource("old", self.TAKEN), self.resource("young", {"nimbus": NIMBUS})
        assert rightful((old, young)) == ({"words": young}, {old.key: young.key})

    def test_belongs_to_the_valid_one_of_two_that_ran_it(self) -> None:
        old, young = self.resource("old", self.RUNS, suspend="perhaps"), self.resource("young", self.RUNS)
        assert rightful((old, young)) == ({"words": young}, {old.key: young.key})

    def test_is_found_by_the_nimbus_that_it_runs_on(self) -> None:
        broken = {"suspend": "perhaps"}
        registry = registry_of(
            topology_body("runs", spec=broken, status=self.RUNS),
            topology_body("elsewhere", spec=broken, status={**self.RUNS, "nimbus": "other.storm:6627"}),
            topology_body("ended", spec=broken, status={"nimbus": NIMBUS}),
            topology_body("valid", status=self.RUNS),
        )
        assert [one.key[1] for one in registry.left_on(NIMBUS)] == ["runs"]


def test_clusters_that_invalid_resources_were_managed_on_are_known_whether_anything_runs_or_not() -> None:
    """Pods may be held, and the topology may have been killed to be replaced."""
    broken = {"suspend": "perhaps"}
    registry = registry_of(
        topology_body("runs", spec=broken, status={"topologyId": "w-1-1", "nimbus": NIMBUS}),
        topology_body("ended", spec=broken, status={"nimbus": "other.storm:6627"}),
        topology_body("never", spec=broken),
        topology_body("valid", status={"nimbus": "third.storm:6627"}),
    )
    assert registry.left_clusters() == {NIMBUS, "other.storm:6627"}
    assert [one.key[1] for one in registry.were_on("other.storm:6627")] == ["ended"]


def test_one_that_is_being_deleted_keeps_its_name_until_it_is_gone() -> None:
    leaving = managed("old", spec={"adopt": {}, "topologyName": "words"}, deletionTimestamp=NOW)
    late = managed("words", creationTimestamp="2026-02-01T00:00:00Z")
    owners, refused = rightful((leaving, late))
    assert owners == {"words": leaving}
    assert refused == {late.key: leaving.key}


def test_registry_gives_the_valid_resources_of_a_cluster() -> None:
    registry = registry_of(
        topology_body("b"),
        topology_body("a"),
        topology_body("broken", spec={}),
        topology_body("elsewhere", spec={"adopt": {}, "nimbus": "other:6627"}),
    )
    assert [one.key[1] for one in registry.of_cluster(NIMBUS)] == ["a", "b"]
    assert registry.clusters() == {NIMBUS, "other.streams:6627"}


def test_resource_that_comes_to_name_another_cluster_is_of_that_one_alone() -> None:
    registry = registry_of(topology_body(), topology_body("other"))
    registry.put_topology(topology_body(spec={"adopt": {}, "nimbus": "other:6627"}))
    assert [one.key[1] for one in registry.of_cluster(NIMBUS)] == ["other"]
    assert [one.key[1] for one in registry.of_cluster("other.streams:6627")] == ["words"]
    registry.put_topology(topology_body(spec={"suspend": "perhaps"}, status={"topologyId": "w-1-1", "nimbus": NIMBUS}))
    assert registry.of_cluster("other.streams:6627") == ()
    assert [one.key[1] for one in registry.left_on(NIMBUS)] == ["words"]
    registry.forget_topology(("streams", "words"), "uid-words")
    assert registry.left_on(NIMBUS) == ()


def test_registry_has_the_last_state_of_each_resource() -> None:
    registry = registry_of(topology_body(generation=1), topology_body(generation=2))
    assert [one.generation for one in registry.topologies()] == [2]
    found = registry.topology(("streams", "words"))
    assert found is not None
    assert found.generation == 2
    registry.forget_topology(("streams", "words"), "uid-words")
    registry.forget_topology(("streams", "words"), "uid-words")
    assert registry.topologies() == ()


def test_same_name_in_two_namespaces_is_two_resources() -> None:
    registry = registry_of(topology_body(namespace="a"), topology_body(namespace="b"))
    assert [one.key for one in registry.topologies()] == [("a", "words"), ("b", "words")]


def test_rebalances_come_oldest_first() -> None:
    registry = Registry(NIMBUS)
    for name in ("p-20270115-2", "p-20260101-1", "p-20270115-1"):
        registry.put_rebalance(rebalance(of=plan_named(name)))
    names = [body["metadata"]["name"] for body in registry.rebalances()]
    assert names == ["p-20260101-1", "p-20270115-1", "p-20270115-2"]


def test_rebalances_of_a_resource_come_oldest_first_and_without_those_of_others() -> None:
    registry, other = Registry(NIMBUS), managed("other")
    for name in ("p-2", "p-1"):
        registry.put_rebalance(rebalance(of=plan_named(name)))
        registry.put_rebalance(rebalance(of=plan_named(f"{name}-other"), owner=other))
    assert [body["metadata"]["name"] for body in registry.rebalances_of(managed())] == ["p-1", "p-2"]
    registry.forget_rebalance(("streams", "p-1-other"))
    assert [body["metadata"]["name"] for body in registry.rebalances_of(other)] == ["p-2-other"]
    assert registry.rebalances_of(managed("none")) == ()


def test_list_does_not_undo_what_the_watch_told_since() -> None:
    def at(version: str, state: str) -> dict[str, Any]:
        body = rebalance(state, of=plan_named("p-1"))
        return {**body, "metadata": {**body["metadata"], "resourceVersion": version}}

    registry = registry_of(at("1000", "Approved"))
    registry.put_listed_rebalances([at("999", "Proposed")])
    assert [body["status"]["state"] for body in registry.rebalances()] == ["Approved"]
    registry.put_listed_rebalances([at("1001", "Applying")])
    assert [body["status"]["state"] for body in registry.rebalances()] == ["Applying"]


def test_rebalance_that_is_gone_is_forgotten() -> None:
    registry = registry_of(rebalance(of=plan_named("p-1")), rebalance(of=plan_named("p-2")))
    registry.forget_rebalance(("streams", "p-1"))
    assert [body["metadata"]["name"] for body in registry.rebalances()] == ["p-2"]
